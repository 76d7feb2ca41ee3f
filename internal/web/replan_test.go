package web_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/bookings"
	"puntuale/internal/replan"
)

// applied lets a node apply edited sequences.
func (w *world) applied() {
	w.t.Helper()
	r := replan.New(replan.Config{
		Store: w.store, Bound: w.store.ChunkBound, Node: func() puntuale.NodeID { return 1 }, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
		Planner: func(ctx context.Context, r puntuale.Replan) (replan.Planner, error) {
			return bookings.NewPlanner(ctx, w.control, r)
		},
	})
	for r.Round(context.Background(), 1) {
	}
}

// TestReplanStory: after a sequence for bookings was edited, the page offers to update the bookings that there are. It
// shows what would change, and how far the update is.
func TestReplanStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		made := w.sequence(bookedVisit())
		for i, name := range []string{"Ada Rossi", "Dario Ferri", "Piero Zanetti"} {
			w.book(made, fmt.Sprint("v", i), fmt.Sprintf("+39333123450%d", i), name, fmt.Sprintf("2%d/11/2026 15:30", i+4), "")
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences/" + made + "/edit")
		b.fill("steps[1].text", "{{nome}}, ci vediamo domani alle {{appuntamento:ora}}.")
		b.leaves(func() { b.click(".editor-save .btn-primary") })
		b.until(`document.querySelector("main a[href$='/replan']")`)
		b.check("offer")
		b.leaves(func() { b.click("main a[href$='/replan']") })
		b.reads("ci vediamo domani")
		b.check("would")
		b.leaves(func() { b.click("form[action$='/replan'] [type=submit]") })
		b.until(`document.querySelector("#replan form[action$='/pause']")`)
		b.check("running")
		b.leaves(func() { b.click("#replan form[action$='/pause'] button") })
		b.until(`document.querySelector("#replan form[action$='/resume']")`)
		b.check("paused")
		b.leaves(func() { b.click("#replan form[action$='/resume'] button") })
		b.until(`document.querySelector("#replan form[action$='/pause']")`)
		w.applied()
		b.until(`!document.querySelector("#replan form")`)
		b.check("done")
		if got := w.plannedOf("v1"); !strings.Contains(got, "ci vediamo domani alle 15:30") {
			t.Errorf("planned: %q", got)
		}
		b.leaves(func() { b.click("#replan a.btn") })
		b.check("nothing")
	})
}

// TestBookingImportStory: a file is checked, its rows are refused with reasons, and the others are imported.
func TestBookingImportStory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "agenda.csv")
	if err := os.WriteFile(file, []byte("Codice;Nome;Cellulare;Data e ora;Stato\nv1;Ada Rossi;333 1234567;24/11/2026 15:30;\nv2;Eva Conti;3337654321;25/11/2026 09:00;Confermato\nv3;Ugo Neri;12;25/11/2026 09:00;\nv4;Leo Gatti;3332222222;domani;\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/bookings/import")
		b.check("no-sequence")
		w.sequence(bookedVisit())
		b.open(w.pages + "/bookings")
		b.leaves(func() { b.click(`.head-actions a[href$="/bookings/import"]`) })
		b.check("ask")
		b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
		b.click("#booking-import .import-file [type=submit]")
		b.until(`document.querySelectorAll("#import-result .mapping > div").length === 5 && document.querySelector("#import-result .btn-primary")`)
		b.click("#import-result summary")
		b.check("checked")
		b.click("#import-result .btn-primary")
		b.until(`document.querySelector("#import-result .notice-ok")`)
		b.check("imported")
		if got := w.booking("v2").Status; got != puntuale.BookingConfirmed {
			t.Errorf("v2 is %v", got)
		}
		b.leaves(func() { b.click(`#import-result a[href$="/bookings"]`) })
		b.until(`document.readyState === "complete"`)
	})
}

// TestBookingImportKeepsCancellations: a file that a person uploads does not open again what the appointment's person
// cancelled, because nobody has looked at it.
func TestBookingImportKeepsCancellations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	visit, err := w.Client().CreateSequence(context.Background(), bookedVisit(), control.Once[control.Sequence]{})
	w.must(err)
	w.book(visit.ID.String(), "v1", "+393331234567", "Ada", "21/01/2027 15:30", "cancelled")
	file := strings.NewReader("Riferimento;Telefono;Nome;Appuntamento;Stato\nv1;333 123 4567;Ada;21/01/2027 15:30;aperto\n")
	found, err := bookings.ImportBookings(context.Background(), w.Client(), file, "text/csv", bookings.Import{Sequence: visit.ID.String(), Door: puntuale.DoorPage})
	w.must(err)
	if status := w.statusOf("v1"); status != "cancelled" || found.Rows != 1 {
		t.Errorf("%s after %d rows", status, found.Rows)
	}
}
