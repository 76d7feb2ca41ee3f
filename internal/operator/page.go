package operator

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"puntuale/internal/doctor"
)

// Path is the address of the page.
const Path = "/operator"

const stylePath = Path + ".css"

// Report is everything that the page shows.
type Report struct {
	At       time.Time
	Version  string
	Database string
	Roles    []string
	Findings []doctor.Finding
	Figures  []Count // of the whole installation
	Nodes    []Row
	Servers  []Row // all servers of the installation, by version and roles
	Sessions []Row
	Tasks    []Row // transactions of this server, the slowest first
	Problem  string
}

// Count is a number with its name.
type Count struct {
	Name, Value, Note string
	Bad               bool // true: a person must look at it
}

// Row is a row of a table.
type Row struct {
	Cells []string
	Bad   bool
}

// Config configures a [Page].
type Config struct {
	Collect func(context.Context) Report // takes at most a minute; one call runs at a time
	Now     func() time.Time
	Logger  *slog.Logger
}

// Page answers requests for the operator's page. It is safe for concurrent use.
type Page struct {
	cfg Config

	mu   sync.Mutex // locked while a report is collected; requests that wait for it get the same report
	last Report
}

// New returns a page.
func New(cfg Config) *Page { return &Page{cfg: cfg} }

// reportHolds is how long a report is used for all requests, because it asks the database and other servers.
const reportHolds = 15 * time.Second

//go:embed page.html
var pageText string

//go:embed page.css
var styleText []byte

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"join": func(all []string) string { return strings.Join(all, ", ") },
	"time": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 MST") },
}).Parse(pageText))

// policy lets the page load its style, and nothing else.
const policy = "default-src 'none'; style-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Takes reports whether the page answers this path.
func Takes(path string) bool { return path == Path || path == stylePath }

func (p *Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-store")
	if strings.TrimSuffix(r.URL.Path, "/") == stylePath {
		h.Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(styleText)
		return
	}
	report := p.report(r.Context())
	var page bytes.Buffer
	if err := pageTemplate.Execute(&page, view{report, worst(report.Findings)}); err != nil {
		p.cfg.Logger.Error("the operator's page could not be written", "error", err)
		http.Error(w, "The page could not be written.", http.StatusInternalServerError)
		return
	}
	h.Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(page.Bytes())
}

// view is a report with what the template needs besides.
type view struct {
	Report
	Worst []doctor.Finding // the faults, which stand at the top
}

func (v view) Title() string {
	if n := len(v.Worst); n > 0 {
		return fmt.Sprintf("Puntuale (%d)", n)
	}
	return "Puntuale"
}

func worst(all []doctor.Finding) (faults []doctor.Finding) {
	return slices.DeleteFunc(slices.Clone(all), func(f doctor.Finding) bool { return f.Level != doctor.Fault })
}

func (p *Page) report(ctx context.Context) Report {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := p.cfg.Now(); p.last.At.IsZero() || now.Sub(p.last.At) >= reportHolds || now.Before(p.last.At) {
		p.last = p.cfg.Collect(context.WithoutCancel(ctx))
		p.last.At = p.cfg.Now()
	}
	return p.last
}
