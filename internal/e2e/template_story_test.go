//go:build e2e

package e2e

import (
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestTemplateStory: in the dashboard of the built binary, a client makes a template from a text of the library, sends it
// to Meta, reads why Meta rejected it, mends it, and sees it approved. A start of a sequence with the template then sends
// it. The first call to Meta gets no answer; nevertheless Meta has one template.
func TestTemplateStory(t *testing.T) {
	databases(t, func(t *testing.T, database string) {
		o := &officialStory{t: t, number: graphtest.NewNumber("106540352242922")}
		o.number.Account = "102290129340398"
		o.peer = graphtest.New(t, o.number)
		o.s = prepare(t, database, "--official-api-url", o.peer.URL, "--public-url", public)
		o.s.start()
		createPartner(t, database)
		o.b = newBrowser(t)
		o.b.speak("it")
		o.client()
		o.setUp()
		o.subscribe()
		o.builds()
		o.b.keepsToItself(o.s.base)
	})
}

func (o *officialStory) builds() {
	t, b, phone := o.t, o.b, "+393331234567"
	lost := true
	o.peer.Manage(func(string) graphtest.Reply {
		defer func() { lost = false }()
		return graphtest.Reply{Drop: lost}
	})
	b.visit(o.s.base + o.session + "/templates/new?library=ordine_pronto&language=it")
	b.waitFor(`document.getElementById("template-form")`)
	b.fill("text", "Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro in negozio.")
	b.looks("1-builder")
	b.tap(".editor-save .btn-primary")
	b.reads("Meta non ha ancora risposto")
	b.looks("2-open")
	eventually(t, 90*time.Second, "the lost answer is found", func() bool {
		return strings.Contains(string(must(t, "GET", o.s.base+"/api/sessions/"+o.session[strings.LastIndex(o.session, "/")+1:]+"/templates", o.key, nil).body), `"status":"PENDING"`)
	})
	made := o.peer.Template(o.number.Account, "ordine_pronto", "it")
	if calls := o.peer.Managed(); len(calls) != 1 || made.ID == "" {
		t.Fatalf("Meta has %+v after the calls %q", made, calls)
	}
	page := o.s.base + o.session + "/templates/" + made.ID

	time.Sleep(time.Second) // Meta's reports have whole seconds
	o.peer.Review(o.number.Account, "ordine_pronto", "it", "REJECTED", "TAG_CONTENT_MISMATCH")
	o.deliver(o.peer.TemplateEvent(o.number.Account, "ordine_pronto", "it", "REJECTED", "TAG_CONTENT_MISMATCH", time.Now()))
	b.visit(page)
	b.reads("contenuto diverso dalla categoria")
	b.looks("3-rejected")
	b.tap(`main a[href$="/edit"]`)
	b.waitFor(`document.getElementById("template-form")`)
	b.fill("text", "Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro.")
	b.tap(".editor-save .btn-primary")
	b.waitFor(`location.pathname.endsWith("/templates/` + made.ID + `") && document.readyState === "complete"`)
	time.Sleep(2 * time.Second)
	o.peer.Review(o.number.Account, "ordine_pronto", "it", "APPROVED", "NONE")
	o.deliver(o.peer.TemplateEvent(o.number.Account, "ordine_pronto", "it", "APPROVED", "NONE", time.Now()))
	b.visit(page)
	b.waitFor(`document.querySelector("main .tag-ok")`)
	b.looks("4-approved")

	var sequence struct{ ID string }
	must(t, "POST", o.s.base+"/api/sequences", o.key, map[string]any{
		"name": "Ritiro", "id_sessione": o.session[strings.LastIndex(o.session, "/")+1:],
		"steps": []any{map[string]any{"template": "ordine_pronto", "timing": map[string]any{"anchor": "start", "offset": map[string]any{"amount": 0}}}},
	}).into(t, &sequence)
	must(t, "POST", o.s.base+"/api/start/"+sequence.ID, o.key, map[string]string{"phone": phone, "nome": "Ada", "numero": "1724"})
	eventually(t, 30*time.Second, "the message is with Meta", func() bool { return len(o.peer.Taken()) == 1 })
	sent := o.peer.Taken()[0].Message
	if sent.Template == nil || sent.Template.Name != "ordine_pronto" || sent.Template.Language.Code != "it" || len(sent.Template.Components) != 1 ||
		len(sent.Template.Components[0].Parameters) != 2 || sent.Template.Components[0].Parameters[1].Text != "1724" {
		t.Errorf("sent: %+v", sent.Template)
	}
}
