// Package web is the pages for people: the way in, a partner's dashboard, and a client's. They are made by the server
// (templ), brought to life by htmx 4 and Alpine's CSP build, and load nothing from elsewhere.
//
// # Rooms
//
//   - page: what every page needs. The request and who makes it, routes and roles, the navigation, visits, faults, streams.
//   - signin: sign-in, invitations and a person's own profile.
//   - partner: the agency's clients, brand, teams, keys, audit log and usage.
//   - session: numbers, linking, Official, gateways, devices and the assisted phone.
//   - message: the day, the calendar, messages, many at once, the blacklist and the simulated phone.
//   - sequence: the list, the editor, previews, starts, templates, snippets, import and export.
//   - campaign: mass sends.
//   - webhook: webhooks and their deliveries.
//   - view: the kit of components. language: the texts. static: style and scripts.
//
// A feature depends on page and view, and never on another feature. What two features need goes to page or view. This
// package joins the routes of all features, and its tests drive the whole site.
//
// # How a page is made
//
// A noun has these files in the room of its feature: NOUN.go (routes and handlers), NOUN.templ, and NOUNpage.go where its
// templates need types. Its texts are language/text/NOUN.it.toml with its twin NOUN.en.toml, and NOUN_test.go is here. If it
// needs them, static/NOUN.css becomes part of the one style, and its page names static/NOUN.js. After a change to templates:
// scripts/templates (which also formats them).
//
// Route. A table in NOUN.go, named in the feature's Routes:
//
//	var templateRoutes = []page.Route{
//		page.Get("/c/{client}/templates", page.ClientSide, puntuale.Reader, templates),
//		page.Post("/c/{client}/templates", page.ClientSide, puntuale.Staff, "template.create", createTemplate),
//	}
//
// Pages know GET and POST. The side and the role are enforced before the handler is called, and nowhere else. On ClientSide
// v.Client is the client of the path, on PartnerSide v.Partner the partner. A POST names what the audit log says (with a text
// "audit.template.create" in both languages). The log is written once the handler returned without an error. A reader may
// look. Changes take Staff. Things that cost money, open doors or show keys take Owner. A page that belongs in the navigation
// stands in items (page/navigation.go) already, and appears once its route exists.
//
// Handler. It reads, calls one verb of control, and shows:
//
//	func createTemplate(v *page.Request) error {
//		f, err := v.Form()
//		if err != nil {
//			return err
//		}
//		t, err := v.Client.CreateTemplate(v.Ctx(), control.NewTemplate{Name: f.Value("name"), ...}, control.Once[...]{})
//		if err != nil {
//			return v.Again(err, f, TemplateForm(f), TemplateNew(f), "name", "text")
//		}
//		v.Did(t.ID.String())
//		v.Say("template.created", "/c/.../undo address, or empty")
//		return v.Redirect(v.Frame.Place.Base + "/templates")
//	}
//
// An error that is returned becomes its page in the reader's language (or, for htmx, a toast): not_found 404, forbidden 403
// and so on. A missing thing and another client's thing give the same page.
//
// Form. [view.Form] holds what a person typed, with its faults. v.Again shows it again: the form alone to htmx, the whole
// page to a browser without scripts. A fault at "body.name" stands beside the field "name", and the first gets the focus.
// The service's faults are codes; internal/catalogue says them to people (bring text/fault-NOUN.toml). A template
// writes
//
//	@view.FormTag(f, action) {
//		@view.Field(f, view.Input{Name: "name", Label: view.T(ctx, "template.name"), Need: true})
//		@view.Actions(view.T(ctx, "form.save"), back)
//	}
//
// Texts. T(ctx, "template.found", "N", 3, "Name", x) in templates, v.T in handlers. Keys are dotted; "one", "other",
// "description" and "id" may not be parts of a key. Words are plain, sentences short, "tu" in Italian. Times go through
// @Moment, @Ago and @Day, which use the client's zone; numbers through Number.
//
// View. @Page(heading, scripts...) is the whole page. Its parts are @Header, @Card, @Empty, @Badge, @StateBadge, @Pager,
// @Secret, @Bubble, @Chip, @Progress, @Chart, @QR and @Icon. A button with data-open opens a @Dialog; @Confirm asks before
// something that cannot be undone. A list is a table of class "list" in a "card card-list"; its cells carry data-label, and become
// cards on a phone. Buttons that the reader's role does not allow are left out: if Has(ctx, puntuale.Staff).
//
// htmx 4. Attributes are not inherited (write hx-target:inherited). Every status but 204 and 304 is swapped. If v.Partial(),
// the handler sends only the part that changes. v.Whole replaces the whole page instead. Server-sent
// events: hx-sse:connect and v.Stream, or v.Events. Never hx-on, hx-vals with js: or a filter in hx-trigger: they need eval, which the policy
// forbids. Everything must also work as a plain form.
//
// Alpine. Only what the server cannot do: a component is registered in static/NOUN.js with
// document.addEventListener("alpine:init", () => Alpine.data("name", () => ({...}))), and its expressions are names of
// properties and methods. No x-html, no style attribute: the policy forbids what is written into a page.
//
// Tests. newWorld is the pages on a real store; w.visitor(user).get, post and htmx are a browser without a screen, golden compares
// a page with testdata/golden. onScreens runs a story in Chromium on each screen: 390 and 1280 px, light and dark, Italian
// and English. b.check there looks for rules of accessibility, for anything too wide, and for missing texts. It keeps a
// picture in the folder PUNTUALE_SCREENSHOTS. A violation of the policy, a request that leaves the host or a word on the
// console fails the test. Each test takes one screen in "make test", and another in "make pages", which "make check" runs;
// PUNTUALE_SCREENS=all takes all eight.
// TestEveryPage does so with each page of the table, with something in it: a new noun stands in things. TestRoutes tries
// every route as everybody, TestAnothers with ids of others, TestCrossSite from elsewhere.
//
//	scripts/with-chromium go test ./internal/web -run 'TestTemplates'
package web
