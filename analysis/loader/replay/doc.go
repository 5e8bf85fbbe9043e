// Package replay plays PyTorch's data loader over the times of recorded batches: one configuration of it ([Setup]), the batches
// in their order ([Tape]), and how long a batch then takes ([Outcome]).
//
// The rules are those of torch/utils/data/dataloader.py (1.13 to 2.9): W·P indices are sent ahead, one worker after the other; a
// new one is sent when a batch has been taken over; a worker builds what it was sent in order; batches are delivered in
// their order, or with in_order=False as they come. What is handed over on its way (the feeder thread of a worker pickles while
// the next batch is built) takes time beside the next build, what the training thread does to take it over takes the thread's own.
//
// Where builds have a core each and hold each other up nowhere, a recursion over the batches is exact ([Player.Play] then costs
// some ten nanoseconds a batch). Else the builds are played event by event, some fifty nanoseconds a batch however many workers
// there are: those on the CPU share the cores evenly, as a fair scheduler has it, and what serves one build at a time is a queue. A
// slow twin in the tests knows neither shortcut.
package replay
