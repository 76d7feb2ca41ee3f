package language

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"puntuale"
)

// keys returns the text keys of a language, each with the name of its file.
func keys(t *testing.T, code string) map[string]string {
	t.Helper()
	all := map[string]string{}
	names, err := fs.Glob(texts, "text/*."+code+".toml")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		content, err := texts.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var tree map[string]any
		if err := toml.Unmarshal(content, &tree); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		noun := strings.TrimSuffix(filepath.Base(name), "."+code+".toml")
		walk(tree, "", func(key, text string) {
			if where, twice := all[key]; twice {
				t.Errorf("%s stands in %s and in %s", key, where, noun)
			}
			all[key] = noun
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s is empty", name, key)
			}
		})
	}
	return all
}

func walk(tree map[string]any, above string, each func(key, text string)) {
	for part, v := range tree {
		key := strings.TrimPrefix(above+"."+part, ".")
		switch v := v.(type) {
		case string:
			each(key, v)
		case map[string]any:
			if other, ok := v["other"].(string); ok {
				each(key, other)
				continue
			}
			walk(v, key, each)
		}
	}
}

// TestOneOfEach: each text can be said with the number 1, also if it has one form for all numbers.
func TestOneOfEach(t *testing.T) {
	t.Parallel()
	for _, l := range All {
		for key := range keys(t, l.Code) {
			for _, n := range []any{0, 1, 2, "1"} {
				if text := l.T(key, "N", n); strings.HasPrefix(text, "⟦") {
					t.Errorf("%s: %s with %v: %s", l.Code, key, n, text)
				}
			}
		}
	}
}

// TestSameKeys: both languages have the same text keys.
func TestSameKeys(t *testing.T) {
	t.Parallel()
	it, en := keys(t, "it"), keys(t, "en")
	for key, noun := range it {
		if en[key] != noun {
			t.Errorf("%s of %s.it.toml is not in %[2]s.en.toml", key, noun)
		}
		for _, l := range All {
			if !l.Has(key) {
				t.Errorf("%s is not found in %s", key, l.Code)
			}
		}
	}
	for key, noun := range en {
		if it[key] != noun {
			t.Errorf("%s of %s.en.toml is not in %[2]s.it.toml", key, noun)
		}
	}
}

var (
	used  = regexp.MustCompile(`(?:\bT\(ctx, |\.t\(|\.T\(|\.say\()"([a-z0-9_.]+[a-z0-9_])"`)
	begun = regexp.MustCompile(`"([a-z0-9_]+(?:\.[a-z0-9_]+)*\.)" ?\+`)
	named = regexp.MustCompile(`"([a-z0-9_]+(?:\.[a-z0-9_]+)+)"`)
)

// TestKeysAreUsed: every text key that the pages use exists, and the pages use every text key.
func TestKeysAreUsed(t *testing.T) {
	t.Parallel()
	existing, seen := keys(t, "it"), map[string]bool{}
	var beginnings []string
	err := filepath.WalkDir("..", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".templ") ||
			strings.HasSuffix(name, "_test.go") || strings.HasSuffix(name, "_templ.go") {
			return err
		}
		content, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, m := range used.FindAllStringSubmatch(string(content), -1) {
			if existing[m[1]] == "" && filepath.Base(name) != "doc.go" && filepath.Base(name) != "language.go" {
				t.Errorf("%s names %s, which is not there", name, m[1])
			}
		}
		for _, m := range named.FindAllStringSubmatch(string(content), -1) {
			seen[m[1]] = true
			seen["audit."+m[1]] = true // names of actions in routes, which the audit log shows
		}
		for _, m := range begun.FindAllStringSubmatch(string(content), -1) {
			beginnings = append(beginnings, m[1])
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for key := range existing {
		known := seen[key]
		for _, b := range beginnings {
			known = known || strings.HasPrefix(key, b)
		}
		if !known {
			t.Errorf("%s is never used", key)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	for want, reason := range map[[2]string]puntuale.Reason{
		{"È obbligatorio", "Is needed"}:                                 puntuale.Because(puntuale.FaultRequired),
		{"È più lungo di 12 caratteri", "Is longer than 12 characters"}: puntuale.Because(puntuale.FaultLongerThanCharacters, "12"),
		{"Deve andare da 1 a 9", "Must be from 1 to 9"}:                 puntuale.Because(puntuale.FaultNotInRange, "1", "9"),
		{"Nobody said this before", "Nobody said this before"}:          puntuale.Quoted("nobody said this before"),
	} {
		if it, en := Italian.Fault(reason), English.Fault(reason); it != want[0] || en != want[1] {
			t.Errorf("%v: %q, %q", reason, it, en)
		}
	}
}
