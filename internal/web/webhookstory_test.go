package web_test

import (
	"strings"
	"testing"

	"puntuale"
)

// TestWebhookStory creates a webhook in a browser, tests it, creates a new secret, and looks at a failed delivery.
func TestWebhookStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.everything(w.client)
		r := newScriptedReceiver(t)
		it := map[bool][]string{
			true:  {"Nuovo webhook", "Crea webhook", "L’ho copiato", "Invia una prova", "Nuovo segreto", "Risposta ricevuta", "Rimanda", "1 evento riparte."},
			false: {"New webhook", "Create webhook", "I have copied it", "Send a test", "New secret", "Reply received", "Send again", "1 event is sent again."},
		}[b.look.language == "it"]
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/webhooks")
		b.press(it[0])
		b.until(`location.pathname.endsWith("/new") && document.readyState === "complete"`)
		b.fill("url", "http://192.168.1.20/hook")
		b.press(it[1])
		b.until(`document.querySelector("#f-url-fault") && document.activeElement.id === "f-url"`)
		b.check("webhook-refused")
		b.fill("url", r.url)
		b.click(`input[name=which][value=some]`)
		b.until(`document.querySelector(".webhook-types").offsetParent`)
		b.click(`input[name=types][value="reply.received"]`)
		b.check("webhook-form")
		b.press(it[1])
		b.until(`document.querySelector(".secret-text")`)
		b.check("webhook-secret")
		b.press(it[2])
		b.until(`/webhooks\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.press(it[3])
		b.until(`document.querySelector("#test-result pre")`)
		b.check("webhook-tested")
		b.click(`[data-open=rotate]`)
		b.until(`document.querySelector("#rotate[open]")`)
		b.check("webhook-rotate")
		b.click(`#rotate button[type=submit]`)
		b.until(`document.querySelector(".secret-text")`)
		b.press(it[2])
		b.until(`/webhooks\/\d+$/.test(location.pathname) && document.readyState === "complete"`)
		b.check("webhook-overlap")

		b.open(w.pages + "/webhooks/1")
		b.click(`.details summary`)
		b.check("webhook-deliveries")
		b.press(it[5])
		b.until(`location.pathname.includes("/deliveries/") && document.readyState === "complete"`)
		b.click(`.details summary`)
		b.check("webhook-delivery")
		b.press(it[6])
		b.reads(it[7])
		w.ended(w.ownWebhooks(), 1, puntuale.DeliveryResult{State: puntuale.DeliveryFailed, Status: 410, ReceiverGone: true, Answer: strings.Repeat("x", 1024)})
		b.open(w.pages + "/webhooks/1")
		b.check("webhook-disabled")
		b.open(w.pages + "/webhooks")
		b.check("webhooks")
	})
}
