// Package prometheus shows what a running machine's book tells as metrics of Prometheus.
//
// A [Collector] turns a live.Snapshot and the state of the [Agent] into series. The tables of this package say of each name its
// type, labels, unit, formula and what it means that it is absent; METRICS.md is made of them, and a test holds it to them.
//
// It decides four things. A counter is 0 first: a set of series that is new is shown as 0 until a scrape of every server has seen
// it, because increase() takes no notice of what a counter held when it was seen first. A counter never goes back while its
// set is there. The number of series is bounded, and what does not fit is dropped whole and counted. And no name that a job gives
// itself can break a scrape: it is cleaned, and rows whose labels are then the same are one.
//
// It refuses to show a number that is not known: a missing one is an absent series, never 0.
//
// Read [Options], table and set first.
package prometheus
