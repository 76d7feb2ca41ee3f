// Package static contains the files that pages load: the style, the scripts and the icons. Third-party files are
// unchanged, and scripts/assets checks this. Each file's address contains a hash of the file. So a browser can store a
// file for ever, and never uses an outdated file.
package static

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"net/http"
	"path"
	"regexp"
	"strings"
	"sync"
	"time"

	"puntuale/internal/httpkit"
)

// Path is the beginning of the files' addresses.
const Path = "/static/"

//go:embed *.css *.js *.svg alpinejs tabler/core htmx.org
var files embed.FS

//go:embed tabler/icons/icons/outline/*.svg
var icons embed.FS

// names are the short names of third-party files.
var names = map[string]string{
	"tabler.css":       "tabler/core/dist/css/tabler.min.css",
	"htmx.js":          "htmx.org/dist/htmx.min.js",
	"htmx-sse.js":      "htmx.org/dist/ext/hx-sse.min.js",
	"htmx-alpine.js":   "htmx.org/dist/ext/hx-alpine-compat.min.js",
	"alpine.js":        "alpinejs/csp/dist/cdn.min.js",
	"alpine-sort.js":   "alpinejs/sort/dist/cdn.min.js",
	"htmx-LICENSE.txt": "htmx.org/LICENSE",
}

// asset is a file as the server sends it.
type asset struct {
	kind     string
	plain    []byte
	squeezed func() []byte // compressed with gzip at the first request; nil: gzip makes the file no smaller
}

// assetFolder contains all files that pages load.
type assetFolder struct {
	addresses map[string]string // the address of each file, by the file's name
	assets    map[string]asset  // the files, by address
	drawings  map[string]string // the content of each icon's svg element, by the icon's name
}

// servedFolder returns the assetFolder. The folder is filled when the first page needs it, so that commands and servers
// without visitors use no memory for it.
var servedFolder = sync.OnceValue(fill)

var kinds = map[string]string{
	".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8",
}

func fill() *assetFolder {
	s := &assetFolder{addresses: map[string]string{}, assets: map[string]asset{}, drawings: draw()}
	own, err := files.ReadDir(".")
	if err != nil {
		panic(err) // the files are compiled into the program, so this cannot fail
	}
	style := read("app.css")
	for _, entry := range own {
		name := entry.Name()
		switch {
		case entry.IsDir(), name == "app.css":
		case path.Ext(name) == ".css": // the style sheets of single pages become part of the common style sheet
			style = append(style, read(name)...)
		default:
			s.add(name, read(name))
		}
	}
	s.add("app.css", style)
	for name, file := range names {
		s.add(name, sourceMap.ReplaceAll(read(file), nil)) // source maps are not served, so the references to them are removed
	}
	return s
}

func read(file string) []byte {
	content, err := httpkit.ReadPacked(files, file)
	if err != nil {
		panic(err) // the files are compiled into the program, so this cannot fail
	}
	return content
}

func (s *assetFolder) add(name string, content []byte) {
	sum := sha256.Sum256(content)
	extension := path.Ext(name)
	address := Path + strings.TrimSuffix(name, extension) + "." + hex.EncodeToString(sum[:6]) + extension
	s.addresses[name] = address
	s.assets[address] = asset{kind: kinds[extension], plain: content, squeezed: sync.OnceValue(func() []byte { return squeeze(content) })}
}

var sourceMap = regexp.MustCompile(`(?m)^\s*(//[#@] sourceMappingURL=.*|/\*# sourceMappingURL=.*\*/)\s*$`)

func squeeze(content []byte) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // the level is valid, so this cannot fail
	_, _ = z.Write(content)                               // writing to memory cannot fail
	_ = z.Close()
	if b.Len() >= len(content)*9/10 {
		return nil
	}
	return b.Bytes()
}

// URL returns the address of a file, such as app.css. It panics if there is no such file.
func URL(name string) string {
	address, ok := servedFolder().addresses[name]
	if !ok {
		panic(fmt.Sprintf("there is no static file %q", name))
	}
	return address
}

// Content returns the content of one of the product's own files, such as app.js. It panics if the file does not exist.
func Content(name string) []byte { return read(name) }

// Handler serves the files.
func Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, ok := servedFolder().assets[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.kind)
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
		h.Set("Content-Security-Policy", "default-src 'none'")
		h.Set("Vary", "Accept-Encoding")
		content := a.plain
		if TakesGzip(r) {
			if squeezed := a.squeezed(); squeezed != nil {
				h.Set("Content-Encoding", "gzip")
				content = squeezed
			}
		}
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	})
}

// TakesGzip reports whether the caller accepts gzip: the header Accept-Encoding must name gzip with a weight above 0.
func TakesGzip(r *http.Request) bool {
	for offer := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, weight, _ := strings.Cut(strings.TrimSpace(offer), ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return strings.Trim(strings.TrimPrefix(strings.TrimSpace(weight), "q="), "0.") != "" || weight == ""
		}
	}
	return false
}

var (
	outer = regexp.MustCompile(`(?s)^\s*<svg[^>]*>(.*)</svg>\s*$`)
	empty = regexp.MustCompile(`<path stroke="none" d="M0 0h24v24H0z" fill="none" />`)
	space = regexp.MustCompile(`>\s+<`)
)

// draw reads the drawings of all icons.
func draw() map[string]string {
	drawings := map[string]string{}
	const folder = "tabler/icons/icons/outline"
	entries, err := icons.ReadDir(folder)
	if err != nil {
		panic(err) // the icons are compiled into the program, so this cannot fail
	}
	for _, e := range entries {
		content, err := icons.ReadFile(folder + "/" + e.Name())
		if err != nil {
			panic(err)
		}
		inside := outer.FindSubmatch(content)
		if inside == nil {
			panic(e.Name() + " is no icon")
		}
		text := empty.ReplaceAllString(string(inside[1]), "")
		drawings[strings.TrimSuffix(e.Name(), ".svg")] = strings.TrimSpace(space.ReplaceAllString(text, "><"))
	}
	return drawings
}

// Icon returns the content of an icon's svg element, 24 by 24, drawn with strokes. It panics if there is no such icon.
func Icon(name string) string {
	inside, ok := servedFolder().drawings[name]
	if !ok {
		panic(fmt.Sprintf("there is no icon %q: fetch it with scripts/assets", name))
	}
	return inside
}
