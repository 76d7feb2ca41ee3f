package web_test

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// list is a file in the usual form of Excel's export. The check refuses two of its rows.
const list = "Nome;Cellulare\r\nAnna;333 1234567\r\nUgo;333 7654321\r\nAnna;333 1234567\r\nZoe;123\r\n"

// TestCampaignWizard: somebody who never saw the pages creates a campaign and reloads the page at each wizard step. The
// person starts, pauses and cancels the campaign. From the empty list to the start, a person needs less than a minute
// of thinking and typing, including two detours.
func TestCampaignWizard(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		file := filepath.Join(t.TempDir(), "clienti.csv")
		w.must(os.WriteFile(file, []byte(list), 0o600))
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/campaigns")
		b.check("campaigns_empty")
		b.taps, b.typed = 2, 0 // choosing the file needs two clicks of a person
		b.click(`main a[href$="/campaigns/new"]`)
		b.until(`document.querySelector("#f-name")`)
		b.fill("name", "Auguri", "text", "Auguri, {{nome}}! Scrivi STOP per non riceverne più.")
		b.click(`main form[action$="/campaigns"] [type=submit]`)
		b.until(`document.querySelector(".fault")`) // the page does not preselect a purpose, so the purpose is missing
		b.check("campaign_what_fault")
		b.click(`[name=purpose][value=marketing]`)
		b.click(`main form[action$="/campaigns"] [type=submit]`)
		b.until(`location.pathname.endsWith("/people") && document.querySelector("#f-file")`)
		at := strings.TrimSuffix(evaluate[string](b, `location.pathname`), "/people")
		b.check("campaign_people")
		b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
		b.click(`#people-upload .import-file [type=submit]`)
		b.until(`document.querySelector("#import-result .mapping")`)
		b.reads("333 7654321 → ")
		b.check("campaign_found")
		b.click(`#people-upload [formaction$="do=import"]`)
		b.until(`location.pathname.endsWith("/check") && document.querySelector(".samples")`)
		b.open(at) // after a reload, or on another day, the wizard continues at the same wizard step
		b.until(`/\/(check|start)$/.test(location.pathname) && document.querySelector("main .card")`)
		b.open(at + "/people")
		b.check("campaign_columns")
		b.reads("333 7654321")
		b.open(at + "/check")
		b.until(`location.pathname.endsWith("/check") && document.querySelector(".samples")`)
		b.reads("Auguri, Anna! Scrivi STOP per non riceverne più.")
		if got := b.text(".excluded"); !strings.Contains(got, "123") {
			t.Errorf("the excluded rows: %q", got)
		}
		taps, typed := b.taps, b.typed // looking at other rows is no part of the way
		for _, row := range []struct{ line, shows string }{{"3", "Auguri, Ugo! Scrivi STOP per non riceverne più."}, {"5", "123"}, {"99", "99"}} {
			b.fill("line", row.line)
			b.leaves(func() { b.click("#row button") })
			b.until(`document.querySelector(":is(.any-row + .samples, #f-line-fault)")?.innerText.includes(` + quote(row.shows) + `)`)
			b.check("campaign_row_" + row.line)
		}
		b.taps, b.typed = taps, typed
		b.check("campaign_check")
		b.click(`main a.btn-primary[href$="/when"]`)
		b.until(`document.querySelector("#f-per_minute")`)
		b.fill("per_minute", "60")
		b.check("campaign_when")
		b.click(`form[action$="/when"] [type=submit]`)
		b.until(`location.pathname.endsWith("/start") && document.querySelector("[name=digest]")`)
		b.check("campaign_start")
		b.click(`form[action$="/start"] [type=submit]`)
		b.until(`document.querySelector("#campaign-live form[action$='/pause']")`)
		const pages = 7
		if took := pages*3*time.Second + time.Duration(b.taps)*1500*time.Millisecond + time.Duration(b.typed)*200*time.Millisecond; b.taps > 14 || took > time.Minute {
			t.Errorf("it takes %d taps, %d characters and %v", b.taps, b.typed, took)
		}
		b.check("campaign_running")
		b.click(`#campaign-live form[action$="/pause"] [type=submit]`)
		b.until(`document.querySelector("#campaign-live form[action$='/resume']")`)
		b.check("campaign_paused")
		b.click(`#campaign-live form[action$="/resume"] [type=submit]`)
		b.until(`document.querySelector("#campaign-live form[action$='/pause']")`)
		b.click(`#campaign-live form[action$="/cancel"] [type=submit]`)
		b.until(`document.readyState === "complete" && document.querySelector("#campaign-live") && !document.querySelector("#campaign-live form[action$='/cancel']")`)
		b.open(w.pages + "/campaigns")
		b.reads("Auguri")
		b.check("campaigns")
		b.open(w.pages + "/audit")
		b.check("campaign_audit")
	})
}

// takesList sends the list in the upload's form, looks at what the page finds in it, and takes it.
func (b *browser) takesList() {
	b.t.Helper()
	b.click(`#people-upload .import-file [type=submit]`)
	b.until(`document.querySelector("#import-result .mapping")`)
	b.click(`#people-upload [formaction$="do=import"]`)
	b.until(`location.pathname.endsWith("/check") && document.querySelector(".samples")`)
}

// TestCampaignListAsks: before a list is stored, the page shows the line of the header, hidden rows, and each number and date as
// it is written and as it would be stored. It asks how dates are meant. The hidden rows are named as long as the page
// shows the list.
func TestCampaignListAsks(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		made, err := w.Client().CreateCampaign(context.Background(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri, {{nome}}! Nascita {{nascita:giorno|boh}}."}}, nil, control.Once[control.Campaign]{})
		w.must(err)
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/campaigns/" + made.ID.String() + "/people")
		choose := func(name string) {
			t.Helper()
			file, err := filepath.Abs(filepath.Join("..", "roster", "testdata", "exports", name))
			w.must(err)
			b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
			b.click(`#people-upload .import-file [type=submit]`)
		}
		const stored = `document.querySelector("#columns")`
		choose("mixed.csv")
		b.until(`document.querySelector("#import-result .fault")`)
		b.check("mixed")
		if got := b.text("#import-result .fault"); !strings.Contains(got, "2") || evaluate[bool](b, `!!document.querySelector("[formaction$='do=import']")`) {
			t.Errorf("dates of both orders: %q", got)
		}
		evaluate[bool](b, `(document.querySelector("#import-result .mapping").id = "before", true)`)
		b.click(`#import-result .actions [type=submit]`) // without a choice, the page asks again
		b.until(`document.querySelector("#import-result .mapping:not(#before) .fault") && !document.querySelector("[formaction$='do=import']")`)
		evaluate[bool](b, `((s) => { s.value = "nascita=dmy"; s.dispatchEvent(new Event("change", {bubbles: true})); return true })(document.querySelector("[name='column.2']"))`)
		b.click(`#import-result .actions [type=submit]`)
		b.until(`document.querySelector("[formaction$='do=import']")`)
		choose("filtered.xlsx")
		b.until(`document.querySelector("#import-result [name=header]")?.value === "3"`)
		b.check("filtered")
		for _, want := range []string{"2 righe", "2 rows"} {
			if got := b.text("#import-result .notice"); strings.Contains(got, want) {
				break
			} else if want == "2 rows" {
				t.Errorf("hidden rows: %q", got)
			}
		}
		if evaluate[bool](b, "!!"+stored) {
			t.Error("a list was stored before it was taken")
		}
		b.click(`#people-upload [formaction$="do=import"]`)
		b.until(stored)
		for range 2 {
			if evaluate[bool](b, `!document.querySelector("#columns .notice")`) {
				t.Error("the page says no more that rows are hidden")
			}
			b.do(chromedp.Reload())
			b.until(stored)
		}
		b.check("stored")
		if list, err := w.Client().RecipientsOf(context.Background(), made.ID.String()); err != nil || list.Size != 3 {
			t.Errorf("stored %+v, %v", list, err)
		}
	})
}

// TestCampaignFromContacts: the contacts with one of two tags become a campaign's recipients, with their names and
// fields.
func TestCampaignFromContacts(t *testing.T) {
	onScreens(t, func(_ *testing.T, w *world, b *browser) {
		for _, n := range []control.NewContact{
			{Phone: "+393331234567", Name: "Anna", Tags: []string{"clienti", "vip"}, Fields: map[string]control.ContactValue{"taglia": {Text: "M"}}},
			{Phone: "+393331234568", Name: "Ugo", Tags: []string{"fornitori"}}, {Phone: "+393331234569", Name: "Zoe", Tags: []string{"amici"}},
		} {
			_, err := w.Client().AddContact(context.Background(), n, control.Once[puntuale.Contact]{})
			w.must(err)
		}
		made, err := w.Client().CreateCampaign(context.Background(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri, {{nome}}! Taglia {{taglia|unica}}."}}, nil, control.Once[control.Campaign]{})
		w.must(err)
		at := w.pages + "/campaigns/" + made.ID.String()
		b.signIn(w.clients[puntuale.Staff])
		b.open(at + "/people")
		b.click(`form[action$="/tags"] [type=submit]`)
		b.until(`document.querySelector("form[action$='/tags'] .fault")`)
		b.check("fault")
		b.click(`[name="from.tags"][value=clienti]`)
		b.click(`[name="from.tags"][value=fornitori]`)
		b.click(`form[action$="/tags"] [type=submit]`)
		b.until(`document.querySelectorAll("#columns table tbody tr").length === 2`)
		b.check("taken")
		b.click(`form[action$="/columns"] [value=next]`)
		b.reads("Auguri, Anna! Taglia M.")
		b.reads("Auguri, Ugo! Taglia unica.")
		b.check("trial")
		b.fill("phone", "333 999 0000")
		b.click(`form[action$="/trial"] [type=submit]`)
		b.until(`document.querySelector("[data-toast]") && location.pathname.endsWith("/check")`)
		sent, _, err := w.Client().Messages(context.Background(), control.MessageQuery{})
		w.must(err)
		if len(sent) != 1 || sent[0].Phone != "+393339990000" || sent[0].Content.Text != "Auguri, Anna! Taglia M." || sent[0].Campaign != 0 {
			w.t.Errorf("the trial: %+v", sent)
		}
		stranger := w.visitor(w.foreignOwner)
		if r := stranger.post(at+"/trial", url.Values{"phone": {"3339990000"}, "key": {"x"}}); r.status != http.StatusNotFound {
			w.t.Errorf("a stranger's trial: %d", r.status)
		}
		if r := stranger.post(at+"/tags", url.Values{"from.tags": {"amici"}}); r.status != http.StatusNotFound {
			w.t.Errorf("a stranger: %d", r.status)
		}
	})
}

// TestCampaignBill: the page of a campaign on an Official number shows the check's estimate beside the cost that Meta
// billed so far. It shows both by country and category. These parts of the page update themselves until the campaign
// has ended.
func TestCampaignBill(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o, c := w.own(t), w.Client()
		promo := graphtest.NewTemplate("promo", "Saldi! Scrivi STOP per non riceverne più")
		promo.Category = "MARKETING"
		o.peer.SetTemplates(o.number.Account, promo)
		s, _ := w.newSession("Ufficiale", puntuale.Official, false)
		_, err := c.SetKeys(t.Context(), s.ID.String(), control.NewKeys{OfficialKeys: puntuale.OfficialKeys{
			PhoneNumberID: o.number.ID, AccessToken: o.number.Token, AppSecret: o.number.Secret, VerifyToken: o.number.Verify, BusinessAccountID: o.number.Account}})
		w.must(err)
		_, err = c.TestSession(t.Context(), s.ID.String())
		w.must(err)
		_, err = c.CreateTemplate(t.Context(), control.NewTemplate{Template: puntuale.Template{Name: "Promo", Text: "Saldi", Official: &puntuale.Approved{Name: "promo", Language: "it"}}}, control.Once[control.Template]{})
		w.must(err)
		made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Saldi", Purpose: "marketing", Session: s.ID.String(), Step: &puntuale.Step{Template: "Promo"}},
			[]control.Recipient{{"phone": "+393331234567"}, {"phone": "+393331234568"}, {"phone": "+393331234569"}}, control.Once[control.Campaign]{})
		w.must(err)
		check, err := c.CheckCampaign(t.Context(), made.ID.String())
		w.must(err)
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/campaigns/" + made.ID.String() + "/start")
		b.check("campaign_start_cost")
		_, _, err = c.StartCampaign(t.Context(), made.ID.String(), check.Digest)
		w.must(err)
		for _, tc := range []struct {
			country, category string
			billable          bool
			n                 int
		}{{"IT", "marketing", true, 2}, {"IT", "marketing", false, 1}, {"DE", "utility", true, 1}} {
			_, err = w.sql.Exec("insert into charge (client_id, campaign_id, country, category, billable, messages) values ($1, $2, $3, $4, $5, $6)",
				w.client, made.ID, tc.country, tc.category, tc.billable, tc.n)
			w.must(err)
		}
		at := w.pages + "/campaigns/" + made.ID.String()
		b.open(at)
		b.check("campaign_bill")
		said := map[string][]string{
			"it": {"IT · Marketing 0,20 EUR 3 messaggi 0,13 EUR 2 messaggi", "DE · Servizio – 0,05 EUR 1 messaggio", "Totale 0,20 EUR 0,18 EUR", "1 messaggio gratis"},
			"en": {"IT · Marketing 0.20 EUR 3 messages 0.13 EUR 2 messages", "DE · Utility – 0.05 EUR 1 message", "Total 0.20 EUR 0.18 EUR", "1 message for nothing"},
		}
		for _, text := range said[b.look.language] {
			b.reads(text)
		}
		v := w.visitor(w.clients[puntuale.Reader])
		if part := v.get(at + "?state=waiting&part=below"); !strings.Contains(part.body, "0,20") || strings.Contains(part.body, "<main") || !strings.Contains(part.body, `state=waiting&amp;after=&amp;part=below"`) {
			t.Errorf("the part that renews itself: %s", part.body)
		}
		// Where the partner asks its own price, its client sees this one, and the partner both.
		w.must(w.statements.SetOwnPrices(t.Context(), w.newPartnerHandle(), puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": "0.10"}}))
		b.open(at)
		b.check("campaign_bill_own")
		own := map[string][]string{
			"it": {"IT · Marketing 0,30 EUR 3 messaggi 0,30 EUR 3 messaggi", "Totale 0,30 EUR 0,35 EUR", "Ai prezzi della tua agenzia"},
			"en": {"IT · Marketing 0.30 EUR 3 messages 0.30 EUR 3 messages", "Total 0.30 EUR 0.35 EUR", "At your agency’s prices"},
		}
		for _, text := range own[b.look.language] {
			b.reads(text)
		}
		if body := v.get(at).body; strings.Contains(body, "0,20") || strings.Contains(body, "gratis") {
			t.Errorf("the client sees the network's price: %s", words(body))
		}
		inside := w.visitor(w.partners[puntuale.Owner])
		inside.post("/partner/clients/"+w.client.String()+"/enter", nil)
		if text := words(inMain(inside.get(at).body)); !strings.Contains(text, "Totale 0,20 EUR 0,18 EUR") || !strings.Contains(text, "Al cliente, ai tuoi prezzi: 0,30 EUR di stima, 0,35 EUR finora.") {
			t.Errorf("the partner reads %s", text)
		}
		_, err = c.CancelCampaign(t.Context(), made.ID.String())
		w.must(err)
		_, err = w.sql.Exec("update campaign set state = $1 where id = $2", puntuale.CampaignCancelled, made.ID)
		w.must(err)
		if part := v.get(at + "?part=below"); part.status != http.StatusOK || strings.Contains(part.body, "part=below") {
			t.Errorf("it asks again after the end: %s", part.body)
		}
	})
}

// TestCampaignRoles: staff may prepare and stop a campaign. Only an owner may start or resume it, and export its list.
func TestCampaignRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.Client()
	made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "marketing", Step: &puntuale.Step{Text: "Auguri!"}},
		[]control.Recipient{{"phone": "+393331234567"}, {"phone": "x"}}, control.Once[control.Campaign]{})
	w.must(err)
	check, err := c.CheckCampaign(t.Context(), made.ID.String())
	w.must(err)
	at := w.pages + "/campaigns/" + made.ID.String()
	staff, owner, reader := w.visitor(w.clients[puntuale.Staff]), w.visitor(w.clients[puntuale.Owner]), w.visitor(w.clients[puntuale.Reader])
	digest := url.Values{"digest": {check.Digest}}
	if got := staff.post(at+"/start", digest); got.status != http.StatusForbidden {
		t.Errorf("staff start: %d", got.status)
	}
	if got := staff.get(at + "/start"); !strings.Contains(got.body, "Solo un titolare") || strings.Contains(got.body, "btn btn-primary") {
		t.Errorf("staff are offered to start: %s", got.body)
	}
	if got := reader.get(at); got.status != http.StatusOK || strings.Contains(got.body, "/cancel") {
		t.Errorf("a reader: %d", got.status)
	}
	for _, v := range []*visitor{staff, reader} {
		if got := v.get(at + "/export"); got.status != http.StatusForbidden {
			t.Errorf("export: %d", got.status)
		}
	}
	if got := owner.post(at+"/start", url.Values{"digest": {"other"}}); got.status != http.StatusConflict || !strings.Contains(got.body, check.Digest) {
		t.Errorf("start of what nobody saw: %d", got.status)
	}
	if got := owner.post(at+"/start", digest); got.status != http.StatusSeeOther {
		t.Fatalf("start: %d %s", got.status, got.body)
	}
	if got := owner.post(at+"/start", digest); got.status != http.StatusSeeOther {
		t.Errorf("start again: %d", got.status)
	}
	if got := staff.post(at+"/pause", nil); got.status != http.StatusSeeOther {
		t.Errorf("staff pause: %d", got.status)
	}
	if got := staff.post(at+"/resume", nil); got.status != http.StatusForbidden {
		t.Errorf("staff resume: %d", got.status)
	}
	if got := owner.get(at + "/export?state=refused"); !strings.Contains(got.body, "2;;Escluso;Il numero non è valido;x;") {
		t.Errorf("export: %q", got.body)
	}
	entries, _, err := c.Audit(t.Context(), request.Page{})
	w.must(err)
	var said []string
	for _, e := range entries {
		if strings.HasPrefix(e.Action, "campaign.") {
			said = append(said, e.Action+" "+e.Target+" "+e.Who)
		}
	}
	id := made.ID.String()
	owned, staffed := w.person(w.clients[puntuale.Owner]).User().Email, w.person(w.clients[puntuale.Staff]).User().Email
	want := []string{"campaign.paused " + id + " " + staffed, "campaign.running " + id + " " + owned}
	if len(said) < 2 || said[0] != want[0] || said[1] != want[1] {
		t.Errorf("the audit log says %q, not %q first", said, want)
	}
}

// workbook returns an XLSX file with one sheet. The sheet contains a header of three columns, and one row with these
// cells.
func workbook(t *testing.T, header [3]string, cells string) []byte {
	t.Helper()
	row := "<row>"
	for _, name := range header {
		row += `<c t="inlineStr"><is><t>` + name + `</t></is></c>`
	}
	const relations, link = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`, `<Relationship Id="r1" Type="http://x/`
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	for name, content := range map[string]string{
		"_rels/.rels":                relations + link + `officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml":            `<workbook xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><sheets><sheet name="x" sheetId="1" r:id="r1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": relations + link + `worksheet" Target="sheet.xml"/></Relationships>`,
		"xl/sheet.xml":               `<worksheet><sheetData>` + row + `</row><row>` + cells + `</row></sheetData></worksheet>`,
	} {
		part, err := z.Create(name)
		if err == nil {
			_, err = part.Write([]byte(content))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

// TestCampaignCells: a cell that cannot be read is a fault only if a field uses the cell's column. The list is then
// refused immediately, or later, when somebody maps the column to a field. The test uses a workbook, CSV, and JSON,
// where each member is a field.
func TestCampaignCells(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.Client()
	long := strings.Repeat("x", puntuale.MaxField+1)
	header := [3]string{"telefono", "nome", "nota"}
	said := func(err error) string {
		var all []string
		if e, ok := errors.AsType[*puntuale.Error](err); ok {
			for _, f := range e.Faults {
				all = append(all, f.Location+" "+catalogue.Message(f.Reason()))
			}
		}
		return strings.Join(all, "; ")
	}
	for name, list := range map[string]struct {
		file []byte
		want string
	}{
		"CSV":      {[]byte("telefono,nome,nota\n+393331234567,Anna," + long + "\n"), "body.line[2] column 3: a cell is longer than 4096 bytes"},
		"formula":  {workbook(t, header, `<c><v>393331234567</v></c><c t="str"><v>Anna</v></c><c><f>A1</f></c>`), "body.line[2] column 3: a cell has a formula without its result"},
		"error":    {workbook(t, header, `<c><v>393331234567</v></c><c t="str"><v>Anna</v></c><c t="e"><f>NA()</f><v>#N/A</v></c>`), "body.line[2] column 3: a formula gives an error"},
		"workbook": {workbook(t, header, `<c><v>393331234567</v></c><c t="str"><v>Anna</v></c><c t="str"><v>`+long+`</v></c>`), "body.line[2] column 3: a cell is longer than 4096 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: name, Purpose: "service", Step: &puntuale.Step{Text: "Ciao {{nome}}"}}, nil, control.Once[control.Campaign]{})
			w.must(err)
			id := made.ID.String()
			if got := w.visitor(w.clients[puntuale.Staff]).upload(w.pages+"/campaigns/"+id+"/people?do=import", "file", list.file); got.status != http.StatusSeeOther {
				t.Errorf("the upload: %d %s", got.status, inMain(got.body))
			}
			kept, err := c.RecipientsOf(t.Context(), id)
			if err != nil || kept.Size != 1 || len(kept.Preview) != 1 || kept.Preview[0][1] != "Anna" || kept.Preview[0][2] != "" {
				t.Errorf("stored %+v, %v", kept, err)
			}
			const toNote = "phone:telefono,nome:nota"
			if _, err := c.MapRecipients(t.Context(), id, toNote, ""); !strings.HasPrefix(said(err), list.want) {
				t.Errorf("the column is taken later: %v", err)
			}
			if after, err := c.RecipientsOf(t.Context(), id); err != nil || after.Size != 1 || after.Mapping["nome"] != 1 {
				t.Errorf("the refused change left %+v, %v", after, err)
			}
			for _, columns := range []string{toNote, "phone:telefono,nome:nome,altro:nota"} {
				if _, err := c.PutRecipients(t.Context(), id, bytes.NewReader(list.file), "", control.FileImport{Columns: columns}); !strings.HasPrefix(said(err), list.want) {
					t.Errorf("%s: %v", columns, err)
				}
			}
			check, err := c.CheckCampaign(t.Context(), id)
			if err != nil || check.Valid != 1 || check.Samples[0].Text != "Ciao Anna" {
				t.Errorf("the check says %+v, %v", check, err)
			}
		})
	}
	made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "JSON", Purpose: "service", Step: &puntuale.Step{Text: "Ciao {{nome}}"}}, nil, control.Once[control.Campaign]{})
	w.must(err)
	_, err = c.AddRecipients(t.Context(), made.ID.String(), []control.Recipient{{"phone": "+393331234567", "nome": "Anna", "nota": long}})
	if !strings.Contains(said(err), "nota is longer than 4096 bytes") {
		t.Errorf("a member of JSON: %v", err)
	}
}

// TestCampaignFile: a file with faults changes nothing, and the page shows the lines with faults.
func TestCampaignFile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.Client()
	made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Ciao {{nome}}"}},
		[]control.Recipient{{"phone": "+393331234567", "nome": "Anna"}}, control.Once[control.Campaign]{})
	w.must(err)
	at := w.pages + "/campaigns/" + made.ID.String()
	staff := w.visitor(w.clients[puntuale.Staff])
	for content, want := range map[string]string{
		"telefono,nome\n+393331234567,Ugo,troppo\n": "Riga 2",
		"telefono,nome\n":                  "sotto l’intestazione",
		"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "formato .xls",
		"a,b\nuno,due\n":                   "nessuna colonna contiene numeri",
	} {
		got := staff.upload(at+"/people?do=import", "file", []byte(content))
		if got.status != http.StatusUnprocessableEntity || !strings.Contains(strings.ToLower(got.body), strings.ToLower(want)) {
			t.Errorf("%q: %d, without %q", content, got.status, want)
		}
	}
	if kept, err := c.RecipientsOf(t.Context(), made.ID.String()); err != nil || kept.Size != 1 {
		t.Errorf("%d recipients are left, %v", kept.Size, err)
	}
	if got := staff.upload(at+"/people?do=import", "file", []byte("Nome,Tel\nUgo,333 1234567\nEva,333 7654321\n")); got.status != http.StatusSeeOther {
		t.Fatalf("a good file: %d %s", got.status, got.body)
	}
	if got := staff.post(at+"/columns", url.Values{"column.phone": {"2"}, "column.nome": {""}}); got.status != http.StatusSeeOther {
		t.Errorf("map: %d", got.status)
	}
	list, err := c.RecipientsOf(t.Context(), made.ID.String())
	if err != nil || list.Size != 2 || len(list.Missing) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}

// TestCampaignSamples: the check shows the first messages, the shortest and the longest of all, and the message of any line.
// Of the excluded rows it shows the first twenty.
func TestCampaignSamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.Client()
	made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Ciao {{nome}}!"}}, nil, control.Once[control.Campaign]{})
	w.must(err)
	file := "telefono,nome\n"
	for i, name := range []string{"Anna", "Ugo", "Zoe", "Sara", "I", "Massimiliano", "Luca"} { // on the lines 2 to 8
		file += fmt.Sprintf("+39333123450%d,%s\n", i, name)
	}
	for i := range 25 {
		file += fmt.Sprintf("numero%d,X\n", i)
	}
	_, err = c.PutRecipients(t.Context(), made.ID.String(), strings.NewReader(file), "", control.FileImport{})
	w.must(err)
	if _, err := c.CheckCampaign(t.Context(), made.ID.String()); err != nil {
		t.Fatal(err)
	}
	v, at := w.visitor(w.clients[puntuale.Staff]), w.pages+"/campaigns/"+made.ID.String()+"/check"
	page := words(v.get(at).body)
	for _, want := range []string{"Riga 2 · ", "Ciao Anna!", "Il più corto · Riga 6", "Ciao I!", "Il più lungo · Riga 7", "Ciao Massimiliano!", "Riga 9 numero0", "Riga 28 numero19"} {
		if !strings.Contains(page, want) {
			t.Errorf("the check does not show %q: %s", want, page)
		}
	}
	if strings.Contains(page, "numero20") || strings.Contains(page, "Ciao Luca!") {
		t.Errorf("the check shows more: %s", page)
	}
	if row := words(v.get(at + "?line=8").body); !strings.Contains(row, "Ciao Luca!") {
		t.Errorf("line 8: %s", row)
	}
}

// TestCampaignListRenewsItself: the list of recipients updates itself together with the numbers above it. This also
// holds if the campaign ends between two updates.
func TestCampaignListRenewsItself(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		c := w.Client()
		made, err := c.CreateCampaign(t.Context(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri!"}},
			[]control.Recipient{{"phone": "+393331234567"}, {"phone": "+393331234568"}}, control.Once[control.Campaign]{})
		w.must(err)
		check, err := c.CheckCampaign(t.Context(), made.ID.String())
		w.must(err)
		_, _, err = c.StartCampaign(t.Context(), made.ID.String(), check.Digest)
		w.must(err)
		b.signIn(w.clients[puntuale.Reader])
		b.open(w.pages + "/campaigns/" + made.ID.String())
		b.until(`document.querySelectorAll("#recipients tbody .tag-wait").length === 2`)
		_, err = w.sql.Exec("update recipient set state = $1 where client_id = $2", puntuale.RecipientFed, w.client)
		w.must(err)
		_, err = w.sql.Exec("update campaign_feed set fed = 2, waiting = 0 where client_id = $1", w.client)
		w.must(err)
		b.until(`document.querySelectorAll("#recipients tbody .tag-ok").length === 2`)
		_, err = w.sql.Exec("update campaign set state = $1 where id = $2", puntuale.CampaignDone, made.ID)
		w.must(err)
		b.until(`!document.querySelector("#campaign-live[hx-get]") && !document.querySelector("#campaign-below[hx-get]")`)
	})
}
