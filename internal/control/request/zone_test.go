package request

import (
	"archive/zip"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestZoneNames: zone.txt contains the same names as Go's own time zone database, without "Factory".
func TestZoneNames(t *testing.T) {
	t.Parallel()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	database, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	var names []string
	for _, f := range database.File {
		if !strings.HasSuffix(f.Name, "/") && f.Name != "Factory" {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, sortedZones()) {
		t.Errorf("zone.txt holds %d names, the database %d", len(sortedZones()), len(names))
	}
}

// TestNamedZones: a request may use only zones in the list. A stored name that is not in the list can still be loaded.
func TestNamedZones(t *testing.T) {
	t.Parallel()
	var z Zones
	for _, name := range []string{"Europe/Rome", "UTC", "Etc/GMT+5", "America/Argentina/Buenos_Aires"} {
		if _, err := z.Named(name); err != nil {
			t.Error(err)
		}
	}
	for _, name := range []string{"", "Local", "Factory", "posixrules", "localtime", "posix/Europe/Rome", "right/Europe/Rome", "europe/rome", "Europe//Rome", "Europe/Rome\n", "../Europe/Rome"} {
		if _, err := z.Named(name); err == nil {
			t.Errorf("%q is taken", name)
		}
	}
	if _, err := z.Load("Factory"); err != nil {
		t.Errorf("stored: %v", err)
	}
}
