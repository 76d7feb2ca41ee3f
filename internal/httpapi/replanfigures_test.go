//go:build figures

package httpapi_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control/bookings"
	"puntuale/internal/replan"
	"puntuale/internal/store/storetest"
)

const (
	replanStarts = 200                   // starts a second beside a replan
	replanP99    = 10 * time.Millisecond // the longest that 99 % of them may take, or twice as long as without a replan
	replanWindow = 5 * time.Minute       // the longest time for which starts are measured beside it
)

// TestReplanFigures measures starts alone, and then beside a replan of 5,000 bookings, or of as many as the variable
// PUNTUALE_REPLAN says, for its first minutes. A start's time counts from the moment at which it was to begin.
func TestReplanFigures(t *testing.T) {
	n := 5_000
	if text := os.Getenv("PUNTUALE_REPLAN"); text != "" {
		n, _ = strconv.Atoi(text)
	}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) { // one after the other
			b := newBooked(t, newService(t, options{driver: driver}))
			var visits, plain struct{ ID string }
			b.must(&visits, "POST", "/api/sequences", b.Key, `{"name":"Visita","booking":{"date":"appuntamento"},`+visitFigure+`}`)
			b.must(&plain, "POST", "/api/sequences", b.Key, `{"name":"Promemoria",`+visitFigure+`}`)
			b.sequence = visits.ID
			for i := range n {
				b.timed("PUT", fmt.Sprint("/api/bookings/r", i), fmt.Sprintf(`{"sequence":%q,"phone":"+39336%07d","nome":"Ada","appuntamento":"20/01/2027 15:30"}`, visits.ID, i))
			}
			b.edit(`{"name":"Visita","booking":{"date":"appuntamento"},` + strings.Replace(visitFigure, "Domani", "A domani", 1) + `}`)
			idle, _ := b.starts(plain.ID, 10*time.Second, nil)
			b.replan("POST", "", "")
			ctx, stop := context.WithCancel(b.t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				w := replan.New(replan.Config{
					Store: b.store, Bound: b.store.ChunkBound, Node: func() puntuale.NodeID { return 1 }, Clock: clock.System(), Logger: slog.Default(),
					Planner: func(ctx context.Context, r puntuale.Replan) (replan.Planner, error) {
						return bookings.NewPlanner(ctx, b.control, r)
					},
				})
				for ctx.Err() == nil && w.Round(ctx, 1) {
				}
			}()
			beside, took := b.starts(plain.ID, replanWindow, done)
			stop()
			<-done
			r := b.replan("GET", "", "")
			t.Logf("%d starts/s: p50 %v, p99 %v alone; p50 %v, p99 %v beside a replan of %d bookings, of which %d are done, %.0f a second", replanStarts, at(idle, 50), at(idle, 99), at(beside, 50), at(beside, 99), n, r.Moved, float64(r.Moved)/took.Seconds())
			if took < replanWindow && (r.State != "done" || r.Moved < n) {
				t.Errorf("not done: %v", r)
			}
			if p99 := at(beside, 99); p99 > max(2*at(idle, 99), replanP99) {
				t.Errorf("99 %% of starts take up to %v beside a replan", p99)
			}
		})
	}
}

func at(sorted []time.Duration, percent int) time.Duration {
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}

// starts makes starts at a steady rate, and returns how long they took, sorted.
func (b *booked) starts(sequence string, within time.Duration, done <-chan struct{}) (all []time.Duration, took time.Duration) {
	b.t.Helper()
	var mu sync.Mutex
	var calls sync.WaitGroup
	begun := time.Now()
	for i := 0; time.Since(begun) < within; i++ {
		due := begun.Add(time.Duration(i) * time.Second / replanStarts)
		select {
		case <-done:
			within = 0
			continue
		case <-time.After(time.Until(due)):
		}
		calls.Go(func() {
			r := httptest.NewRequestWithContext(b.t.Context(), "POST", "/api/start/"+sequence, strings.NewReader(fmt.Sprintf(`{"phone":"+39337%07d","nome":"Ada","appuntamento":"20/01/2027 15:30"}`, i)))
			r.Header.Set("Authorization", "Bearer "+b.Key)
			w := httptest.NewRecorder()
			b.handler.ServeHTTP(w, r)
			mu.Lock()
			defer mu.Unlock()
			if all = append(all, time.Since(due)); w.Code != 200 {
				b.t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	calls.Wait()
	took = time.Since(begun)
	slices.Sort(all)
	return all, took
}
