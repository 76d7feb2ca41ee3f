package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestBuilderStory: in a browser, a person begins a template with a text of the library, reads what the lint says, sends
// it to Meta, reads why Meta rejected it, mends it, and sees it approved. Another language stands beside it.
func TestBuilderStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		o := w.own(t)
		italian := b.look.language == "it"
		says := func(it, en string) string {
			if italian {
				return it
			}
			return en
		}
		s, page := w.newSession("Ufficiale", puntuale.Official, false)
		w.keys(s.Session, o)
		b.signIn(w.clients[puntuale.Staff])
		b.open(page + "/templates/library")
		b.check("library")
		b.click(`a[href*="library=ordine_pronto"]`)
		b.until(`document.getElementById("template-form") && document.readyState === "complete"`)
		b.check("begun")
		b.fill("text", says("Ciao {{nome}}, il tuo ordine {{numero}} è pronto: oggi sconto del 10%!!", "Hi {{nome}}, your order {{numero}} is ready: 10% discount today!!"))
		b.until(`document.querySelectorAll(".lint li").length === 2`)
		b.check("lint")
		b.fill("name", "Ordine pronto")
		b.press(says("Invia a Meta", "Send to Meta"))
		b.until(`document.querySelector("#f-name-fault") && document.activeElement.id === "f-name"`)
		b.check("refused-here")
		b.fill("name", "ordine_pronto", "text", says("Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro in negozio.", "Hi {{nome}}, your order {{numero}} is ready for pick-up in our shop."), "header.kind", "text")
		b.until(`document.querySelector("[name='header.text']").offsetParent`)
		b.fill("header.text", says("Il tuo ordine", "Your order"), "footer", "Bottega Rossi")
		b.click(`[name=do][value=button]`)
		b.until(`document.querySelector("[name='buttons[0].kind']")`)
		b.fill("buttons[0].kind", "url")
		b.until(`document.querySelector("[name='buttons[0].url']").offsetParent`)
		b.fill("buttons[0].text", says("Segui l’ordine", "Follow it"), "buttons[0].url", "https://bottega.example/o/{{numero}}")
		b.until(`document.querySelector("#preview .approved-buttons") && document.querySelector("#preview .bubble-text").innerText.includes("1724")`)
		b.check("whole")
		o.peer.Manage(func(string) graphtest.Reply {
			return graphtest.Reply{Code: 100, Subcode: 2388293, Title: "Troppi parametri", Text: "Accorcia il testo."}
		})
		b.press(says("Invia a Meta", "Send to Meta"))
		b.reads("Troppi parametri: Accorcia il testo.")
		b.check("refused-by-meta")
		o.peer.Manage(nil)
		b.press(says("Invia a Meta", "Send to Meta"))
		b.until(`/\/templates\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.check("pending")
		if made := o.peer.Template(o.number.Account, "ordine_pronto", b.look.language); made.Status != "PENDING" || len(made.Components) != 4 {
			t.Fatalf("Meta has %+v", made)
		}

		o.peer.Review(o.number.Account, "ordine_pronto", b.look.language, "REJECTED", "TAG_CONTENT_MISMATCH")
		w.heard(o, "ordine_pronto", b.look.language, puntuale.TemplateRejected, "TAG_CONTENT_MISMATCH", "Togli ciò che non riguarda l’ordine.")
		b.open(evaluate[string](b, "location.pathname"))
		b.reads("Togli ciò che non riguarda l’ordine.")
		b.check("rejected")
		b.click(`a[href$="/edit"]`)
		b.until(`document.getElementById("template-form") && document.readyState === "complete"`)
		b.check("edit")
		b.fill("text", says("Ciao {{nome}}, il tuo ordine {{numero}} è pronto per il ritiro.", "Hi {{nome}}, your order {{numero}} is ready for pick-up."))
		b.press(says("Invia a Meta", "Send to Meta"))
		b.until(`/\/templates\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		o.peer.Review(o.number.Account, "ordine_pronto", b.look.language, "APPROVED", "NONE")
		w.heard(o, "ordine_pronto", b.look.language, puntuale.TemplateApproved, "", "")
		b.open(evaluate[string](b, "location.pathname"))
		b.until(`document.querySelector("main .tag-ok")`)
		b.check("approved")

		b.press(says("Aggiungi una lingua", "Add a language"))
		b.until(`document.getElementById("template-form") && document.readyState === "complete"`)
		b.press(says("Invia a Meta", "Send to Meta"))
		b.until(`/\/templates\/\d+$/.test(location.pathname) && document.querySelectorAll(".tile").length === 2 && document.readyState === "complete"`)
		b.check("languages")
		b.open(page + "/templates")
		b.check("list")
		b.open(w.pages + "/templates")
		b.reads("ordine_pronto") // the client's own template was made, too
		b.keepsToItself()
	})
}

// keys gives a session the keys of the owner's number, and lets the owner read them.
func (w *world) keys(s puntuale.Session, o *owner) {
	w.t.Helper()
	v := w.visitor(w.clients[puntuale.Owner])
	n := o.number
	at := fmt.Sprintf("%s/sessions/%d", w.pages, s.ID)
	if a := v.post(at+"/official", map[string][]string{
		"phone_number_id": {n.ID}, "business_account_id": {n.Account}, "app_id": {n.App}, "access_token": {n.Token}, "app_secret": {n.Secret}, "verify_token": {n.Verify},
	}); a.status != 200 {
		w.t.Fatalf("keys: %d", a.status)
	}
	if a := v.post(at+"/test", nil); !strings.Contains(a.body, "Tutto a posto") {
		w.t.Fatal("the number does not work")
	}
}

// heard stores what Meta's webhook says about a template.
func (w *world) heard(o *owner, name, language string, status puntuale.TemplateStatus, reason, advice string) {
	w.t.Helper()
	w.clock.Advance(2 * time.Second)
	if err := w.store.TellNetworkTemplate(w.t.Context(), puntuale.TemplateEvent{
		Client: w.client, Account: o.number.Account, Name: name, Language: language, Status: status, Reason: reason, Advice: advice, At: w.clock.Now(),
	}); err != nil {
		w.t.Fatal(err)
	}
}

// TestPreviewWithoutExamples: a placeholder without an example is shown itself, and an empty draft has no empty bubble.
func TestPreviewWithoutExamples(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	has := w.everything(w.client)
	page := w.pages + "/sessions/" + has["official"] + "/templates/draft"
	for text, want := range map[string]string{
		"Ciao {{nome}}, a presto": `<p class="bubble-text">Ciao {{nome}}, a presto</p>`,
		"":                        "Qui vedi il messaggio mentre lo scrivi.",
	} {
		if r := w.visitor(w.clients[puntuale.Owner]).htmx(page, url.Values{"do": {"preview"}, "text": {text}}); !strings.Contains(r.body, want) {
			t.Errorf("the preview of %q lacks %q: %s", text, want, r.body)
		}
	}
}
