package archtest

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
)

// TestThisModule checks the rules on this module: there must be no breach.
func TestThisModule(t *testing.T) {
	t.Parallel()
	breaches, err := Check(os.DirFS("../.."), Rules, Owners)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range breaches {
		t.Error(b)
	}
}

const doc = "// Package p is documented.\n"

// TestBreachesAreFound shows that the checker can fail. It has one small tree for each rule.
func TestBreachesAreFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file, source string
		want         string // part of the only breach that must be found; "": there must be none
	}{
		"clean":                        {"internal/plan/build.go", doc + "package plan\nimport \"puntuale\"\nvar _ puntuale.State\n", ""},
		"plan imports the store":       {"internal/plan/build.go", doc + "package plan\nimport _ \"puntuale/internal/store\"\n", "may not import puntuale/internal/store"},
		"the root does I/O":            {"message.go", doc + "package puntuale\nimport _ \"net/url\"\n", "may not import net/url"},
		"the root imports a library":   {"message.go", doc + "package puntuale\nimport _ \"github.com/google/uuid\"\n", "may not import github.com/google/uuid"},
		"the root imports inside":      {"message.go", doc + "package puntuale\nimport _ \"puntuale/internal/clock\"\n", "may not import puntuale/internal/clock"},
		"dispatch imports control":     {"internal/dispatch/loop.go", doc + "package dispatch\nimport _ \"puntuale/internal/control\"\n", "may not import puntuale/internal/control"},
		"dispatch speaks HTTP":         {"internal/dispatch/loop.go", doc + "package dispatch\nimport _ \"net/http\"\n", "may not import net/http"},
		"control names a connector":    {"internal/control/start.go", doc + "package control\nimport _ \"puntuale/internal/connector/sandbox\"\n", "may not import"},
		"a store's own part":           {"internal/store/open.go", doc + "package store\nimport _ \"puntuale/internal/store/migration\"\nimport _ \"github.com/jackc/pgx/v5\"\n", ""},
		"pgx outside the store":        {"internal/dispatch/loop.go", doc + "package dispatch\nimport _ \"github.com/jackc/pgx/v5\"\n", "may not import github.com/jackc/pgx/v5"},
		"a test library in the code":   {"internal/store/open.go", doc + "package store\nimport _ \"go.uber.org/goleak\"\n", "may not import go.uber.org/goleak"},
		"a suite in the code":          {"cmd/puntuale/serve.go", doc + "package main\nimport _ \"puntuale/internal/store/storetest\"\n", "is for tests"},
		"whatsmeow outside its part":   {"internal/control/link.go", doc + "package control\nimport _ \"go.mau.fi/whatsmeow/types\"\n", "may not import go.mau.fi/whatsmeow/types"},
		"a loopback in the code":       {"internal/connector/socket/socket.go", doc + "package socket\nimport _ \"puntuale/internal/connector/socket/whatsapptest\"\n", "is for tests"},
		"a package without a row":      {"internal/novelty/novelty.go", doc + "package novelty\nimport _ \"fmt\"\n", "has no row"},
		"cmd may import everything":    {"cmd/puntuale/serve.go", doc + "package main\nimport _ \"puntuale/internal/store\"\nimport _ \"net/http\"\n", ""},
		"a test may import everything": {"internal/plan/build_test.go", "package plan\nimport _ \"puntuale/internal/store\"\nimport \"time\"\nvar _ = time.Now()\n", ""},
		"a template asks control":      {"internal/web/message/home_templ.go", doc + "package message\nimport _ \"puntuale/internal/control\"\n", "a template may not import puntuale/internal/control"},
		"a template speaks HTTP":       {"internal/web/message/home_templ.go", doc + "package message\nimport _ \"net/http\"\n", "a template may not import net/http"},
		"a feature imports another":    {"internal/web/message/home.go", doc + "package message\nimport _ \"puntuale/internal/web/session\"\n", "may not import puntuale/internal/web/session"},
		"time.Now":                     {"internal/plan/build.go", doc + "package plan\nimport \"time\"\nvar _ = time.Now()\n", "time.Now outside"},
		"time.Since, renamed":          {"internal/plan/build.go", doc + "package plan\nimport t \"time\"\nvar _ = t.Since\n", "t.Since outside"},
		"time by a dot":                {"internal/plan/build.go", doc + "package plan\nimport . \"time\"\nvar _ = Now\n", "with a dot"},
		"another package's Now":        {"internal/control/start.go", doc + "package control\nimport time \"puntuale/internal/clock\"\nvar _ = time.Now\n", ""},
		"the clock itself":             {"internal/clock/clock.go", doc + "package clock\nimport \"time\"\nvar _ = time.Now()\n", ""},
		"no package comment":           {"internal/plan/build.go", "package plan\n", "says what the package is for"},
		"util.go":                      {"internal/plan/util.go", doc + "package plan\n", "name does not say"},
		"package helpers":              {"internal/plan/plan.go", doc + "package helpers\n", "package's name does not say"},
		"a long file":                  {"internal/plan/build.go", doc + "package plan\n" + strings.Repeat("\n", 700), "702 lines, 600 are allowed"},
		"a long function":              {"internal/plan/build.go", doc + "package plan\nfunc f() {" + strings.Repeat("\n", 90) + "}\n", "f has 90 lines"},
		"a struct of 20 fields":        {"internal/dispatch/loop.go", doc + "package dispatch\ntype t struct {" + strings.Repeat("a, b int\n", 10) + "}\n", ""},
		"a struct of 21 fields":        {"internal/dispatch/lookahead/state.go", doc + "package lookahead\ntype t struct {" + strings.Repeat("a, b int\n", 10) + "c\n}\n", "t has 21 fields"},
		"a wide struct elsewhere":      {"internal/plan/build.go", doc + "package plan\ntype t struct {" + strings.Repeat("a, b int\n", 20) + "}\n", ""},
		"a wide interface":             {"internal/plan/build.go", doc + "package plan\ntype T interface {" + strings.Repeat("A()\n", 8) + "}\n", "T has 8 methods"},
		"a joined interface":           {"internal/plan/build.go", doc + "package plan\ntype T interface {" + strings.Repeat("A()\n", 7) + "B\n}\n", ""},
		"a wide role at the root":      {"store.go", doc + "package puntuale\ntype Queue interface {" + strings.Repeat("A()\n", 8) + "}\n", "Queue has 8 methods, 7 are allowed"},
		"dispatch's lookahead locks":   {"internal/dispatch/lookahead/state.go", doc + "package lookahead\nimport _ \"sync\"\n", "may not import sync"},
		"a generated long file":        {"internal/plan/build.go", "// Code generated by x. DO NOT EDIT.\n\n" + doc + "package plan\n" + strings.Repeat("\n", 700), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			breaches, err := Check(fstest.MapFS{test.file: {Data: []byte(test.source)}}, Rules, Owners)
			switch {
			case err != nil:
				t.Fatal(err)
			case test.want == "" && len(breaches) > 0:
				t.Errorf("found %q", breaches)
			case test.want != "" && (len(breaches) != 1 || !strings.Contains(breaches[0], test.want)):
				t.Errorf("found %q, want one that says %q", breaches, test.want)
			}
		})
	}
}

// TestFullFolderIsFound: a folder has at most maxFolder files. Tests and generated files do not count.
func TestFullFolderIsFound(t *testing.T) {
	t.Parallel()
	tree := fstest.MapFS{
		"internal/plan/build_test.go": {Data: []byte("package plan\n")},
		"internal/plan/made.go":       {Data: []byte("// Code generated by x. DO NOT EDIT.\n\npackage plan\n")},
	}
	for i := range maxFolder + 1 {
		tree[fmt.Sprintf("internal/plan/build%d.go", i)] = &fstest.MapFile{Data: []byte(doc + "package plan\n")}
	}
	breaches, err := Check(tree, Rules, Owners)
	if err != nil || len(breaches) != 1 || !strings.Contains(breaches[0], "46 files, 45 are allowed") {
		t.Errorf("found %q, %v", breaches, err)
	}
	delete(tree, "internal/plan/build0.go")
	if breaches, err = Check(tree, Rules, Owners); err != nil || len(breaches) > 0 {
		t.Errorf("found %q, %v", breaches, err)
	}
}

// TestEveryRuleHasItsOwnRow: no two rows of the table are for the same package.
func TestEveryRuleHasItsOwnRow(t *testing.T) {
	t.Parallel()
	var seen []string
	for _, r := range Rules {
		if slices.Contains(seen, r.Package) {
			t.Errorf("%s has two rows", r.Package)
		}
		seen = append(seen, r.Package)
	}
}
