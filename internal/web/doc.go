// Package web contains the pages for people: the sign-in pages, a partner's dashboard, and a client's dashboard. The
// server renders the pages with templ. htmx 4 and Alpine's CSP build make the pages interactive. Pages load files from
// this server only.
//
// # Packages
//
//   - page: what every page needs: the request and its person, routes and roles, the navigation, visits, faults,
//     streams.
//   - signin: sign-in, invitations and a person's own profile.
//   - account: the agency's clients and brand. Teams, keys, the audit log and usage of agencies and clients.
//   - session: numbers, linking, Official, gateways, devices and the assisted phone.
//   - message: the day, the calendar, the list of messages, actions on many messages, the blacklist and the simulated
//     phone.
//   - sequence: the list, the editor, previews, starts, templates, snippets, import and export.
//   - booking: appointments by day, one appointment, its changes.
//   - person: contacts and conversations.
//   - campaign: mass sends.
//   - result: what became of messages, and the people behind each count.
//   - automation: rules that act automatically, and their hooks.
//   - webhook: webhooks and their deliveries.
//   - search: everything by one text.
//   - statement: what clients used in a month.
//   - confirm: the page on which a person confirms or cancels an appointment, without signing in.
//   - view: the components of pages. language: the texts. static: style and scripts.
//
// Packages signin to statement in this list are features. A feature imports page and view, but no other feature. Code
// that two features need belongs into page or view. Package web joins the routes of all features, and its tests drive
// the whole site.
//
// # How a page is made
//
// A noun is one kind of thing, such as a template. It has these files in the package of its feature: NOUN.go (routes
// and handlers), NOUN.templ, and NOUNpage.go if its templates need types. Its texts are in language/text/NOUN.it.toml
// and NOUN.en.toml. Its test NOUN_test.go is in this package. If static/NOUN.css exists, it becomes part of the common
// style sheet. If static/NOUN.js exists, the noun's page names this file. After a change to templates, run
// scripts/templates, which also formats them.
//
// Route. A feature's Routes contain one table from each NOUN.go:
//
//	var templateRoutes = []page.Route{
//		page.Get("/c/{client}/templates", page.ClientSide, puntuale.Reader, templates),
//		page.Post("/c/{client}/templates", page.ClientSide, puntuale.Staff, "template.create", createTemplate),
//	}
//
// Pages use only GET and POST. Package page checks the side and the role before it calls the handler; no other code
// does. On ClientSide, v.Client is the client of the path. On PartnerSide, v.Partner is the partner. Each route of a
// POST names an action for the audit log, such as "template.create". Both languages have a text
// "audit.template.create". Package page writes the audit log after the handler has returned without an error. A Reader
// may only look at pages. Changes need the role Staff. Actions that cost money, give access or show keys need the role
// Owner. The variable items (page/navigation.go) lists the pages of the navigation. The navigation shows an entry if
// the entry's route exists.
//
// Handler. A handler reads the request, calls one method of control, and shows the result:
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
// If a handler returns an error, the reader sees an error page in the reader's language. For htmx it is a toast. The
// code not_found becomes status 404, forbidden becomes 403, and so on. A missing thing and another client's thing give
// the same page.
//
// Form. [view.Form] contains the values that a person typed, with the faults of the values. v.ShowRefused shows the
// form again. It sends only the form to htmx, and the whole page to a browser without scripts. A fault at "body.name"
// is shown beside the field "name". The first field with a fault gets the focus. The service's faults are codes.
// internal/catalogue contains a sentence for each code, so add a file text/fault-NOUN.toml there. A template writes
//
//	@view.FormTag(f, action) {
//		@view.Field(f, view.Input{Name: "name", Label: view.T(ctx, "template.name"), Need: true})
//		@view.Actions(view.T(ctx, "form.save"), back)
//	}
//
// Texts. Use T(ctx, "template.found", "N", 3, "Name", x) in templates, and v.T in handlers. The parts of a key are
// separated by dots; "one", "other", "description" and "id" may not be parts of a key. Use plain words, short
// sentences, and "tu" in Italian. Show times with @Moment, @Ago and @Day, which use the client's zone. Show numbers
// with Number.
//
// View. @Page(heading, scripts...) is the whole page. The parts of a page are @Header, @Card, @Empty, @Badge,
// @StateBadge, @Pager, @Secret, @Bubble, @Chip, @Progress, @Chart, @QR and @Icon. A button with data-open opens a
// @Dialog. @Confirm asks before something that cannot be undone. A list is a table of class "list" in a "card
// card-list". Each cell of a list has data-label. On a phone the rows of a list become cards. Leave out a button that
// the reader's role does not allow: if Has(ctx, puntuale.Staff).
//
// htmx 4. Attributes are not inherited (write hx-target:inherited). htmx shows the content of every answer, except
// answers with status 204 or 304. If v.Partial() is true, the handler sends only the part that changes. v.Whole
// replaces the whole page. For server-sent events use hx-sse:connect with v.Stream or v.Events. Do not use hx-on,
// hx-vals with js:, or a filter in hx-trigger: they need eval, which the policy forbids. Everything must also work as a
// plain form, without scripts.
//
// Alpine. Use Alpine only for what the server cannot do. A component is registered in static/NOUN.js with
// document.addEventListener("alpine:init", () => Alpine.data("name", () => ({...}))). Its expressions are names of
// properties and methods. Do not use x-html or a style attribute, because the policy forbids scripts and styles inside
// a page.
//
// Tests. newWorld makes the pages on a real store. The methods get, post and htmx of w.visitor(user) act like a browser
// without a screen. golden compares a page with a file in testdata/golden. onScreens runs a story in Chromium on each
// screen. A screen is a width (390 or 1280 px), light or dark, Italian or English. In a story, b.check looks for broken
// rules of accessibility, for elements that are too wide, and for missing texts. It stores a picture of the page in the
// folder PUNTUALE_SCREENSHOTS. A violation of the policy, a request to another host, or a line on the browser's console
// fails the test. In "make test" each test uses one screen. In "make pages", a part of "make check", it uses another
// screen. PUNTUALE_SCREENS=all uses all eight screens. TestEveryPage checks each page in the table of routes, with data
// on it. Therefore add a new noun to the method everything (everything_test.go). TestRoutes requests every route as
// each kind of person. TestAnothers uses ids of other clients. TestCrossSite sends the requests that another site could
// cause.
//
//	scripts/with-chromium go test ./internal/web -run 'TestTemplates'
package web
