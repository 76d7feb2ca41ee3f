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
