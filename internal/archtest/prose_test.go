package archtest

import (
	"flag"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var renewProse = flag.Bool("renew-prose", false, "write how much of the prose is hard to read, where it became less")

// maxWords is how many words a sentence may have.
const maxWords = 25

// hard matches words and phrases that a reader whose English is a second language must read twice.
var hard = regexp.MustCompile(`(?i)\b(whoever|whomever|whom|whosoever|wherefore|thereby|therein|thereof|hereby|whereby|wherein|that of|those of which|nobody( \w+)? who|no one who|what (is|was|are)( \S+){0,5} (is|was|are))\b`)

// prose lists the faults of a text: the long sentences, and the hard words.
type prose struct{ long, hard []string }

func (p *prose) add(paragraph string) {
	p.hard = append(p.hard, hard.FindAllString(paragraph, -1)...)
	for _, sentence := range sentences(paragraph) {
		if len(word.FindAllString(sentence, -1)) > maxWords {
			p.long = append(p.long, sentence)
		}
	}
}

func (p prose) count() counts { return counts{len(p.long), len(p.hard)} }

// counts is how many long sentences and hard words a place has, or may have.
type counts struct{ long, hard int }

// word matches a text between blanks that contains a letter or a figure. Operators, dashes and bullets are not words.
var word = regexp.MustCompile(`\S*[\pL\pN]\S*`)

var sentenceEnd = regexp.MustCompile(`[.!?]["')\]_]*\s+`)

// sentences splits a paragraph into sentences. A list after a colon counts as part of its sentence. Bold words count as
// part of the sentence after them.
func sentences(paragraph string) []string {
	return sentenceEnd.Split(strings.TrimSpace(paragraph), -1)
}

var (
	codeSpan = regexp.MustCompile("`[^`]*`")
	linkTo   = regexp.MustCompile(`\]\([^)]*\)`)
	numbered = regexp.MustCompile(`^\d+\. `)
)

// plainText replaces each code span by one word, and removes the targets of links.
func plainText(line string) string {
	return linkTo.ReplaceAllString(codeSpan.ReplaceAllString(line, "code"), "]")
}

// readMarkdown checks paragraphs, items of lists and cells of tables, each separately. It ignores code and headings.
func readMarkdown(text string) (found prose) {
	var paragraph []string
	end := func() {
		found.add(strings.Join(paragraph, " "))
		paragraph = nil
	}
	code := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```"):
			end()
			code = !code
		case code, strings.HasPrefix(line, "#"), strings.HasPrefix(line, "<!--"), line == "":
			end()
		case strings.HasPrefix(line, "|"):
			end()
			for cell := range strings.SplitSeq(plainText(line), "|") {
				found.add(cell)
			}
		case strings.HasPrefix(line, "- "), strings.HasPrefix(line, "* "), numbered.MatchString(line):
			end()
			paragraph = []string{plainText(line)}
		default:
			paragraph = append(paragraph, plainText(line))
		}
	}
	end()
	return found
}

// readComments checks the comments of a Go file. It ignores indented lines of a comment, because they are drawings or
// code.
func readComments(t *testing.T, name string) (found prose) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Comments {
		for paragraph := range strings.SplitSeq(group.Text(), "\n\n") {
			var lines []string
			for line := range strings.Lines(paragraph) {
				if !strings.HasPrefix(line, "\t") && !strings.HasPrefix(line, " ") {
					lines = append(lines, plainText(strings.TrimSpace(line)))
				}
			}
			found.add(strings.Join(lines, " "))
		}
	}
	return found
}

// readProse checks all Markdown files, and the Go files of each folder except generated files.
func readProse(t *testing.T, root string) map[string]prose {
	t.Helper()
	all := map[string]prose{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		switch {
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case strings.HasSuffix(name, ".md"):
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			all[filepath.ToSlash(name)] = readMarkdown(string(text))
		case strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_templ.go"):
			found, folder := readComments(t, path), filepath.ToSlash(filepath.Dir(name))
			sum := all[folder]
			all[folder] = prose{append(sum.long, found.long...), append(sum.hard, found.hard...)}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const allowedProse = "testdata/prose.txt"

// TestProse: no document, and no folder's comments, may become harder to read. testdata/prose.txt contains two counts
// for each place: long sentences, and hard words. A place that is not in the file may have none. If the counts became
// lower, "go test ./internal/archtest -run TestProse -renew-prose" writes the new counts.
func TestProse(t *testing.T) {
	t.Parallel()
	allowed := map[string]counts{}
	text, err := os.ReadFile(allowedProse)
	if err != nil && !*renewProse {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var place string
		var c counts
		if _, err := fmt.Sscanf(line, "%d %d %s", &c.long, &c.hard, &place); err != nil {
			t.Fatalf("%s: %q: %v", allowedProse, line, err)
		}
		allowed[place] = c
	}
	now := readProse(t, "../..")
	var renewed strings.Builder
	for _, place := range slices.Sorted(maps.Keys(now)) {
		found, limit := now[place].count(), allowed[place]
		if text == nil {
			limit = found
		}
		if found.long > limit.long {
			t.Errorf("%s: %d sentences have more than %d words, %d are allowed:%s", place, found.long, maxWords, limit.long, shown(now[place].long))
		}
		if found.hard > limit.hard {
			t.Errorf("%s: %d words to avoid, %d are allowed:%s", place, found.hard, limit.hard, shown(now[place].hard))
		}
		if least := (counts{min(found.long, limit.long), min(found.hard, limit.hard)}); least != (counts{}) {
			fmt.Fprintf(&renewed, "%d %d %s\n", least.long, least.hard, place)
		}
	}
	if *renewProse {
		if err := os.WriteFile(allowedProse, []byte(renewed.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// shown returns at most 50 of the found texts, each on its own line.
func shown(found []string) string {
	var b strings.Builder
	for i, text := range found {
		if i == 50 {
			b.WriteString("\n\t…")
			break
		}
		fmt.Fprintf(&b, "\n\t%s", text)
	}
	return b.String()
}

// TestProseCounts: sentences are counted as people read them.
func TestProseCounts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 26)
	for text, want := range map[string]counts{
		"Short. And short again.": {},
		long + ".":                {long: 1},
		long + "\n\n# " + long:    {long: 1},
		strings.Repeat("word ", 13) + "\n" + strings.Repeat("word ", 13): {long: 1},
		"```\n" + long + "\n```":                       {},
		"- " + long + "\n- short":                      {long: 1},
		"1. " + long + "\n2. short":                    {long: 1},
		"| " + long + " | whom |":                      {long: 1, hard: 1},
		"`" + long + "` is one word, whoever counts.":  {hard: 1},
		"What is due is sent; nobody waits who holds.": {hard: 2},
		"That is due. What is that?":                   {},
	} {
		if got := readMarkdown(text).count(); got != want {
			t.Errorf("%.60q: %+v, want %+v", text, got, want)
		}
	}
}
