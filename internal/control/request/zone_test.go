package request

import (
	"archive/zip"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// TestZoneNames: zone.txt contains the same names as Go's own time zone database, without "Factory".
func TestZoneNames(t *testing.T) {
	t.Parallel()
	database, err := zip.OpenReader(filepath.Join(runtime.GOROOT(), "lib", "time", "zoneinfo.zip")) //nolint:staticcheck // a test runs on a machine with the Go toolchain
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
