package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/web"
)

// noPages contains the GET routes whose answer is not a page. Each value says what the answer is.
var noPages = map[string]string{
	"/{$}":                                 "leads to where one belongs",
	"/ticket":                              "is left at once",
	"/r/{code}":                            "leads to the address of a link",
	"/brand/{partner}/{mark}/logo":         "a picture",
	"/brand/{partner}/{mark}/style.css":    "a style",
	"/phone/manifest.webmanifest":          "a file",
	"/phone/worker.js":                     "a script",
	"/phone/icon/{partner}/{mark}/{size}":  "a picture",
	"/c/{client}/sequences/{id}/export":    "a file",
	"/c/{client}/blacklist/export":         "a file",
	"/c/{client}/person/everything":        "a file",
	"/c/{client}/campaigns/{id}":           "leads to the wizard's step that comes next",
	"/c/{client}/campaigns/{id}/export":    "a file",
	"/c/{client}/messages/export":          "a file",
	"/c/{client}/contacts/export":          "a file",
	"/c/{client}/results/people/export":    "a file",
	"/c/{client}/statements/export":        "a file",
	"/partner/statements/export":           "a file",
	"/search":                              "leads to the search of the person's dashboard",
	"/c/{client}/messages/live":            "a stream",
	"/c/{client}/bookings/live":            "a stream",
	"/c/{client}/messages/{id}/live":       "a stream",
	"/c/{client}/person/live":              "a stream",
	"/c/{client}/replies/live":             "a stream",
	"/c/{client}/replies/{id}/media":       "a file",
	"/c/{client}/files/{id}":               "a file",
	"/c/{client}/files/{id}/small":         "a picture",
	"/c/{client}/sessions/{id}/phone/live": "a stream",
	"/c/{client}/sessions/{id}/link/live":  "a stream",
	"/link/{code}/live":                    "a stream",
}

// asks are the queries of pages that are only shown with a query.
var asks = map[string]string{
	"/c/{client}/messages/all":      "?state=PENDING", // without a state whose messages can be changed together, this page redirects to the list
	"/c/{client}/search":            "?text=lucia",
	"/c/{client}/person":            "?phone=%2B393337654321",
	"/c/{client}/person/live":       "?phone=%2B393337654321",
	"/c/{client}/person/erase":      "?phone=%2B393337654321",
	"/c/{client}/person/everything": "?phone=%2B393337654321",
}

// absent pages do not exist if the service sends no e-mail or has no public address, as in this test. Other tests open
// these pages.
var absent = []string{"/forgot", "/p/{slug}/forgot", "/reset", "/conferma"}

// TestEveryPage opens and checks each page in the table of routes, with data on it. In this way the test also covers
// new pages.
func TestEveryPage(t *testing.T) {
	onScreens(t, func(t *testing.T, w *world, b *browser) {
		someClients(w)
		has := w.everything(w.client)
		w.atMeta(has)
		has["partner-users"] = w.partners[puntuale.Staff].String()
		has["p"] = "agenzia-aurora"
		between := halfway(w)
		pages := map[string][]string{}
		for _, r := range web.Routes() {
			if r.Method == http.MethodGet && noPages[r.Path] == "" && !slices.Contains(absent, r.Path) {
				pages[r.Side] = append(pages[r.Side], r.Path)
			}
		}
		for _, path := range pages["anyone"] {
			if reach := between[path]; reach != nil {
				reach(b)
			} else {
				b.open(has.of(t, path))
			}
			b.isPage(path, has.of(t, path))
		}
		b.signIn(w.partners[puntuale.Owner])
		for _, path := range append(pages["partner"], pages["person"]...) {
			b.open(has.of(t, path))
			b.isPage(path, has.of(t, path))
		}
		b.open("/c/" + has["clients"])
		b.check("enter")
		b.click(`main form[action$="/enter"] button`)
		b.until(`document.querySelector(".place-entered")`)
		for _, path := range pages["client"] {
			b.open(has.of(t, path) + asks[path])
			b.isPage(path, has.of(t, path))
		}
		b.open(w.pages + "/nothing")
		b.check("missing")
	})
}

// isPage checks a route's page after the browser has opened it.
func (b *browser) isPage(route, path string) {
	b.t.Helper()
	b.until(`location.pathname === ` + quote(path) + ` && document.readyState === "complete"`)
	if n := evaluate[int](b, `document.querySelectorAll("main h1").length`); n != 1 {
		b.t.Errorf("%s: %d headings of the first order", route, n)
	}
	if status := evaluate[int](b, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusOK {
		b.t.Errorf("%s: %d", route, status)
	}
	b.check(strings.Trim(strings.NewReplacer("{$}", "", "{", "", "}", "", "/", "_").Replace(route), "_"))
}

// TestNoPages: each route in noPages exists, and its answer is not a page.
func TestNoPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.media = []byte("x")
	has := w.everything(w.client)
	has["brand"], has["1"] = "1", "1"
	existing := map[string]bool{}
	for _, r := range web.Routes() {
		existing[r.Path] = existing[r.Path] || r.Method == http.MethodGet
	}
	v := w.visitor(w.clients[puntuale.Owner])
	for path, what := range noPages {
		if !existing[path] {
			t.Errorf("%s, which is %s, is not among the routes any more", path, what)
			continue
		}
		if strings.HasPrefix(path, "/brand/") || strings.HasPrefix(path, "/phone/icon/") || strings.HasPrefix(path, "/r/") { // TestTrackedLink follows one
			continue
		}
		reader := v
		if strings.HasPrefix(path, "/partner/") {
			reader = w.visitor(w.partners[puntuale.Owner])
		}
		got := reader.get(has.of(t, path) + asks[path])
		if strings.HasPrefix(got.header.Get("Content-Type"), "text/html") && strings.Contains(got.body, "<main") && path != "/ticket" {
			t.Errorf("%s is a page", path)
		}
	}
}
