package batch_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"puntuale/internal/batch"
)

// TestBatches: each value comes once, in order, in batches of at most the limit. A closed queue ends after its last
// value, for all who take from it.
func TestBatches(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := batch.New[int]()
		var all []int
		var sizes []int
		var takers sync.WaitGroup
		takers.Go(func() {
			for b := range q.Batches(t.Context(), 3) {
				sizes, all = append(sizes, len(b)), append(all, b...)
				if len(sizes) == 1 {
					for i := range 6 {
						q.Add(2 + i)
					}
				}
			}
		})
		synctest.Wait()
		q.Add(1)
		synctest.Wait()
		for range 3 {
			takers.Go(func() {
				for range q.Batches(t.Context(), 3) {
				}
			})
		}
		q.Close()
		takers.Wait()
		if !slices.Equal(all, []int{1, 2, 3, 4, 5, 6, 7}) || !slices.Equal(sizes, []int{1, 3, 3}) {
			t.Errorf("%v in batches of %v", all, sizes)
		}
	})
}

// TestBatchesEndWithContext: who waits in vain ends with the context, and the values stay.
func TestBatchesEndWithContext(t *testing.T) {
	t.Parallel()
	q := batch.New[int]()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range q.Batches(ctx, 1) {
		t.Error("a batch of nothing")
	}
	q.Add(1)
	for b := range q.Batches(t.Context(), 1) {
		if b[0] != 1 {
			t.Error(b)
		}
		break
	}
}
