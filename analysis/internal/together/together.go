// Package together does several things at once.
package together

import "sync"

// Do calls do for every number below n, at most so many at a time, and returns when all are done. They begin in order.
func Do(n, atOnce int, do func(i int)) {
	if n == 1 || atOnce == 1 {
		for i := range n {
			do(i)
		}
		return
	}
	next := make(chan int)
	var done sync.WaitGroup
	for range min(n, atOnce) {
		done.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	done.Wait()
}
