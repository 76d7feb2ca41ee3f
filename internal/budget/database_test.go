package budget

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"puntuale"
)

// onDatabase lists the operations that are measured on each database.
var onDatabase = []operation{
	{name: "http-start", messages: 3, few: 40, prepare: func(t testing.TB, w *world, _ int) func(int) error {
		c := w.clients(t, 1)[0]
		return startOverHTTP(t, w, c.sequence, c.key)
	}},
	{name: "start/alone", messages: 3, few: 40, prepare: func(t testing.TB, w *world, _ int) func(int) error {
		return startAlone(t, w)
	}},
	{name: "start/64-at-once", messages: 64 * 3, shared: true, few: 10, prepare: startTogether},
	{name: "claim", messages: batch, few: 10, prepare: func(t testing.TB, w *world, n int) func(int) error {
		parts, node, tokens := w.parts(t, n), w.join(t), make([]int64, n)
		t.Cleanup(func() { // cancels the rest, because a later dispatcher would send the messages that have no outcome
			for i, part := range parts {
				if err := w.recordAll(context.Background(), part, tokens[i]); err != nil {
					t.Error(err)
				}
			}
		})
		return func(i int) (err error) {
			tokens[i], err = w.claimAll(t.Context(), node, parts[i])
			return err
		}
	}},
	{name: "record", messages: batch, few: 10, prepare: func(t testing.TB, w *world, n int) func(int) error {
		parts, node, tokens := w.parts(t, n), w.join(t), make([]int64, n)
		for i, part := range parts {
			var err error
			if tokens[i], err = w.claimAll(t.Context(), node, part); err != nil {
				t.Fatal(err)
			}
		}
		return func(i int) error { return w.recordAll(t.Context(), parts[i], tokens[i]) }
	}},
	{name: "due-and-contents", messages: batch, few: 20, prepare: readDue},
	{name: "dispatch", messages: batch, shared: true, few: 10, prepare: dispatchOnDatabase},
	{name: "period", few: 40, prepare: reads(func(t testing.TB, c *client, _ []puntuale.MessageID) (int, error) {
		found, _, err := c.Outcomes(t.Context(), now().AddDate(0, 0, -31), now(), puntuale.Page{Limit: 10})
		return len(found), err
	})},
	{name: "list", few: 40, prepare: reads(func(t testing.TB, c *client, _ []puntuale.MessageID) (int, error) {
		found, _, err := c.Messages(t.Context(), puntuale.MessageFilter{}, puntuale.Page{Limit: 20})
		return len(found), err
	})},
	{name: "details", few: 40, prepare: reads(func(t testing.TB, c *client, ids []puntuale.MessageID) (int, error) {
		found, err := c.Details(t.Context(), ids[:20])
		return len(found), err
	})},
}

// startAlone returns a function that starts three messages. Each call has its own commit.
func startAlone(t testing.TB, w *world) func(int) error {
	t.Helper()
	c := w.clients(t, 1)[0]
	due := now().AddDate(0, 0, 1)
	start := func(int) error {
		_, err := c.Start(t.Context(), c.run(3, due))
		return err
	}
	if err := start(0); err != nil { // the first start prepares the statements
		t.Fatal(err)
	}
	return start
}

// startTogether returns a function that starts 64 runs at once, of three messages each, for 16 clients. So calls share
// commits.
func startTogether(t testing.TB, w *world, _ int) func(int) error {
	t.Helper()
	clients := w.clients(t, 16)
	due := now().AddDate(0, 0, 1)
	return func(int) error {
		var group sync.WaitGroup
		failed := make(chan error, 64)
		for k := range cap(failed) {
			c := clients[k%len(clients)]
			group.Go(func() {
				_, err := c.Start(t.Context(), c.run(3, due))
				failed <- err
			})
		}
		group.Wait()
		close(failed)
		var err error
		for f := range failed {
			err = errors.Join(err, f)
		}
		return err
	}
}

// parts returns n batches of due messages of four clients.
func (w *world) parts(t testing.TB, n int) [][]puntuale.MessageRef {
	t.Helper()
	var all []puntuale.MessageRef
	for _, c := range w.clients(t, 4) {
		all = append(all, c.plan(t, n*batch/4)...)
	}
	parts := make([][]puntuale.MessageRef, n)
	for i, ref := range all { // each batch gets messages of every client
		parts[i%n] = append(parts[i%n], ref)
	}
	for _, part := range parts {
		slices.SortFunc(part, func(a, b puntuale.MessageRef) int { return int(a.ID - b.ID) })
	}
	return parts
}

// readDue reads due messages and their contents, as a dispatcher does before it sends them.
func readDue(t testing.TB, w *world, _ int) func(int) error {
	t.Helper()
	c := w.clients(t, 1)[0]
	planned := c.remind(t, batch)
	t.Cleanup(func() {
		if err := c.cancel(planned); err != nil {
			t.Error(err)
		}
	})
	from := []puntuale.QueueCursor{{Session: c.session}}
	return func(int) error {
		due, err := w.Due(t.Context(), from, now(), batch)
		if err != nil {
			return err
		}
		refs := make([]puntuale.StepRef, len(due))
		for i, m := range due {
			refs[i] = puntuale.StepRef{RunRef: puntuale.RunRef{Client: m.Client, ID: m.Run}, Step: m.Step}
		}
		contents, err := w.Contents(t.Context(), refs)
		if err == nil && (len(due) != batch || len(contents) != batch) {
			err = fmt.Errorf("%d messages are due, %d have contents", len(due), len(contents))
		}
		return err
	}
}

// dispatchOnDatabase sends n batches through a dispatcher and the real store. It has its own database, because a
// dispatcher sends for all sessions of a database.
func dispatchOnDatabase(t testing.TB, w *world, n int) func(int) error {
	t.Helper()
	w = newWorld(t, w.driver)
	w.clients(t, 1)[0].remind(t, n*batch)
	return func(i int) error {
		if i > 0 {
			return nil // the first call sent all messages
		}
		return dispatchAll(t.Context(), w, w, n*batch)
	}
}

// reads makes a client with messages that left and messages that wait. ask is the query to measure.
func reads(ask func(testing.TB, *client, []puntuale.MessageID) (int, error)) func(testing.TB, *world, int) func(int) error {
	return func(t testing.TB, w *world, _ int) func(int) error {
		t.Helper()
		c := w.clients(t, 1)[0]
		refs := c.plan(t, 100)
		token, err := w.claimAll(t.Context(), w.join(t), refs[:50])
		if err == nil {
			err = w.recordAll(t.Context(), refs[:50], token)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := c.cancel(refs[50:]); err != nil {
			t.Fatal(err)
		}
		var ids []puntuale.MessageID
		for _, r := range refs {
			ids = append(ids, r.ID)
		}
		return func(int) error {
			n, err := ask(t, c, ids)
			if err == nil && n == 0 {
				err = errors.New("there was nothing")
			}
			return err
		}
	}
}

// cancel cancels the messages, so that no later dispatcher sends them.
func (c *client) cancel(refs []puntuale.MessageRef) error {
	var ids []puntuale.MessageID
	for _, r := range refs {
		ids = append(ids, r.ID)
	}
	_, err := c.CancelMessages(context.Background(), ids, puntuale.DateOf(now()), now())
	return err
}
