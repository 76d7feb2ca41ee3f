package preset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/payload"
	"puntuale/internal/preset"
)

func read(t *testing.T, file string) (preset.Appointment, puntuale.ReasonCode) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", file+".json"))
	if err != nil {
		t.Fatal(err)
	}
	p, err := payload.Parse("application/json", text)
	if err != nil {
		t.Fatal(err)
	}
	program, _, _ := strings.Cut(file, "-")
	if program == "woocommerce" {
		program = string(puntuale.PresetWooCommerce)
	}
	return preset.Read(puntuale.HookPreset(program), p)
}

// TestCalls: what each recorded call says: reference, former reference, status, date, zone, phones, how new, service.
func TestCalls(t *testing.T) {
	t.Parallel()
	const (
		a, b   = "calcom:bFJeNb2uX8ANpT3JL5EfXw", "calcom:rT8cNxbNQTqTjCjT6VyU3k"
		ia, ib = "calendly:7b1f0c9e-aaaa-4c59-9c1e-1d0d8f6f0001", "calendly:7b1f0c9e-bbbb-4c59-9c1e-1d0d8f6f0002"
		rome   = "Europe/Rome"
	)
	want := map[string]string{
		"calcom-created":          a + "||open|2027-01-20T14:30:00Z|Europe/Rome|+393331234567|2026-11-20T09:30:00.538Z|Visita",
		"calcom-rescheduled":      b + "|" + a + "|open|2027-01-21T09:00:00.000Z|Europe/Rome|+393331234567|2026-11-20T10:00:00.120Z|Visita",
		"calcom-cancelled":        b + "||cancelled|2027-01-21T09:00:00Z|Europe/Rome|+393331234567|2026-11-20T11:00:00.001Z|Visita",
		"calcom-no-show":          b + "||no_show||||2027-01-21T09:20:00.000Z|",
		"calcom-show":             b + "||arrived||||2027-01-21T09:21:00.000Z|",
		"calcom-requested":        "automation.waits",
		"calcom-requested-move":   a + "||cancelled moved|2027-01-20T14:30:00Z|Europe/Rome|+393331234567|2026-11-20T10:30:00.538Z|Visita",
		"calcom-rejected":         a + "||cancelled|2027-01-20T14:30:00Z|Europe/Rome|+393331234567|2026-11-20T11:00:00.001Z|Visita",
		"calcom-ping":             "automation.other_call",
		"calcom-no-phone":         "calcom:no-phone||open|2027-01-20T14:30:00Z|Europe/Rome||2026-11-20T09:30:00.538Z|Visita",
		"calcom-own-question":     "calcom:asked||open|2027-01-20T14:30:00Z||333 123 4567|2026-11-20T09:30:00.538Z|Visita",
		"calendly-created":        ia + "||open|2027-01-20T14:30:00.000000Z|Europe/Rome|+39 333 123 4567|2026-11-20T09:30:00.000000Z|Visita",
		"calendly-moved-canceled": ia + "||cancelled moved|2027-01-20T14:30:00.000000Z|Europe/Rome|+39 333 123 4567|2026-11-20T10:00:01.000000Z|Visita",
		"calendly-moved-created":  ib + "|" + ia + "|open|2027-01-21T09:00:00.000000Z|Europe/Rome|+39 333 123 4567|2026-11-20T10:00:00.000000Z|Visita",
		"calendly-canceled":       ib + "||cancelled|2027-01-21T09:00:00.000000Z|Europe/Rome|+39 333 123 4567|2026-11-20T11:00:00.000000Z|Visita",
		"calendly-no-show":        ib + "||no_show|2027-01-21T09:00:00.000000Z|Europe/Rome|+39 333 123 4567|2027-01-21T09:20:00.000000Z|Visita",
		"calendly-no-phone":       "calendly:no-phone||open|2027-01-20T14:30:00.000000Z|Europe/Rome||2026-11-20T09:30:00.000000Z|Visita",
		"calendly-routing":        "automation.other_call",

		"easyappointments-save":           "easyappointments:12||open|2027-01-20 15:30:00|||3590341200|",
		"easyappointments-save-customer":  "easyappointments:12||open|2027-01-20 15:30:00||333 123 4567|3590341200|Visita",
		"easyappointments-move":           "easyappointments:12||open|2027-01-21 10:00:00|||3590344800|",
		"easyappointments-no-show":        "easyappointments:12||no_show|2027-01-21 10:00:00|||3601053600|",
		"easyappointments-delete":         "easyappointments:12||cancelled|2027-01-21 10:00:00|||3590344801|",
		"easyappointments-unavailability": "automation.other_call",

		"woocommerce-confirmed":         "woocommerce:55||open|2027-01-20 15:30:00|||1795253500|",
		"woocommerce-confirmed-billing": "woocommerce:55||open|2027-01-20 15:30:00|" + rome + "|333 123 4567|1795253500|Visita",
		"woocommerce-moved":             "woocommerce:55||open|2027-01-21 10:00:00|" + rome + "|333 123 4567|1795257100|Visita",
		"woocommerce-no-show":           "woocommerce:55||no_show|2027-01-21 10:00:00|||1795257200|",
		"woocommerce-cancelled":         "woocommerce:55||cancelled|2027-01-21 10:00:00|||1795260700|",
		"woocommerce-unpaid":            "automation.waits",
		"woocommerce-action":            "woocommerce:55||cancelled|||||",
		"woocommerce-order":             "automation.other_call",
		"woocommerce-test":              "automation.other_call",
	}
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) != len(want) {
		t.Errorf("%d files, %d expectations, %v", len(files), len(want), err)
	}
	for file, says := range want {
		x, reason := read(t, file)
		status := x.Status.String()
		if x.Moved {
			status += " moved"
		}
		got := strings.Join([]string{x.Reference, x.Former, status, x.Date, x.Zone, strings.Join(x.Phones, ","), x.AsOf, x.Service}, "|")
		if reason != "" {
			got = string(reason)
		}
		if got != says {
			t.Errorf("%s:\n got %s\nwant %s", file, got, says)
		}
	}
}

// TestOtherPrograms: a call of one program means nothing to another one's preset, and neither does anything else.
func TestOtherPrograms(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	bodies := []string{`{}`, `[]`, `{"payload":[]}`, `{"event":{}}`, `x=1`}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		bodies = append(bodies, string(text))
	}
	for i, body := range bodies {
		p, err := payload.Parse("", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for _, program := range puntuale.HookPresets() {
			own := i >= 5 && strings.HasPrefix(filepath.Base(files[i-5]), strings.TrimSuffix(string(program), "_bookings"))
			if x, reason := preset.Read(program, p); !own && (reason == "" || x.Reference != "") {
				t.Errorf("%s as %s: %+v", body, program, x)
			}
		}
	}
}
