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

// TestTablesAreAMap: this module uses every entry of the two tables.
func TestTablesAreAMap(t *testing.T) {
	t.Parallel()
	unused, err := Unused(os.DirFS("../.."), Rules, Owners)
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range unused {
		t.Error(u)
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
		"testing in the code":          {"internal/auth/password.go", doc + "package auth\nimport _ \"testing\"\n", "imports testing, which is for tests"},
		"whatsmeow outside its part":   {"internal/control/link.go", doc + "package control\nimport _ \"go.mau.fi/whatsmeow/types\"\n", "may not import go.mau.fi/whatsmeow/types"},
		"a loopback in the code":       {"internal/connector/socket/socket.go", doc + "package socket\nimport _ \"puntuale/internal/connector/socket/whatsapptest\"\n", "is for tests"},
		"a package without a row":      {"internal/novelty/novelty.go", doc + "package novelty\nimport _ \"fmt\"\n", "has no row"},
		"a package without imports":    {"internal/novelty/novelty.go", doc + "package novelty\n", "has no row"},
		"tests without a row":          {"internal/novelty/novelty_test.go", "package novelty\n", "has no row"},
		"the budgets import control":   {"internal/budget/doc.go", doc + "package budget\nimport _ \"puntuale/internal/control\"\n", "may not import puntuale/internal/control"},
		"e2e imports control":          {"internal/e2e/doc.go", doc + "package e2e\nimport _ \"puntuale/internal/control\"\n", "may not import puntuale/internal/control"},
		"the year's model cheats":      {"internal/automation/yeartest/year.go", doc + "package yeartest\nimport _ \"puntuale/internal/automation\"\n", "may not import puntuale/internal/automation"},
		"the year's model does I/O":    {"internal/automation/yeartest/year.go", doc + "package yeartest\nimport _ \"os\"\n", "may not import os"},
		"the year's test compares":     {"internal/automation/yeartest/year_test.go", "package yeartest\nimport _ \"puntuale/internal/automation\"\n", ""},
		"a suite without a rule":       {"internal/store/storetest/queue.go", doc + "package storetest\nimport _ \"puntuale/internal/dispatch\"\nimport _ \"net/http\"\n", ""},
		"workbooks in the code":        {"internal/roster/sheet.go", doc + "package roster\nimport _ \"github.com/xuri/excelize/v2\"\n", "may not import github.com/xuri/excelize/v2"},
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
		"headers without a bound":      {"internal/media/fetcher.go", doc + "package media\nimport \"net/http\"\nvar t = &http.Transport{}\n", "must set MaxResponseHeaderBytes"},
		"nobody pays":                  {"cmd/puntuale/push.go", doc + "package main\nimport \"puntuale/internal/push\"\nvar _ = push.Config{}\n", "must set Memory"},
		"a new payer":                  {"internal/push/push.go", doc + "package push\nimport \"puntuale/internal/outside\"\ntype Other struct{ M outside.MemoryGrants }\n", "push.Other is not in the list of payers"},
		"25 interfaces at the root":    {"store.go", doc + "package puntuale\n" + strings.Repeat("type T interface{ A() }\n", 25), ""},
		"26 interfaces at the root":    {"store.go", doc + "package puntuale\n" + strings.Repeat("type T interface{ A() }\n", 26), "T is one interface more than the 25"},
		"dispatch's lookahead locks":   {"internal/dispatch/lookahead/state.go", doc + "package lookahead\nimport _ \"sync\"\n", "may not import sync"},
		"a generated long file":        {"internal/plan/build.go", "// Code generated by x. DO NOT EDIT.\n\n" + doc + "package plan\n" + strings.Repeat("\n", 700), "says what the package is for"},
		"templ's version as a comment": {"internal/web/message/home_templ.go", "// Code generated by templ - DO NOT EDIT.\n\n// templ: version: v0.3.1020\npackage message\n", "says what the package is for"},
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

// TestUnusedEntriesAreFound shows that the check of the tables can fail. It has one small module for each kind of entry.
func TestUnusedEntriesAreFound(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{"github.com/a/owned": {"internal/store"}, "github.com/a/fortests": {}}
	tree := fstest.MapFS{
		"state.go":                        {Data: []byte("package puntuale\n")},
		"internal/plan/build.go":          {Data: []byte("package plan\nimport _ \"puntuale\"\n")},
		"internal/plan/build_test.go":     {Data: []byte("package plan\nimport _ \"puntuale/internal/store\"\nimport _ \"golang.org/x/text\"\n")},
		"internal/store/open.go":          {Data: []byte("package store\nimport _ \"puntuale/internal/store/engine\"\nimport _ \"github.com/a/owned/v2\"\n")},
		"internal/store/engine/lock.go":   {Data: []byte("package engine\nimport _ \"puntuale\"\nimport _ \"golang.org/x/sys/unix\"\n")},
		"internal/store/storetest/all.go": {Data: []byte("package storetest\nimport _ \"puntuale/internal/plan\"\nimport _ \"github.com/a/fortests\"\n")},
		"cmd/puntuale/main.go":            {Data: []byte("package main\nimport _ \"puntuale/internal/store/engine\"\n")},
	}
	for name, test := range map[string]struct {
		rule   Rule                // replaces the row of its package
		owners map[string][]string // nil: owners
		want   string              // the only fault that must be found; "": there must be none
	}{
		"all are used":            {Rule{Package: "internal/plan", Module: []string{"."}}, nil, ""},
		"only a test imports":     {Rule{Package: "internal/plan", Module: []string{".", "internal/store"}}, nil, "internal/plan may import internal/store, but no file does"},
		"only a suite imports":    {Rule{Package: "internal/store", Module: []string{"internal/plan"}}, nil, "internal/store may import internal/plan, but no file does"},
		"the suite's own row":     {Rule{Package: "internal/store/storetest", Module: []string{"internal/plan"}}, nil, ""},
		"a part of the package":   {Rule{Package: "internal/store", Module: []string{"internal/store/engine"}}, nil, "internal/store may import internal/store/engine, but no file does"},
		"a lower row's import":    {Rule{Package: "internal/store", Module: []string{"."}}, nil, "internal/store may import ., but no file does"},
		"too wide":                {Rule{Package: "cmd", Module: []string{"internal/store"}}, nil, "cmd may import internal/store, but no file does"},
		"everything":              {Rule{Package: "cmd", Module: []string{"..."}}, nil, ""},
		"any library":             {Rule{Package: "internal/store/engine", Module: []string{"."}, Library: []string{"*"}}, nil, ""},
		"a library":               {Rule{Package: "internal/store/engine", Module: []string{"."}, Library: []string{"golang.org/x/sys"}}, nil, ""},
		"another library":         {Rule{Package: "internal/store/engine", Module: []string{"."}, Library: []string{"golang.org/x/term"}}, nil, "internal/store/engine may import golang.org/x/term, but no file does"},
		"only an owned library":   {Rule{Package: "internal/store", Library: []string{"*"}}, nil, "internal/store may import *, but no file does"},
		"only a test's library":   {Rule{Package: "internal/plan", Module: []string{"."}, Library: []string{"*"}}, nil, "internal/plan may import *, but no file does"},
		"a package that is gone":  {Rule{Package: "internal/novelty"}, nil, "internal/novelty has a row in the import table, but there is no such package"},
		"an owner without use":    {Rule{Package: "."}, map[string][]string{"github.com/a/owned": {"internal/plan", "internal/store"}}, "internal/plan is an owner of github.com/a/owned, but no file of it imports the library"},
		"an owner for its suites": {Rule{Package: "."}, map[string][]string{"github.com/a/fortests": {"internal/store"}}, "internal/store is an owner of github.com/a/fortests, but no file of it imports the library"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rules := []Rule{test.rule}
			for _, r := range []Rule{{Package: "."}, {Package: "internal/plan", Module: []string{"."}}, {Package: "internal/store"}, {Package: "internal/store/engine", Module: []string{"."}}, {Package: "cmd"}} {
				if r.Package != test.rule.Package {
					rules = append(rules, r)
				}
			}
			if test.owners == nil {
				test.owners = owners
			}
			unused, err := Unused(tree, rules, test.owners)
			switch {
			case err != nil:
				t.Fatal(err)
			case test.want == "" && len(unused) > 0 || test.want != "" && !slices.Equal(unused, []string{test.want}):
				t.Errorf("found %q, want %q", unused, test.want)
			}
		})
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
