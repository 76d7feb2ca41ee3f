package web_test

import (
	"context"
	"encoding/csv"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

var tags = regexp.MustCompile(`(?s)<[^>]*>`)

// words returns the text of a page, or of a part of a page, in one line.
func words(page string) string {
	if strings.Contains(page, "<main") {
		page = mainOf(page)
	}
	return strings.Join(strings.Fields(html.UnescapeString(tags.ReplaceAllString(page, " "))), " ")
}

// TestUncertainIsShown: the first page, the calendar, the list and the message's history show an uncertain message at
// the time of its attempt. No page shows it at the time of the server's next check.
func TestUncertainIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	at := w.clock.Now().Add(-20 * time.Minute) // 09:40 in Rome
	id := f.ended("+393331112233", "Ciao Ida", at, puntuale.Outcome{Verdict: puntuale.Uncertain, Next: at.Add(24 * time.Hour), Detail: puntuale.Because(puntuale.ReasonMaybeBecause, "EOF")})
	f.planned("+393334445566", "Ciao Ugo", w.clock.Now().Add(3*time.Hour))
	v := w.visitor(w.clients[puntuale.Staff])
	for path, has := range map[string]string{
		w.pages: "09:40", w.pages + "/calendar": "09:40", w.pages + "/calendar?view=day&day=2026-11-20": "09:40",
		w.pages + "/messages": "Esito incerto", w.pages + "/messages/" + id.String(): "Esito incerto",
	} {
		got := v.get(path)
		if text := words(got.body); got.status != http.StatusOK || !strings.Contains(text, has) || !strings.Contains(text, "Esito incerto") || !strings.Contains(text, "Ciao Ida") {
			t.Errorf("%s: %d %s", path, got.status, text)
		}
	}
	if text := words(v.get(w.pages + "/calendar?view=day&day=2026-11-21").body); strings.Contains(text, "Ciao Ida") {
		t.Errorf("the day on which it is looked at again: %s", text)
	}
	month := v.get(w.pages + "/calendar?view=month&day=2026-11-20").body
	if !strings.Contains(month, "venerdì 20 novembre 2026: 2 messaggi in attesa") || strings.Contains(month, "sabato 21 novembre 2026: un messaggio") {
		t.Errorf("the month: %s", mainOf(month))
	}
	v.post("/language", url.Values{"language": {"en"}})
	if text := words(v.get(w.pages + "/messages/" + id.String()).body); strings.Contains(text, "esito incerto") || !strings.Contains(text, "outcome uncertain: the network may have the message (EOF)") {
		t.Errorf("its story in English: %s", text)
	}
}

// TestUnwantedIsShown: a pending message to a blacklisted number will not leave, and every page says so.
func TestUnwantedIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	id := f.planned("+393331112233", "Ciao Ida", w.clock.Now().Add(time.Hour))
	f.planned("+393334445566", "Ciao Ugo", w.clock.Now().Add(2*time.Hour))
	_, err := w.Client().AddBlacklisted(context.Background(), "+393331112233", "", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	for _, path := range []string{w.pages, w.pages + "/calendar", w.pages + "/calendar?view=day&day=2026-11-20", w.pages + "/messages", w.pages + "/messages/" + id.String()} {
		if text := words(v.get(path).body); strings.Count(text, "In blacklist: non partirà") != 1 {
			t.Errorf("%s: %s", path, text)
		}
	}
}

// TestExportSpeaks: the exported file contains the name that was given in the call. The English file has no Italian
// words.
func TestExportSpeaks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.traffic().ended("+393331239901", "Hello", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Because("sandbox.refused"), Detail: puntuale.Because("sandbox.ending", "9901")})
	at := w.pages + "/sequences/" + w.sequence(appointment())
	v := w.visitor(w.clients[puntuale.Staff])
	v.post(at+"/start", v.startForm(at, url.Values{"phone": {"3337654321"}, "fields.nome": {"Lucia"}, "fields.data_appuntamento": {"2026-11-30T10:00"}}))
	v.post("/language", url.Values{"language": {"en"}})
	rows, err := csv.NewReader(strings.NewReader(strings.TrimPrefix(v.get(w.pages+"/messages/export").body, "\uFEFF"))).ReadAll()
	w.must(err)
	names := 0
	for _, row := range rows[1:] {
		if row[4] == "Lucia" {
			names++
		}
		if row[1] == "Failed" && (row[11] != "Refused by the simulated network" || row[12] != "sandbox: the number ends in 9901") {
			t.Errorf("what failed says %q, %q", row[11], row[12])
		}
		if row[1] == "Pending" && row[11] != "Waiting to be sent" {
			t.Errorf("what waits says %q", row[11])
		}
	}
	if names != 3 {
		t.Errorf("%d rows have the name: %v", names, rows)
	}
}

// TestErrorsKeepNavigation: the pages "not found" and "forbidden" also show the navigation.
func TestErrorsKeepNavigation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	reader, partner := w.visitor(w.clients[puntuale.Reader]), w.visitor(w.partners[puntuale.Owner])
	partner.post("/partner/clients/"+w.client.String()+"/enter", nil)
	for _, try := range []struct {
		v      *visitor
		path   string
		status int
		menu   string
	}{
		{reader, w.pages + "/nothing", http.StatusNotFound, w.pages + "/messages"},
		{reader, w.pages + "/messages/1", http.StatusNotFound, w.pages + "/messages"},
		{reader, "/nothing", http.StatusNotFound, w.pages + "/messages"},
		{reader, w.pages + "/sequences/new", http.StatusForbidden, w.pages + "/messages"},
		{reader, "/c/" + w.other.String(), http.StatusNotFound, w.pages + "/messages"},
		{partner, w.pages + "/messages/1", http.StatusNotFound, w.pages + "/messages"},
		{partner, "/partner/nothing", http.StatusNotFound, "/partner/totals"},
		{partner, "/c/987654", http.StatusNotFound, "/partner/totals"},
	} {
		got := try.v.get(try.path)
		if got.status != try.status || !strings.Contains(got.body, `href="`+try.menu+`"`) {
			t.Errorf("%s: %d, without %s in its menu", try.path, got.status, try.menu)
		}
		if strings.HasSuffix(try.path, "/nothing") && strings.Contains(got.body, `aria-current="page"`) {
			t.Errorf("%s is one of the pages of the menu", try.path)
		}
	}
	if got := w.visitor(0).get("/nothing"); got.status != http.StatusNotFound || strings.Contains(got.body, `class="side`) {
		t.Errorf("nobody: %d %s", got.status, got.body)
	}
}

// TestPhoneListsNames: chats show the name that the call contained. The list is bounded, and its search finds other
// chats by number.
func TestPhoneListsNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	f.request = `{"phone":"+393330000001","nome":"Lucia Neri"}`
	f.ended("+393330000001", "Ciao Lucia", w.clock.Now().Add(-2*time.Hour), puntuale.Outcome{Verdict: puntuale.Sent})
	f.request = ""
	v := w.visitor(w.clients[puntuale.Reader])
	page := w.pages + "/sessions/" + f.session.String() + "/phone"
	if text := words(v.get(page).body); strings.Count(text, "Lucia Neri") != 2 {
		t.Errorf("one chat: %s", text)
	}
	for i := range 60 {
		f.ended("+3933312345"+string(rune('0'+i/10))+string(rune('0'+i%10)), "Ciao", w.clock.Now().Add(-time.Hour), puntuale.Outcome{Verdict: puntuale.Sent})
	}
	got := v.get(page).body
	if n := strings.Count(got, `class="chat-top"`); n != 50 || strings.Contains(got, "Lucia Neri") {
		t.Errorf("%d chats are listed", n)
	}
	if text := words(v.get(page + "?phone=333+000+0001").body); !strings.Contains(text, "Lucia Neri") || !strings.Contains(text, "Ciao Lucia") {
		t.Errorf("found by its number: %s", text)
	}
}

// TestPreviewTellsWhatIsMissing: if the file of a step has no address yet, the preview says that it leaves this step
// out.
func TestPreviewTellsWhatIsMissing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	form := formOf(v.get(w.pages + "/sequences/new?like=welcome").body)
	form.Set("steps[1].kind", "media")
	form.Set("do", "preview")
	if text := words(v.htmx(w.pages+"/sequences/draft", form).body); !strings.Contains(text, "Passo 2 : Non è nell’anteprima finché non compili «Indirizzo del file».") {
		t.Errorf("the preview says %s", text)
	}
}

// TestExamplesStay: the examples are offered even if the client already has a sequence.
func TestExamplesStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.sequence(appointment())
	v := w.visitor(w.clients[puntuale.Staff])
	if page := v.get(w.pages + "/sequences/new").body; strings.Count(page, "/sequences/new?like=") != 4 {
		t.Error("a new sequence offers no examples")
	}
	if page := v.get(w.pages + "/sequences/" + id + "/edit").body; strings.Contains(page, "?like=") {
		t.Error("one that is there offers them, too")
	}
}

// TestPagesTurnBack: a list also links to its previous page.
func TestPagesTurnBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	for range 120 {
		f.planned("+393331112233", "Ciao", w.clock.Now().Add(time.Hour))
	}
	v := w.visitor(w.clients[puntuale.Reader])
	link := func(page, rel string) string {
		return html.UnescapeString(between(page, `rel="`+rel+`" href="`, `"`))
	}
	first := v.get(w.pages + "/messages").body
	second := link(first, "next")
	third := link(v.get(second).body, "next")
	if link(first, "prev") != "" || link(v.get(third).body, "next") != "" {
		t.Error("the first page has one before, or the last one after")
	}
	if got := link(v.get(third).body, "prev"); got != second {
		t.Errorf("before the third: %s, want %s", got, second)
	}
	if got := link(v.get(second).body, "prev"); got != w.pages+"/messages" {
		t.Errorf("before the second: %s", got)
	}
}

// TestTemplateFields: the editors offer fields, and the parts of a date, by their names in the reader's language.
func TestTemplateFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.visitor(w.clients[puntuale.Staff])
	for language, names := range map[string][2]string{"it": {"nome", "data_appuntamento"}, "en": {"name", "appointment_date"}} {
		v.post("/language", url.Values{"language": {language}})
		for _, path := range []string{"/templates/new", "/sequences/new"} {
			page := v.get(w.pages + path).body
			for _, insert := range []string{names[0], names[1], names[1] + ":data", names[1] + ":ora", names[1] + ":giorno"} {
				if strings.Count(page, `data-insert="`+insert+`"`) != 1 {
					t.Errorf("%s, %s: %q is not offered", language, path, insert)
				}
			}
		}
	}
}
