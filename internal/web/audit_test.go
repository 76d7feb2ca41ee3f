package web_test

import (
	"context"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"puntuale"
)

// TestAuditNames: the log names what was done to what by whom, with the names of now, and keeps the identifiers; what is gone
// is told by its identifier, or by the name it had when it was deleted.
func TestAuditNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	note := func(user puntuale.LoginID, client puntuale.ClientID, action, target string) {
		p, err := w.control.Known(context.Background(), user)
		w.must(err)
		w.must(p.Note(context.Background(), client, action, target))
	}
	id := w.client.String()
	staff := w.clients[puntuale.Staff]
	note(staff, w.client, "sequence.update", has["sequences"])
	note(staff, w.client, "template.update", has["templates"])
	note(staff, w.client, "session.pace", has["sessions"])
	note(staff, w.client, "session.delete", "987654 Vecchio sportello")
	note(staff, w.client, "message.cancel", has["messages"])
	note(staff, w.client, "message.all", "cancel pending 12")
	note(staff, w.client, "blacklist.import", "7")
	note(staff, w.client, "blacklist.add", has["blacklist"])
	note(staff, w.client, "key.rotate", has["keys"])
	note(staff, w.client, "sequence.update", "987655")
	note(w.partners[puntuale.Staff], w.client, "sequence.start", has["sequences"])
	note(w.partners[puntuale.Staff], 0, "client.change", id)
	note(w.partners[puntuale.Staff], 0, "client.credits", "987656 50")
	note(w.partners[puntuale.Staff], 0, "client.delete", "987656 Bottega chiusa")

	staffMail := mailOf(w, staff)
	client := w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit").body
	for what, part := range map[string]string{
		"sequence":         `<a href="` + w.pages + `/sequences/` + has["sequences"] + `">Promemoria visita ` + id + `</a>`,
		"its id":           `<span class="audit-what" title="ID ` + has["sequences"] + `">`,
		"a number":         ">+39\u00a0333\u00a0000\u00a01122<",
		"template":         `/templates/` + has["templates"] + `">conferma</a>`,
		"session":          `/sessions/` + has["sessions"] + `">Simulata</a>`,
		"deleted session":  `Vecchio sportello`,
		"message":          `/messages/` + has["messages"] + `">Promemoria visita ` + id + `</a>`,
		"many messages":    `12 invii annullati`,
		"numbers":          `7 numeri`,
		"key":              `gestionale`,
		"what is gone":     `<span class="list-below">ID 987655</span>`,
		"user":             `<span>Anna Bianchi</span>`,
		"the user's mail":  `<span class="list-below">` + staffMail + `</span>`,
		"partner's person": `dalla rivendita`,
	} {
		if !strings.Contains(tidy(client), part) && !strings.Contains(client, part) {
			t.Errorf("the client's log lacks the %s: %s", what, part)
		}
	}
	partner := w.visitor(w.partners[puntuale.Owner]).get("/partner/audit").body
	for what, part := range map[string]string{
		"client": `<a href="/partner/clients/` + id + `">Studio Bianchi</a>`, "deleted client": "Bottega chiusa", "sequence": "Promemoria visita " + id,
		"partner's user": "<span>Marta Neri</span>", "client's user": "<span>Anna Bianchi</span>", "where": "<span>Studio Bianchi</span>", "entered": "Entrando come cliente",
	} {
		if !strings.Contains(partner, part) {
			t.Errorf("the partner's log lacks the %s: %s", what, part)
		}
	}

	if n := strings.Count(partner, `<span class="audit-what" title="ID 987656">Bottega chiusa</span>`); n != 2 || !strings.Contains(partner, `<span class="list-below">crediti: 50</span>`) {
		t.Errorf("the deleted client is named in %d rows, want its deletion and what was done before", n)
	}
	for _, log := range []string{client, partner} {
		if bare := regexp.MustCompile(`<span class="list-below">[0-9]+</span>`).FindString(log); bare != "" {
			t.Errorf("the log shows a bare number: %s", bare)
		}
	}

	// What was deleted elsewhere is told by its identifier; another client's thing has none.
	person, err := w.control.Known(context.Background(), w.clients[puntuale.Owner])
	w.must(err)
	c, err := person.Client(context.Background(), id)
	w.must(err)
	w.must(c.DeleteTemplate(context.Background(), has["templates"]))
	theirs := w.everything(w.stranger)
	note(staff, w.client, "sequence.update", theirs["sequences"])
	client = w.visitor(w.clients[puntuale.Owner]).get(w.pages + "/audit").body
	if strings.Contains(client, "Promemoria visita "+w.stranger.String()) {
		t.Error("the log names another client's sequence")
	}
	if strings.Contains(client, ">conferma<") || !strings.Contains(client, has["templates"]) {
		t.Error("a deleted template is not told by its identifier")
	}
}

// TestAuditOfDeleted: what a dashboard deletes keeps its name in the log.
func TestAuditOfDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	v := w.visitor(w.clients[puntuale.Owner])
	if r := v.post(w.pages+"/templates/"+has["templates"]+"/delete", url.Values{}); r.status >= 400 {
		t.Fatalf("delete: %d %s", r.status, r.body)
	}
	if log := v.get(w.pages + "/audit").body; !strings.Contains(log, "conferma") || !strings.Contains(log, has["templates"]) {
		t.Error("the log does not name the deleted template")
	}
}

func mailOf(w *world, user puntuale.LoginID) string {
	p, err := w.control.Known(context.Background(), user)
	w.must(err)
	return p.User().Email
}
