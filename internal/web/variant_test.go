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
	"puntuale/internal/control"
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
		b.takesList()
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
		b.until(`document.querySelectorAll(".variant-words dt a[href*='by=variant']").length === 2 && document.querySelector("#recipients a[href*='/results?']") === null`)
		b.click(`#campaign-live a[href*="by=variant"]`)
		today := w.clock.Now().Format(time.DateOnly) // the day of the first message, and not after today
		b.until(`location.search.includes("start=` + today + `") && location.search.includes("end=` + today + `")`)
		b.until(`document.querySelectorAll(".note").length > 0 && document.querySelector("main table.list tbody tr")`)
		for _, text := range []string{"A. Ciao {{nome}}", "B. {{nome}}, oggi"} {
			b.reads(text)
		}
		if got := b.text("main"); !strings.Contains(got, "B va meglio del testo A") && !strings.Contains(got, "text B does better than text A") {
			t.Errorf("the page does not say that B is better: %s", got)
		}
		few, running := "Risposte: con numeri così piccoli", "non è ancora finita"
		if b.look.language == "en" {
			few, running = "Answered: with numbers this small", "is not done yet"
		}
		b.reads(few)
		b.reads(running)
		b.check("results_compare")
	})
}

// TestComparedTemplates reads the words of templates where texts are compared: of a step those of today, of a campaign those
// that it froze.
func TestComparedTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := context.Background()
	for _, name := range []string{"uno", "due"} {
		_, err := w.Client().CreateTemplate(ctx, control.NewTemplate{Template: puntuale.Template{Name: name, Text: "Parole del " + name}}, control.Once[control.Template]{})
		w.must(err)
	}
	s, err := w.Client().CreateSequence(ctx, control.NewSequence{Name: "Confronto", Steps: []puntuale.Step{{ID: "1", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart},
		Variants: []puntuale.StepVariant{{Share: 50, Template: "uno"}, {Share: 50, Template: "due"}}}}}, control.Once[control.Sequence]{})
	w.must(err)
	v := w.visitor(w.clients[puntuale.Reader])
	if text := words(inMain(v.get(w.pages + "/results?by=variant&sequence=" + s.ID.String() + "&step=" + s.Steps[0].Name(0)).body)); !strings.Contains(text, "A. Parole del uno") || !strings.Contains(text, "B. Parole del due") {
		t.Errorf("the step's texts: %s", text)
	}
	made, err := w.Client().CreateCampaign(ctx, control.NewCampaign{Name: "Prova", Purpose: "service", Step: &puntuale.Step{Text: "Primo"}, Others: []puntuale.Step{{Text: "Secondo"}}, Shares: []int{50, 50}}, nil, control.Once[control.Campaign]{})
	w.must(err)
	compared := func() bool {
		text := words(inMain(v.get(w.pages + "/results?by=variant&campaign=" + made.ID.String()).body))
		if !strings.Contains(text, "B. Secondo") {
			t.Errorf("the campaign's texts: %s", text)
		}
		return strings.Contains(text, "La campagna non è ancora finita")
	}
	before := compared()
	_, err = w.Client().CancelCampaign(ctx, made.ID.String())
	w.must(err)
	if !before || compared() {
		t.Error("the page does not know whether the campaign has ended")
	}
	c := puntuale.Campaign{Draft: puntuale.CampaignDraft{Step: &puntuale.Step{Template: "uno"}, Others: []puntuale.Step{{Template: "due"}}, Shares: []int{50, 50}}}
	if all := c.Texts(); len(all) != 2 || all[1].Template != "due" || all[1].Text != "" {
		t.Errorf("the texts of a draft: %+v", all)
	}
	c.Frozen = puntuale.CampaignFrozen{Sequence: puntuale.Sequence{Steps: []puntuale.Step{{Template: "uno", Text: "Allora uno"}}}, Others: []puntuale.Step{{Template: "due", Text: "Allora due"}}}
	if all := c.Texts(); len(all) != 2 || all[0].Text != "Allora uno" || all[1].Text != "Allora due" {
		t.Errorf("the frozen texts: %+v", all)
	}
}

// comparedTraffic gives a campaign 40 messages of each of two variants. 10 people read the first, 30 the second.
func (w *world) comparedTraffic(id puntuale.CampaignID) {
	w.t.Helper()
	w.readTraffic(func(run *puntuale.Run, m *puntuale.PlannedMessage, variant int) {
		run.Origin, run.Campaign, m.Step = puntuale.OriginMassive, id, variant
	})
}

// readTraffic sends 40 messages of each of two variants. 10 people read the first, 30 the second. of says what a message
// belongs to.
func (w *world) readTraffic(of func(run *puntuale.Run, m *puntuale.PlannedMessage, variant int)) {
	w.t.Helper()
	ctx := context.Background()
	t := w.store.Tenant(w.client)
	node, err := w.store.Join(ctx, time.Hour)
	w.must(err)
	session, err := t.CreateSession(ctx, puntuale.Session{Name: "Ufficiale", Type: puntuale.Official, Created: w.clock.Now()}, nil)
	w.must(err)
	at := w.clock.Now()
	for i := range 80 {
		run := puntuale.Run{Client: w.client, Session: session, Phone: fmt.Sprintf("+3933312345%02d", i), Zone: "Europe/Rome", Received: at, Request: []byte(`{}`)}
		m := puntuale.PlannedMessage{Content: puntuale.Content{Text: "ciao"}, Due: at, Desired: at, ValidUntil: at.Add(300 * time.Hour)}
		of(&run, &m, i%2)
		started, err := t.Start(ctx, puntuale.StartRun{Run: run, Day: storetest.Day, Now: at, Messages: []puntuale.PlannedMessage{m}})
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

// TestStepCompare writes two texts of a step in the editor, whose preview shows both, saves them, finds them again, and reads
// in the results which works better.
func TestStepCompare(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/sequences/new")
		b.until(`document.querySelector(".step-variants")`)
		b.fill("name", "Confronto", "steps[0].text", "Ciao {{nome}}, passa a trovarci!")
		b.click(`.step-variants summary`)
		b.fill("steps[0].text_c", "{{nome}}, oggi ti aspettiamo!") // a place is left out
		evaluate[bool](b, `(document.querySelector("[name='steps[0].text_c']").focus(), document.querySelector(".step [data-insert]:not(.chip-new)").click(), true)`)
		b.until(`document.querySelector("[name='steps[0].text_c']").value.split("{{").length === 3 && document.querySelector("[name='steps[0].text']").value === "Ciao {{nome}}, passa a trovarci!"`)
		b.fill("steps[0].text_c", "{{nome}}, oggi ti aspettiamo!")
		b.until(`document.querySelectorAll("#timeline .bubble").length === 2 && document.querySelectorAll(".timeline-variant").length === 2`)
		b.check("step_compare_editor")
		b.fill("steps[0].share_a", "60", "steps[0].share_c", "30")
		b.click(`.editor-save [type=submit]`)
		b.until(`document.querySelector(".step-variants[open] [id='f-steps[0].share_a-fault']") && document.querySelector("[name='steps[0].text_b']").value.includes("ti aspettiamo")`) // the shares make 90
		b.check("step_compare_fault")
		b.fill("steps[0].share_b", "40", "steps[0].text_b", "{{nome}}, oggi ti aspettiamo: {{")
		b.click(`.editor-save [type=submit]`)
		b.until(`document.querySelector("[id='f-steps[0].text_b-fault']")`)
		b.fill("steps[0].text_b", "{{nome}}, oggi ti aspettiamo!")
		b.click(`[name=do][value="copy:0"]`)
		b.until(`document.querySelectorAll(".step").length === 2 && document.querySelector("[name='steps[1].text_b']").value.includes("ti aspettiamo")`)
		b.click(`[name=do][value="remove:1"]`)
		b.until(`document.querySelectorAll(".step").length === 1`)
		b.click(`.editor-save [type=submit]`)
		b.until(`document.querySelector(".seq-plan") && document.querySelectorAll("#timeline .bubble").length === 2`)
		b.reads("A, 60 %: Ciao {{nome}}, passa a trovarci!")
		b.reads("B, 40 %: {{nome}}, oggi ti aspettiamo!")
		b.check("step_compare_saved")
		at := evaluate[string](b, `location.pathname`)
		b.open(at + "/edit")
		b.until(`document.querySelector(".step-variants[open] [name='steps[0].text_b']").value.includes("ti aspettiamo") && document.querySelector("[name='steps[0].share_a']").value === "60"`)

		id, err := strconv.ParseInt(at[strings.LastIndex(at, "/")+1:], 10, 64)
		w.must(err)
		w.readTraffic(func(run *puntuale.Run, m *puntuale.PlannedMessage, variant int) {
			run.Origin, run.Sequence, m.StepID, m.Variant = puntuale.OriginSequence, puntuale.SequenceID(id), "0", int8(variant+1)
		})
		b.open(at)
		b.click(`main a[href*="by=step"]`)
		b.until(`document.querySelector("main table.list tbody tr")`)
		b.click(`main table.list a.list-name[href*="by=variant"]`)
		b.until(`document.querySelectorAll("main .tabs + .card tbody tr").length === 2`)
		for _, text := range []string{"A. Ciao {{nome}}", "B. {{nome}}, oggi", "Confronto · 1. Ciao"} {
			b.reads(text)
		}
		if got := b.text("main"); !strings.Contains(got, "B va meglio del testo A") && !strings.Contains(got, "text B does better than text A") {
			t.Errorf("the page does not say that B is better: %s", got)
		}
		b.check("results_step_compare")
		b.click(`main table.list a[href*="/people"][href*="variant=B"][href*="is=read"]`)
		b.until(`document.querySelectorAll("main table.list tbody tr").length === 30`)
		found, _, err := w.store.Tenant(w.client).Messages(t.Context(), puntuale.MessageFilter{Phone: "+393331234501"}, puntuale.Page{Limit: 1})
		w.must(err)
		b.open(w.pages + "/messages/" + found[0].ID.String())
		b.until(`document.querySelector(".message-under").textContent.includes("· ` + map[string]string{"it": "Testo", "en": "Text"}[b.look.language] + ` B")`)
		b.check("message_variant")

		for _, name := range []string{"uno", "due"} {
			_, err := w.Client().CreateTemplate(t.Context(), control.NewTemplate{Template: puntuale.Template{Name: name, Text: "Testo " + name}}, control.Once[control.Template]{})
			w.must(err)
		}
		b.open(w.pages + "/sequences/new")
		b.until(`document.querySelector(".step-variants")`)
		b.fill("name", "Modelli")
		b.click(`[name="steps[0].kind"][value=template] + *`)
		b.click(`.step-variants summary`)
		b.fill("steps[0].template", "uno", "steps[0].template_b", "due")
		b.until(`document.querySelectorAll("#timeline .bubble").length === 2 && document.querySelector("#timeline").textContent.includes("Testo due")`)
		b.check("step_compare_templates")
	})
}

// TestCampaignWays: before the start, the values of "Way" stand below each other beside their label.
func TestCampaignWays(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.own(t)
		c := w.Client()
		made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri!"}},
			[]control.Recipient{{"phone": "+393331234567"}, {"phone": "+393331234568"}, {"phone": "+393331234569"}}, control.Once[control.Campaign]{})
		w.must(err)
		_, err = c.CheckCampaign(t.Context(), made.ID.String())
		w.must(err)
		var checked string
		w.must(w.sql.QueryRow("select checked from campaign where id = $1", made.ID).Scan(&checked))
		_, err = w.sql.Exec("update campaign set checked = $1 where id = $2", `{"ways": [{"way": "free", "reason": "way.window_open", "messages": 1}, {"way": "template", "reason": "way.window_closed", "messages": 2}], `+checked[1:], made.ID)
		w.must(err)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/campaigns/" + made.ID.String() + "/start")
		b.until(`(all => all.length === 2 && all[0].getBoundingClientRect().left === all[1].getBoundingClientRect().left && all[0].textContent.startsWith("1 mess") && all[1].textContent.startsWith("2 mess"))([...document.querySelectorAll(".facts dd > div")])`)
		b.check("ways")
	})
}
