package web_test

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/control/request"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// happened stores facts of the client, with the present time.
func (w *world) happened(facts ...outbox.Fact) {
	w.t.Helper()
	for i := range facts {
		facts[i].Client = w.client
	}
	w.must(w.store.Write(context.Background(), int64(w.client), func(ctx context.Context, a engine.Querier) error {
		return outbox.Tell(ctx, a, w.clock.Now(), facts...)
	}))
}

// firstNumber returns the id of the client's first session.
func (w *world) firstNumber() puntuale.SessionID {
	w.t.Helper()
	all, _, err := w.Client().Sessions(context.Background(), request.Page{})
	w.must(err)
	return all[0].ID
}

// noticed stores facts about several problems of the client.
func (w *world) noticed() {
	w.t.Helper()
	w.happened(outbox.Fact{Type: puntuale.EventSessionUnlinked, Subject: int64(w.firstNumber())})
	w.clock.Advance(10 * time.Minute)
	w.happened(outbox.Fact{Type: puntuale.EventCreditLow}, outbox.Fact{Type: puntuale.EventAccountExpiring, Detail: `{"days":14}`},
		outbox.Fact{Type: puntuale.EventCampaignPaused, Subject: 3, Detail: `{"reason":"canary"}`}, outbox.Fact{Type: puntuale.EventCampaignDone, Subject: 2},
		outbox.Fact{Type: puntuale.EventWebhookDisabled, Subject: 1, Detail: `{"reason":"[\"webhook.failing\"]"}`})
}

// TestNoticesStory: the bell's number updates itself on an open page. Somebody reads the notices and marks one notice,
// using only the keyboard. Then the person follows a notice's link that solves the problem, and chooses which notices
// come by e-mail.
func TestNoticesStory(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		w.mailing()
		bell := func(n string) string {
			return `[...document.querySelectorAll("[data-notices]")].every((e) => e.hidden === (` + quote(n) + ` === "0") && e.firstElementChild.textContent === ` + quote(n) + `)`
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open("/me/notices")
		b.check("empty")
		b.open(w.pages + "/replies")
		b.until(`document.querySelector("[hx-sse\\:connect]")?._htmx?.sse`)
		w.noticed()
		b.ticking(bell("6"))
		b.check("bell")
		evaluate[bool](b, `([...document.querySelectorAll(".bell")].find((e) => e.checkVisibility()).click(), true)`)
		b.until(`document.querySelectorAll(".notice-new").length === 6 && document.readyState === "complete"`)
		b.check("notices")
		if first := b.text(".notice-row h2 a"); first == "" {
			t.Error("a notice without a title")
		}
		// The keyboard marks one notice, and the focus does not move.
		evaluate[bool](b, `(document.querySelectorAll(".notice-row button")[1].focus(), true)`)
		b.enter()
		b.until(`document.querySelectorAll(".notice-new").length === 5`)
		b.until(bell("5"))
		b.until(`document.activeElement?.matches(".notice-row:nth-child(2) h2 a")`)
		b.click(`form[action="/me/notices/read"] .btn:not(.btn-bare)`)
		b.until(`document.querySelectorAll(".notice-row").length === 6 && !document.querySelector(".notice-new") && document.readyState === "complete"`)
		b.until(bell("0"))
		b.check("read")
		b.click(`.notice-row a[href$="/sessions/` + w.firstNumber().String() + `"]`)
		b.until(`location.pathname.endsWith("/sessions/` + w.firstNumber().String() + `") && document.readyState === "complete"`)

		b.open("/me")
		b.check("choices")
		const box = `document.querySelector("[name=mailed][value=credit_low]")`
		b.until(box + `?.checked`)
		b.click(`[name=mailed][value=credit_low]`)
		b.leaves(func() { b.click(`form[action="/me/notices/choose"] button`) })
		b.until(box + `?.checked === false && document.querySelector("[name=mailed][value=sign_in]").checked`)
	})
}

// TestNoticesOfPartner: a partner's users get notices about their clients' accounts, and about nothing else of a
// client.
func TestNoticesOfPartner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.noticed()
	v := w.visitor(w.partners[puntuale.Reader])
	r := v.get("/me/notices")
	if n := strings.Count(r.body, `class="notice-row notice-new"`); r.status != http.StatusOK || n != 1 || !strings.Contains(r.body, "L’account di Studio Bianchi scade tra 14 giorni") ||
		!strings.Contains(r.body, `href="/partner/clients/`+w.client.String()+`"`) {
		t.Errorf("%d notices: %s", n, r.body)
	}
	if other := w.visitor(w.foreignOwner).get("/me/notices"); strings.Contains(other.body, `class="notice-row `) {
		t.Error("another partner's client sees them")
	}
	// Without scripts, a form marks notices as read. Another user's notice, or an invalid id, changes nothing.
	mine, err := w.person(w.partners[puntuale.Reader]).Notices(t.Context())
	w.must(err)
	theirs, err := w.person(w.clients[puntuale.Owner]).Notices(t.Context())
	w.must(err)
	unread := func() int {
		n, err := w.person(w.clients[puntuale.Owner]).UnreadNotices(t.Context(), 100)
		w.must(err)
		return n
	}
	for _, id := range []puntuale.NoticeID{theirs[0].ID, mine[0].ID, 0, -5} {
		if r := v.post("/me/notices/read", url.Values{"id": {strconv.FormatInt(int64(id), 10)}}); r.status != http.StatusSeeOther || r.to() != "/me/notices" {
			t.Errorf("read %d: %d %s", id, r.status, r.to())
		}
	}
	for _, odd := range []url.Values{{}, {"id": {"x"}}, {"shown": {"x"}}, {"shown": {"99999999999999999"}}} {
		if r := v.post("/me/notices/read", odd); r.status != http.StatusSeeOther {
			t.Errorf("%v: %d", odd, r.status)
		}
	}
	if strings.Contains(v.get("/me/notices").body, "notice-new") || unread() != 6 {
		t.Errorf("marked wrongly: %d unread", unread())
	}
	if r := v.post("/me/notices/choose", url.Values{"mailed": {"disconnected"}}); r.status != http.StatusUnprocessableEntity {
		t.Errorf("a kind of the other side: %d", r.status)
	}
}

// TestNoticeMail: a user gets notices by e-mail if the user chose this. The e-mail is in the user's language, with the
// partner's brand, and contains the links that solve the problems.
func TestNoticeMail(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.mailing()
	owner := w.person(w.clients[puntuale.Owner])
	w.must(owner.Speak(t.Context(), "en"))
	w.must(w.store.Partner(w.partner).SetBrand(t.Context(), puntuale.Brand{Name: "Aurora", Colour: "#ffe680"}))
	w.must(owner.ChooseNotices(t.Context(), []string{"disconnected", "credit_low", "webhook_disabled"}))
	w.noticed()
	send := func() []string {
		t.Helper()
		before := len(p.Received())
		w.must(w.accounts.QueueNotices(t.Context()))
		var texts []string
		for _, r := range p.delivered(before) {
			if r.To == owner.User().Email {
				texts = append(texts, r.Subject+"\n"+strings.ReplaceAll(r.Text, "\r", "")+"\n"+r.HTML)
			}
		}
		return texts
	}
	all := send()
	if len(all) != 1 {
		t.Fatalf("%d e-mails", len(all))
	}
	for _, want := range []string{
		"Aurora: 3 notices\n", "The number Principale is disconnected\n20 November 2026, 10:00\n", "Link it again", "https://app.example" + w.pages + "/sessions/" + w.firstNumber().String(),
		"The credits are running out", "https://app.example" + w.pages + "/usage", "The webhook 1 is disabled", "No event was delivered for five days. Mend its receiver",
		"https://app.example/me#notices", `background:#ffe680;color:#10181a`, `<a href="https://app.example` + w.pages + `/usage"`,
	} {
		if !strings.Contains(all[0], want) {
			t.Errorf("%q is missing in\n%s", want, all[0])
		}
	}
	if strings.Contains(all[0], "campaign") || strings.Contains(all[0], "expires") {
		t.Errorf("what was not chosen:\n%s", all[0])
	}
	if again := send(); again != nil {
		t.Errorf("again: %s", again)
	}
	w.happened(outbox.Fact{Type: puntuale.EventCreditLow})
	w.must(owner.ReadNotices(t.Context(), w.clock.Now()))
	if read := send(); read != nil {
		t.Errorf("what was read under the bell: %s", read)
	}
	w.happened(outbox.Fact{Type: puntuale.EventSessionOnline, Subject: int64(w.firstNumber())})
	if unwanted := send(); unwanted != nil {
		t.Errorf("what is not wanted: %s", unwanted)
	}
	w.happened(outbox.Fact{Type: puntuale.EventCreditLow})
	if one := send(); len(one) != 1 || !strings.HasPrefix(one[0], "The credits are running out\n") {
		t.Errorf("one notice: %s", one)
	}
	w.happened(outbox.Fact{Type: puntuale.EventCreditLow})
	team, err := w.newPartnerHandle().TeamOf(t.Context(), w.client.String())
	w.must(err)
	w.letIn(team, account.NewUser{Email: "altra.titolare@example.com", Name: "Sara", Role: "owner"})
	w.must(w.accounts.QueueNotices(t.Context()))
	w.must(w.store.Partner(w.partner).DeleteUser(t.Context(), w.client, owner.User().ID))
	if gone := send(); gone != nil {
		t.Errorf("a user who is gone: %s", gone)
	}
}

// TestSignInNotice: a sign-in with a browser that is new to the user causes a notice. A sign-in with a known browser
// does not.
func TestSignInNotice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	told := func() int {
		t.Helper()
		n := 0
		all, err := w.person(w.clients[puntuale.Owner]).Notices(t.Context())
		w.must(err)
		for _, one := range all {
			if one.Kind == puntuale.NoticeSignIn {
				n++
			}
		}
		return n
	}
	home, elsewhere := w.visitor(0), w.visitor(0)
	elsewhere.forwarded = "203.0.113.9"
	signIn := func(v *visitor) {
		t.Helper()
		if r := v.post("/login", url.Values{"email": {"studio@example.com"}, "password": {password}}); r.status != http.StatusSeeOther {
			t.Fatalf("sign in: %d", r.status)
		}
	}
	for i, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"the first sign-in", func() { signIn(home) }, 0},
		{"the same browser", func() { home.post("/logout", nil); signIn(home) }, 0},
		{"another browser", func() { signIn(elsewhere) }, 1},
		{"that one again", func() { elsewhere.post("/logout", nil); signIn(elsewhere) }, 1},
		{"a ticket of the operator", func() { w.visitor(w.clients[puntuale.Owner]) }, 1},
	} {
		step.do()
		if n := told(); n != step.want {
			t.Errorf("%d, %s: %d notices, want %d", i, step.what, n, step.want)
		}
		w.clock.Advance(time.Minute)
	}
	if page := home.get("/me/notices").body; !strings.Contains(page, "dall’indirizzo 203.0.113.9") || !strings.Contains(page, `href="/me"`) {
		t.Error("the page does not say where")
	}
	if page := w.visitor(w.clients[puntuale.Staff]).get("/me/notices").body; strings.Contains(page, "203.0.113.9") {
		t.Error("a colleague sees it")
	}
}
