// Package web is the pages for people: the way in, a partner's dashboard, and a client's. They are made by the server
// (templ, in package view), brought to life by htmx 4 and Alpine's CSP build, and load nothing from elsewhere.
//
// # How a page is made
//
// A noun has four files: NOUN.go (routes and handlers), view/NOUN.templ, language/text/NOUN.it.toml with its twin
// NOUN.en.toml, and NOUN_test.go. If it needs them, static/NOUN.css, which becomes part of the one style, and
// static/NOUN.js, which its page names. After a change to templates: scripts/templates (which also formats them).
//
// Route. A table in NOUN.go, named in [allRoutes]:
//
//	var templateRoutes = []route{
//		get("/c/{client}/templates", clientSide, puntuale.Reader, templates),
//		post("/c/{client}/templates", clientSide, puntuale.Staff, "template.create", createTemplate),
//	}
//
// Pages know GET and POST. The side and the role are enforced before the handler is called, and nowhere else: on clientSide
// v.client is the client of the path, on partnerSide v.partner the partner. A POST names what the audit log says (with a text
// "audit.template.create" in both languages); it is written once the handler returned without an error. A reader may look; what
// changes something takes Staff; what costs money, opens doors or shows keys takes Owner. A page that belongs in the navigation
// stands in places (navigation.go) already, and appears once its route exists.
//
// Handler. It reads, calls one verb of control, and shows:
//
//	func createTemplate(v *visit) error {
//		f, err := v.form()
//		if err != nil {
//			return err
//		}
//		t, err := v.client.CreateTemplate(v.ctx(), control.NewTemplate{Name: f.Value("name"), ...}, control.Once[...]{})
//		if err != nil {
//			return v.again(err, f, view.TemplateForm(f), view.TemplateNew(f), "name", "text")
//		}
//		v.did(t.ID.String())
//		v.say("template.created", "/c/.../undo address, or empty")
//		return v.to(v.frame.Place.Base + "/templates")
//	}
//
// An error that is returned becomes its page in the reader's language (or, for htmx, a toast): not_found 404, forbidden 403
// and so on; the same for what is missing and what is another's.
//
// Form. [view.Form] holds what was typed and what is wrong with it. v.again shows it again: the form alone to htmx, the
// whole page to a browser without scripts. A fault at "body.name" stands beside the field "name", and the first gets the
// focus. The service's faults are English; language/text/fault.*.toml says them to people (bring fault-NOUN.*.toml). A
// template writes
//
//	@FormTag(f, action) {
//		@Field(f, Input{Name: "name", Label: T(ctx, "template.name"), Need: true})
//		@Actions(T(ctx, "form.save"), back)
//	}
//
// Texts. T(ctx, "template.found", "N", 3, "Name", x) in templates, v.t in handlers. Keys are dotted; "one", "other",
// "description" and "id" may not be parts of a key. Words are plain, sentences short, "tu" in Italian. Times go through
// @Moment, @Ago and @Day, which use the client's zone; numbers through Number.
//
// View. @Page(heading, scripts...) is the whole page, @Header, @Card, @Empty, @Badge, @StateBadge, @Pager, @Dialog (opened
// by a button with data-open), @Confirm (a question before what cannot be undone), @Secret, @Bubble, @Chip, @Progress, @Chart,
// @QR, @Icon are its parts. A list is a table of class "list" in a "card card-list"; its cells carry data-label, and become
// cards on a phone. Buttons that the reader's role does not allow are left out: if Has(ctx, puntuale.Staff).
//
// htmx 4. Attributes are not inherited (write hx-target:inherited). Every status but 204 and 304 is swapped. A part that
// updates itself answers with the part alone when v.partial(); v.whole puts a page in the place of the one shown; v.trigger
// sends an event. Server-sent events: hx-sse:connect; the handler writes v.w, flushes with http.ResponseController, and
// moves the write deadline on. Never hx-on, hx-vals with js: or a filter in hx-trigger: they need eval, which the policy
// forbids. Everything must also work as a plain form.
//
// Alpine. Only what the server cannot do: a component is registered in static/NOUN.js with
// document.addEventListener("alpine:init", () => Alpine.data("name", () => ({...}))), and its expressions are names of
// properties and methods. No x-html, no style attribute: the policy forbids what is written into a page.
//
// Tests. newWorld is the pages on a real store; w.visitor(user).get, post and htmx are a browser without a screen, golden compares
// a page with testdata/golden. onScreens runs a story in Chromium on each screen (390 and 1280 px, light and dark, Italian
// and English); b.check there looks for rules of accessibility, for what is too wide, for missing texts, and keeps a
// picture in the folder PUNTUALE_SCREENSHOTS. A violation of the policy, a request that leaves the host or a word on the
// console fails the test. Each test takes one screen in "make test", and another in "make pages", which "make check" runs;
// PUNTUALE_SCREENS=all takes all eight.
// TestEveryPage does so with each page of the table, with something in it: a new noun stands in things. TestRoutes tries
// every route as everybody, TestAnothers with ids of others, TestCrossSite from elsewhere.
//
//	scripts/with-chromium go test ./internal/web -run 'TestTemplates'
package web
