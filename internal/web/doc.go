// Package web has the pages for people: the sign-in pages, a partner's dashboard, and a client's dashboard. The server
// makes the pages with templ. htmx 4 and Alpine's CSP build make them interactive. Pages load files from this server
// only.
//
// # Packages
//
//   - page: what every page needs: the request and its person, routes and roles, the navigation, visits, faults,
//     streams.
//   - signin: sign-in, invitations and a person's own profile.
//   - partner: the agency's clients, brand, teams, keys, audit log and usage.
//   - session: numbers, linking, Official, gateways, devices and the assisted phone.
//   - message: the day, the calendar, the list of messages, actions on many messages, the blacklist and the simulated
//     phone.
//   - sequence: the list, the editor, previews, starts, templates, snippets, import and export.
//   - campaign: mass sends.
//   - webhook: webhooks and their deliveries.
//   - view: the components of pages. language: the texts. static: style and scripts.
//
// A feature is one of the other packages. It imports page and view, and never another feature. Code that two features
// need goes to page or view. This package joins the routes of all features, and its tests drive the whole site.
//
// # How a page is made
//
// A noun has these files in the package of its feature: NOUN.go (routes and handlers), NOUN.templ, and NOUNpage.go if
// its templates need types. Its texts are in language/text/NOUN.it.toml and NOUN.en.toml. Its test NOUN_test.go is in
// this package. If the noun has a static/NOUN.css, this file becomes part of the common style. If it has a
// static/NOUN.js, its page names the file. After a change to templates, run scripts/templates, which also formats them.
//
// Route. A table in NOUN.go, named in the feature's Routes:
//
//	var templateRoutes = []page.Route{
//		page.Get("/c/{client}/templates", page.ClientSide, puntuale.Reader, templates),
//		page.Post("/c/{client}/templates", page.ClientSide, puntuale.Staff, "template.create", createTemplate),
//	}
//
// Pages use only GET and POST. Package page checks the side and the role before it calls the handler; no other code
// does. On ClientSide, v.Client is the client of the path. On PartnerSide, v.Partner is the partner. A POST names its
// action for the audit log, such as "template.create"; both languages have a text "audit.template.create". Package page
// writes the log after the handler returned without an error. A Reader may look. Changes need the role Staff. Things
// that cost money, give access or show keys need the role Owner. The pages of the navigation are listed in items
// (page/navigation.go). An entry appears if its route exists.
//
// Handler. It reads the request, calls one verb of control, and shows the result:
//
//	func createTemplate(v *page.Request) error {
//		f, err := v.Form()
//		if err != nil {
//			return err
//		}
//		t, err := v.Client.CreateTemplate(v.Ctx(), control.NewTemplate{Name: f.Value("name"), ...}, control.Once[...]{})
//		if err != nil {
//			return v.ShowRefused(err, f, TemplateForm(f), TemplateNew(f), "name", "text")
//		}
//		v.SetAuditTarget(t.ID.String())
//		v.Say("template.created", "/c/.../undo address, or empty")
//		return v.Redirect(v.Frame.Place.Base + "/templates")
//	}
//
// An error that a handler returns becomes an error page in the reader's language, or a toast for htmx. The code
// not_found becomes 404, forbidden 403, and so on. A missing thing and another client's thing give the same page.
//
// Form. [view.Form] holds what a person typed, with its faults. v.Again shows the form again: only the form for htmx,
// the whole page for a browser without scripts. A fault at "body.name" is shown beside the field "name". The first
// field with a fault gets the focus. The service's faults are codes. internal/catalogue has their sentences, so add a
// file text/fault-NOUN.toml there. A template writes
//
//	@view.FormTag(f, action) {
//		@view.Field(f, view.Input{Name: "name", Label: view.T(ctx, "template.name"), Need: true})
//		@view.Actions(view.T(ctx, "form.save"), back)
//	}
//
// Texts. T(ctx, "template.found", "N", 3, "Name", x) in templates, v.T in handlers. Keys are dotted; "one", "other",
// "description" and "id" may not be parts of a key. Words are plain, sentences short, "tu" in Italian. Show times with
// @Moment, @Ago and @Day, which use the client's zone. Show numbers with Number.
//
// View. @Page(heading, scripts...) is the whole page. Its parts are @Header, @Card, @Empty, @Badge, @StateBadge,
// @Pager, @Secret, @Bubble, @Chip, @Progress, @Chart, @QR and @Icon. A button with data-open opens a @Dialog; @Confirm
// asks before something that cannot be undone. A list is a table of class "list" in a "card card-list". Its cells have
// data-label. On a phone its rows become cards. Buttons that the reader's role does not allow are left out: if Has(ctx,
// puntuale.Staff).
//
// htmx 4. Attributes are not inherited (write hx-target:inherited). htmx shows the content of every answer, except of
// status 204 and 304. If v.Partial() is true, the handler sends only the part that changes. v.Whole replaces the whole
// page. Server-sent events: hx-sse:connect and v.Stream, or v.Events. Do not use hx-on, hx-vals with js:, or a filter
// in hx-trigger. They need eval, which the policy forbids. Everything must also work as a plain form.
//
// Alpine. Use it only for what the server cannot do. A component is registered in static/NOUN.js with
// document.addEventListener("alpine:init", () => Alpine.data("name", () => ({...}))), and its expressions are names of
// properties and methods. Do not use x-html or a style attribute, because the policy forbids scripts and styles inside
// a page.
//
// Tests. newWorld makes the pages on a real store. w.visitor(user).get, post and htmx act like a browser without a
// screen. golden compares a page with testdata/golden. onScreens runs a story in Chromium on each screen: 390 and 1280
// px, light and dark, Italian and English. In a story, b.check looks for broken rules of accessibility, for elements
// that are too wide, and for missing texts. It keeps a picture in the folder PUNTUALE_SCREENSHOTS. A violation of the
// policy, a request to another host, or a line on the console fails the test. Each test takes one screen in "make
// test", and another in "make pages", which "make check" runs; PUNTUALE_SCREENS=all takes all eight. TestEveryPage
// checks each page of the table of routes, with data in it. Therefore a new noun must be added to things. TestRoutes
// tries every route as each kind of person. TestAnothers tries ids of other clients. TestCrossSite tries requests that
// another site sends.
//
//	scripts/with-chromium go test ./internal/web -run 'TestTemplates'
package web
