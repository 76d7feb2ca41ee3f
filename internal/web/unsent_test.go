package web_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// formKind is one form of each kind: how a person reaches it, what the person enters, and what it does.
type formKind struct {
	name    string
	open    func(b *browser)
	fill    func(b *browser)
	send    string             // the selector of the button
	kept    string             // a script: the form contains what the person entered
	done    string             // a script: the page after the form was sent
	effects func(w *world) int // how often the action was executed
	once    bool               // true: the form has a key
	looks   bool               // true: the form first shows what is in a file, so it does so again after a sign-in
	gone    bool               // true: the form's address leads elsewhere after the form was sent
	button  bool               // true: the form is only a button, so nothing can be lost with a sign-in
	partner bool               // true: the form is the partner's
}

const staffPhone = "+393331234500"

func (w *world) messagesTo(phone string) int {
	w.t.Helper()
	all, _, err := w.Client().Messages(context.Background(), control.MessageQuery{Phone: phone})
	w.must(err)
	return len(all)
}

func typedIn(name, text string) string {
	return fmt.Sprintf(`document.querySelector("main [name='%s']")?.value === %q`, name, text)
}

// takes is the button that takes a file after the page showed what is in it.
const takes = `#import-result [formaction$="do=import"]`

// looks lets the page show what is in a file.
func (b *browser) looks() {
	b.t.Helper()
	b.click(`.import-file [type=submit]`)
	b.until(`document.querySelector('` + takes + `')`)
}

// choosesFile chooses a file of one contact, and lets the page show what is in it.
func (b *browser) choosesFile() {
	b.t.Helper()
	file := filepath.Join(b.t.TempDir(), "contatti.csv")
	b.w.must(os.WriteFile(file, []byte("Telefono,Nome\n3331234567,Lucia\n"), 0o600))
	b.do(chromedp.SetUploadFiles("#f-file", []string{file}))
	b.looks()
}

var formKinds = []formKind{
	{name: "one message", once: true,
		open: func(b *browser) { b.open(b.w.pages + "/messages/new") },
		fill: func(b *browser) {
			b.fill("phone", staffPhone, "text", "Il suo ordine è pronto.")
			b.click("[name=purpose][value=service]")
		},
		send: "main form button.btn-primary", kept: typedIn("text", "Il suo ordine è pronto.") + ` && document.querySelector("[name=purpose][value=service]").checked`,
		done: `/\/messages\/\d+$/.test(location.pathname)`, effects: func(w *world) int { return w.messagesTo(staffPhone) }},
	{name: "an answer", once: true,
		open: func(b *browser) {
			b.w.wrote(staffPhone, "Buongiorno!")
			b.open(b.w.personURL(staffPhone))
		},
		fill: func(b *browser) { b.fill("text", "Certo, a domani.") },
		send: `form[action$="/person/answer"] button[type=submit]`, kept: `document.querySelector("form[action$='/person/answer'] [name=text]")?.value === "Certo, a domani."`,
		done: `document.querySelector(".turns")?.innerText.includes("Certo, a domani.") && !document.querySelector("form[action$='/person/answer'] [name=text]").value`, effects: func(w *world) int { return w.messagesTo(staffPhone) }},
	{name: "a start", once: true,
		open: func(b *browser) { b.open(b.w.pages + "/sequences/" + b.w.sequence(appointment()) + "/start") },
		fill: func(b *browser) {
			b.fill("phone", staffPhone, "fields.data_appuntamento", "2026-11-30T15:30", "fields.nome", "Lucia")
			b.until(`document.querySelector("[value=start]:enabled") && document.querySelector("#start-preview").innerText.includes("Lucia")`)
		},
		send: "[value=start]", kept: typedIn("fields.nome", "Lucia") + ` && document.querySelector("[value=start]:enabled") && document.querySelector("#start-preview").innerText.includes("Lucia")`,
		done: `location.pathname.endsWith("/started")`, effects: func(w *world) int { return w.messagesTo(staffPhone) / 3 }},
	{name: "a booking", once: true,
		open: func(b *browser) {
			b.w.sequence(bookedVisit())
			b.open(b.w.pages + "/bookings/new")
		},
		fill: func(b *browser) {
			b.fill("phone", staffPhone, "fields.nome", "Lucia", "fields.appuntamento", "2026-11-24T15:30")
			b.until(`document.querySelector("#booking-preview").innerText.includes("Lucia")`)
		},
		send: "main [name=do][value=save]", kept: typedIn("fields.nome", "Lucia") + " && " + typedIn("phone", staffPhone),
		done: `location.pathname.endsWith("/bookings") && document.querySelector(".booking")`, effects: func(w *world) int {
			all, _, err := w.Client().Bookings(context.Background(), control.BookingQuery{Phone: staffPhone})
			w.must(err)
			return len(all)
		}},
	{name: "a number of the blacklist",
		open: func(b *browser) { b.open(b.w.pages + "/blacklist") },
		fill: func(b *browser) { b.fill("phone", staffPhone, "reason", "lo ha chiesto") },
		send: `main form[action$="/blacklist"] .btn-primary`, kept: typedIn("reason", "lo ha chiesto"),
		done: `document.querySelector("main table")?.innerText.includes("lo ha chiesto")`, effects: func(w *world) int {
			all, _, err := w.Client().Blacklist(context.Background(), request.Page{})
			w.must(err)
			return len(all)
		}},
	{name: "a plan", partner: true,
		open: func(b *browser) { b.open("/partner/plans/new") },
		fill: func(b *browser) { b.fill("name", "Base") },
		send: "main form .btn-primary", kept: typedIn("name", "Base"),
		done: `/\/plans\/\d+$/.test(location.pathname) && document.querySelector("h1").innerText === "Base"`, effects: func(w *world) int {
			all, err := w.store.Partner(w.partner).Plans(context.Background())
			w.must(err)
			return len(all)
		}},
	{name: "prices", partner: true,
		open: func(b *browser) { b.open("/partner/statements") },
		fill: func(b *browser) { b.fill("marketing", "0,1234", "currency", "EUR") },
		send: `form[action="/partner/statements/prices"] .btn-primary`, kept: typedIn("marketing", "0,1234"),
		done: `document.querySelector("[data-toast]") && !document.querySelector(".toast-bad")`, effects: func(w *world) int {
			own, err := w.store.Partner(w.partner).OwnPrices(context.Background())
			w.must(err)
			return len(own.Each)
		}},
	{name: "a template",
		open: func(b *browser) { b.open(b.w.pages + "/templates/new") },
		fill: func(b *browser) { b.fill("name", "Conferma", "text", "Ciao {{nome}}, confermato.") },
		send: ".editor-save .btn-primary", kept: typedIn("text", "Ciao {{nome}}, confermato."),
		done: `location.pathname.endsWith("/templates")`, effects: func(w *world) int {
			all, _, err := w.Client().Templates(context.Background(), request.Page{})
			w.must(err)
			return len(all)
		}},
	{name: "a rule",
		open: func(b *browser) { b.open(b.w.pages + "/automations/new?like=info") },
		fill: func(b *browser) { b.fill("name", "La mia regola") },
		send: ".editor-save .btn-primary", kept: typedIn("name", "La mia regola"),
		done: `/\/automations\/\d+$/.test(location.pathname)`, effects: func(w *world) int {
			all, err := w.rules.OfClient(w.Client(), "").List(context.Background())
			w.must(err)
			return len(all)
		}},
	{name: "a contact",
		open: func(b *browser) { b.open(b.w.pages + "/contacts/new") },
		fill: func(b *browser) { b.fill("phone", staffPhone, "name", "Giulia Verdi") },
		send: "main form .btn-primary", kept: typedIn("name", "Giulia Verdi"),
		done: `/\/contacts\/\d+$|\/person$/.test(location.pathname)`, effects: func(w *world) int {
			all, _, err := w.Client().Contacts(context.Background(), control.ContactQuery{}, request.Page{})
			w.must(err)
			return len(all)
		}},
	{name: "a list",
		open: func(b *browser) {
			c, err := b.w.Client().CreateCampaign(context.Background(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri, {{nome}}!"}}, nil, control.Once[control.Campaign]{})
			b.w.must(err)
			b.open(b.w.pages + "/campaigns/" + c.ID.String() + "/people")
			b.click("main details summary")
		},
		fill: func(b *browser) {
			b.fill("pasted", "telefono,nome\n3331234567,Lucia\n")
			b.looks()
		},
		send: takes, looks: true, kept: `document.querySelector("[name=pasted]")?.value === "telefono,nome\n3331234567,Lucia\n" && document.querySelector("[name=pasted]").checkVisibility()`,
		done: `location.pathname.endsWith("/check") && document.querySelector(".samples")`, effects: func(w *world) int {
			all, _, err := w.Client().Campaigns(context.Background(), request.Page{})
			w.must(err)
			return len(slices.DeleteFunc(all, func(c puntuale.Campaign) bool { return c.List == 0 }))
		}},
	{name: "a file", looks: true,
		open: func(b *browser) { b.open(b.w.pages + "/contacts/import") },
		fill: func(b *browser) {
			b.choosesFile()
			b.fill("source", "fiera")
		},
		send: takes, kept: typedIn("source", "fiera"), done: `location.pathname.endsWith("/contacts") && document.querySelector("h1")`, effects: func(w *world) int {
			all, _, err := w.Client().Contacts(context.Background(), control.ContactQuery{}, request.Page{})
			w.must(err)
			return len(all)
		}},
	{name: "the start of a campaign", button: true, gone: true,
		open: func(b *browser) {
			c, err := b.w.Client().CreateCampaign(context.Background(), control.NewCampaign{Name: "Auguri", Purpose: "service", Step: &puntuale.Step{Text: "Auguri, {{nome}}!"}},
				[]control.Recipient{{"phone": staffPhone, "nome": "Lucia"}}, control.Once[control.Campaign]{})
			b.w.must(err)
			b.open(b.w.pages + "/campaigns/" + c.ID.String() + "/start")
			b.until(`document.querySelector("[name=digest]")`)
		},
		fill: func(*browser) {},
		send: `form[action$="/start"] [type=submit]`, kept: `true`, done: `document.querySelector("#campaign-live")`, effects: func(w *world) int {
			all, _, err := w.Client().Campaigns(context.Background(), request.Page{})
			w.must(err)
			return len(slices.DeleteFunc(all, func(c puntuale.Campaign) bool {
				return c.State.Editable()
			}))
		}},
	{name: "a dialog",
		open: func(b *browser) {
			all, _, err := b.w.Client().Sessions(context.Background(), request.Page{})
			b.w.must(err)
			b.open(b.w.pages + "/sessions/" + all[0].ID.String())
			b.click("[data-open=rename]")
		},
		fill: func(b *browser) { b.fill("name", "Reception") },
		send: "#rename .btn-primary", kept: `document.querySelector("#rename[open] [name=name]")?.value === "Reception"`,
		done: `!document.querySelector("#rename[open]") && document.querySelector("h1").innerText === "Reception"`, effects: func(w *world) int {
			all, _, err := w.Client().Sessions(context.Background(), request.Page{})
			w.must(err)
			return len(slices.DeleteFunc(all, func(s control.Session) bool { return s.Name != "Reception" }))
		}},
	{name: "a button", button: true,
		open: func(b *browser) { b.open(b.w.pages + "/sequences/" + b.w.sequence(appointment())) },
		fill: func(*browser) {},
		send: `form[action$="/copy"] button`, kept: `true`,
		done: `document.querySelector("h1") && document.querySelector("[data-toast]") && !document.querySelector(".toast-bad")`, effects: func(w *world) int {
			all, _, err := w.Client().Sequences(context.Background(), control.SequenceSearch{})
			w.must(err)
			return len(all) - 1
		}},
}

// onForms runs a story on each kind of form.
func onForms(t *testing.T, story func(t *testing.T, b *browser, k formKind)) {
	t.Helper()
	t.Parallel()
	startChromium(t)
	for _, k := range formKinds {
		t.Run(k.name, func(t *testing.T) {
			onScreens(t, func(t *testing.T, w *world, b *browser) {
				users := w.clients
				if k.partner {
					users = w.partners
				}
				b.signIn(users[puntuale.Owner])
				k.open(b)
				k.fill(b)
				story(t, b, k)
			})
		})
	}
}

func (k formKind) did(b *browser, want int) {
	b.t.Helper()
	if got := k.effects(b.w); got != want {
		b.t.Errorf("executed %d times, not %d", got, want)
	}
}

// lostSays finds the words at a form whose request was lost, or at the bottom of the page.
const lostSays = `document.querySelector("[data-lost], [data-stays]")?.checkVisibility() && document.querySelector("[data-lost], [data-stays]").innerText.trim()`

// TestLostNetwork: a form that is sent without a network says that nothing was sent, keeps what the person entered, and
// is sent by the button "try again".
func TestLostNetwork(t *testing.T) {
	onForms(t, func(t *testing.T, b *browser, k formKind) {
		t.Helper()
		b.offline(true)
		b.leavesNothing(k)
		b.until(lostSays)
		if said := evaluate[string](b, lostSays); !strings.Contains(said, "non è partito niente") && !strings.Contains(said, "nothing was sent") {
			t.Errorf("it says %q", said)
		}
		b.until(k.kept)
		b.check("lost")
		b.offline(false)
		k.did(b, 0)
		b.click("[data-lost] button, [data-stays] button")
		b.until(k.done)
		k.did(b, 1)
		b.forget("Failed to fetch") // of previews
	})
}

// leavesNothing presses the form's button, and fails the test if the page is left.
func (b *browser) leavesNothing(k formKind) {
	b.t.Helper()
	evaluate[bool](b, `window.same = true`)
	b.click(k.send)
	b.until(`window.same`)
}

// TestLostServer: the network is there, and the server does not answer. A form whose request may have arrived says so.
func TestLostServer(t *testing.T) {
	onForms(t, func(t *testing.T, b *browser, k formKind) {
		t.Helper()
		b.w.away.Store(true)
		htmx := evaluate[bool](b, fmt.Sprintf(`document.querySelector(%q).closest("form").hasAttribute("hx-post")`, k.send))
		b.leavesNothing(k)
		b.until(lostSays)
		said := evaluate[string](b, lostSays)
		switch {
		case htmx && k.once && !strings.Contains(said, "due volte") && !strings.Contains(said, "sent twice"),
			htmx && !k.once && !strings.Contains(said, "Controlla prima") && !strings.Contains(said, "Check before"),
			!htmx && !strings.Contains(said, "non è partito niente") && !strings.Contains(said, "nothing was sent"):
			t.Errorf("it says %q", said)
		}
		b.until(k.kept)
		b.w.away.Store(false)
		k.did(b, 0)
		b.click("[data-lost] button, [data-stays] button")
		b.until(k.done)
		k.did(b, 1)
		b.forget("Failed to fetch")
	})
}

// forget removes lines of the console that a test expects.
func (b *browser) forget(words string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.said = slices.DeleteFunc(b.said, func(line string) bool { return strings.Contains(line, words) })
}

// sendsOrLeaves clicks on a form's button after the sign-in has ended. If the page asks for a preview before the click,
// it leads to the sign-in page by itself.
func (b *browser) sendsOrLeaves(button string) {
	b.t.Helper()
	b.until(fmt.Sprintf(`location.pathname === "/login" || (e => e && (e.click(), true))(document.querySelector(%q))`, button))
}

// TestExpiredSession: the sign-in ends while a form is being filled. After the next sign-in the form is filled again, and
// nothing was sent. Another user sees nothing of it.
func TestExpiredSession(t *testing.T) {
	onForms(t, func(t *testing.T, b *browser, k formKind) {
		t.Helper()
		evaluate[bool](b, `fetch("/logout", {method: "POST"}).then(() => true)`) // as if the sign-in had expired
		b.sendsOrLeaves(k.send)
		b.until(`location.pathname === "/login" && document.readyState === "complete"`)
		k.did(b, 0)
		email := "studio@example.com"
		if k.partner {
			email = "agenzia@example.com"
		}
		b.fill("email", email, "password", password)
		b.click("form [type=submit]")
		b.until(`document.body.dataset.user && document.readyState === "complete"`)
		if !k.button {
			b.until(`document.querySelector("form .note-info")`)
			b.until(k.kept)
			b.check("filled")
		}
		k.did(b, 0)
		if k.looks {
			k.fill(b)
		}
		if kept := evaluate[string](b, `JSON.stringify({...sessionStorage})`); strings.Contains(kept, "unsent") {
			t.Errorf("kept after it was used: %s", kept)
		}
		b.click(k.send)
		b.until(k.done)
		k.did(b, 1)
	})
}

// TestDoubleClick: a form that a person sends with two quick clicks is executed once.
func TestDoubleClick(t *testing.T) {
	onForms(t, func(t *testing.T, b *browser, k formKind) {
		t.Helper()
		evaluate[bool](b, fmt.Sprintf(`((e) => { e.click(); e.click(); return true })(document.querySelector(%q))`, k.send))
		b.until(k.done)
		b.until(`document.readyState === "complete"`)
		k.did(b, 1)
	})
}

// TestBack: after a form was sent, the person goes back with the browser. The form is empty and is not sent again, and it can
// be used for the next one.
func TestBack(t *testing.T) {
	onForms(t, func(t *testing.T, b *browser, k formKind) {
		t.Helper()
		at := evaluate[string](b, `location.href`)
		b.click(k.send)
		b.until(k.done)
		b.until(`document.readyState === "complete"`)
		k.did(b, 1)
		if evaluate[string](b, `location.href`) == at {
			return // the form's page is shown again, without what was sent
		}
		b.do(chromedp.NavigateBack())
		if k.gone {
			b.until(k.done)
			k.did(b, 1)
			return
		}
		b.until(`location.href === ` + quote(at) + ` && document.readyState === "complete"`)
		b.check("back")
		k.did(b, 1)
		if k.once { // the others would be refused, because something with this name exists
			k.fill(b)
			b.click(k.send)
			b.until(k.done)
			k.did(b, 2)
		}
	})
}

// TestUnsentIsTheUsersOwn: what a user wrote before the sign-in ended is shown to no other user of the same browser, and
// secrets are not kept at all.
func TestUnsentIsTheUsersOwn(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		b.signIn(w.clients[puntuale.Owner])
		gateway, err := w.Client().CreateSession(t.Context(), control.NewSession{Name: "Banco", Type: string(puntuale.SendApp), Sandbox: new(false), Gateway: &control.NewGateway{AccessToken: "tok"}}, control.Once[control.Session]{})
		w.must(err)
		end := func(form string) string {
			t.Helper()
			evaluate[bool](b, `fetch("/logout", {method: "POST"}).then(() => true)`)
			b.sendsOrLeaves(form + " button[type=submit]")
			b.until(`location.pathname === "/login" && document.readyState === "complete"`)
			return evaluate[string](b, `JSON.stringify({...sessionStorage})`)
		}
		b.open(w.pages + "/sessions/" + gateway.ID.String() + "/gateway")
		b.fill("base_url", "https://gateway.example", "access_token", "segreto-da-non-tenere")
		if kept := end("main form"); !strings.Contains(kept, "https://gateway.example") || strings.Contains(kept, "segreto") {
			t.Errorf("kept: %s", kept)
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open("/me")
		b.fill("present", "segreto-vecchio", "password", "segreto-nuovo-lungo")
		if kept := end(`form[action="/me/password"]`); strings.Contains(kept, "segreto") {
			t.Errorf("kept: %s", kept)
		}
		b.signIn(w.clients[puntuale.Owner])
		b.open(w.pages + "/messages/new")
		b.fill("text", "Riservato alla titolare")
		if kept := end("#send-form form"); !strings.Contains(kept, "Riservato alla titolare") {
			t.Errorf("kept: %s", kept)
		}
		b.signIn(w.clients[puntuale.Staff])
		b.open(w.pages + "/messages/new")
		if got := evaluate[string](b, `document.querySelector("[name=text]").value + JSON.stringify({...sessionStorage})`); strings.Contains(got, "Riservato") {
			t.Errorf("another user gets %s", got)
		}
	})
}
