package web_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestCampaignCompare makes a campaign with two texts and a holdout, looks at both in the check, starts it, and reads which
// text works better.
func TestCampaignCompare(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		rows := "Nome;Cellulare\r\n"
		for i := range 30 {
			rows += fmt.Sprintf("Anna;333 12345%02d\r\n", i)
		}
		file := filepath.Join(t.TempDir(), "clienti.csv")
		w.must(os.WriteFile(file, []byte(rows), 0o600))
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/campaigns/new")
		b.fill("name", "Confronto", "text", "Ciao {{nome}}, passa a trovarci!")
		b.click(`[name=purpose][value=service]`)
		b.click(`#compare summary`)
		b.fill("text_b", "{{nome}}, oggi ti aspettiamo!", "share_a", "60", "share_b", "30", "holdout", "20")
		b.click(`main form[action$="/campaigns"] [type=submit]`)
		b.until(`document.querySelector("#f-share_a-fault")`) // the shares make 90
		b.check("campaign_compare_fault")
		b.fill("share_b", "40")
		b.click(`main form[action$="/campaigns"] [type=submit]`)
		b.until(`location.pathname.endsWith("/people") && document.querySelector("#f-file")`)
		at := strings.TrimSuffix(evaluate[string](b, `location.pathname`), "/people")
		b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
		b.click(`form[action$="/people"] [type=submit]`)
		b.until(`document.querySelector("#columns table tbody tr")`)
		b.open(at + "/check")
		b.until(`document.querySelector(".samples")`)
		b.reads("Ciao Anna, passa a trovarci!")
		b.reads("Anna, oggi ti aspettiamo!")
		b.check("campaign_compare_check")
		b.open(at + "/what") // nothing is lost
		b.until(`document.querySelector("#compare[open] #f-text_b").value.includes("ti aspettiamo") && document.querySelector("#f-share_a").value === "60" && document.querySelector("#f-holdout").value === "20"`)
		b.open(at + "/start")
		b.click(`form[action$="/start"] [type=submit]`)
		b.until(`document.querySelector("#campaign-live form[action$='/pause']")`)
		b.check("campaign_compare_running")
		id, err := strconv.ParseInt(at[strings.LastIndex(at, "/")+1:], 10, 64)
		w.must(err)
		w.comparedTraffic(puntuale.CampaignID(id))
		b.open(at)
		b.click(`main a[href*="by=variant"]`)
		today := w.clock.Now().Format(time.DateOnly) // the day of the first message, and not after today
		b.until(`location.search.includes("start=` + today + `") && location.search.includes("end=` + today + `")`)
		b.until(`document.querySelectorAll(".note").length > 0 && document.querySelector("main table.list tbody tr")`)
		for _, text := range []string{"A. Ciao {{nome}}", "B. {{nome}}, oggi"} {
			b.reads(text)
		}
		if got := b.text("main"); !strings.Contains(got, "B va meglio del testo A") && !strings.Contains(got, "text B does better than text A") {
			t.Errorf("the page does not say that B is better: %s", got)
		}
		b.check("results_compare")
	})
}

// comparedTraffic gives a campaign 40 messages of each of two variants. 10 people read the first, 30 the second.
func (w *world) comparedTraffic(id puntuale.CampaignID) {
	w.t.Helper()
	ctx := context.Background()
	t := w.store.Tenant(w.client)
	node, err := w.store.Join(ctx, time.Hour)
	w.must(err)
	session, err := t.CreateSession(ctx, puntuale.Session{Name: "Ufficiale", Type: puntuale.Official, Created: w.clock.Now()}, nil)
	w.must(err)
	at := w.clock.Now()
	for i := range 80 {
		run := puntuale.Run{Client: w.client, Session: session, Phone: fmt.Sprintf("+3933312345%02d", i), Origin: puntuale.OriginMassive, Campaign: id, Zone: "Europe/Rome", Received: at, Request: []byte(`{}`)}
		started, err := t.Start(ctx, puntuale.StartRun{Run: run, Day: storetest.Day, Now: at, Messages: []puntuale.PlannedMessage{
			{Step: i % 2, Content: puntuale.Content{Text: "ciao"}, Due: at, Desired: at, ValidUntil: at.Add(300 * time.Hour)}}})
		w.must(err)
		ref, token := puntuale.MessageRef{Client: w.client, ID: started.IDs[0]}, storetest.Token(node)
		granted, err := w.store.Claim(ctx, puntuale.Claim{Node: node, Token: token, Now: at, Messages: []puntuale.ClaimItem{{MessageRef: ref, Phone: run.Phone}}})
		w.must(err)
		if granted[0] != puntuale.ClaimGranted {
			w.t.Fatalf("message %d may not leave: %d", ref.ID, granted[0])
		}
		_, err = w.store.Record(ctx, at, []puntuale.Result{{MessageRef: ref, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}})
		w.must(err)
		if i%2 == 0 && i < 20 || i%2 == 1 && i < 60 {
			_, err = w.store.KeepReceipts(ctx, at, []puntuale.DeliveryReceipt{{MessageRef: ref, Session: session, Token: token, Kind: puntuale.ReceiptRead, At: at}})
			w.must(err)
		}
	}
	w.countResults()
}
