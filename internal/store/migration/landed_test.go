package migration_test

import (
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "pin the migrations that are new")

const landed = "testdata/landed.txt"

// TestLandedMigrationsStay checks that released steps do not change. A step runs only once on each database. So if its
// text changed, even in a comment, there would be two kinds of databases. The flag -update adds the checksums of new
// steps. It never changes an existing line.
func TestLandedMigrationsStay(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(landed)
	if err != nil {
		t.Fatal(err)
	}
	pinned := map[string]string{}
	for line := range strings.Lines(string(text)) {
		digest, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		pinned[name] = digest
	}
	names, err := filepath.Glob("[ps]*/*.sql") // leaves out the files in testdata
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	var fresh strings.Builder
	for _, name := range names {
		step, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		digest := fmt.Sprintf("%x", sha256.Sum256(step))
		switch was, known := pinned[name]; {
		case !known:
			fmt.Fprintf(&fresh, "%s  %s\n", digest, name)
		case was != digest:
			t.Errorf("%s has landed and must not change: make a new step", name)
		}
		delete(pinned, name)
	}
	for name := range pinned {
		t.Errorf("%s has landed and is gone", name)
	}
	switch {
	case fresh.Len() == 0:
	case *update:
		if err := os.WriteFile(landed, append(text, fresh.String()...), 0o600); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("new steps are not pinned; run go test ./internal/store/migration -run TestLandedMigrationsStay -update:\n%s", fresh.String())
	}
}
