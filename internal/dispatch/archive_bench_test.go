package dispatch_test

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/dispatch"
	"puntuale/internal/store/archiver"
)

// BenchmarkBesideArchiver prints how late intents reach the disk and how long starts take. Messages and starts arrive
// at a steady rate. In every second round, an archiver moves old messages at the same time.
func BenchmarkBesideArchiver(b *testing.B) {
	w := openBench(b)
	const old = 100_000 // number of old runs, with three messages each
	n := fmt.Sprintf("generate_series(1, %d) as n(i)", old)
	if !w.postgres {
		n = fmt.Sprintf("(with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n) as n", old)
	}
	w.exec(b, fmt.Sprintf(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content, blanked_at)
 select %d, 3 * i, 1, %d, '+39333' || (i %% 100000), 2, 3, '', 'Europe/Rome', 1, $1, 'Studio Bianchi', 'Promemoria', '[]', 2 from %s`, w.client, w.session, n), []byte{})
	for step := range 3 {
		w.exec(b, fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone,
 state, intent, intent_at, outcome, done_at, attempt, credit, detail) select %d, 3 * i + %d, %d, 3 * i, i, i, i, i, %d, 2, '+39333' || (i %% 100000), 1, -1, i, 1, i, 1, 1, 'wamid.HBgMMzkzMzM' || i from %s`,
			w.client, step, w.session, step, n))
	}
	w.exec(b, "analyze")
	var working atomic.Bool
	a := archiver.New(w.store.DB, archiver.Config{
		Folder: filepath.Join(b.TempDir(), "archive"), Program: "bench", Mark: func(puntuale.ClientID, string) string { return "" },
		Wait: func(ctx context.Context, took time.Duration) error { // the default wait; in rounds without the archiver, it lasts until the next round
			err := clock.System().Sleep(ctx, min(19*took, 2*time.Second))
			for err == nil && !working.Load() {
				err = clock.System().Sleep(ctx, 5*time.Millisecond)
			}
			return err
		},
	})
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := a.Run(ctx, time.Now(), time.Now().Add(-time.Hour))
		ended <- err
	}()
	old0 := w.number(b, "select count(*) from run where id < 2000000")
	const rate, lead, seconds = 2000, 2, 3
	lateness, starts := map[bool][]time.Duration{}, map[bool][]time.Duration{}
	spent := 0
	for b.Loop() {
		for round := range 10 {
			beside := round%2 == 1
			fleet, mt := &noop{}, &meter{}
			cfg := w.config()
			cfg.Meter = mt
			cfg.Connector = func(puntuale.Session) puntuale.Connector { return fleet }
			began := time.Now().Add(lead * time.Second)
			w.fill(b, rate*seconds, []puntuale.SessionID{w.session}, func(i int) time.Time { return began.Add(time.Duration(i) * time.Second / rate) })
			w.exec(b, "update message set phone = phone || id where state = 0 and due_at > 1000000000 and length(phone) < 15")
			d := dispatchUntilStopped(b, w, cfg)
			working.Store(beside)
			for time.Now().Before(began.Add(seconds * time.Second)) {
				now := time.Now()
				if _, err := w.begin(b.Context(), "+393470001000", time.Hour, now.Add(24*time.Hour)); err != nil {
					b.Fatal(err)
				}
				starts[beside] = append(starts[beside], time.Since(now))
				<-time.After(2 * time.Millisecond)
			}
			eventually(b, "all left", func() bool { return fleet.sent.Load() >= rate*seconds })
			if beside {
				spent += seconds + lead
			}
			d()
			mt.mu.Lock()
			lateness[beside] = append(lateness[beside], mt.late...)
			mt.mu.Unlock()
		}
	}
	stop()
	if err := <-ended; err != nil && ctx.Err() == nil {
		b.Error(err)
	}
	archived := old0 - w.number(b, "select count(*) from run where id < 2000000")
	for _, beside := range []bool{false, true} {
		b.Logf("beside an archiver %v: lateness %s; starts %s", beside, quantiles(lateness[beside]), quantiles(starts[beside]))
	}
	for what, of := range map[string]map[bool][]time.Duration{"lateness": lateness, "start": starts} {
		for _, q := range []float64{.5, .99} {
			at := func(all []time.Duration) float64 { slices.Sort(all); return float64(all[int(q*float64(len(all)))]) }
			b.ReportMetric(at(of[true])/at(of[false]), fmt.Sprintf("%s-p%g-ratio", what, 100*q))
		}
	}
	b.ReportMetric(float64(archived)/float64(spent), "runs/s-archived")
}

func dispatchUntilStopped(b testing.TB, w *world, cfg dispatch.Config) func() {
	b.Helper()
	d := dispatch.New(cfg)
	if err := d.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	return func() {
		if err := d.Stop(context.Background()); err != nil {
			b.Error(err)
		}
	}
}

func (w *world) number(t testing.TB, query string) (n int) {
	t.Helper()
	if err := w.raw.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
