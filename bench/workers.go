package main

import (
	"sync"
	"sync/atomic"
	"time"
)

// each calls f for the numbers 0 to n-1, in several goroutines (workers). It returns how long all calls took. The
// argument worker of f is the worker's number. After an error, a worker stops.
func each(n, workers int, f func(worker, i int) error) (time.Duration, error) {
	var next atomic.Int64
	var group sync.WaitGroup
	errs := make(chan error, workers)
	begun := time.Now()
	for w := range workers {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				if err := f(w, int(i)); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	group.Wait()
	took := time.Since(begun)
	select {
	case err := <-errs:
		return 0, err
	default:
		return took, nil
	}
}

// steadily calls f for the numbers 0 to n-1, from several workers. The first call begins at the time in the argument
// from. The argument rate is how many calls begin in a second.
func steadily(n int, rate float64, from time.Time, workers int, f func(i int) error) error {
	_, err := each(n, workers, func(_, i int) error {
		time.Sleep(time.Until(from.Add(time.Duration(float64(i) / rate * float64(time.Second)))))
		return f(i)
	})
	return err
}
