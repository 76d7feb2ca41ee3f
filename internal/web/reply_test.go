package web_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/store/storetest"
)

// wrote stores a person's reply.
func (w *world) wrote(phone, text string, more ...func(*puntuale.TakenMessage)) {
	w.t.Helper()
	sessions, _, err := w.Client().Sessions(context.Background(), request.Page{})
	w.must(err)
	id := storetest.Unique("n")
	m := puntuale.TakenMessage{InboundMessage: puntuale.InboundMessage{Client: w.client, Session: sessions[0].ID, Phone: phone, At: w.clock.Now(), ID: id, Kind: puntuale.ReplyText, Text: text},
		Names: []string{phone}, Mark: id, Keep: puntuale.KeepAllReplies}
	for _, change := range more {
		change(&m)
	}
	_, err = w.store.KeepInbound(context.Background(), w.clock.Now(), []puntuale.TakenMessage{m})
	w.must(err)
}

func own(m *puntuale.TakenMessage) { m.Own = true }

func brings(kind puntuale.ReplyKind, f puntuale.ReplyMedia) func(*puntuale.TakenMessage) {
	return func(m *puntuale.TakenMessage) { m.Kind, m.Media = kind, &f }
}

// TestRepliesStory: a reply arrives in the list and in the menu. Somebody opens it, reads what both sides of the
// conversation wrote, and answers. The person also enters a consent by hand.
func TestRepliesStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		const phone = "+393331234500"
		f.request = `{"phone":"` + phone + `","nome":"Giulia Verdi"}`
		f.day()
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/replies")
		b.check("empty")
		b.until(`document.querySelector("[hx-sse\\:connect]")?._htmx?.sse`)
		w.wrote(phone, "Perfetto, *grazie*! Posso portare anche mio figlio?")
		w.wrote("+393409998877", "", brings(puntuale.ReplyImage, puntuale.ReplyMedia{Type: "image/jpeg", Name: "foto.jpg", Until: w.clock.Now().Add(7 * 24 * time.Hour)}))
		b.ticking(`!!document.querySelector(".inbox")`)
		b.until(`document.querySelectorAll(".inbox-unread").length === 2`)
		b.until(`[...document.querySelectorAll("[data-unread]")].every((e) => !e.hidden && e.firstElementChild.textContent === "2")`)
		b.check("inbox")
		b.click(`.inbox a[href*="393331234500"]`)
		b.until(`document.querySelectorAll(".turns .bubble").length >= 2 && document.readyState === "complete"`)
		b.until(`[...document.querySelectorAll("[data-unread]")].every((e) => e.firstElementChild.textContent === "1")`)
		if got := evaluate[string](b, `document.querySelector(".turns .bubble-in strong").textContent`); got != "grazie" {
			t.Errorf("marked: %q", got)
		}
		w.wrote(phone, "Sì, a domani", own)
		b.check("conversation")
		b.fill("text", "Certo, vi aspettiamo!")
		b.click(`form[action$="/person/answer"] button[type=submit]`)
		b.until(`document.querySelectorAll(".turns .bubble:not(.bubble-in)").length >= 3`)
		b.reads("Certo, vi aspettiamo!")
		b.check("answered")
		sent, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Phone: phone, Origin: string(puntuale.OriginSingle)})
		w.must(err)
		if len(sent) != 1 || sent[0].Content.Text != "Certo, vi aspettiamo!" {
			t.Errorf("sent: %+v", sent)
		}
		b.click("#consent details:last-of-type summary")
		b.click(`form[action$="/person/consent"] button`)
		b.until(`document.querySelector("#consent .fault")`)
		b.check("consent-fault")
		b.fill("source", "modulo firmato in negozio", "words", "Sì, scrivetemi pure")
		b.click(`form[action$="/person/consent"] button`)
		b.until(`document.querySelector("#consent .tag-ok")`)
		b.click("#consent details summary")
		b.reads("Sì, scrivetemi pure")
		b.check("consent")
	})
}

// TestConversationParts: a long conversation is read in parts, from the newest part upwards. No message is missing or
// shown twice.
func TestConversationParts(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorldOn(t, driver(t), "")
			f := w.traffic()
			const phone = "+393331234500"
			var want []string
			for i := range 130 {
				w.clock.Advance(time.Minute)
				text := fmt.Sprintf("turno %03d.", i)
				if want = append(want, text); i%5 == 0 {
					f.ended(phone, text, w.clock.Now(), puntuale.Outcome{Verdict: puntuale.Sent})
				} else {
					w.wrote(phone, text)
				}
			}
			w.wrote("+393409998877", "un altro")
			v := w.visitor(w.clients[puntuale.Reader])
			var got []string
			parts := 0
			for next := w.personURL(phone); next != ""; parts++ {
				r := v.get(next)
				if r.status != http.StatusOK {
					t.Fatalf("%s: %d", next, r.status)
				}
				if strings.Contains(r.body, "un altro") {
					t.Error("somebody else's words")
				}
				var part []string
				for _, chunk := range strings.Split(between(r.body, `class="conversation`, `class="conversation-older"`), `class="bubble-text">`)[1:] {
					part = append(part, strings.SplitN(chunk, "<", 2)[0])
				}
				got = append(part, got...)
				next = ""
				if older := between(r.body, `class="conversation-older"`, "</p>"); older != "" {
					next = strings.ReplaceAll(between(older, `href="`, `"`), "&amp;", "&")
				}
				if parts > 20 {
					t.Fatal("no end")
				}
			}
			if strings.Join(got, "") != strings.Join(want, "") {
				t.Errorf("%d parts: %q", parts, got)
			}
			// Replies are marked as read only if the reader's role allows changes.
			if n, err := w.Client().UnreadReplies(context.Background()); err != nil || n != 2 {
				t.Errorf("after a reader read: %d, %v", n, err)
			}
			w.visitor(w.clients[puntuale.Staff]).get(w.personURL(phone))
			if n, err := w.Client().UnreadReplies(context.Background()); err != nil || n != 1 {
				t.Errorf("after staff read: %d, %v", n, err)
			}
			if r := v.get(w.pages + "/replies?unread=true"); strings.Contains(r.body, "393331234500") || !strings.Contains(r.body, "393409998877") {
				t.Error("the unread ones:", inMain(r.body))
			}
		})
	}
}

// TestHostileReplies: pages show replies as text.
func TestHostileReplies(t *testing.T) {
	t.Parallel()
	startChromium(t)
	w := newWorld(t)
	texts := hostileTexts()
	for i, text := range texts {
		w.wrote(fmt.Sprintf("+3933312%05d", i), text)
		if i%8 == 0 {
			w.wrote("+393331234567", text, brings(puntuale.ReplyDocument, puntuale.ReplyMedia{Type: text, Name: text}))
		}
	}
	b := newBrowser(t, w, screens(t)[0])
	b.signIn(w.clients[puntuale.Staff])
	for next := w.pages + "/replies"; next != ""; {
		b.open(next)
		b.inert("none", nil)
		next = strings.TrimPrefix(evaluate[string](b, `document.querySelector("a[rel=next]")?.href ?? ""`), w.base)
	}
	b.open(w.personURL("+393331234567"))
	b.inert("none", nil)
}

// TestSettings: the client and its partner can both change the settings. Faulty values are shown again with their
// fault.
func TestSettings(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/settings")
		b.check("settings")
		b.click("[name=remember]")
		b.click("[name=keep_replies][value=all]")
		b.fill("opt_out_words", "STOP\nBASTA COSÌ", "opt_out_answer", "Va bene, non ti scriviamo più.", "takeover_hours", "x", "automated_most", "101")
		b.click("main form button.btn-primary")
		b.until(`document.querySelector(".fault")`)
		b.check("fault")
		if n := evaluate[int](b, `document.querySelectorAll(".fault").length`); n != 2 {
			t.Errorf("%d faults, want one at each of the two numbers", n)
		}
		b.fill("takeover_hours", "24", "automated_most", "0")
		b.click("main form button.btn-primary")
		b.until(`document.querySelector("[data-toast]")`)
		got, err := w.Client().Settings(t.Context())
		w.must(err)
		if !got.Remember || got.KeepReplies != puntuale.KeepAllReplies || strings.Join(got.OptOutWords, ",") != "STOP,BASTA COSÌ" || got.OptOutAnswer == "" || got.TakeoverHours != 24 || got.AutomatedMost != 0 {
			t.Errorf("%+v", got)
		}
		p := w.visitor(w.partners[puntuale.Staff])
		page := "/partner/clients/" + w.client.String() + "/settings"
		if r := p.get(page); r.status != http.StatusOK || !strings.Contains(r.body, "BASTA COSÌ") || !strings.Contains(r.body, "Studio Bianchi") {
			t.Errorf("its partner: %d %s", r.status, inMain(r.body))
		}
		if r := p.post(page, url.Values{"consent": {"required"}, "was.consent": {"free"}}); r.status != http.StatusSeeOther || r.to() != page {
			t.Errorf("its partner changes it: %d %s", r.status, r.to())
		}
		after, err := w.Client().Settings(t.Context())
		w.must(err)
		if after.Consent != puntuale.ConsentRequired || !after.Remember || after.TakeoverHours != 24 || after.AutomatedMost != 0 {
			t.Errorf("after the partner: %+v", after)
		}
	})
}

// OpenMedia opens the world's only file.
func (w *world) OpenMedia(context.Context, puntuale.Session, puntuale.ReplyMedia, int64) (*puntuale.ReplyFile, error) {
	if w.media == nil {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}
	}
	return &puntuale.ReplyFile{ReadCloser: io.NopCloser(bytes.NewReader(w.media)), Size: int64(len(w.media))}, nil
}

// TestReplyMedia: an image of a safe type is shown, and any other file is a download. The browser never runs the file,
// whichever type the sender gives.
func TestReplyMedia(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.media = []byte("<script>alert(1)</script>")
	const phone = "+393331234567"
	for _, f := range []puntuale.ReplyMedia{
		{Type: "image/jpeg", Name: "foto"}, {Type: "image/svg+xml", Name: "a.svg"}, {Type: "text/html", Name: "../../x\".html"}, {Type: "application/pdf", Name: "offerta.pdf"}, {Type: "image/png; a=\"\r\nx", Name: "riga\r\nx.png"},
	} {
		w.wrote(phone, "", brings(puntuale.ReplyDocument, f))
	}
	v := w.visitor(w.clients[puntuale.Reader])
	all, _, err := w.Client().Replies(t.Context(), phone, false, request.Page{})
	w.must(err)
	page := v.get(w.personURL(phone)).body
	for i, want := range []string{`attachment; filename*=utf-8''riga%0D%0Ax.png`, `attachment; filename=offerta.pdf`, `attachment; filename="x\".html"`, "attachment; filename=a.svg", "inline; filename=foto.jpg"} {
		at := w.pages + "/replies/" + all[i].ID.String() + "/media"
		if !strings.Contains(page, `href="`+at+`"`) {
			t.Errorf("no link to %s", at)
		}
		r := v.get(at)
		h := r.header
		if r.status != http.StatusOK || h.Get("Content-Disposition") != want || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "default-src 'none'; sandbox" || r.body != string(w.media) {
			t.Errorf("%+v: %d %q %q %q", all[i].Media, r.status, h.Get("Content-Disposition"), h.Get("Content-Type"), h.Get("Content-Security-Policy"))
		}
		if kind := h.Get("Content-Type"); kind != "application/octet-stream" && (kind != "image/jpeg" || !strings.HasPrefix(want, "inline")) {
			t.Errorf("%+v: %s", all[i].Media, kind)
		}
	}
	w.media = nil
	if r := v.get(w.pages + "/replies/" + all[0].ID.String() + "/media"); r.status != http.StatusNotFound || !strings.Contains(r.body, "Il file non si apre") {
		t.Errorf("what its network forgot: %d %s", r.status, inMain(r.body))
	}
}

// TestSandboxAnswers: somebody writes a reply on the simulated phone. The reply is then shown among the replies.
func TestSandboxAnswers(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		f := w.traffic()
		f.day()
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/phone?phone=%2B393331234500")
		b.check("phone")
		b.click(`form[action$="/phone"] button.btn-primary`)
		b.until(`document.querySelector(".fault")`)
		b.fill("text", "STOP")
		b.click(`form[action$="/phone"] button.btn-primary`)
		b.until(`document.querySelector("[data-toast]") && document.querySelector("[data-unread]:not([hidden])")`)
		b.open(w.personURL("+393331234500"))
		b.until(`document.querySelector(".turns .bubble-in") && document.querySelector(".turn-effect .tag-warn") && document.querySelector(".notice-warn")`)
		b.check("opted-out")
	})
}

// TestOfficialAnswer: an Official number can answer with free text for 24 hours after the person wrote. The page shows
// when this time ends. Afterwards it shows no text field, and refuses a form that was opened earlier.
func TestOfficialAnswer(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.own(t)
		w.traffic()
		_, err := w.sql.Exec("update session set type = $1", puntuale.Official)
		w.must(err)
		_, err = w.store.Tenant(w.client).CreateSession(t.Context(), puntuale.Session{Name: "Numero dello studio", Type: puntuale.Official, Created: w.clock.Now()}, nil)
		w.must(err)
		_, err = w.sql.Exec("update session set name = 'Numero dello studio' where name <> 'Numero dello studio'")
		w.must(err)
		const phone = "+393331234567"
		w.wrote(phone, "Avete posto domani?")
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.personURL(phone))
		b.until(`document.querySelector("#f-answer") && document.querySelector(".answer .note-info")`)
		deadline := w.clock.Now().Add(24 * time.Hour)
		rome, err := time.LoadLocation("Europe/Rome")
		w.must(err)
		if says := b.text(".answer .note-info"); !strings.Contains(says, deadline.In(rome).Format("15:04")) {
			t.Errorf("the page says %q", says)
		}
		b.check("open")
		b.fill("text", "Sì, alle 10")
		evaluate[bool](b, `globalThis.before = true`)
		b.click(`form[action$="/person/answer"] button[type=submit]`)
		b.until(`!globalThis.before && document.readyState === "complete" && document.querySelector("#f-answer")`)
		b.reads("Sì, alle 10")
		w.clock.Advance(24 * time.Hour)
		late := w.visitor(w.clients[puntuale.Staff]).post(w.pages+"/person/answer", url.Values{"phone": {phone}, "text": {"Anzi, alle 11"}})
		if late.status != http.StatusUnprocessableEntity || !strings.Contains(late.body, ">Anzi, alle 11</textarea>") || !strings.Contains(late.body, "si può inviare solo un template") {
			t.Errorf("late: %d %s", late.status, inMain(late.body))
		}
		b.signIn(w.clients[puntuale.Staff]) // the visit has ended by this time
		b.open(w.personURL(phone))
		b.until(`document.querySelector(".answer .note-warn") && !document.querySelector("#f-answer")`)
		b.check("closed")
		sent, _, err := w.Client().Messages(t.Context(), control.MessageQuery{Phone: phone})
		w.must(err)
		if len(sent) != 1 || sent[0].Content.Text != "Sì, alle 10" {
			t.Errorf("sent: %+v", sent)
		}
	})
}

// TestBlockedMarketing: a person withdrew the consent to marketing. Every page says that pending marketing messages to
// this person will not leave.
func TestBlockedMarketing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := w.traffic()
	const phone = "+393401234500"
	id := f.planned(phone, "Saldi!", w.clock.Now().Add(time.Hour))
	_, err := w.sql.Exec("update message set purpose = 1 where id = $1", id)
	w.must(err)
	v := w.visitor(w.clients[puntuale.Staff])
	pages := []string{w.pages, w.pages + "/messages", w.pages + "/messages/" + id.String(), w.personURL(phone)}
	for _, page := range pages {
		if r := v.get(page); strings.Contains(r.body, "Senza consenso: non partirà") {
			t.Errorf("%s: blocked too early", page)
		}
	}
	_, err = w.sql.Exec("insert into consent_state (client_id, phone, purpose, change, at) values ($1, $2, 1, 2, 1)", w.client, phone)
	w.must(err)
	for _, page := range pages {
		if r := v.get(page); !strings.Contains(r.body, "Senza consenso: non partirà") {
			t.Errorf("%s: %s", page, inMain(r.body))
		}
	}
}
