package official_test

import (
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// BenchmarkWebhook delivers 240 statuses a second, three times the rate of a number. It reports how long Meta waits for
// each answer.
func BenchmarkWebhook(b *testing.B) {
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			w := newWorld(b, setup{driver: driver})
			w.wrote(person)
			id, taken, token := w.stored(person)
			w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted(taken.WAMID)})
			var mu sync.Mutex
			var took []time.Duration
			var all sync.WaitGroup
			tick := time.NewTicker(time.Second / 240)
			defer tick.Stop()
			begin := w.clock.Now()
			for i := 0; b.Loop(); i++ {
				<-tick.C
				all.Go(func() {
					body := w.peer.Status(taken, "delivered", begin.Add(-time.Duration(i)*time.Second)) // no two statuses are equal
					begun := time.Now()
					if status := w.peer.Deliver(w.webhook, "101", body); status != http.StatusOK {
						b.Errorf("answered %d", status)
					}
					mu.Lock()
					defer mu.Unlock()
					took = append(took, time.Since(begun))
				})
			}
			all.Wait()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "ms/median")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds())/1000, "ms/p99")
		})
	}
}
