package web_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/web"
)

// BenchmarkPages opens every page of both dashboards with 100,000 messages stored (PUNTUALE_MESSAGES says how many): half of
// them sent or failed over a month, half pending. A page takes at most 50 ms.
//
//	go test ./internal/web -run '^$' -bench Pages
func BenchmarkPages(b *testing.B) {
	w := newWorld(b)
	messages := 100_000
	if n, err := strconv.Atoi(os.Getenv("PUNTUALE_MESSAGES")); err == nil {
		messages = n
	}
	stock(b, w, messages)
	partner, client := w.visitor(w.partners[puntuale.Owner]), w.visitor(w.clients[puntuale.Owner])
	for _, r := range web.Routes() {
		path := strings.ReplaceAll(strings.Replace(r.Path, "/c/{client}", w.pages, 1), "/partner/clients/{id}", "/partner/clients/"+w.client.String())
		if r.Method != http.MethodGet || r.Side == "anyone" || strings.Contains(path, "{") {
			continue
		}
		v := client
		if r.Side == "partner" {
			v = partner
		}
		if a := v.get(path); a.status != http.StatusOK || strings.HasPrefix(a.header.Get("Content-Type"), "text/event-stream") {
			continue
		}
		b.Run(strings.ReplaceAll(strings.Trim(r.Path, "/"), "/", "_"), func(b *testing.B) {
			slowest := time.Duration(0)
			for b.Loop() {
				begun := time.Now()
				if a := v.get(path); a.status != http.StatusOK {
					b.Fatalf("%s: %d", path, a.status)
				}
				slowest = max(slowest, time.Since(begun))
			}
			b.ReportMetric(float64(slowest.Microseconds())/1000, "ms-slowest")
		})
	}
}

// stock gives the client messages: runs of 50, half of which ended on one of the 30 days before.
func stock(b *testing.B, w *world, messages int) {
	b.Helper()
	ctx := context.Background()
	tenant := w.store.Tenant(w.client)
	sessions, _, err := tenant.Sessions(ctx, puntuale.Page{})
	w.must(err)
	now := w.clock.Now()
	const each = 50
	var wait sync.WaitGroup
	for part := range 8 {
		wait.Go(func() {
			for i := part; i < messages/each; i += 8 {
				due := now.Add(time.Duration(i%720) * time.Hour / 2)
				r := puntuale.StartRun{Run: puntuale.Run{Client: w.client, Session: sessions[0].ID, Phone: fmt.Sprintf("+39333%07d", i), Origin: puntuale.OriginSequence, Zone: "Europe/Rome",
					Received: now, Request: []byte("{}"), ClientName: "Studio Bianchi", SequenceName: "Promemoria"}, Day: puntuale.DateOf(now), Now: now}
				for n := range each {
					at := due.Add(time.Duration(n) * time.Minute)
					r.Messages = append(r.Messages, puntuale.PlannedMessage{Step: n, Content: puntuale.Content{Text: "Ciao, ti ricordiamo l'appuntamento."}, Desired: at, Due: at, DueMax: at, ValidUntil: at.Add(24 * time.Hour)})
				}
				if _, err := w.store.Uncounted(w.client).Start(ctx, r); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wait.Wait()
	// What ended did so in the past, which only the database can be told.
	_, err = w.sql.ExecContext(ctx, `update message set state = 1, outcome = 1, intent = -1, done_at = due_at - 2592000000000 where run_id % 100 < 50`)
	w.must(err)
	w.must(w.store.Maintain(ctx, now, time.Time{}))
}
