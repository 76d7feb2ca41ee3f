package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// named matches the name of a test in docs/conformance.md: "httpapi:TestContract/Start", "storetest:Stop".
var named = regexp.MustCompile("`([a-z0-9]+):([A-Za-z0-9_]+)(?:/([A-Za-z0-9_]+))?`")

// TestConformanceIndex: every test that docs/conformance.md names exists. The document also names every part of the
// tests that follow the contract.
func TestConformanceIndex(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := readTests(t, filepath.Join("..", ".."))
	listed := map[string]bool{}
	for _, m := range named.FindAllStringSubmatch(string(page), -1) {
		pkg, name, part := m[1], m[2], m[3]
		listed[name+"/"+part] = true
		parts, found := tests[pkg+":"+name]
		if !found || part != "" && !parts[part] {
			t.Errorf("%s is no test", m[0])
		}
	}
	if len(listed) < 100 {
		t.Errorf("only %d tests are named: the page is not read as it is meant", len(listed))
	}
	for _, name := range []string{"TestContract", "TestBehaviour"} {
		for part := range tests["httpapi:"+name] {
			if !listed[name+"/"+part] {
				t.Errorf("%s/%s is not named", name, part)
			}
		}
	}
}

// TestAdmissionIndex: every test that docs/admission.md names exists. Each part in the document's table names a test.
func TestAdmissionIndex(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "admission.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := readTests(t, filepath.Join("..", ".."))
	parts := 0
	for line := range strings.Lines(string(page)) {
		found := named.FindAllStringSubmatch(line, -1)
		for _, m := range found {
			if _, ok := tests[m[1]+":"+m[2]]; !ok {
				t.Errorf("%s is no test", m[0])
			}
		}
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| part |") {
			parts++
			if len(found) == 0 {
				t.Errorf("no test needs this part: %s", line)
			}
		}
	}
	if parts < 20 {
		t.Errorf("only %d parts: the page is not read as it is meant", parts)
	}
}

// readTests returns the module's tests as "package:name", each with the names of its parts. A part's name is the first
// text of a literal in the test, as go test writes it.
func readTests(t *testing.T, root string) map[string]map[string]bool {
	t.Helper()
	tests := map[string]map[string]bool{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && (strings.HasPrefix(entry.Name(), ".") && path != root || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		suite := filepath.Base(filepath.Dir(path)) == "storetest"
		if !strings.HasSuffix(path, "_test.go") && (!suite || !strings.HasSuffix(path, ".go")) {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		pkg := packageOf(t, root, path)
		for _, d := range file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if name := d.Name.Name; d.Recv == nil && (strings.HasPrefix(name, "Test") || strings.HasPrefix(name, "Fuzz")) {
					tests[pkg+":"+name] = parts(d)
				}
			case *ast.GenDecl:
				if suite {
					members(d, func(name string) { tests[pkg+":"+name] = nil })
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return tests
}

// packageOf returns the last part of the name of a file's folder. The root and the command have special names.
func packageOf(t *testing.T, root, path string) string {
	t.Helper()
	folder, err := filepath.Rel(root, filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	switch folder {
	case ".":
		return "puntuale"
	case filepath.Join("cmd", "puntuale"):
		return "cmd"
	}
	return filepath.Base(folder)
}

// parts returns the names of a test's subtests. They are the keys and first elements of the composite literals at the
// test's beginning.
func parts(test *ast.FuncDecl) map[string]bool {
	names := map[string]bool{}
	add := func(e ast.Expr) {
		if text, ok := e.(*ast.BasicLit); ok && text.Kind == token.STRING {
			if name, err := strconv.Unquote(text.Value); err == nil {
				names[strings.ReplaceAll(name, " ", "_")] = true
			}
		}
	}
	ast.Inspect(test, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for i, e := range literal.Elts {
			if pair, ok := e.(*ast.KeyValueExpr); ok {
				add(pair.Key)
			} else if i == 0 {
				add(e)
			}
		}
		return true
	})
	return names
}

// members calls found for each test of a suite, with the test's name. A suite is a list of functions.
func members(d *ast.GenDecl, found func(name string)) {
	ast.Inspect(d, func(n ast.Node) bool {
		literal, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		for _, e := range literal.Elts {
			if name, ok := e.(*ast.Ident); ok && strings.HasPrefix(name.Name, "test") {
				found(strings.TrimPrefix(name.Name, "test"))
			}
		}
		return true
	})
}
