package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// TestRecipientsByName: if a call contained the recipient's name, every page of messages shows the name together with
// the number.
func TestRecipientsByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	sequence := w.sequence(appointment())
	call := `{"phone":"3337654321","nome":"Lucia","data_appuntamento":"30/11/2026 10:00"}`
	fields := map[string]json.RawMessage{"nome": json.RawMessage(`"Lucia"`), "data_appuntamento": json.RawMessage(`"30/11/2026 10:00"`)}
	started, err := w.Client().Start(context.Background(), control.StartCall{Sequence: sequence, Phone: "3337654321", Fields: fields, Body: []byte(call)})
	w.must(err)
	id := started.IDs[1].String()
	w.traffic().planned("+393401112233", "senza nome", w.clock.Now().Add(time.Hour))
	v := w.visitor(w.clients[puntuale.Staff])
	const (
		spaced = "+39\u00a0333\u00a0765\u00a04321"
		number = `data-phone="+393337654321">` + spaced + `</span>`
	)
	for page, parts := range map[string][]string{
		"":                         {`<span class="list-name">Lucia</span>`, number, `<span class="list-name"><span class="nowrap" data-phone="+393401112233">`},
		"/messages":                {`/messages/` + id + `">Lucia</a>`, number, `"><span class="nowrap" data-phone="+393401112233">`},
		"/messages/" + id:          {"<h1>Lucia</h1>", `<p class="soft">` + spaced + `</p>`},
		"/calendar?day=2026-11-28": {`<span title="` + spaced + `">Lucia</span>`, "per Lucia"},
	} {
		r := v.get(w.pages + page)
		for _, part := range parts {
			if r.status != http.StatusOK || !strings.Contains(r.body, part) {
				t.Errorf("%q: %d, without %s: %s", page, r.status, part, inMain(r.body))
			}
		}
	}
}

// TestUnwantedMessage: the page of a pending message to a blacklisted number says that the message will not leave.
func TestUnwantedMessage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	_, pending := f.day()
	other := f.planned("+393405556677", "ciao", w.clock.Now().Add(time.Hour))
	_, err := w.Client().AddBlacklisted(context.Background(), "+393401234500", "", control.Once[puntuale.BlacklistEntry]{})
	w.must(err)
	for language, said := range map[string][]string{
		"it": {"il messaggio non partirà", "Non partirà: il numero è in blacklist"},
		"en": {"the message will not leave", "It will not leave: the number is on the blacklist"},
	} {
		v := w.visitor(w.clients[puntuale.Reader])
		v.post("/language", url.Values{"language": {language}})
		of, another := v.get(w.pages+"/messages/"+pending.String()).body, v.get(w.pages+"/messages/"+other.String()).body
		for _, says := range said {
			if !strings.Contains(of, says) {
				t.Errorf("%s: its page does not say %q: %s", language, says, inMain(of))
			}
			if strings.Contains(another, says) {
				t.Errorf("%s: the page of another says %q: %s", language, says, inMain(another))
			}
		}
	}
}
