// Package live is the book of a machine that is watched for weeks: who has which GPU, where its time goes, and what every rank,
// its workers and its hook do, as counters that only grow.
//
// A [Node] takes the streams of any number of jobs, ranks and restarts, and those of the agent, and books them into the same ledger
// as a finished recording ([ledger.Book]): one for each episode, which is a stretch in which one tenant has one GPU and no process
// of its ends. It decides what a job is called, which GPU a process trains on, to whom a GPU belongs at a time, and what of a
// restart of the agent itself is counted. It is pure: time comes with [Node.Tick], and what must outlive a restart goes through
// [State].
//
// It refuses to guess: the time in which nobody watched is booked as unattributed, a wait whose batch or device clock was not
// seen is in no numerator and no denominator of that question, and a GPU of which nobody tells who has it is in nobody's account.
//
// Read [Snapshot], [Node] and episode.go first.
package live
