package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// TestGlossary: each word stands once in docs/glossary.md. The noun of every type and of every file is one of them, or one
// of the endings that need no line. A noun is the name's last word, or its last two.
func TestGlossary(t *testing.T) {
	t.Parallel()
	words, endings := readGlossary(t)
	known := func(name []string) bool {
		for from := max(0, len(name)-3); from < len(name); from++ {
			if words[strings.Join(name[from:], " ")] {
				return true
			}
		}
		return endings[singular(name[len(name)-1])]
	}
	for _, n := range nouns(t, filepath.Join("..", "..")) {
		if !known(n.words) && !known([]string{singular(n.words[len(n.words)-1])}) {
			t.Errorf("%s: %q has no word of docs/glossary.md in its name", n.at, strings.Join(n.words, " "))
		}
	}
}

type noun struct {
	at    string
	words []string
}

// nouns returns the names of all types and files that are no tests and not generated.
func nouns(t *testing.T, root string) (all []noun) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		base := entry.Name()
		if entry.IsDir() {
			if path != root && (strings.HasPrefix(base, ".") || base == "testdata" || strings.HasSuffix(base, "test")) || base == "bench" || base == "scripts" {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(base, ".go") || strings.HasSuffix(base, "_test.go") || strings.HasSuffix(base, "_templ.go") {
			return nil
		}
		relative, _ := filepath.Rel(root, path)
		if name := strings.TrimSuffix(base, ".go"); !strings.HasPrefix(name, "mutation_") && name != "doc" && name != "main" {
			name = regexp.MustCompile(`_(unix|other|windows|linux)$`).ReplaceAllString(name, "")
			all = append(all, noun{relative, strings.Split(name, "_")})
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for _, d := range parsed.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, s := range g.Specs {
				if ts, ok := s.(*ast.TypeSpec); ok {
					all = append(all, noun{files.Position(ts.Pos()).String(), splitName(ts.Name.Name)})
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// splitName splits a name at its capitals: "NewHTTPGate" is new, http, gate.
func splitName(name string) (words []string) {
	runes := []rune(strings.ReplaceAll(name, "IDs", "Ids"))
	start := 0
	for i := 1; i <= len(runes); i++ {
		end := i == len(runes)
		if !end && unicode.IsUpper(runes[i]) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])) {
			end = true
		}
		if end {
			words = append(words, strings.ToLower(string(runes[start:i])))
			start = i
		}
	}
	return words
}

func singular(word string) string {
	switch {
	case strings.HasSuffix(word, "ies"):
		return strings.TrimSuffix(word, "ies") + "y"
	case strings.HasSuffix(word, "sses"), strings.HasSuffix(word, "ches"), strings.HasSuffix(word, "xes"):
		return strings.TrimSuffix(word, "es")
	case strings.HasSuffix(word, "s") && !strings.HasSuffix(word, "ss") && !strings.HasSuffix(word, "us"):
		return strings.TrimSuffix(word, "s")
	}
	return word
}

var glossaryRow = regexp.MustCompile(`(?m)^\| ([^|]+?) \|`)

func readGlossary(t *testing.T) (words, endings map[string]bool) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	text, rest, found := strings.Cut(string(page), "## Endings")
	if !found {
		t.Fatal("docs/glossary.md has no section of endings")
	}
	words, endings = map[string]bool{}, map[string]bool{}
	for _, m := range glossaryRow.FindAllStringSubmatch(text, -1) {
		word := strings.ToLower(m[1])
		if word == "word" || strings.HasPrefix(word, "---") {
			continue
		}
		word = strings.ReplaceAll(word, "-", " ")
		if words[word] {
			t.Errorf("docs/glossary.md has %q twice", word)
		}
		words[word] = true
		words[singular(word)] = true
	}
	for _, line := range strings.Split(rest, "\n") {
		if list, ok := strings.CutPrefix(line, "- "); ok {
			for word := range strings.SplitSeq(list, ",") {
				endings[strings.TrimSpace(word)] = true
			}
		}
	}
	if len(words) < 100 || !slices.Contains([]bool{endings["writer"]}, true) {
		t.Errorf("%d words, %d endings: the page is not read as it is meant", len(words), len(endings))
	}
	return words, endings
}
