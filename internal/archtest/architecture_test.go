package archtest

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var folderRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestEveryFolderIsListed: docs/architecture.md lists each folder with Go code exactly once, and no other folder.
func TestEveryFolderIsListed(t *testing.T) {
	t.Parallel()
	tree := os.DirFS("../..")
	page, err := fs.ReadFile(tree, "docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, row := range folderRow.FindAllStringSubmatch(string(page), -1) {
		listed = append(listed, row[1])
	}
	var folders []string
	if err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata"):
			return fs.SkipDir
		case strings.HasSuffix(name, ".go"):
			folders = append(folders, path.Dir(name))
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	slices.Sort(folders)
	slices.Sort(listed)
	if folders = slices.Compact(folders); !slices.Equal(listed, folders) {
		t.Errorf("docs/architecture.md lists\n%q\nbut the folders with Go code are\n%q", listed, folders)
	}
}

// TestPathOfStart: each file that the page names on the way of a start call declares the functions that the page names.
func TestPathOfStart(t *testing.T) {
	t.Parallel()
	tree := os.DirFS("../..")
	page, err := fs.ReadFile(tree, "docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## One start call, file by file\n")
	section, _, _ = strings.Cut(section, "\n## ")
	rows := regexp.MustCompile("(?m)^\\| [^|]+ \\| `([^`]+)` \\| (.+) \\|$").FindAllStringSubmatch(section, -1)
	if len(rows) < 15 {
		t.Fatalf("%d steps", len(rows))
	}
	for _, row := range rows {
		source, err := fs.ReadFile(tree, row[1])
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row[2], -1) {
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name[1] + `[\[(]`).Match(source) {
				t.Errorf("%s has no function %s", row[1], name[1])
			}
		}
	}
}
