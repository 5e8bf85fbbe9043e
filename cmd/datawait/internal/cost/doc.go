// Package cost measures what datawait costs, with the binary as people run it: a report of a long job, and an agent beside a
// running one. It holds benchmarks only; what a package costs by itself is measured beside that package.
package cost
