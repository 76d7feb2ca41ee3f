package catalogue

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"puntuale"
)

// declared matches constants that are codes of reasons.
var declared = regexp.MustCompile(`(?m)^\s*(?:const )?(\w+)\s+(?:puntuale\.)?ReasonCode\s*=\s*"([^"]+)"`)

// TestReasonsHaveSentences: every constant has a sentence, every sentence has a constant, and no two constants have the
// same code.
func TestReasonsHaveSentences(t *testing.T) {
	t.Parallel()
	named := map[puntuale.ReasonCode]string{}
	for name, source := range sources(t) {
		for _, found := range declared.FindAllStringSubmatch(source, -1) {
			code := puntuale.ReasonCode(found[2])
			if !HasSentence(code) {
				t.Errorf("%s: %s has no sentence", name, found[1])
			}
			if before := named[code]; before != "" {
				t.Errorf("%s: %s and %s are both %s", name, found[1], before, code)
			}
			named[code] = found[1]
		}
	}
	for file, codes := range texts(t) {
		for code := range codes {
			if named[code] == "" && !strings.HasPrefix(file, "fault") {
				t.Errorf("%s: no constant is %s", file, code)
			}
		}
	}
}

// sources returns the module's source files by name, without tests.
func sources(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
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
		all[name] = string(source)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// texts returns the sentences by file name.
func texts(t *testing.T) map[string]map[puntuale.ReasonCode]sentence {
	t.Helper()
	names, err := fs.Glob(files, "text/*.toml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]map[puntuale.ReasonCode]sentence{}
	for _, name := range names {
		content, err := files.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var codes map[puntuale.ReasonCode]sentence
		if err := toml.Unmarshal(content, &codes); err != nil {
			t.Fatal(name, err)
		}
		all[filepath.Base(name)] = codes
	}
	return all
}

// TestEnglishDiffers: each sentence with words is different in the two languages.
func TestEnglishDiffers(t *testing.T) {
	t.Parallel()
	same := []puntuale.ReasonCode{"campaign.field_fault", "contact.value_fault", "list.mapping_faults", puntuale.ReasonColon, puntuale.ReasonBrackets, "media.detail", "media.http"}
	for code, s := range sentences {
		if wordless := slices.Contains(same, code); (s.It == s.En) != wordless {
			t.Errorf("%s: %q in both languages", code, s.It)
		}
		if strings.ContainsAny(s.En, "àèéìòù") {
			t.Errorf("%s: %q is no English", code, s.En)
		}
	}
}

// TestFormerUncertain: rows that earlier versions of the program wrote are recognised by their sentence.
func TestFormerUncertain(t *testing.T) {
	t.Parallel()
	uncertain := puntuale.Because(puntuale.ReasonUncertain)
	if says := Italian.Sentence(uncertain); says != puntuale.FormerUncertain {
		t.Errorf("the sentence is %q, earlier versions stored %q", says, puntuale.FormerUncertain)
	}
	if stored := uncertain.Stored(); stored != puntuale.StoredUncertain {
		t.Errorf("it is stored as %q, statements look for %q", stored, puntuale.StoredUncertain)
	}
	if back := puntuale.ParseReason(puntuale.FormerUncertain); !back.Equal(uncertain) {
		t.Errorf("%q is read as %v", puntuale.FormerUncertain, back)
	}
}
