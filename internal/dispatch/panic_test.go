package dispatch_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
)

// badRow is a store that panics at every call with one message, or one session, until it is mended.
type badRow struct {
	puntuale.Queue
	call    string
	late    bool // true: it panics after the call, as if the answer of the transaction were lost
	message puntuale.MessageID
	run     puntuale.RunID
	session puntuale.SessionID
	mended  atomic.Bool
	panics  atomic.Int64
}

func (b *badRow) at(call string, late, bad bool) {
	if bad && b.call == call && b.late == late && !b.mended.Load() {
		b.panics.Add(1)
		b.mended.Store(late) // a transaction that commits and has no answer is rare
		panic("a bad row")
	}
}

func (b *badRow) Contents(ctx context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	b.at("Contents", false, slices.ContainsFunc(steps, func(s puntuale.StepRef) bool { return s.ID == b.run }))
	return b.Queue.Contents(ctx, steps)
}

func (b *badRow) Claim(ctx context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	bad := slices.ContainsFunc(c.Messages, func(m puntuale.ClaimItem) bool { return m.ID == b.message })
	b.at("Claim", false, bad)
	answers, err := b.Queue.Claim(ctx, c)
	b.at("Claim", true, bad)
	return answers, err
}

func (b *badRow) Record(ctx context.Context, now time.Time, all []puntuale.Result) ([]bool, error) {
	b.at("Record", false, slices.ContainsFunc(all, func(r puntuale.Result) bool { return r.ID == b.message }))
	return b.Queue.Record(ctx, now, all)
}

func (b *badRow) Settle(ctx context.Context, node puntuale.NodeID, now time.Time, all []puntuale.Settlement) error {
	b.at("Settle", false, slices.ContainsFunc(all, func(s puntuale.Settlement) bool { return s.ID == b.message }))
	return b.Queue.Settle(ctx, node, now, all)
}

func (b *badRow) Due(ctx context.Context, from []puntuale.QueueCursor, horizon time.Time, limit int) ([]puntuale.DueMessage, error) {
	b.at("Due", false, slices.ContainsFunc(from, func(q puntuale.QueueCursor) bool { return q.Session == b.session }))
	return b.Queue.Due(ctx, from, horizon, limit)
}

// TestBadRow: the store panics at one row, in each call with a batch. Only this row waits, or fails. All others leave, once
// each, and the server stays healthy. When the row is mended, it leaves once, too.
func TestBadRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call    string
		late    bool
		copies  int            // how often the bad message arrived while its row is bad
		state   puntuale.State // of the bad message at that time
		expires bool           // true: the messages expire
	}{
		"contents":                     {call: "Contents", state: puntuale.Pending},
		"claims":                       {call: "Claim", state: puntuale.Pending},
		"claims, after they committed": {call: "Claim", late: true, state: puntuale.Completed, copies: 1},
		"outcomes":                     {call: "Record", state: puntuale.Pending, copies: 1},
		"expiries":                     {call: "Settle", state: puntuale.Pending, expires: true},
		"reads":                        {call: "Due", state: puntuale.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, open func(*testing.T) *world) {
				synctest.Test(t, func(t *testing.T) {
					w := open(t)
					other, session := w.newClient(t)
					const bad, all = 7, 40
					valid, due := time.Hour, time.Now().Add(3*time.Second)
					if test.expires {
						valid, due = 4*time.Second, time.Now()
					}
					var ids []puntuale.MessageID
					for i := range all {
						client, from := w.client, w.session
						if i == bad {
							client, from = other, session
						}
						started, err := w.beginFor(t.Context(), client, from, phoneOf(i), valid, due)
						if err != nil {
							t.Fatal(err)
						}
						ids = append(ids, started...)
					}
					theirs := w.store.Tenant(other)
					ofBad := func() puntuale.MessageDetail {
						t.Helper()
						found, err := theirs.Details(t.Context(), ids[bad:bad+1])
						if err != nil || len(found) != 1 {
							t.Fatal(found, err)
						}
						return found[0]
					}
					copiesOfBad := func() (n int) {
						t.Helper()
						found, _, err := theirs.SandboxMessages(t.Context(), puntuale.Page{Limit: 10})
						if err != nil {
							t.Fatal(err)
						}
						for _, m := range found {
							n += m.Copies
						}
						return n
					}
					q := &badRow{Queue: w.store, call: test.call, late: test.late, message: ids[bad], session: session, run: ofBad().Run}
					cfg := w.config()
					cfg.Queue = q
					if test.expires {
						cfg.Connector = func(puntuale.Session) puntuale.Connector { return nil }
					}
					d := w.dispatch(t, cfg)
					good := slices.Delete(slices.Clone(ids), bad, bad+1)
					time.Sleep(10 * time.Second)
					want := puntuale.Completed
					if test.expires {
						want = puntuale.Failed
					}
					if got := w.states(t, good); got[want] != len(good) {
						t.Errorf("the others: %v", got)
					}
					if m := ofBad(); q.panics.Load() == 0 || m.State != test.state || copiesOfBad() != test.copies {
						t.Errorf("after %d panics, the bad one is %v %q with %d copies", q.panics.Load(), m.State, m.Reason, copiesOfBad())
					}
					if err := d.Healthy(); err != nil {
						t.Error(err)
					}
					q.mended.Store(true)
					time.Sleep(2 * time.Minute)
					if m := ofBad(); m.State != want || copiesOfBad() != len(w.ledger(t))/(all-1) {
						t.Errorf("after it was mended, it is %v %q with %d copies", m.State, m.Reason, copiesOfBad())
					}
					rows, copies := w.copies(t)
					for _, id := range good {
						if n := copies[id]; !test.expires && (n != 1 || rows[id] != 1) {
							t.Errorf("message %d arrived %d times", id, n)
						}
					}
				})
			})
		})
	}
}
