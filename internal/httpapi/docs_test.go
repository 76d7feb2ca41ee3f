package httpapi_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpapi/docs"
	"puntuale/internal/httpkit"
)

// TestOlderDocument: the 3.0 document is valid, and describes every call in the same way as the 3.1 document. It omits
// no part of the 3.1 document.
func TestOlderDocument(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.call("GET", docs.OlderDocumentPath, "", "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s", a.status, a.header)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, []byte(a.body), "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi-3.0.json", pretty.String()+"\n")

	older, err := openapi3.NewLoader().LoadFromData([]byte(a.body))
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Validate(t.Context(), openapi3.DisableExamplesValidation()); err != nil {
		t.Error(err)
	}
	if !strings.HasPrefix(older.OpenAPI, "3.0.") || older.Info.Version != "1.0.0" {
		t.Errorf("openapi %q, version %q", older.OpenAPI, older.Info.Version)
	}
	var newer, old map[string]any
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	decode(t, response{status: http.StatusOK, body: string(d.raw)}, &newer)
	decode(t, a, &old)
	if newer["openapi"] != "3.1.0" || newer["info"].(map[string]any)["version"] != "1.0.0" {
		t.Errorf("the 3.1 document: openapi %v, info %v", newer["openapi"], newer["info"])
	}
	delete(newer, "webhooks") // OpenAPI 3.0 has none
	compareDocuments(t, "", newer, old)
}

// compareDocuments compares both documents. A difference is allowed only if 3.0 writes the same meaning in another
// form, such as the type null. Our document must not use features that 3.0 does not have.
func compareDocuments(t *testing.T, at string, newer, old any) {
	t.Helper()
	switch newer := newer.(type) {
	case map[string]any:
		old, ok := old.(map[string]any)
		if !ok {
			t.Errorf("%s: %v became %v", at, newer, old)
			return
		}
		for _, word := range []string{"const", "patternProperties", "propertyNames", "prefixItems", "if", "contains", "examples", "exclusiveMinimum", "exclusiveMaximum"} {
			if _, ok := newer[word]; ok && !strings.HasSuffix(at, "/properties") && !strings.Contains(at, "/example/") && !strings.HasSuffix(at, "/example") {
				t.Errorf("%s: %s has no form, or another meaning, in 3.0", at, word)
			}
		}
		for name, value := range newer {
			if types, ok := value.([]any); ok && name == "type" {
				if len(types) != 2 || types[1] != "null" || old["type"] != types[0] || old["nullable"] != true {
					t.Errorf("%s: the types %v became %v, nullable %v", at, types, old["type"], old["nullable"])
				}
				continue
			}
			if name == "openapi" {
				continue
			}
			if enclosed, ok := old["allOf"].([]any); ok && name == "$ref" && len(enclosed) == 1 { // 3.0 ignores members beside $ref
				compareDocuments(t, at, map[string]any{name: value}, enclosed[0])
				continue
			}
			compareDocuments(t, at+"/"+name, value, old[name])
		}
		for name := range old {
			if _, ok := newer[name]; !ok && name != "nullable" && name != "allOf" {
				t.Errorf("%s: %s is new", at, name)
			}
		}
	case []any:
		old, ok := old.([]any)
		if !ok || len(old) != len(newer) {
			t.Errorf("%s: %v became %v", at, newer, old)
			return
		}
		for i := range newer {
			compareDocuments(t, fmt.Sprintf("%s/%d", at, i), newer[i], old[i])
		}
	default:
		if newer != old {
			t.Errorf("%s: %v became %v", at, newer, old)
		}
	}
}

var (
	loads  = regexp.MustCompile(`(?:src|href)="([^"]+)"`)
	inline = regexp.MustCompile(`(?i)<script[^>]*>[^<]|<style|\sstyle=|\son[a-z]+=|javascript:`)
)

// TestDocsPage: the page has no inline scripts or styles. It loads files only from this server, and its policy forbids
// all other files.
func TestDocsPage(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	page := s.call("GET", docs.PagePath, "", "")
	if page.status != http.StatusOK || page.header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Fatalf("%d %s", page.status, page.header)
	}
	if found := inline.FindString(page.body); found != "" {
		t.Errorf("the page holds %q", found)
	}
	if a := s.call("GET", docs.PagePath+"/", "", ""); a.status != http.StatusOK || a.body != page.body {
		t.Errorf("with a slash: %d", a.status)
	}
	seen := []response{page}
	for _, m := range loads.FindAllStringSubmatch(page.body, -1) {
		if !strings.HasPrefix(m[1], "/") || strings.HasPrefix(m[1], "//") {
			t.Errorf("the page loads %s", m[1])
		}
		a := s.call("GET", m[1], "", "")
		if a.status != http.StatusOK {
			t.Errorf("%s: %d", m[1], a.status)
		}
		if strings.HasPrefix(m[1], docs.PagePath) {
			seen = append(seen, a)
		}
	}
	if len(seen) != 6 {
		t.Errorf("the page and what it loads are %d files", len(seen))
	}
	for _, a := range seen {
		policy := a.header.Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "img-src 'self' data:", "frame-ancestors 'none'"} {
			if !strings.Contains(policy, part) {
				t.Errorf("the policy %q lacks %s", policy, part)
			}
		}
		if strings.Contains(policy, "unsafe") || strings.Contains(policy, "*") || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s", a.header)
		}
	}
	for method, status := range map[string]int{"POST": http.StatusMethodNotAllowed, "HEAD": http.StatusOK} {
		if a := s.call(method, docs.PagePath, "", ""); a.status != status {
			t.Errorf("%s: %d", method, a.status)
		}
	}
	for _, path := range []string{"/docs/nothing.js", "/docs/docs.html", "/docs/swagger-ui-dist/LICENSE", "/docs/vendored.json"} {
		if a := s.call("GET", path, "", ""); a.status != http.StatusNotFound {
			t.Errorf("%s: %d", path, a.status)
		}
	}
}

// TestDocsFilesAreKept: if a browser already has a file, the server answers that the file has not changed. A browser
// that accepts gzip gets the same file compressed.
func TestDocsFilesAreKept(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	const bundle = "/docs/swagger-ui-bundle.js"
	plain := s.call("GET", bundle, "", "", "Accept-Encoding", "br, gzip;q=0")
	squeezed := s.call("GET", bundle, "", "", "Accept-Encoding", "br;q=1.0, gzip;q=0.8")
	if plain.header.Get("Content-Encoding") != "" || squeezed.header.Get("Content-Encoding") != "gzip" || len(squeezed.body) > len(plain.body)/2 {
		t.Fatalf("%s, %d bytes; %s, %d bytes", plain.header, len(plain.body), squeezed.header, len(squeezed.body))
	}
	z, err := gzip.NewReader(strings.NewReader(squeezed.body))
	if err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(z); err != nil || string(content) != plain.body {
		t.Errorf("%d bytes of %d, %v", len(content), len(plain.body), err)
	}
	if plain.header.Get("ETag") == squeezed.header.Get("ETag") || plain.header.Get("Vary") != "Accept-Encoding" || plain.header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%s, %s", plain.header, squeezed.header)
	}
	r := httptest.NewRequest(http.MethodGet, bundle, nil)
	r.Header.Set("If-None-Match", plain.header.Get("ETag"))
	if a := s.send(r); a.status != http.StatusNotModified || a.body != "" {
		t.Errorf("a kept file: %d, %d bytes", a.status, len(a.body))
	}
}

// TestDocsUnderAPartnersName: at a partner's own host name, the page and both documents show the partner's name, never
// the product's name. At other addresses nothing changes.
func TestDocsUnderAPartnersName(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	opened := s.db.Open(t)
	c := control.New(control.Config{Tenants: opened, Devices: opened, Maintenance: opened, Clock: s.clock, Vault: testVault(t)})
	accounts := account.New(account.Config{Control: c, Tenants: opened, Partners: opened, Clock: s.clock, Vault: testVault(t),
		SignIn: opened})
	caller, err := c.Authenticate(t.Context(), s.partner)
	if err != nil {
		t.Fatal(err)
	}
	p, err := accounts.Partner(caller)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.SetBrand(t.Context(), account.BrandChange{Name: `Rossi & "Figli" <API>`, Colour: "#224466", Host: "msg.rossi.example"}); err != nil {
		t.Fatal(err)
	}
	if err := accounts.ConfirmHost(t.Context(), p.ID(), "msg.rossi.example"); err != nil {
		t.Fatal(err)
	}
	s.handler, err = httpapi.New(httpapi.Config{Control: c, Accounts: accounts, Now: s.clock.Now, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	at := func(host, path string, cookies ...*http.Cookie) string {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
		r.Host = host
		for _, c := range cookies {
			r.AddCookie(c)
		}
		a := s.send(r)
		if a.status != http.StatusOK {
			t.Errorf("%s%s: %d", host, path, a.status)
		}
		return a.body
	}
	for path, name := range map[string]string{
		docs.PagePath: "<strong>Rossi &amp; &#34;Figli&#34; &lt;API&gt;</strong>", docs.DocumentPath: `Rossi \u0026 \"Figli\" \u003cAPI\u003e`,
		docs.OlderDocumentPath: `Rossi \u0026 \"Figli\" \u003cAPI\u003e`,
	} {
		ours := at("127.0.0.1:8080", path)
		for _, host := range []string{"msg.rossi.example", "MSG.rossi.example:8443"} {
			if body := at(host, path); strings.Contains(body, "Puntuale") || !strings.Contains(body, name) {
				t.Errorf("%s%s has not the partner's name alone", host, path)
			} else if path != docs.PagePath && !json.Valid([]byte(body)) {
				t.Errorf("%s%s is no JSON", host, path)
			}
		}
		seen := &http.Cookie{Name: httpkit.BrandCookie, Value: "agenzia-rossi"} // the cookie of a user who signed in to the partner's pages
		if body := at("service.example", path, seen); strings.Contains(body, "Puntuale") || !strings.Contains(body, name) {
			t.Errorf("%s has not the name that its reader knows", path)
		} else if path == docs.PagePath && !strings.Contains(body, `/style.css">`) {
			t.Errorf("%s has not the partner's colour", path)
		}
		for _, value := range []string{"nobody", "<script>", ""} {
			if at("service.example", path, &http.Cookie{Name: httpkit.BrandCookie, Value: value}) != ours {
				t.Errorf("%s changed for the cookie %q", path, value)
			}
		}
		for _, host := range []string{"localhost", "service.example", "[::1]:80"} {
			if at(host, path) != ours {
				t.Errorf("%s%s changed", host, path)
			}
		}
	}
}
