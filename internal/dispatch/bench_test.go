package dispatch_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/dispatch"
)

// noop is a network that accepts every message immediately.
type noop struct{ sent atomic.Int64 }

func (*noop) Capabilities() puntuale.Capabilities {
	return puntuale.Capabilities{Name: "noop", Slots: 1000, SendTimeout: time.Minute, Recovery: puntuale.RecoverSameID}
}
func (*noop) Online(puntuale.SessionID) bool { return true }
func (*noop) Prepare(_ context.Context, e puntuale.Envelope) (puntuale.Prepared, error) {
	return puntuale.Prepared{Envelope: e}, nil
}

func (n *noop) Send(context.Context, puntuale.Prepared) (puntuale.Acceptance, error) {
	n.sent.Add(1)
	return puntuale.Acceptance{}, nil
}

// meter stores the lateness of each message and counts outcomes.
type meter struct {
	puntuale.NoMeter
	mu      sync.Mutex
	late    []time.Duration
	batches map[string][2]int
}

func (m *meter) Late(d time.Duration) {
	m.mu.Lock()
	m.late = append(m.late, d)
	m.mu.Unlock()
}

func (m *meter) Batch(op string, size int, _ time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.batches == nil {
		m.batches = map[string][2]int{}
	}
	b := m.batches[op]
	m.batches[op] = [2]int{b[0] + 1, b[1] + size}
}

// quantiles sorts the durations, and describes them in one line.
func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(q float64) time.Duration {
		return all[min(int(q*float64(len(all))), len(all)-1)].Round(10 * time.Microsecond)
	}
	return fmt.Sprintf("n=%d p50=%v p99=%v p99.9=%v max=%v min=%v", len(all), at(.5), at(.99), at(.999), at(1), at(0))
}

func openBench(b testing.TB) *world {
	if os.Getenv("BENCH_POSTGRES") != "" {
		return openWorld(b, newDatabase(b))
	}
	return openWorld(b, "")
}

// fill schedules n messages in runs of 50, spread over the sessions.
func (w *world) fill(b testing.TB, n int, sessions []puntuale.SessionID, due func(i int) time.Time) []puntuale.MessageID {
	b.Helper()
	var all []puntuale.MessageID
	var mu sync.Mutex
	var wg sync.WaitGroup
	gate := make(chan struct{}, 64)
	for i := 0; i < n; i += 50 {
		gate <- struct{}{}
		wg.Go(func() {
			defer func() { <-gate }()
			var at []time.Time
			for j := i; j < min(i+50, n); j++ {
				at = append(at, due(j))
			}
			ids, err := w.beginFor(b.Context(), w.client, sessions[i/50%len(sessions)], fmt.Sprintf("+39347%07d", i), time.Hour, at...)
			if err != nil {
				b.Error(err)
			}
			mu.Lock()
			all = append(all, ids...)
			mu.Unlock()
		})
	}
	wg.Wait()
	return all
}

// spread gives each message its own recipient, because messages to one recipient would wait for each other.
func (w *world) spread(b testing.TB) {
	w.exec(b, "update message set phone = phone || id")
}

// BenchmarkStore dispatches b.N due messages through the real store. The intent of each message is written to disk.
func BenchmarkStore(b *testing.B) {
	for _, sessions := range []int{1, 10} {
		b.Run(fmt.Sprintf("sessions=%d", sessions), func(b *testing.B) {
			w := openBench(b)
			ids := []puntuale.SessionID{w.session}
			for i := 1; i < sessions; i++ {
				id, err := w.tenant.CreateSession(b.Context(), puntuale.Session{Name: fmt.Sprint(i), Type: puntuale.Socket, Sandbox: true, Created: time.Now()}, nil)
				if err != nil {
					b.Fatal(err)
				}
				ids = append(ids, id)
			}
			now := time.Now()
			w.fill(b, b.N, ids, func(int) time.Time { return now })
			w.spread(b)
			n, mt := &noop{}, &meter{}
			var done atomic.Int64
			finished := make(chan struct{})
			cfg := w.config()
			cfg.Meter = mt
			cfg.Queue = countRecords{w.store, func(k int) {
				if done.Add(int64(k)) == int64(b.N) {
					close(finished)
				}
			}}
			cfg.Connector = func(puntuale.Session) puntuale.Connector { return n }
			b.ResetTimer()
			d := dispatch.New(cfg)
			if err := d.Start(b.Context()); err != nil {
				b.Fatal(err)
			}
			<-finished
			b.StopTimer()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
			for op, c := range mt.batches {
				b.ReportMetric(float64(c[1])/float64(c[0]), op+"/batch")
			}
			if err := d.Stop(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}

// countRecords calls count with the number of recorded outcomes in each call of Record.
type countRecords struct {
	puntuale.Queue
	count func(int)
}

func (c countRecords) Record(ctx context.Context, now time.Time, r []puntuale.Result) ([]bool, error) {
	ok, err := c.Queue.Record(ctx, now, r)
	if err == nil {
		c.count(len(r))
	}
	return ok, err
}

// BenchmarkScheduler measures the dispatcher alone. Its queue costs almost nothing.
func BenchmarkScheduler(b *testing.B) {
	q := &flat{left: int64(b.N), now: time.Now(), done: make(chan struct{})}
	n := &noop{}
	d := dispatch.New(dispatch.Config{
		Queue: q, Fleet: q, Clock: clock.System(), Logger: quiet(),
		Connector: func(puntuale.Session) puntuale.Connector { return n },
	})
	b.ResetTimer()
	if err := d.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	<-q.done
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "msg/s")
	if err := d.Stop(context.Background()); err != nil {
		b.Fatal(err)
	}
}

// flat is a queue of b.N due messages, each to its own recipient. A claim removes a message from the queue.
type flat struct {
	mu      sync.Mutex
	left    int64
	first   int64 // the smallest id that was not claimed; claims are nearly in the order of ids
	now     time.Time
	claimed map[puntuale.MessageID]bool
	done    chan struct{}
	rec     int64
	total   int64
}

func (f *flat) Due(_ context.Context, _ []puntuale.QueueCursor, _ time.Time, limit int) (due []puntuale.DueMessage, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.claimed == nil {
		f.claimed, f.total = map[puntuale.MessageID]bool{}, f.left
	}
	for f.claimed[puntuale.MessageID(f.first+1)] {
		f.first++
		delete(f.claimed, puntuale.MessageID(f.first))
	}
	for id := f.first + 1; id <= f.total && len(due) < limit; id++ {
		if f.claimed[puntuale.MessageID(id)] {
			continue
		}
		due = append(due, puntuale.DueMessage{
			Client: 1, ID: puntuale.MessageID(id), Session: 1, Run: puntuale.RunID(id), Phone: fmt.Sprint(id),
			Due: f.now, Next: f.now, ValidUntil: f.now.Add(time.Hour),
		})
	}
	return due, nil
}

func (f *flat) Expiring(context.Context, puntuale.SessionID, time.Time, int) ([]puntuale.DueMessage, error) {
	return nil, nil
}

func (f *flat) Retrying(context.Context, []puntuale.SessionID, time.Time, time.Time, int) ([]puntuale.DueMessage, []puntuale.SessionID, error) {
	return nil, nil, nil
}

func (f *flat) Contents(_ context.Context, steps []puntuale.StepRef) (map[puntuale.StepRef]puntuale.StepContent, error) {
	found := make(map[puntuale.StepRef]puntuale.StepContent, len(steps))
	for _, r := range steps {
		found[r] = puntuale.StepContent{Zone: "UTC", Content: puntuale.Content{Text: "x"}}
	}
	return found, nil
}

func (f *flat) SendPermissions(context.Context, []puntuale.ClientID) (map[puntuale.ClientID]puntuale.SendPermission, error) {
	return nil, nil
}

func (f *flat) Claim(_ context.Context, c puntuale.Claim) ([]puntuale.ClaimAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	granted := make([]puntuale.ClaimAnswer, len(c.Messages))
	for i, m := range c.Messages {
		if int64(m.ID) > f.first && !f.claimed[m.ID] {
			f.claimed[m.ID] = true
			granted[i] = puntuale.ClaimGranted
		}
	}
	return granted, nil
}

func (f *flat) Record(_ context.Context, _ time.Time, r []puntuale.Result) ([]bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rec += int64(len(r)); f.rec == f.total {
		close(f.done)
	}
	return make([]bool, len(r)), nil
}

func (f *flat) Settle(context.Context, puntuale.NodeID, time.Time, []puntuale.Settlement) error {
	return nil
}
func (f *flat) Join(context.Context, time.Duration) (puntuale.NodeID, error) { return 1, nil }
func (f *flat) Beat(context.Context, puntuale.NodeID, time.Duration) error   { return nil }
func (f *flat) Reap(context.Context) (int, error)                            { return 0, nil }
func (f *flat) Leave(context.Context, puntuale.NodeID) error                 { return nil }
func (f *flat) Roster(context.Context, puntuale.NodeID) ([]puntuale.NodeID, []puntuale.Session, error) {
	return []puntuale.NodeID{1}, []puntuale.Session{{ID: 1, Client: 1, Owner: 1}}, nil
}

func (f *flat) Assign(_ context.Context, _, _ puntuale.NodeID, ids []puntuale.SessionID) ([]puntuale.SessionID, error) {
	return ids, nil
}

// BenchmarkLateness prints how late intents reach the disk, if planned messages and live starts arrive at a steady
// rate.
func BenchmarkLateness(b *testing.B) {
	for _, rate := range []int{500, 2000, 10000} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			for b.Loop() {
				w, n, mt := openBench(b), &noop{}, &meter{}
				cfg := w.config()
				cfg.Meter = mt
				cfg.Connector = func(puntuale.Session) puntuale.Connector { return n }
				total := rate * 5
				began := time.Now().Add(3*time.Second + time.Duration(total/20)*time.Millisecond/10)
				w.fill(b, total, []puntuale.SessionID{w.session}, func(i int) time.Time {
					return began.Add(time.Duration(i) * time.Second / time.Duration(rate))
				})
				w.spread(b)
				d := w.dispatch(b, cfg)
				for time.Now().Before(began.Add(5 * time.Second)) {
					now := time.Now()
					if _, err := w.begin(b.Context(), "+393470001000", time.Hour, now.Add(24*time.Hour)); err != nil {
						b.Fatal(err)
					}
					<-time.After(2 * time.Millisecond)
				}
				eventually(b, "all left", func() bool { return n.sent.Load() >= int64(total) })
				mt.mu.Lock()
				b.Logf("rate %d: lateness of the intent %s; batches %v", rate, quantiles(mt.late), mt.batches)
				mt.mu.Unlock()
				_ = d.Stop(context.Background())
			}
		})
	}
}

// BenchmarkStartToLedger prints the time from the start call until the message is in the sandbox's ledger. The message
// is due immediately, and nothing else is sent.
func BenchmarkStartToLedger(b *testing.B) {
	w := openBench(b)
	arrived := make(chan time.Time, 1)
	c := sandbox.New(tap{w.store, arrived}, clock.System(), 0)
	cfg := w.config()
	cfg.Connector = func(puntuale.Session) puntuale.Connector { return c }
	d := w.dispatch(b, cfg)
	var took []time.Duration
	for b.Loop() {
		now := time.Now()
		w.start(b, "+393470001000", time.Hour, now)
		d.Wake(w.session, now)
		took = append(took, (<-arrived).Sub(now))
		<-time.After(time.Millisecond)
	}
	b.Logf("start to ledger: %s", quantiles(took))
}

// tap is a ledger that signals on arrived when it gets a message.
type tap struct {
	sandbox.Ledger
	arrived chan time.Time
}

func (l tap) Receive(ctx context.Context, m puntuale.SandboxMessage) error {
	err := l.Ledger.Receive(ctx, m)
	l.arrived <- time.Now()
	return err
}
