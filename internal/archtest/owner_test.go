package archtest

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestDecisionNamesTheOwners: the table of docs/decisions/code.md has the same owners as Owners. The page also names
// each library that only tests use.
func TestDecisionNamesTheOwners(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/decisions/code.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ownerFaults(string(text), Owners) {
		t.Error(f)
	}
}

// TestOwnerFaultsAreFound shows that the check can fail.
func TestOwnerFaultsAreFound(t *testing.T) {
	t.Parallel()
	owners := map[string][]string{"github.com/a/toml": {"cmd", "internal/b"}, "rsc.io/qr": {"cmd"}, "github.com/c/diff": {}}
	const rest = "| rsc.io/qr | `cmd` | draws |\n| golang.org/x/sys, x/time | where needed | locks |\n\n- c/diff shows differences.\n"
	for text, want := range map[string]string{
		"| a/toml v2 | `internal/b`, `cmd` | reads |\n" + rest:          "",
		"| a/toml v2, with parts; rsc.io/qr | `cmd` | reads |\n" + rest: "code.md says that a/toml belongs to",
		"| a/toml | `cmd` | reads |\n" + rest:                           "code.md says that a/toml belongs to [cmd], but Owners says [cmd internal/b]",
		rest:                                                            "code.md has no row for github.com/a/toml",
		"| a/toml | `cmd`, `internal/b` | reads |\n| c/diff | `cmd` | x |\n" + rest:            "code.md says that c/diff belongs to [cmd], but Owners says []",
		"| a/toml | `cmd`, `internal/b` | reads |\n| d/log | `cmd` | x |\n" + rest:             "Owners has no entry for d/log",
		"| a/toml | `cmd`, `internal/b` | reads |\n" + strings.Replace(rest, "c/diff", "x", 1): "code.md does not name github.com/c/diff",
	} {
		faults := ownerFaults(text, owners)
		if want == "" && len(faults) > 0 || want != "" && (len(faults) != 1 || !strings.HasPrefix(faults[0], want)) {
			t.Errorf("%s: found %q, want %q", text, faults, want)
		}
	}
}

var (
	ownerRow = regexp.MustCompile("(?m)^\\| ([^|]+) \\| (`[^|]+`) \\|")
	quoted   = regexp.MustCompile("`([^`]+)`")
)

// ownerFaults compares the rows of a table with Owners. The first column has libraries, for example "jackc/pgx v5, with
// parts". The second column has their owners as code. It ignores rows whose second column has no code.
func ownerFaults(text string, owners map[string][]string) (faults []string) {
	seen := map[string]bool{}
	for _, row := range ownerRow.FindAllStringSubmatch(text, -1) {
		var told []string
		for _, owner := range quoted.FindAllStringSubmatch(row[2], -1) {
			told = append(told, owner[1])
		}
		slices.Sort(told)
		for _, name := range strings.FieldsFunc(row[1], func(r rune) bool { return r == ',' || r == ';' }) {
			name = strings.Fields(name)[0]
			if !strings.Contains(name, "/") {
				continue
			}
			library, found := ownedBy(name, owners)
			seen[library] = true
			switch want := slices.Sorted(slices.Values(owners[library])); {
			case !found:
				faults = append(faults, "Owners has no entry for "+name)
			case !slices.Equal(told, want):
				faults = append(faults, fmt.Sprintf("code.md says that %s belongs to %v, but Owners says %v", name, told, want))
			}
		}
	}
	for _, library := range slices.Sorted(maps.Keys(owners)) {
		switch {
		case len(owners[library]) > 0 && !seen[library]:
			faults = append(faults, "code.md has no row for "+library)
		case len(owners[library]) == 0 && !strings.Contains(text, strings.TrimPrefix(library, "github.com/")):
			faults = append(faults, "code.md does not name "+library)
		}
	}
	return faults
}

// ownedBy returns the entry of Owners for a library. The name may leave out github.com.
func ownedBy(name string, owners map[string][]string) (library string, found bool) {
	for library := range owners {
		if below(name, library) || below("github.com/"+name, library) {
			return library, true
		}
	}
	return "", false
}

// TestEveryLibraryHasOwners: Owners has an entry for each module that go.mod requires directly. Only golang.org/x may be
// used without an entry, because its modules extend the standard library.
func TestEveryLibraryHasOwners(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	direct := regexp.MustCompile(`(?m)^\t(\S+) v\S+$`).FindAllStringSubmatch(string(text), -1)
	if len(direct) == 0 {
		t.Fatal("go.mod requires nothing")
	}
	for _, module := range direct {
		if !below(module[1], "golang.org/x") && !owned(module[1], Owners) {
			t.Errorf("Owners has no entry for %s", module[1])
		}
	}
}
