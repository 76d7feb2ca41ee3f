package web_test

import (
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// TestOptOutStory: a person reads a reminder on their phone, and answers "Basta!". The client sees this reply as the
// proof. The person's pending messages are marked as blocked, and so are the messages of the next start. The reply
// "Stop, arrivo tardi" from another person blocks nothing.
func TestOptOutStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		const giulia, marco = "+393331234500", "+393331234501"
		const reminder = "ti ricordiamo l'appuntamento di domani alle 15:30."
		next := map[string]puntuale.MessageID{}
		for _, p := range []struct{ phone, name string }{{giulia, "Giulia Verdi"}, {marco, "Marco Neri"}} {
			f.request = `{"phone":"` + p.phone + `","nome":"` + p.name + `"}`
			f.ended(p.phone, "Ciao "+p.name+", "+reminder, w.clock.Now().Add(-time.Minute), puntuale.Outcome{Verdict: puntuale.Sent})
			next[p.phone] = f.planned(p.phone, "Ci vediamo fra un'ora!", w.clock.Now().Add(23*time.Hour))
		}
		sequence := w.pages + "/sequences/" + w.sequence(appointment())
		b.signIn(w.clients[puntuale.Staff])

		b.answersOnPhone(giulia, reminder, "Basta!")
		b.check("phone")
		b.answersOnPhone(marco, reminder, "Stop, arrivo tardi")

		b.open(w.pages + "/replies")
		b.click(`.inbox a[href*="` + giulia[1:] + `"]`)
		b.until(`document.querySelector(".turns .bubble-in .turn-effect .tag-warn")`)
		b.until(`document.querySelector(".notice-warn") && document.querySelectorAll(".run").length === 2 && !document.querySelector("#f-answer")`)
		b.until(`/(La persona stessa ha scritto «|The person wrote “)Basta![»”], .*\d\d:\d\d/.test(document.querySelector(".notice-warn").innerText)`)
		b.check("listed")
		b.until(`document.querySelectorAll(".run-messages .tag-warn").length === 1`)
		b.click("#consent details summary")
		b.until(`document.querySelector("#consent .ledger li blockquote")?.textContent === "Basta!" && document.querySelector("#consent .ledger code") && document.querySelector("#consent .tag-bad")`)
		b.check("proof")
		b.open(w.pages + "/messages/" + next[giulia].String())
		b.until(`document.querySelector("main .tag-warn")`)

		b.open(sequence + "/start?phone=" + giulia[1:] + "&fields.nome=Giulia&fields.data_appuntamento=2026-11-30T15:30")
		b.click("[value=preview]")
		b.until(`document.querySelector("#start-preview .note-bad") && document.querySelector("[value=start]:enabled")`)
		b.check("next-start")
		b.click("[value=start]")
		b.until(`location.pathname.endsWith("/started") && document.querySelector(".note-bad")`)
		b.until(`document.querySelectorAll("main .tag-warn").length === 3`)
		b.check("started")

		b.open(w.personURL(marco))
		b.reads("Stop, arrivo tardi")
		b.until(`document.querySelectorAll(".run").length === 2 && !document.querySelector(".notice-warn") && !document.querySelector("main .tag-warn") && !document.querySelector("#consent .tag-bad")`)
		b.check("late")
		if got := detail(t, w, next[marco]); got.State != puntuale.Pending {
			t.Errorf("the late one's next message is %v", got.State)
		}
		ledger, _, err := w.Client().Consents(t.Context(), marco, request.Page{})
		w.must(err)
		if len(ledger) != 0 {
			t.Errorf("the late one's consent: %+v", ledger)
		}
	})
}

// answersOnPhone waits for a text in a chat on the simulated phone, and answers as the phone's owner.
func (b *browser) answersOnPhone(phone, reads, answer string) {
	b.t.Helper()
	b.open(b.w.pages + "/phone")
	b.click(fmt.Sprintf(`.chats a[href*="%s"]`, phone[1:]))
	b.until(`location.search.includes("` + phone[1:] + `") && document.readyState === "complete"`)
	b.until(`document.querySelector(".handset-chat")?.innerText.includes(` + quote(reads) + `)`)
	b.fill("text", answer)
	b.click("main form button.btn-primary")
	b.until(`document.querySelector("[data-toast]") && document.readyState === "complete"`)
	b.until(`document.querySelector(".handset-chat .bubble:not(.bubble-in)")?.innerText.includes(` + quote(answer) + `)`)
}
