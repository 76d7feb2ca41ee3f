package store_test

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// Compare figures only if they were measured together on one machine. Run the benchmarks with
//
//	PUNTUALE_POSTGRES_FOLDER=/tmp scripts/with-postgres go test -run - -bench . ./internal/store
//
// The folder should be on a disk, not in memory. Compare the results with "messages/s" of PlainInsert.

func benchmarkOn(b *testing.B, run func(b *testing.B, w *storetest.World, clients []*storetest.Client)) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "Postgres": storetest.Postgres} {
		b.Run(name, func(b *testing.B) {
			d := driver(b)
			d.Config.Clock = nil // nil means the system's clock
			w := storetest.NewWorld(b, d)
			clients := make([]*storetest.Client, 200)
			for i := range clients {
				clients[i] = w.Client(puntuale.AccountFull)
			}
			run(b, w, clients)
		})
	}
}

// row returns the message with this id, of a random client. Each start has three steps, eight hours apart. If scattered
// is false, messages are due in the order of their starts. If it is true, their due times are random within a day.
func row(r *rand.Rand, id int64, clients []*storetest.Client, scattered bool) store.PlainRow {
	c := clients[r.IntN(len(clients))]
	due := time.Duration(id)*time.Millisecond + time.Duration(id%3)*8*time.Hour
	if scattered {
		due = time.Duration(r.Int64N(int64(24 * time.Hour)))
	}
	return store.PlainRow{Client: int64(c.ID), Session: int64(c.Session), ID: id, Due: storetest.Begin.Add(due).UnixMicro()}
}

// BenchmarkPlainInsert inserts message rows, 1,000 in each statement and transaction.
func BenchmarkPlainInsert(b *testing.B) {
	benchmarkOn(b, func(b *testing.B, w *storetest.World, clients []*storetest.Client) {
		const size = 1000
		r := rand.New(rand.NewPCG(1, 2))
		id := int64(0)
		for b.Loop() {
			rows := make([]store.PlainRow, size)
			for i := range rows {
				id++
				rows[i] = row(r, id, clients, false)
			}
			if err := store.PlainInsert(w.Store, rows); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(size*b.N)/b.Elapsed().Seconds(), "messages/s")
	})
}

// BenchmarkStart starts runs of three messages, from 64 callers for 200 clients.
func BenchmarkStart(b *testing.B) { benchmarkStart(b, func(puntuale.SessionID, time.Time) {}) }

// BenchmarkStartHinted does the same as BenchmarkStart. It also sends a wakeup for each run to another node that is
// listening.
func BenchmarkStartHinted(b *testing.B) { benchmarkStart(b, nil) }

func benchmarkStart(b *testing.B, wakeup puntuale.Wakeup) {
	benchmarkOn(b, func(b *testing.B, w *storetest.World, clients []*storetest.Client) {
		ctx := context.Background()
		wakeup := wakeup
		if wakeup == nil {
			wakeup = w.Notify
			w.DB.Open(b).Listen(func(puntuale.SessionID, time.Time) {})
		}
		var n atomic.Int64
		b.SetParallelism(32) // there are so many callers for each processor: 64 with two processors
		b.ResetTimer()
		b.RunParallel(func(p *testing.PB) {
			for p.Next() {
				i := n.Add(1)
				c := clients[i%int64(len(clients))]
				r := c.Run(fmt.Sprintf("+39333%07d", i), storetest.Begin, 3)
				r.Idempotency = nil
				if _, err := c.Start(ctx, r); err != nil {
					b.Error(err)
					return
				}
				wakeup(c.Session, storetest.Begin)
			}
		})
		b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
	})
}

// BenchmarkDispatch claims due messages and records that they were sent. It takes 1,000 messages at a time, in the
// order of their due times. Two batches run at the same time.
func BenchmarkDispatch(b *testing.B) { benchmarkDispatch(b, false) }

// BenchmarkDispatchScattered does the same as BenchmarkDispatch, but messages that are neighbours on the disk are due
// at different times.
func BenchmarkDispatchScattered(b *testing.B) { benchmarkDispatch(b, true) }

func benchmarkDispatch(b *testing.B, scattered bool) {
	benchmarkOn(b, func(b *testing.B, w *storetest.World, clients []*storetest.Client) {
		const size = 1000
		rows := make([]store.PlainRow, size*b.N)
		r := rand.New(rand.NewPCG(1, 2))
		for i := range rows {
			rows[i] = row(r, int64(i+1), clients, scattered)
		}
		for part := range slices.Chunk(rows, size) {
			if err := store.PlainInsert(w.Store, part); err != nil {
				b.Fatal(err)
			}
		}
		slices.SortFunc(rows, func(x, y store.PlainRow) int { return cmp.Compare(x.Due, y.Due) })
		batches := make(chan []store.PlainRow, b.N)
		for part := range slices.Chunk(rows, size) {
			batches <- part
		}
		close(batches)
		node := w.MustJoin()
		b.ResetTimer()
		done := make(chan error, 2)
		for range cap(done) {
			go func() {
				for part := range batches {
					if err := sendAll(w, node, part); err != nil {
						done <- err
						return
					}
				}
				done <- nil
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(len(rows))/b.Elapsed().Seconds(), "messages/s")
	})
}

// sendAll claims and records a batch as a dispatcher does, but sends nothing.
func sendAll(w *storetest.World, node puntuale.NodeID, rows []store.PlainRow) error {
	ctx, now := context.Background(), storetest.Begin.Add(30*time.Hour)
	token := storetest.Token(node)
	items := make([]puntuale.ClaimItem, len(rows))
	for i, r := range rows {
		items[i] = puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: puntuale.ClientID(r.Client), ID: puntuale.MessageID(r.ID)}, Phone: "+393331234567"}
	}
	granted, err := w.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: now, Messages: items})
	if err != nil {
		return err
	}
	results := make([]puntuale.Result, len(items))
	for i, g := range granted {
		if g != puntuale.ClaimGranted {
			return fmt.Errorf("message %d: %v", items[i].ID, g)
		}
		results[i] = puntuale.Result{MessageRef: items[i].MessageRef, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid")}}
	}
	_, err = w.Record(ctx, now, results)
	return err
}
