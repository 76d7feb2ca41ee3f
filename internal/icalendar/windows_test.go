package icalendar

import (
	"testing"
	"time"
)

// TestWindowsTable: every zone of the table exists, so no Windows name means nothing.
func TestWindowsTable(t *testing.T) {
	t.Parallel()
	index := windowsIndex()
	if len(index.windows) != 139 || len(index.iana) < 400 {
		t.Errorf("%d Windows names, %d zones", len(index.windows), len(index.iana))
	}
	for name, zone := range index.windows {
		if load(zone) == nil {
			t.Errorf("%s means %s, which is unknown", name, zone)
		}
	}
	for name, want := range map[string]string{
		"W. Europe Standard Time": "Europe/Rome", "w. europe standard time": "Europe/Rome", "Romance Standard Time": "Europe/Paris", "UTC": "UTC", "GMT Standard Time": "Europe/London",
		"(UTC+01:00) Amsterdam, Berlin, Bern, Rome, Stockholm, Vienna": "Europe/Rome", "(UTC+00:00) Dublin, Edinburgh, Lisbon, London": "Europe/London",
		"(UTC+01:00) Belgrade, Bratislava, Budapest, Ljubljana, Prague": "Europe/Budapest", "(UTC+01:00) Brussels, Copenhagen, Madrid, Paris": "Europe/Paris",
		"(UTC+02:00) Athens, Bucharest": "Europe/Bucharest", "(UTC+02:00) Helsinki, Kyiv, Riga, Sofia, Tallinn, Vilnius": "Europe/Kiev",
		"(UTC-08:00) Pacific Time (US & Canada)": "America/Los_Angeles", "(UTC) Coordinated Universal Time": "Etc/UTC", "(UTC+05:30) Chennai, Kolkata, Mumbai, New Delhi": "Asia/Calcutta",
		"(UTC+03:00) Moscow, St. Petersburg": "Europe/Moscow", "(UTC+09:00) Osaka, Sapporo, Tokyo": "Asia/Tokyo", "(UTC-03:00) Brasilia": "America/Sao_Paulo",
		"Europe/Rome/../Paris": "", "posix/Europe/Rome": "Europe/Rome", "localtime": "", "Nowhere": "", "(UTC+01:00) Nowhere": "",
	} {
		z := newZones(Options{Zone: time.UTC, From: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)}, &effort{})
		if got := z.standard(name); got.name != want {
			t.Errorf("%s: %q, want %q", name, got.name, want)
		}
	}
}
