// Package archtest checks the rules of the architecture in a test. The rules say which package may import which, which
// package may use a third-party library, and which package may read the clock. A rule must not allow an import that no
// file needs. Every package must have a comment that says what it is for. File names and lengths, structs and interfaces
// have limits. The package reads the source files themselves, with any build tags. It needs only the standard library.
package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Module is the beginning of the import path of every package in this module.
const Module = "puntuale"

// Largest sizes of files in lines, and of a folder in files. Generated files are not counted.
const (
	maxFile     = 600
	maxTestFile = 800
	maxFunction = 80
	maxFolder   = 45 // files that are neither tests nor generated
)

// Rule says which packages a package, and the packages below it, may import. If several rules match, the rule with the
// longest path applies.
type Rule struct {
	Package string   // path relative to the module; "." is the root
	Module  []string // packages of this module, and the packages below each; "..." means all
	Library []string // third-party modules; "*" means every module that is not in Owners
	Never   []string // packages of the standard library, and the packages below each, that must not be imported
}

// Rules is the import table of the architecture. An import that it does not list is forbidden. A package that no rule
// matches is a breach, even if it imports nothing. A package for tests may import everything, unless it has a rule of its
// own. Files that end in _test.go may always import everything. Unused finds the entries that no file needs.
var Rules = []Rule{
	{Package: ".", Never: []string{"net", "os", "database", "io/fs", "syscall"}},
	{Package: "internal/plan", Module: []string{".", "internal/keyword"}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/booking", Module: []string{".", "internal/keyword"}, Never: []string{"net", "os", "database"}},
	{Package: "internal/clock"},
	{Package: "internal/semaphore"},
	{Package: "internal/batch"},
	{Package: "internal/roster", Module: []string{"."}, Library: []string{"*"}, Never: []string{"net/http", "database"}},
	{Package: "internal/campaign", Module: []string{".", "internal/clock", "internal/plan"}, Never: []string{"net/http", "database"}},
	{Package: "internal/replan", Module: []string{".", "internal/clock"}, Never: []string{"net", "os", "database"}},
	{Package: "internal/automation", Module: []string{".", "internal/clock", "internal/keyword", "internal/payload", "internal/plan"}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/automation/yeartest", Never: []string{"net", "os", "database"}}, // its model must not use the product's code
	{Package: "internal/catalogue", Module: []string{"."}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/eventjson", Module: []string{".", "internal/catalogue"}, Never: []string{"net", "os", "database"}},
	{Package: "internal/calendar", Module: []string{".", "internal/clock", "internal/icalendar", "internal/media", "internal/outside", "internal/phone"}, Never: []string{"os", "database"}},
	{Package: "internal/icalendar", Never: []string{"net", "os", "database"}},
	{Package: "internal/phone", Never: []string{"net", "os", "database"}},
	{Package: "internal/keyword", Library: []string{"golang.org/x/text"}, Never: []string{"net", "os", "database"}},
	{Package: "internal/payload", Never: []string{"net/http", "os", "database"}},
	{Package: "internal/preset", Module: []string{".", "internal/payload"}, Never: []string{"net", "os", "database"}},
	{Package: "internal/draft", Module: []string{"."}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/price", Module: []string{"."}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/auth", Module: []string{".", "internal/clock", "internal/semaphore"}, Never: []string{"net/http"}},
	{Package: "internal/outside", Module: []string{".", "internal/payload"}, Never: []string{"database"}},
	{Package: "internal/media", Module: []string{".", "internal/clock", "internal/file", "internal/semaphore"}},
	{Package: "internal/connector", Module: []string{".", "internal/clock", "internal/connector/aliascache", "internal/connector/replyfile", "internal/file", "internal/outside"}, Library: []string{"*"}},
	{Package: "internal/store", Module: []string{".", "internal/clock"}, Library: []string{"*"}, Never: []string{"net/http"}},
	{Package: "internal/store/alias", Module: []string{".", "internal/store/engine"}, Never: []string{"net/http"}},
	{Package: "internal/store/engine", Module: []string{".", "internal/clock", "internal/semaphore", "internal/store/migration"}, Library: []string{"golang.org/x/sys"}, Never: []string{"net/http"}},
	{Package: "internal/store/file", Module: []string{".", "internal/store/engine", "internal/store/outbox"}, Never: []string{"net/http"}},
	{Package: "internal/store/calendar", Module: []string{".", "internal/store/engine", "internal/store/fleet", "internal/store/notice"}, Never: []string{"net/http"}},
	{Package: "internal/store/health", Module: []string{".", "internal/store/alias", "internal/store/engine", "internal/store/notice", "internal/store/outbox"}, Never: []string{"net/http"}},
	{Package: "internal/store/link", Module: []string{".", "internal/store/engine", "internal/store/outbox", "internal/store/result"}, Never: []string{"net/http"}},
	{Package: "internal/store/notice", Module: []string{".", "internal/store/engine"}, Never: []string{"net/http"}},
	{Package: "internal/store/result", Module: []string{".", "internal/store/engine"}, Never: []string{"net/http"}},
	{Package: "internal/store/outbox", Module: []string{".", "internal/store/engine", "internal/store/notice", "internal/store/result"}, Never: []string{"net/http"}},
	{Package: "internal/store/statement", Module: []string{".", "internal/price", "internal/store/engine", "internal/store/outbox", "internal/store/queue"}, Never: []string{"net/http"}},
	{Package: "internal/store/event", Module: []string{".", "internal/store/alias", "internal/store/engine", "internal/store/file", "internal/store/fleet", "internal/store/outbox", "internal/store/queue"}, Never: []string{"net/http"}},
	{Package: "internal/store/fleet", Module: []string{".", "internal/clock", "internal/store/engine", "internal/store/outbox"}, Never: []string{"net/http"}},
	{Package: "internal/store/queue", Module: []string{".", "internal/store/alias", "internal/store/engine", "internal/store/fleet", "internal/store/link", "internal/store/notice", "internal/store/outbox", "internal/store/result"}, Never: []string{"net/http"}},
	{Package: "internal/store/automation", Module: []string{".", "internal/store/alias", "internal/store/engine", "internal/store/outbox", "internal/store/queue"}, Never: []string{"net/http"}},
	{Package: "internal/store/person", Module: []string{".", "internal/store/alias", "internal/store/engine", "internal/store/outbox", "internal/store/queue"}, Library: []string{"*"}, Never: []string{"net/http"}},
	{Package: "internal/store/retention", Module: []string{".", "internal/store/alias", "internal/store/automation", "internal/store/engine", "internal/store/file", "internal/store/link", "internal/store/outbox", "internal/store/person", "internal/store/queue", "internal/store/result", "internal/store/statement"}, Never: []string{"net/http"}},
	{Package: "internal/store/account", Module: []string{".", "internal/store/engine", "internal/store/event", "internal/store/fleet", "internal/store/notice", "internal/store/outbox", "internal/store/queue", "internal/store/result", "internal/store/statement"}, Never: []string{"net/http"}},
	{Package: "internal/store/reply", Module: []string{".", "internal/store/account", "internal/store/alias", "internal/store/engine", "internal/store/file", "internal/store/fleet", "internal/store/notice", "internal/store/outbox", "internal/store/queue", "internal/store/result"}, Never: []string{"net/http"}},
	{Package: "internal/store/archive", Module: []string{"internal/store/engine"}, Never: []string{"net/http"}},
	{Package: "internal/store/archiver", Module: []string{".", "internal/store/archive", "internal/store/engine", "internal/store/migration", "internal/store/queue", "internal/store/result", "internal/store/retention", "internal/store/statement"}, Never: []string{"net/http"}},
	{Package: "internal/store/sealed", Module: []string{".", "internal/store/engine", "internal/store/transfer"}, Never: []string{"net/http"}},
	{Package: "internal/store/transfer", Module: []string{".", "internal/clock", "internal/store/archive", "internal/store/engine", "internal/store/file", "internal/store/fleet", "internal/store/migration", "internal/store/outbox", "internal/store/queue", "internal/store/person", "internal/store/result"}, Never: []string{"net/http"}},
	{Package: "internal/file", Module: []string{"."}, Never: []string{"net", "os", "database"}},
	{Package: "internal/control", Module: []string{".", "internal/file", "internal/automation", "internal/booking", "internal/clock", "internal/plan", "internal/auth", "internal/campaign", "internal/draft", "internal/keyword", "internal/roster", "internal/price", "internal/semaphore"}, Library: []string{"*"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/request", Module: []string{".", "internal/phone", "internal/plan"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/upload", Module: []string{".", "internal/roster", "internal/semaphore"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/account", Module: []string{".", "internal/auth", "internal/clock", "internal/control", "internal/control/request"}, Library: []string{"*"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/calendar", Module: []string{".", "internal/auth", "internal/calendar", "internal/clock", "internal/control", "internal/control/request"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/result", Module: []string{".", "internal/control"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/link", Module: []string{".", "internal/clock"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/bookings", Module: []string{".", "internal/booking", "internal/control", "internal/plan", "internal/roster"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/search", Module: []string{".", "internal/control", "internal/control/account", "internal/control/request"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/statement", Module: []string{".", "internal/clock", "internal/control", "internal/control/account", "internal/control/request", "internal/price"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/webhook", Module: []string{".", "internal/auth", "internal/clock", "internal/control", "internal/control/request", "internal/semaphore"}, Never: []string{"net/http", "database"}},
	{Package: "internal/control/automation", Module: []string{".", "internal/auth", "internal/automation", "internal/clock", "internal/control", "internal/control/request", "internal/keyword", "internal/payload", "internal/preset"}, Never: []string{"net/http", "database"}},
	{Package: "internal/dispatch", Module: []string{".", "internal/batch", "internal/clock"}, Library: []string{"*"}, Never: []string{"net/http", "database"}},
	{Package: "internal/dispatch/lookahead", Module: []string{"."}, Never: []string{"net/http", "os", "database", "sync"}},
	{Package: "internal/session", Module: []string{".", "internal/clock"}, Never: []string{"net/http", "database"}},
	{Package: "internal/intake", Module: []string{".", "internal/booking", "internal/clock", "internal/keyword", "internal/semaphore"}, Never: []string{"net/http", "database"}},
	{Package: "internal/httpkit", Module: []string{".", "internal/catalogue", "internal/payload"}, Never: []string{"database"}},
	{Package: "internal/httpkit/admission", Module: []string{".", "internal/outside"}, Library: []string{"*"}, Never: []string{"database"}},
	{Package: "internal/hook", Module: []string{".", "internal/catalogue", "internal/control/automation", "internal/httpkit"}, Never: []string{"database"}},
	{Package: "internal/httpapi", Module: []string{".", "internal/catalogue", "internal/control", "internal/auth", "internal/draft", "internal/eventjson", "internal/httpkit", "internal/payload"}, Never: []string{"database"}},
	{Package: "internal/httpapi/docs", Module: []string{".", "internal/control/account", "internal/httpkit"}, Never: []string{"database"}},
	{Package: "internal/web", Never: []string{"database"}},
	{Package: "internal/web/page", Module: []string{".", "internal/clock", "internal/control", "internal/httpkit", "internal/web/language", "internal/web/static", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/automation", Module: []string{".", "internal/control", "internal/payload", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/booking", Module: []string{".", "internal/control", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/calendar", Module: []string{".", "internal/control", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/campaign", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/file", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/link", Module: []string{".", "internal/web/page"}, Never: []string{"database"}},
	{Package: "internal/web/message", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/account", Module: []string{".", "internal/control", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/person", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/sequence", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/result", Module: []string{".", "internal/control", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/search", Module: []string{".", "internal/control/search", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/statement", Module: []string{".", "internal/control/statement", "internal/httpkit", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/session", Module: []string{".", "internal/control", "internal/draft", "internal/httpkit", "internal/web/page", "internal/web/static", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/signin", Module: []string{".", "internal/control/account", "internal/httpkit", "internal/web/language", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/confirm", Module: []string{".", "internal/control", "internal/web/language", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/webhook", Module: []string{".", "internal/control", "internal/web/page", "internal/web/view"}, Never: []string{"database"}},
	{Package: "internal/web/view", Module: []string{".", "internal/web/language", "internal/web/static"}, Never: []string{"net/http", "database"}},
	{Package: "internal/web/language", Module: []string{".", "internal/catalogue"}, Library: []string{"*"}, Never: []string{"net/http", "database"}},
	{Package: "internal/web/static", Module: []string{"internal/httpkit"}, Never: []string{"database"}},
	{Package: "internal/logging", Module: []string{"internal/clock"}, Never: []string{"database"}},
	{Package: "internal/metrics", Module: []string{".", "internal/clock"}, Never: []string{"database"}},
	{Package: "internal/datakey", Module: []string{".", "internal/auth", "internal/clock"}, Never: []string{"net/http", "os", "database"}},
	{Package: "internal/backup", Module: []string{".", "internal/clock", "internal/objectstore"}, Never: []string{"database"}},
	{Package: "internal/objectstore", Module: []string{".", "internal/clock", "internal/localfile"}, Library: []string{"*"}, Never: []string{"database"}},
	{Package: "internal/doctor", Module: []string{"."}, Library: []string{"golang.org/x/sys"}, Never: []string{"database"}},
	{Package: "internal/operator", Module: []string{"internal/doctor"}, Never: []string{"database"}},
	{Package: "internal/diskspace", Library: []string{"golang.org/x/sys"}, Never: []string{"net", "database"}},
	{Package: "internal/localfile", Library: []string{"golang.org/x/sys"}, Never: []string{"net", "database"}},
	{Package: "internal/terminal", Module: []string{"internal/clock"}, Library: []string{"golang.org/x/term"}, Never: []string{"net", "database"}},
	{Package: "internal/demo", Module: []string{".", "internal/catalogue", "internal/control/account", "internal/terminal", "internal/outside"}, Never: []string{"database"}},
	{Package: "internal/campaigncommand", Module: []string{".", "internal/client", "internal/clock", "internal/localfile", "internal/terminal"}, Never: []string{"database"}},
	{Package: "internal/chatwoot", Module: []string{".", "internal/catalogue", "internal/clock", "internal/outside"}, Never: []string{"database"}},
	{Package: "internal/delivery", Module: []string{".", "internal/batch", "internal/clock", "internal/eventjson", "internal/media", "internal/outside"}, Never: []string{"database"}},
	{Package: "internal/clamd", Module: []string{"."}, Never: []string{"database", "net/http"}},
	{Package: "internal/mail", Module: []string{".", "internal/catalogue", "internal/clock", "internal/outside"}, Library: []string{"*"}, Never: []string{"database", "net/http"}},
	{Package: "internal/push", Module: []string{".", "internal/clock", "internal/outside"}, Library: []string{"*"}, Never: []string{"database"}},
	{Package: "internal/certificate", Module: []string{".", "internal/auth", "internal/outside"}, Library: []string{"golang.org/x/crypto"}, Never: []string{"os", "database"}},
	{Package: "internal/client", Module: []string{"internal/clock", "internal/outside"}, Never: []string{"database"}},
	{Package: "internal/devicecommand", Module: []string{"internal/client", "internal/clock"}, Never: []string{"database", "net/http"}},
	{Package: "internal/archtest"},
	{Package: "internal/budget"},
	{Package: "internal/e2e"},
	{Package: "internal/manual", Never: []string{"net", "os", "database"}},
	{Package: "scripts"},
	{Package: "scripts/examples", Module: []string{"internal/manual"}, Never: []string{"net", "database"}},
	{Package: "cmd", Module: []string{"..."}, Library: []string{"golang.org/x/net"}},
}

// Owners names the only packages that may use a library, and the packages below each. Most libraries have one owner.
// Therefore such a library can be replaced without changes elsewhere. docs/decisions/code.md lists the same owners.
var Owners = map[string][]string{
	"github.com/danielgtaylor/huma":     {"internal/httpapi"},
	"github.com/jackc/pgx":              {"internal/store"},
	"modernc.org/sqlite":                {"internal/store"},
	"github.com/pressly/goose":          {"internal/store"},
	"github.com/alexedwards/argon2id":   {"internal/auth"},
	"github.com/alecthomas/kong":        {"cmd"},
	"github.com/pelletier/go-toml":      {"cmd", "internal/catalogue", "internal/web/language"},
	"github.com/nicksnyder/go-i18n":     {"internal/web/language"},
	"github.com/alexedwards/scs":        {"internal/web"},
	"github.com/a-h/templ":              {"internal/web"},
	"rsc.io/qr":                         {"internal/web/view", "cmd"},
	"github.com/lmittmann/tint":         {"internal/logging"},
	"github.com/mattn/go-isatty":        {"cmd"},
	"github.com/nyaruka/phonenumbers":   {"internal/control", "internal/phone", "internal/price", "internal/web/view"},
	"github.com/prometheus":             {"internal/metrics"},
	"github.com/teambition/rrule-go":    {"internal/icalendar"},
	"code.dny.dev/ssrf":                 {"internal/media"},
	"go.mau.fi":                         {"internal/connector/socket"},
	"google.golang.org/protobuf":        {"internal/connector/socket"},
	"github.com/liyue201/goqr":          {"internal/connector/sendapp"},
	"github.com/SherClockHolmes":        {"internal/push"},
	"github.com/wneessen/go-mail":       {"internal/mail"},
	"filippo.io/age":                    {"internal/backup"},
	"github.com/minio/minio-go":         {"internal/objectstore"},
	"github.com/yuin/goldmark":          {"internal/chatwoot"},
	"github.com/chromedp":               {}, // only tests use it
	"github.com/coder/websocket":        {},
	"github.com/getkin/kin-openapi":     {},
	"github.com/google/go-cmp":          {},
	"go.uber.org/goleak":                {},
	"go.yaml.in/yaml":                   {},
	"pgregory.net/rapid":                {},
	"github.com/anishathalye/porcupine": {},
	"github.com/standard-webhooks":      {},
	"github.com/emersion":               {},
	"github.com/santhosh-tekuri":        {},
	"github.com/xuri/excelize":          {},
}

// templateNever lists packages that a template must not import, even if the template's package may import them. A
// template only shows the data that a handler gives it.
var templateNever = []string{"net/http", "database", "puntuale/internal/control", "puntuale/internal/httpkit", "puntuale/internal/web/page"}

// clockReaders are the functions of package time that read the machine's clock or wait. Only internal/clock may call
// them.
var clockReaders = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// emptyWords are names of files and packages that say nothing about the content.
var emptyWords = []string{"util", "utils", "common", "helper", "helpers", "model", "models", "type", "types", "misc", "shared", "base", "lib"}

// Check reads the Go files of a module's tree. It returns every breach of the rules, sorted, in the form "file:line:
// what".
func Check(tree fs.FS, rules []Rule, owners map[string][]string) ([]string, error) {
	c := &checker{rules: rules, owners: owners, folders: map[string]bool{}, documented: map[string]bool{}, files: map[string]int{}}
	if err := walk(tree, c.file); err != nil {
		return nil, err
	}
	for folder, documented := range c.documented {
		if !documented {
			c.report(folder, 0, "no file says what the package is for (a comment above its package clause)")
		}
	}
	for folder := range c.folders {
		if _, ok := c.rule(folder); !ok {
			c.report(folder, 0, "the import table has no row for %s", folder)
		}
	}
	for folder, count := range c.files {
		if count > maxFolder {
			c.report(folder, 0, "%d files, %d are allowed: give a noun its own package", count, maxFolder)
		}
	}
	slices.Sort(c.breaches)
	return c.breaches, nil
}

// walk gives the name and the text of every Go file of a module's tree to visit.
func walk(tree fs.FS, visit func(name string, source []byte) error) error {
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if ownModule(tree, name) || name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || strings.HasPrefix(entry.Name(), "puntuale-")) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		source, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		return visit(name, source)
	})
	if err != nil {
		return fmt.Errorf("read the module's sources: %w", err)
	}
	return nil
}

// ownModule reports whether a folder below the root is a separate module, such as the bench.
func ownModule(tree fs.FS, folder string) bool {
	if folder == "." {
		return false
	}
	_, err := fs.Stat(tree, path.Join(folder, "go.mod"))
	return err == nil
}

type checker struct {
	rules      []Rule
	owners     map[string][]string
	folders    map[string]bool // folders with a Go file of any kind
	documented map[string]bool // folders with a file that is not a test; true: one that is not generated has a package comment
	files      map[string]int  // number of files in each folder that count for maxFolder
	interfaces int             // number of interfaces of the root
	breaches   []string
}

func (c *checker) report(file string, line int, format string, args ...any) {
	c.breaches = append(c.breaches, fmt.Sprintf("%s:%d: %s", file, line, fmt.Sprintf(format, args...)))
}

func (c *checker) file(name string, source []byte) error {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parse %s: %w", name, err)
	}
	line := func(at token.Pos) int { return files.Position(at).Line }
	folder, isTest := path.Dir(name), strings.HasSuffix(name, "_test.go")
	c.folders[folder] = true
	c.checkName(name, parsed.Name.Name)
	generated := ast.IsGenerated(parsed)
	if !generated {
		c.checkSize(name, isTest || testPackage(folder), parsed, line)
	}
	c.checkShape(name, folder, parsed, line)
	if isTest {
		return nil
	}
	if !generated {
		c.files[folder]++
	}
	// templ writes its version above the package clause, where the parser expects the package's comment.
	c.documented[folder] = c.documented[folder] || !generated && parsed.Doc.Text() != ""
	for _, spec := range parsed.Imports {
		target, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("parse %s: %w", name, err)
		}
		c.checkImport(name, folder, target, line(spec.Pos()))
	}
	if folder != "internal/clock" && !testPackage(folder) {
		c.checkClock(name, parsed, line)
	}
	if folder != "internal/httpkit/admission" && !testPackage(folder) {
		c.checkBodies(name, parsed, line)
	}
	return nil
}

// testPackage reports whether a package is used only by tests, such as a conformance suite.
func testPackage(folder string) bool {
	return strings.HasSuffix(folder, "test") && folder != "internal/archtest" || folder == "internal/e2e"
}

func (c *checker) checkName(name, pkg string) {
	word := strings.TrimSuffix(strings.TrimSuffix(path.Base(name), ".go"), "_test")
	if slices.Contains(emptyWords, word) {
		c.report(name, 1, "the file's name does not say what is in it")
	}
	if slices.Contains(emptyWords, pkg) {
		c.report(name, 1, "the package's name does not say what is in it")
	}
}

func (c *checker) checkSize(name string, isTest bool, parsed *ast.File, line func(token.Pos) int) {
	limit := maxFile
	if isTest {
		limit = maxTestFile
	}
	if n := line(parsed.FileEnd - 1); n > limit {
		c.report(name, n, "%d lines, %d are allowed: split it by noun", n, limit)
	}
	if isTest {
		return
	}
	for _, d := range parsed.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && line(f.End())-line(f.Pos()) > maxFunction {
			c.report(name, line(f.Pos()), "%s has %d lines, %d are allowed", f.Name.Name, line(f.End())-line(f.Pos()), maxFunction)
		}
	}
}

func (c *checker) checkImport(name, folder, target string, at int) {
	own, isOwn, isLibrary := kind(target)
	rule, ok := c.rule(folder)
	switch {
	case !ok || exempt(folder, rule):
	case isOwn && testPackage(own) && !testPackage(folder):
		c.report(name, at, "imports %s, which is for tests", target)
	case below(target, "testing") && !testPackage(folder): // it adds flags to the program
		c.report(name, at, "imports %s, which is for tests", target)
	case isOwn && !below(own, folder) && !allowed(own, rule.Module):
		c.report(name, at, "%s may not import %s", folder, target)
	case isLibrary && !c.libraryAllowed(folder, target, rule):
		c.report(name, at, "%s may not import %s", folder, target)
	case strings.HasSuffix(name, "_templ.go") && slices.ContainsFunc(templateNever, func(p string) bool { return below(target, p) }):
		c.report(name, at, "a template may not import %s", target)
	case !isOwn && !isLibrary && slices.ContainsFunc(rule.Never, func(p string) bool { return below(target, p) }):
		c.report(name, at, "%s may not import %s", folder, target)
	}
}

// kind says whether an import is a package of this module, whose path relative to the module is own, or is from a
// third-party module. Otherwise it is from the standard library.
func kind(target string) (own string, isOwn, isLibrary bool) {
	if below(target, Module) {
		return path.Clean("." + strings.TrimPrefix(target, Module)), true, false
	}
	first, _, _ := strings.Cut(target, "/")
	return "", false, strings.Contains(first, ".")
}

// exempt reports whether a folder may import everything. That is so for packages for tests, unless the rule that matches
// is for exactly this package.
func exempt(folder string, rule Rule) bool { return testPackage(folder) && rule.Package != folder }

func (c *checker) rule(folder string) (Rule, bool) { return ruleFor(c.rules, folder) }

// ruleFor returns the rule with the longest path that matches the folder.
func ruleFor(rules []Rule, folder string) (best Rule, found bool) {
	for _, r := range rules {
		if folder == r.Package || r.Package != "." && below(folder, r.Package) {
			if !found || len(r.Package) > len(best.Package) {
				best, found = r, true
			}
		}
	}
	return best, found
}

// allowed reports whether a rule's list names a package of this module. In the list, "." means only the root.
func allowed(own string, list []string) bool {
	return slices.ContainsFunc(list, func(p string) bool {
		return p == "..." || own == p || p != "." && below(own, p)
	})
}

func (c *checker) libraryAllowed(folder, target string, rule Rule) bool {
	for library, owners := range c.owners {
		if below(target, library) {
			return slices.ContainsFunc(owners, func(o string) bool { return below(folder, o) })
		}
	}
	return slices.ContainsFunc(rule.Library, func(l string) bool { return l == "*" || below(target, l) })
}

// below reports whether name is the path parent, or is inside it.
func below(name, parent string) bool { return name == parent || strings.HasPrefix(name, parent+"/") }

// checkClock finds uses of the clock through package time, under any import name.
func (c *checker) checkClock(name string, parsed *ast.File, line func(token.Pos) int) {
	alias := ""
	for _, spec := range parsed.Imports {
		if spec.Path.Value == `"time"` {
			alias = "time"
			if spec.Name != nil {
				alias = spec.Name.Name
			}
		}
	}
	if alias == "" {
		return
	}
	if alias == "." {
		c.report(name, 1, "imports time with a dot, which hides who reads the clock")
		return
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := s.X.(*ast.Ident); ok && x.Name == alias && slices.Contains(clockReaders, s.Sel.Name) {
			c.report(name, line(s.Pos()), "%s.%s outside internal/clock", alias, s.Sel.Name)
		}
		return true
	})
}
