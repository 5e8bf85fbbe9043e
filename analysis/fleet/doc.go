// Package fleet says what the GPUs of a cluster did over days, job by job, from what a Prometheus-compatible server kept: how many
// GPU-hours each job had, how many of them went to waiting for data and to idle allocation, and how that compares with the time
// before.
//
// It decides which questions are put to the server ([Queries]) and what the answers amount to ([Build]); it asks nothing itself.
// It reads the series of `datawait serve`, and for GPUs that no such agent watches those of a dcgm-exporter, which tell allocation
// and work, but not waiting.
//
// It refuses to show a counter that grew by more than the time that passed, to call a wait of 0 what no hook looked at, and to hold
// two windows against each other of which one has too little data.
//
// Read [Fleet] and [Query] first.
package fleet
