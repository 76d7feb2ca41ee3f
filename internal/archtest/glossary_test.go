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

// TestGlossary: the noun of every type and of every file is in docs/glossary.md, or among the usual words of
// testdata/words.txt, and in only one of them. The noun is the end of the name. No name ends with a word that we gave
// up.
func TestGlossary(t *testing.T) {
	t.Parallel()
	known, givenUp := readGlossary(t)
	for _, n := range nouns(t, filepath.Join("..", "..")) {
		last := n.words[len(n.words)-1]
		if instead, ok := givenUp[singular(last)]; ok {
			t.Errorf("%s: %q is a word that we gave up: say %s", n.at, last, instead)
			continue
		}
		if !slices.ContainsFunc(known, func(word string) bool { return n.ends(word) }) {
			t.Errorf("%s: %q does not end with a word of docs/glossary.md or testdata/words.txt", n.at, strings.Join(n.words, " "))
		}
	}
}

type noun struct {
	at    string
	words []string
	file  bool // the name is a file's name, whose words may be written together
}

// ends reports whether the name ends with the word, in the singular or the plural.
func (n noun) ends(word string) bool {
	name := strings.Join(n.words, "")
	if !n.file {
		last := n.words[max(0, len(n.words)-1-strings.Count(word, " ")):]
		name = strings.Join(last, "")
		word = strings.ReplaceAll(word, " ", "")
		return name == word || singular(name) == word
	}
	word = strings.ReplaceAll(word, " ", "")
	return strings.HasSuffix(name, word) || strings.HasSuffix(singular(name), word)
}

// nouns returns the names of all types and files, except those of tests and of generated files.
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
		if name := strings.TrimSuffix(base, ".go"); name != "doc" && name != "main" {
			name = regexp.MustCompile(`_(unix|other|windows|linux)$`).ReplaceAllString(name, "")
			all = append(all, noun{relative, strings.Split(name, "_"), true})
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
					all = append(all, noun{files.Position(ts.Pos()).String(), splitName(ts.Name.Name), false})
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

// splitName splits a name at its capitals: "NewHTTPGate" becomes new, http, gate.
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

var (
	glossaryItem = regexp.MustCompile(`(?m)^- \*\*([^*]+)\*\*`)
	givenUpItem  = regexp.MustCompile(`(?m)^- ([a-z, ]+) → (.+)$`)
)

// readGlossary returns the words of docs/glossary.md, and the words of testdata/words.txt, which have their usual
// meaning. givenUp maps each word that we gave up to the words that replace it.
func readGlossary(t *testing.T) (known []string, givenUp map[string]string) {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	usual, err := os.ReadFile(filepath.Join("testdata", "words.txt"))
	if err != nil {
		t.Fatal(err)
	}
	text, old, found := strings.Cut(string(page), "## Words that we gave up")
	if !found {
		t.Fatal("docs/glossary.md lacks a section")
	}
	for _, m := range glossaryItem.FindAllStringSubmatch(text, -1) {
		word := strings.ReplaceAll(strings.ToLower(m[1]), "-", " ")
		if slices.Contains(known, word) {
			t.Errorf("docs/glossary.md has %q twice", word)
		}
		known = append(known, word)
	}
	for word := range strings.Lines(string(usual)) {
		word = strings.TrimSpace(word)
		if slices.Contains(known, word) {
			t.Errorf("testdata/words.txt has %q, which is there or in docs/glossary.md already", word)
		}
		known = append(known, word)
	}
	givenUp = map[string]string{}
	for _, m := range givenUpItem.FindAllStringSubmatch(old, -1) {
		for word := range strings.SplitSeq(m[1], ",") {
			givenUp[strings.TrimSpace(word)] = m[2]
		}
	}
	if len(known) < 200 || givenUp["turn"] == "" {
		t.Errorf("%d words, %d given up: the files are not read as they are meant", len(known), len(givenUp))
	}
	return known, givenUp
}
