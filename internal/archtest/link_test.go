package archtest

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"unicode"
)

// TestLinksResolve: every relative link and every image of a document leads to a file of the tree. Every #anchor leads
// to a heading.
func TestLinksResolve(t *testing.T) {
	t.Parallel()
	for _, broken := range brokenLinks(t, os.DirFS("../..")) {
		t.Error(broken)
	}
}

// TestEveryDocumentIsListed: docs/README.md has a link to each page and to each decision's folder.
func TestEveryDocumentIsListed(t *testing.T) {
	t.Parallel()
	index, err := os.ReadFile("../../docs/README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := fs.Glob(os.DirFS("../../docs"), "*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "decisions/") {
		if page != "README.md" && !strings.Contains(string(index), "]("+page+")") {
			t.Errorf("docs/README.md does not list docs/%s", page)
		}
	}
}

// TestEveryDecisionIsListed: docs/decisions/README.md has a link to each decision, with the title of its page.
func TestEveryDecisionIsListed(t *testing.T) {
	t.Parallel()
	const folder = "../../docs/decisions/"
	index, err := os.ReadFile(folder + "README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := fs.Glob(os.DirFS(folder), "*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d decisions, %v", len(pages), err)
	}
	for _, page := range pages {
		if page == "README.md" {
			continue
		}
		text, err := os.ReadFile(folder + page)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		title := strings.TrimPrefix(first, "# ")
		if !strings.Contains(string(index), title+"]("+page+")") {
			t.Errorf("docs/decisions/README.md does not list %s with its title %q", page, title)
		}
	}
}

// TestBrokenLinksAreFound shows that the check can fail.
func TestBrokenLinksAreFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[a](b.md)":                           "",
		"[a](b.md#a-heading-with-code-1)":     "",
		"![a](b.png)":                         "b.png",
		"[a](c.md)":                           "c.md",
		"[a](b.md#nothing)":                   "#nothing",
		"[a](#nothing)":                       "#nothing",
		"# Here, *there*\n\n[a](#here-there)": "",
		"[a](https://example.com/c.md)":       "",
		"```\n[a](c.md)\n```\n`[b](c.md)`":    "",
		"[a] [b]\n\n[a]: c.md\n":              "c.md",
		`<img src="c.png">`:                   "c.png",
	} {
		tree := fstest.MapFS{
			"docs/a.md": {Data: []byte(text)},
			"docs/b.md": {Data: []byte("# A heading with `code`\n\n# A [heading](a.md) with `code`\n")},
		}
		broken := brokenLinks(t, tree)
		if want == "" && len(broken) > 0 || want != "" && (len(broken) != 1 || !strings.Contains(broken[0], want)) {
			t.Errorf("%q: found %q, want one with %q", text, broken, want)
		}
	}
}

// links matches the target of an inline link or image, of a reference, and of an HTML image.
var links = regexp.MustCompile(`\]\(([^()\s]+)(?:\s+"[^"]*")?\)|(?m:^\[[^\]]+\]:\s*(\S+))|<img[^>]*\ssrc="([^"]+)"`)

// brokenLinks reads all documents of the tree, and returns the links that lead nowhere.
func brokenLinks(t *testing.T, tree fs.FS) (broken []string) {
	t.Helper()
	anchors := map[string][]string{} // the anchors of each document
	texts := map[string]string{}
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata" || entry.Name() == "node_modules") {
			return fs.SkipDir
		}
		if path.Ext(name) != ".md" {
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		texts[name] = withoutCode(string(text))
		anchors[name] = anchorsOf(texts[name])
		texts[name] = codeSpan.ReplaceAllString(texts[name], "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range texts {
		for _, m := range links.FindAllStringSubmatch(text, -1) {
			target := m[1] + m[2] + m[3]
			if fault := linkFault(tree, anchors, name, target); fault != "" {
				broken = append(broken, fmt.Sprintf("%s: %s: %s", name, target, fault))
			}
		}
	}
	slices.Sort(broken)
	return broken
}

// linkFault returns why a link of a document leads nowhere, or "" if the link is right. It does not check addresses of
// other hosts.
func linkFault(tree fs.FS, anchors map[string][]string, from, target string) string {
	address, err := url.Parse(target)
	if err != nil {
		return err.Error()
	}
	if address.Scheme != "" || address.Host != "" {
		return ""
	}
	file := from
	if address.Path != "" {
		file = path.Join(path.Dir(from), address.Path)
	}
	info, err := fs.Stat(tree, file)
	switch {
	case err != nil:
		return "there is no such file"
	case address.Fragment == "":
	case info.IsDir() || path.Ext(file) != ".md":
		return "only documents have anchors"
	case !slices.Contains(anchors[file], address.Fragment):
		return "there is no such heading"
	}
	return ""
}

var codeSpan = regexp.MustCompile("`[^`]*`")

var fences = regexp.MustCompile("(?ms)^\\s*```.*?^\\s*```\\s*$")

// withoutCode returns the text without its blocks of code.
func withoutCode(text string) string { return fences.ReplaceAllString(text, "") }

var headings = regexp.MustCompile(`(?m)^#{1,6}\s+(.*)$`)

// anchorsOf returns the anchors of a document's headings, as GitHub makes them: letters, figures, hyphens and
// underscores in lower case. If a heading occurs again, its anchor ends with a number.
func anchorsOf(text string) (all []string) {
	times := map[string]int{}
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		heading := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(m[1], "$1")
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, strings.TrimSpace(heading))
		if n := times[name]; n > 0 {
			all = append(all, fmt.Sprintf("%s-%d", name, n))
		} else {
			all = append(all, name)
		}
		times[name]++
	}
	return all
}
