package event_test

import (
	"context"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// BenchmarkRecord records outcomes in two kinds of rounds that alternate. In one kind, the client has no subscription
// that wants events. In the other kind, a webhook wants all events. A numberer works in both kinds, and no event is sent
// to the webhook. "without" and "with" are outcomes per second, until all facts have numbers. "ratio" is the rate with
// events divided by the rate without. "ratio-with-claim" also includes the time of the claims.
func BenchmarkRecord(b *testing.B) {
	for name, open := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) { benchRecord(b, storetest.NewWorld(b, open(b))) })
	}
}

func benchRecord(b *testing.B, w *storetest.World) {
	const batch, batches = 100, 40
	ctx := context.Background()
	plain, told := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	if _, err := told.CreateWebhook(ctx, puntuale.Webhook{URL: "https://x", Types: puntuale.AllEvents, Active: true}, []byte("s"), begin, nil); err != nil {
		b.Fatal(err)
	}
	node := w.MustJoin()
	var took, claimed [2]time.Duration
	n := 0
	for b.Loop() {
		for k, c := range []*storetest.Client{plain, told} {
			var results [][]puntuale.Result
			for range batches {
				items := c.Items(phone, 0, c.MustStart(phone, begin, batch)...)
				from := time.Now()
				token, _ := w.MustClaim(node, begin.Add(time.Hour), items...)
				claimed[k] += time.Since(from)
				var part []puntuale.Result
				for _, it := range items {
					part = append(part, puntuale.Result{MessageRef: it.MessageRef, Token: token, Outcome: sent})
				}
				results = append(results, part)
			}
			stop, stopped := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(stopped)
				for {
					if _, err := w.NumberEvents(ctx, begin); err != nil {
						b.Error(err)
					}
					select {
					case <-stop:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			}()
			at := time.Now()
			for _, part := range results {
				if _, err := w.Record(ctx, begin.Add(time.Hour), part); err != nil {
					b.Fatal(err)
				}
			}
			for { // number all facts, so that no work is left for the other kind of round
				if _, err := w.NumberEvents(ctx, begin); err != nil {
					b.Fatal(err)
				}
				if w.Int("select count(*) from outbox_fact") == 0 {
					break
				}
			}
			took[k] += time.Since(at)
			close(stop)
			<-stopped
		}
		n += batch * batches
	}
	b.ReportMetric(float64(n)/took[0].Seconds(), "without/s")
	b.ReportMetric(float64(n)/took[1].Seconds(), "with/s")
	b.ReportMetric(took[0].Seconds()/took[1].Seconds(), "ratio")
	b.ReportMetric((claimed[0]+took[0]).Seconds()/(claimed[1]+took[1]).Seconds(), "ratio-with-claim")
}
