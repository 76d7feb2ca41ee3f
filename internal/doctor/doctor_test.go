package doctor

import (
	"context"
	"crypto/x509"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

var now = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// level returns the worst level of a subject, and its texts.
func level(all []Finding, subject string) (worst Level, text string) {
	for _, f := range all {
		if f.Subject == subject {
			text += f.Text + " " + f.Do + "\n"
			if worst == "" || f.Level == Fault || f.Level == Warning && worst == OK {
				worst = f.Level
			}
		}
	}
	return worst, text
}

// TestPublicAddress puts proxies with different mistakes in front of a server.
func TestPublicAddress(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		health, figures int
		strict          bool
		want            map[string]Level
	}{
		"right":                {200, 404, true, map[string]Level{"public address": OK, "proxy": OK, "metrics": "", "TLS": OK}},
		"headers not passed":   {200, 404, false, map[string]Level{"public address": OK, "proxy": Fault}},
		"figures for everyone": {200, 200, true, map[string]Level{"metrics": Warning}},
		"another server":       {404, 404, true, map[string]Level{"public address": Fault, "proxy": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.strict {
					w.Header().Set("Strict-Transport-Security", "max-age=1")
				}
				switch r.URL.Path {
				case "/healthz":
					w.WriteHeader(c.health)
				case "/metrics":
					w.WriteHeader(c.figures)
				}
			}))
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			all := lookAtPublic(t.Context(), &Config{PublicURL: server.URL, Roots: roots, Now: now})
			for subject, want := range c.want {
				if got, text := level(all, subject); got != want {
					t.Errorf("%s is %q, want %q: %s", subject, got, want, text)
				}
			}
			if got, text := level(lookAtPublic(t.Context(), &Config{PublicURL: server.URL, Roots: roots, Now: server.Certificate().NotAfter.Add(-time.Hour)}), "TLS"); c.health == 200 && got != Warning {
				t.Errorf("an hour before the certificate ends: %s %s", got, text)
			}
			if got, text := level(lookAtPublic(t.Context(), &Config{PublicURL: server.URL, Roots: x509.NewCertPool(), Now: now}), "public address"); got != Fault || !strings.Contains(text, "valid certificate") {
				t.Errorf("with an unknown certificate: %s %s", got, text)
			}
		})
	}
	for address, want := range map[string]Level{"http://messages.example.com": Fault, "http://127.0.0.1:8080": Warning, "https://nowhere.invalid": Fault} {
		if got, text := level(lookAtPublic(t.Context(), &Config{PublicURL: address, Now: now}), "public address"); got != want {
			t.Errorf("%s: %s %s", address, got, text)
		}
	}
	for local, want := range map[bool]Level{true: Warning, false: Fault} {
		if got, _ := level(lookAtPublic(t.Context(), &Config{Local: local}), "public address"); got != want {
			t.Errorf("local %v: %s", local, got)
		}
	}
}

// TestFindings: each thing that can be wrong has its level.
func TestFindings(t *testing.T) {
	t.Parallel()
	space := func(free, size uint64) func(string) (uint64, uint64, error) {
		return func(string) (uint64, uint64, error) { return free, size, nil }
	}
	backups := func(f BackupFacts) Config {
		return Config{Backup: func(context.Context) (BackupFacts, error) { return f, nil }, Now: now}
	}
	good := BackupFacts{Scheduled: true, Remote: true, Encrypted: true, Last: now.Add(-time.Hour), Rehearsed: now.Add(-time.Hour), RehearsalIs: "1,204,331 messages, equal"}
	changed := func(change func(*BackupFacts)) Config {
		f := good
		change(&f)
		return backups(f)
	}
	failed := func(context.Context) error { return errors.New("no") }
	worked := func(context.Context) error { return nil }
	database := func(d DatabaseFacts, err error) Config {
		return Config{Database: func(context.Context) (DatabaseFacts, error) { return d, err }}
	}
	folders := map[string]string{"data": "/x"}
	for name, c := range map[string]struct {
		cfg     Config
		subject string
		want    Level
		says    string
	}{
		"backup":                 {backups(good), "backup", OK, "1.0 hours old"},
		"rehearsal":              {backups(good), "rehearsal", OK, "Rehearsed at 11:00 UTC: 1,204,331 messages, equal"},
		"no backup":              {backups(BackupFacts{}), "backup", Fault, "never"},
		"old backup":             {changed(func(f *BackupFacts) { f.Last = now.Add(-75 * time.Hour) }), "backup", Fault, "3 days old"},
		"failed backup":          {changed(func(f *BackupFacts) { f.Fault = "AccessDenied" }), "backup", Fault, "AccessDenied"},
		"failed rehearsal":       {changed(func(f *BackupFacts) { f.Failed = "there is no room" }), "rehearsal", Fault, "no room"},
		"old rehearsal":          {changed(func(f *BackupFacts) { f.Rehearsed = now.Add(-72 * time.Hour) }), "rehearsal", Fault, "3 days"},
		"never rehearsed":        {changed(func(f *BackupFacts) { f.Rehearsed = time.Time{} }), "rehearsal", Warning, ""},
		"not encrypted":          {changed(func(f *BackupFacts) { f.Encrypted = false }), "backup", Warning, "age-keygen"},
		"on the same machine":    {changed(func(f *BackupFacts) { f.Remote = false }), "backup", Warning, "this machine"},
		"full disk":              {Config{Folders: folders, Space: space(100<<20, 100<<30)}, "disk of data", Fault, "0.1 of 100.0 GiB"},
		"low disk":               {Config{Folders: folders, Space: space(2<<30, 100<<30)}, "disk of data", Warning, ""},
		"disk":                   {Config{Folders: folders, Space: space(50<<30, 100<<30)}, "disk of data", OK, ""},
		"open folder":            {Config{Folders: folders, Space: space(50<<30, 100<<30), Open: func(string) bool { return true }}, "disk of data", Warning, "chmod 700"},
		"no key":                 {Config{}, "key", Fault, "openssl rand"},
		"open key":               {Config{Key: KeyFacts{File: "k", Open: true}}, "key", Fault, "chmod 600"},
		"key in the environment": {Config{Key: KeyFacts{Given: true}}, "key", OK, ""},
		"key":                    {Config{Key: KeyFacts{File: "k"}}, "key", OK, ""},
		"mail server silent":     {Config{Mails: true, Mail: failed}, "e-mail", Fault, "--smtp"},
		"scanner silent":         {Config{Scanner: failed}, "virus scanner", Fault, "--clamd"},
		"scanner":                {Config{Scanner: worked}, "virus scanner", OK, ""},
		"mail":                   {Config{Mails: true, Mail: worked}, "e-mail", OK, ""},
		"no mail":                {Config{}, "e-mail", Warning, ""},
		"database":               {database(DatabaseFacts{Name: "d"}, nil), "database", OK, ""},
		"old database":           {database(DatabaseFacts{Name: "d", Made: "PostgreSQL 14.2", Old: true}, nil), "database", Fault, "PostgreSQL 14.2 is too old"},
		"database away":          {database(DatabaseFacts{}, errors.New("the store cannot be reached")), "database", Fault, "cannot be reached"},
		"database's clock":       {database(DatabaseFacts{Name: "d", Ahead: time.Minute}, nil), "database", Warning, "1m0s ahead"},
		"damaged database":       {database(DatabaseFacts{Name: "d", Damage: errors.New("page 7")}, nil), "database", Fault, "page 7"},
		"clock":                  {Config{Clock: func() error { return nil }}, "clock", OK, ""},
		"clock not set":          {Config{Clock: func() error { return ErrUnsynchronised }}, "clock", Warning, "chrony"},
		"unknown clock":          {Config{Clock: func() error { return errors.ErrUnsupported }}, "clock", "", ""},
		"few files":              {Config{Files: 1024, Needed: 4396}, "open files", Warning, "1024"},
		"server does not run":    {Config{Server: failed}, "server", Warning, "puntuale serve"},
	} {
		all := Look(t.Context(), &c.cfg)
		if got, text := level(all, c.subject); got != c.want || !strings.Contains(text, c.says) {
			t.Errorf("%s: %q, want %q and %q: %s", name, got, c.want, c.says, text)
		}
	}
	if got := Worst([]Finding{{Level: OK}, {Level: Warning}}); got != Warning {
		t.Errorf("the worst is %s", got)
	}
}

// TestMachine asks the real machine.
func TestMachine(t *testing.T) {
	t.Parallel()
	if err := Synchronised(); err != nil && !errors.Is(err, ErrUnsynchronised) && !errors.Is(err, errors.ErrUnsupported) {
		t.Error(err)
	}
}
