package store_test

import (
	"context"
	"testing"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// TestWriterQueueIsBounded checks that only a limited number of calls waits at a writer, and that the next call is
// refused immediately. A call that prevents sending is never refused, and runs before the waiting calls.
func TestWriterQueueIsBounded(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *storetest.World) {
		const bound = 4096
		c := w.Client(puntuale.AccountFull)
		release := store.Occupy(w.Store, c.ID)
		crowd, leave := context.WithCancel(t.Context())
		left := make(chan error, bound)
		for range bound {
			go func() { left <- store.Write(crowd, w.Store, c.ID, int64(c.ID), func() {}) }()
		}
		storetest.Until(t, "all of them wait", func() bool { return store.Queued(w.Store, c.ID) >= bound })
		if _, err := c.Start(t.Context(), c.Run("+393331234567", storetest.Begin, 1)); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Errorf("one more: %v", err)
		}
		prevents, _ := withAdmissionDeadline(t, true)
		stopped := make(chan error, 1)
		go func() { stopped <- store.Write(prevents, w.Store, c.ID, int64(c.ID), func() {}) }()
		storetest.Until(t, "what prevents sends waits, too", func() bool { return store.Queued(w.Store, c.ID) > bound })
		leave()
		for range bound {
			<-left
		}
		release()
		soon(t, stopped, "what prevents sends is not done")
	})
}
