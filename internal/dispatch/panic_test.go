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

// TestBadRow: the store panics at one row, in each call that the dispatcher makes in the background. The server goes on, and
// nothing is lost or repeated: while the row is bad, what was asked with it waits, and afterwards each message leaves once.
func TestBadRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		call    string
		late    bool
		expires bool // true: the messages expire
	}{
		"contents":                     {call: "Contents"},
		"claims":                       {call: "Claim"},
		"claims, after they committed": {call: "Claim", late: true},
		"outcomes":                     {call: "Record"},
		"expiries":                     {call: "Settle", expires: true},
		"reads":                        {call: "Due"},
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
					good := slices.Delete(slices.Clone(ids), bad, bad+1)
					badOne := func() puntuale.MessageDetail {
						found, err := w.store.Tenant(other).Details(t.Context(), ids[bad:bad+1])
						if err != nil || len(found) != 1 {
							t.Fatal(found, err)
						}
						return found[0]
					}
					q := &badRow{Queue: w.store, call: test.call, late: test.late, message: ids[bad], session: session, run: badOne().Run}
					cfg := w.config()
					cfg.Queue = q
					if test.expires {
						cfg.Connector = func(puntuale.Session) puntuale.Connector { return nil }
					}
					d := w.dispatch(t, cfg)
					time.Sleep(10 * time.Second)
					if got := w.states(t, good); q.panics.Load() == 0 || !test.expires && got[puntuale.Failed] > 0 {
						t.Errorf("after %d panics: %v", q.panics.Load(), got)
					}
					q.mended.Store(true)
					time.Sleep(2 * time.Minute)
					if err := d.Healthy(); err != nil {
						t.Error(err)
					}
					want := puntuale.Completed
					if test.expires {
						want = puntuale.Failed
					}
					if got := w.states(t, good); got[want] != len(good) || badOne().State != want {
						t.Errorf("after it was mended: %v, and %+v", got, badOne())
					}
					rows, copies := w.copies(t)
					for _, id := range good {
						if n := copies[id]; !test.expires && (n != 1 || rows[id] != 1) {
							t.Errorf("message %d arrived %d times", id, n)
						}
					}
					theirs, _, err := w.store.Tenant(other).SandboxMessages(t.Context(), puntuale.Page{Limit: 10})
					if n := len(theirs); err != nil || !test.expires && (n != 1 || theirs[0].Copies != 1) {
						t.Errorf("the bad one: %+v (%v)", theirs, err)
					}
				})
			})
		})
	}
}
