package catalogue

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"puntuale"
)

// TestFaultsHaveSentences: every code of a fault has exactly one sentence, and every sentence belongs to a code.
func TestFaultsHaveSentences(t *testing.T) {
	t.Parallel()
	present := codesInText(t, "fault*.toml")
	named := map[puntuale.ReasonCode]string{}
	for _, c := range constants(t) {
		if !HasSentence(c.code) {
			t.Errorf("%s: %s has no sentence", c.name, c.code)
		}
		if present[c.code] && named[c.code] != "" {
			t.Errorf("%s and %s are both %s", c.name, named[c.code], c.code)
		}
		named[c.code] = c.name
	}
	for code := range present {
		if named[code] == "" {
			t.Errorf("no constant is %s", code)
		}
	}
}

func TestSayAll(t *testing.T) {
	t.Parallel()
	r := puntuale.Because("list.mapping_faults", puntuale.Because(puntuale.FaultRequired).Stored(), "x")
	if got := Message(r); got != "is required; x" {
		t.Errorf("got %q", got)
	}
}

func codesInText(t *testing.T, pattern string) map[puntuale.ReasonCode]bool {
	t.Helper()
	names, err := fs.Glob(files, "text/"+pattern)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	all := map[puntuale.ReasonCode]bool{}
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var file map[puntuale.ReasonCode]sentence
		if err := toml.Unmarshal(content, &file); err != nil {
			t.Fatal(err)
		}
		for code := range file {
			all[code] = true
		}
	}
	return all
}

type constant struct {
	name string
	code puntuale.ReasonCode
}

// constants returns the module's constants of the type ReasonCode.
func constants(t *testing.T) (all []constant) {
	t.Helper()
	set := token.NewFileSet()
	err := filepath.WalkDir("../..", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (entry.Name() == ".git" || entry.Name() == "testdata"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(source), "ReasonCode") {
			return err
		}
		parsed, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			if group, ok := d.(*ast.GenDecl); ok && group.Tok == token.CONST {
				all = append(all, codesOf(t, group)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// codesOf returns the codes in a group of constants.
func codesOf(t *testing.T, group *ast.GenDecl) (all []constant) {
	t.Helper()
	for _, s := range group.Specs {
		spec, ok := s.(*ast.ValueSpec)
		if !ok || !isCode(spec.Type) {
			continue
		}
		for i, value := range spec.Values {
			literal, ok := value.(*ast.BasicLit)
			if !ok {
				t.Errorf("%s is not a literal", spec.Names[i])
				continue
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, constant{spec.Names[i].Name, puntuale.ReasonCode(text)})
		}
	}
	return all
}

func isCode(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "ReasonCode"
	case *ast.SelectorExpr:
		return e.Sel.Name == "ReasonCode"
	}
	return false
}
