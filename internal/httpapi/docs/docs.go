// Package docs serves the OpenAPI document of the API, and the page on which people read it and try calls.
package docs

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"puntuale/internal/control/account"
	"puntuale/internal/httpkit"
)

// Paths of the documents and of the page. Reading them needs no key.
const (
	DocumentPath      = "/openapi.json"
	OlderDocumentPath = "/openapi-3.0.json" // the document in the form of OpenAPI 3.0, for tools that do not read 3.1
	PagePath          = "/docs"             // the page loads no files from other servers
)

// docsPolicy lets the page load files from this server only. It forbids scripts and styles inside the page itself.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// The page's own files, and the published files of Swagger UI. scripts/assets checks that the files of Swagger UI are
// the same as the published files.
//
//go:embed static
var static embed.FS

// docsFiles maps paths to the files of the page. Each key is the part of the path after PagePath.
var docsFiles = map[string]string{
	"":                      "docs.html",
	"/docs.css":             "docs.css",
	"/docs.js":              "docs.js",
	"/icon.svg":             "icon.svg",
	"/swagger-ui.css":       "swagger-ui-dist/swagger-ui.css",
	"/swagger-ui-bundle.js": "swagger-ui-dist/swagger-ui-bundle.js",
	"/LICENSE":              "swagger-ui-dist/LICENSE",
	"/NOTICE":               "swagger-ui-dist/NOTICE",
	// swagger-ui-bundle.js refers to this address
	"/swagger-ui-bundle.js.LICENSE.txt": "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt",
}

// Config configures [Serve]. All members must be set.
type Config struct {
	Document *huma.OpenAPI // must contain all operations before the first request, because Serve encodes it only once
	Accounts *account.Accounts
	Logger   *slog.Logger
}

// Serve serves the OpenAPI document in versions 3.1 and 3.0, and the page. It fails only if a file of the page is
// missing.
func Serve(mux *http.ServeMux, a Config) error {
	// Each document is made at its first request, because making it would slow the server's start.
	older := sync.OnceValues(func() ([]byte, error) { return olderDocument(a.Document) })
	document := sync.OnceValues(func() ([]byte, error) { return json.Marshal(a.Document) })
	for where, content := range map[string]func() ([]byte, error){DocumentPath: document, OlderDocumentPath: older} {
		mux.HandleFunc("GET "+where, func(w http.ResponseWriter, r *http.Request) {
			made, err := content()
			if err != nil {
				httpkit.NewProblem(r.Context(), a.Logger, fmt.Errorf("make the OpenAPI document: %w", err)).Write(w)
				return
			}
			name, _ := a.labelAt(r)
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Vary", "Cookie")
			writeNamed(w, made, name)
		})
	}
	for below, name := range docsFiles {
		if _, plain := fs.Stat(static, "static/"+name); plain != nil {
			if _, err := fs.Stat(static, "static/"+name+httpkit.PackedEnding); err != nil {
				return fmt.Errorf("find the page's files: %w", plain)
			}
		}
		file := sync.OnceValue(func() *asset { return readAsset(name) })
		mux.HandleFunc("GET "+PagePath+below, func(w http.ResponseWriter, r *http.Request) {
			if below == "" {
				a.servePage(file(), w, r)
				return
			}
			file().ServeHTTP(w, r)
		})
	}
	return nil
}

// olderDocument returns the document in the form of OpenAPI 3.0. There are no webhooks in 3.0, and no member beside
// "$ref", so a reference with a description becomes part of "allOf".
func olderDocument(document *huma.OpenAPI) ([]byte, error) {
	without := *document
	without.Webhooks = nil
	older, err := without.Downgrade()
	if err != nil {
		return nil, err
	}
	var tree any
	if err := json.Unmarshal(older, &tree); err != nil {
		return nil, err
	}
	enclose(tree)
	return json.Marshal(tree)
}

func enclose(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		if ref, ok := tree["$ref"].(string); ok && len(tree) > 1 {
			delete(tree, "$ref")
			tree["allOf"] = []any{map[string]any{"$ref": ref}}
		}
		for _, value := range tree {
			enclose(value)
		}
	case []any:
		for _, value := range tree {
			enclose(value)
		}
	}
}

// asset is one file of the page. The file is read at its first request, so it needs no memory if nobody opens the page.
// A browser stores the file, and asks each time whether the file has changed.
type asset struct {
	kind, tag string
	plain     []byte
	squeezed  func() []byte // compressed with gzip at the first request; nil: gzip makes the file no smaller
}

var assetKinds = map[string]string{
	".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml",
}

func readAsset(name string) *asset {
	content, _ := httpkit.ReadPacked(static, "static/"+name) // Serve checked that the file exists
	return newAsset(name, content)
}

func newAsset(name string, content []byte) *asset {
	sum := sha256.Sum256(content)
	a := &asset{kind: assetKinds[path.Ext(name)], tag: hex.EncodeToString(sum[:12]), plain: content}
	if a.kind == "" {
		a.kind = "text/plain; charset=utf-8"
	}
	if len(content) > 4096 {
		a.squeezed = sync.OnceValue(func() []byte { return squeeze(content) })
	}
	return a
}

func squeeze(content []byte) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write(content) // writing to memory does not fail
	_ = z.Close()
	return b.Bytes()
}

func (a *asset) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Type", a.kind)
	h.Set("Cache-Control", "no-cache")
	h.Set("Content-Security-Policy", docsPolicy)
	content, tag := a.plain, a.tag
	if a.squeezed != nil {
		h.Add("Vary", "Accept-Encoding")
		if takesGzip(r) {
			content, tag = a.squeezed(), a.tag+"-gzip"
			h.Set("Content-Encoding", "gzip")
		}
	}
	h.Set("ETag", `"`+tag+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// takesGzip reports whether the caller accepts gzip: the header Accept-Encoding must name gzip with a weight above 0.
func takesGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}
