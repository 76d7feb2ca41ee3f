package storetest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
)

// canceller is the method of [puntuale.Tenant] that CancelPending calls.
type canceller interface {
	CancelPending(ctx context.Context, target puntuale.CancelTarget, day puntuale.Date, now time.Time, took func([]puntuale.CancelledMessage) error) error
}

// CancelPending calls the store's method, and returns all messages that the store reports as cancelled.
func CancelPending(ctx context.Context, c canceller, phones []string, all bool, day puntuale.Date, now time.Time) (done []puntuale.CancelledMessage, err error) {
	err = c.CancelPending(ctx, puntuale.CancelTarget{Phones: phones, All: all}, day, now, func(some []puntuale.CancelledMessage) error {
		done = append(done, some...)
		return nil
	})
	return done, err
}

func testStop(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	first, second := c.MustStart(phone, Begin, 3), c.MustStart(phone, Begin.Add(-time.Hour), 2)
	other := c.MustStart("+393330000000", Begin, 1)
	node := w.MustJoin()
	w.MustClaim(node, Begin, c.Items(phone, 0, first[0])...)
	stopped, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
	if want := append(slices.Clone(first[1:]), second...); err != nil || !slices.Equal(stopped.IDs, want) {
		t.Fatalf("stopped = %+v, %v, want %v", stopped, err, want)
	}
	if d := c.Detail(first[1]); d.State != puntuale.Cancelled || d.Intent != -1 || !d.Done.Equal(Begin) || d.Response().Code != puntuale.ReasonCancelled {
		t.Fatalf("detail = %+v", d)
	}
	if a, b := c.Detail(first[0]), c.Detail(other[0]); a.State != puntuale.Pending || b.State != puntuale.Pending {
		t.Fatalf("states = %v, %v", a.State, b.State)
	}
	again, err := c.Stop(ctx, c.Sequence, []string{phone}, "", Day, Begin)
	if err != nil || len(again.IDs) != 0 || again.Usage.Used != stopped.Usage.Used+1 {
		t.Fatalf("again = %+v, %v", again, err)
	}
}

// testReference checks that a stop, a cancellation, a restart and a list find only the runs of one client with the
// given reference.
func testReference(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	begin := func(c *Client, reference string, how puntuale.IfRunning) puntuale.StartedRun {
		t.Helper()
		r := c.Run(phone, Begin.Add(time.Hour), 2)
		r.Run.Reference, r.IfRunning = reference, how
		started, err := c.Start(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		return started
	}
	first, second, nameless := begin(c, "a", ""), begin(c, "b", ""), begin(c, "", "")
	theirs := begin(other, "a", "")
	if d := c.Detail(first.IDs[0]); d.Reference != "a" {
		t.Errorf("the reference of a message: %q", d.Reference)
	}
	again := c.MustResend(first.IDs[1])[0] // replaces the second message and has another id
	if got, _, err := c.Messages(ctx, puntuale.MessageFilter{Reference: "a"}, puntuale.Page{Limit: 10}); err != nil || len(got) != 3 || got[0].ID != again {
		t.Errorf("listed: %+v, %v", got, err)
	}
	if kept := begin(c, "a", puntuale.IfRunningSkip); !slices.Equal(kept.IDs, []puntuale.MessageID{first.IDs[0], again}) {
		t.Errorf("what runs under the reference: %v", kept.IDs)
	}
	moved := begin(c, "a", puntuale.IfRunningRestart)
	for id, want := range map[puntuale.MessageID]puntuale.State{
		first.IDs[0]: puntuale.Cancelled, again: puntuale.Cancelled, second.IDs[0]: puntuale.Pending, nameless.IDs[0]: puntuale.Pending,
	} {
		if got := c.Detail(id).State; got != want {
			t.Errorf("message %d after a restart: %v, want %v", id, got, want)
		}
	}
	stopped, err := c.Stop(ctx, c.Sequence, []string{phone}, "b", Day, Begin)
	if err != nil || !slices.Equal(stopped.IDs, second.IDs) {
		t.Errorf("stopped: %+v, %v", stopped, err)
	}
	var done []puntuale.MessageID
	if err := c.CancelPending(ctx, puntuale.CancelTarget{Reference: "a"}, Day, Begin, func(some []puntuale.CancelledMessage) error {
		for _, m := range some {
			done = append(done, m.ID)
		}
		return nil
	}); err != nil || !slices.Equal(done, moved.IDs) {
		t.Errorf("cancelled: %v, %v, want %v", done, err, moved.IDs)
	}
	if d := other.Detail(theirs.IDs[0]); d.State != puntuale.Pending {
		t.Errorf("another client's message: %v", d.State)
	}
	if d := c.Detail(nameless.IDs[0]); d.State != puntuale.Pending {
		t.Errorf("a message without a reference: %v", d.State)
	}
	if _, err := c.Erase(ctx, puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}}, Now: Begin, Day: Day}); err != nil {
		t.Fatal(err)
	}
	if n := w.Int("select count(*) from run where client_id = $1 and reference <> ''", c.ID); n != 0 {
		t.Errorf("%d references stay after an erasure", n)
	}
}

func testCancelPending(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	phones := []string{"+393330000001", "+393330000002", "+393330000003"}
	var ids [][]puntuale.MessageID
	for _, p := range phones {
		ids = append(ids, c.MustStart(p, Begin, 2))
	}
	wished := c.Run(phones[0], Begin, 1)
	wished.Messages[0].Desired = time.Time{}
	r, err := c.Start(ctx, wished)
	if err != nil {
		t.Fatal(err)
	}
	if done, err := CancelPending(ctx, c, []string{}, false, Day, Begin); err != nil || len(done) != 0 {
		t.Fatalf("no phones = %+v, %v", done, err)
	}
	done, err := CancelPending(ctx, c, []string{phones[0], phones[0], "+390000"}, false, Day, Begin)
	if err != nil || len(done) != 3 || done[0].ID != ids[0][0] || done[1].ID != ids[0][1] || done[2].ID != r.IDs[0] {
		t.Fatalf("one phone = %+v, %v", done, err)
	}
	if !done[1].Desired.Equal(Begin.Add(time.Second)) || !done[2].Desired.Equal(Begin) {
		t.Fatalf("desired = %+v", done)
	}
	done, err = CancelPending(ctx, c, nil, true, Day, Begin)
	if err != nil || len(done) != 4 || done[0].ID != ids[1][0] {
		t.Fatalf("all = %+v, %v", done, err)
	}
	if done, err = CancelPending(ctx, c, nil, true, Day, Begin); err != nil || len(done) != 0 {
		t.Fatalf("nothing left = %+v, %v", done, err)
	}
}

// testCancelChunks cancels more messages than one transaction may cancel.
func testCancelChunks(t *testing.T, w *World) {
	c := w.Client(puntuale.AccountFull)
	const runs = 21
	Together(runs, func(int) {
		if _, err := c.Start(context.Background(), c.Run(phone, Begin, puntuale.MaxSteps)); err != nil {
			t.Error(err)
		}
	})
	done, err := CancelPending(context.Background(), c, nil, true, Day, Begin)
	if err != nil || len(done) != runs*puntuale.MaxSteps {
		t.Fatalf("%d cancelled, %v", len(done), err)
	}
	if !slices.IsSortedFunc(done, func(a, b puntuale.CancelledMessage) int { return int(a.ID - b.ID) }) {
		t.Error("not by id")
	}
	if used := w.Int("select used from api_usage"); used != runs+1 {
		t.Fatalf("%d calls counted", used)
	}
}

// testCancelledIsNeverGranted claims and cancels the same messages at the same time. Each message must be either
// claimed or cancelled, never both.
func testCancelledIsNeverGranted(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	for round := range 6 {
		number := fmt.Sprintf("+3933300000%02d", round)
		ids := slices.Concat(c.MustStart(number, Begin, 20), c.MustStart(number, Begin, 20))
		var mu sync.Mutex
		granted, cancelled := map[puntuale.MessageID]int{}, map[puntuale.MessageID]int{}
		Together(4, func(i int) {
			switch i {
			case 0, 1: // each of these two goroutines claims one half, in small batches
				for part := range slices.Chunk(ids[i*20:(i+1)*20], 4) {
					_, got := w.MustClaim(node, Begin.Add(time.Minute), c.Items(number, 0, part...)...)
					mu.Lock()
					for j, g := range got {
						if g == puntuale.ClaimGranted {
							granted[part[j]]++
						}
					}
					mu.Unlock()
				}
			case 2:
				stopped, err := c.Stop(ctx, c.Sequence, []string{number}, "", Day, Begin)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, id := range stopped.IDs {
					cancelled[id]++
				}
				mu.Unlock()
			case 3:
				done, err := CancelPending(ctx, c, []string{number}, false, Day, Begin)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, m := range done {
					cancelled[m.ID]++
				}
				mu.Unlock()
			}
		})
		for _, id := range ids {
			if granted[id]+cancelled[id] != 1 {
				t.Fatalf("message %d: granted %d times, cancelled %d times", id, granted[id], cancelled[id])
			}
			if d := c.Detail(id); (d.State == puntuale.Cancelled) != (cancelled[id] == 1) || (d.Intent > 0) != (granted[id] == 1) {
				t.Fatalf("message %d: granted %d, cancelled %d, stored %v %d", id, granted[id], cancelled[id], d.State, d.Intent)
			}
		}
	}
}

// testClaimsAndCancelsDoNotDeadlock checks that claims and cancellations of the same messages never deadlock. To prevent
// this, both lock the messages in the same order.
func testClaimsAndCancelsDoNotDeadlock(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	node := w.MustJoin()
	for round := range 60 {
		var ids []puntuale.MessageID
		for range 8 {
			ids = append(ids, c.MustStart(phone, Begin, puntuale.MaxSteps)...)
		}
		items := c.Items(phone, 0, ids...)
		slices.Reverse(items) // the store sorts the messages, so the order of the dispatcher does not matter
		Together(2, func(i int) {
			if i == 0 {
				w.MustClaim(node, Begin.Add(time.Hour), items...)
			} else if _, err := CancelPending(ctx, c, nil, true, Day, Begin); err != nil {
				t.Error(err)
			}
		})
		if n := w.DB.Meter.Deadlocks.Load(); n > 0 {
			t.Fatalf("%d deadlocks after %d rounds", n, round+1)
		}
	}
}
