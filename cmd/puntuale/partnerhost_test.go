package main

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
)

// TestPartnerHost lists the host names that partners ask for. It confirms one of them, and then ends the confirmation.
func TestPartnerHost(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	for _, name := range []string{"Agenzia Rossi", "Agenzia Verdi"} {
		if code, _, said := term.runs("", "partner", "create", "--name", name, "--email", "a@example.com", "--password", "una frase lunga 42", "--another"); code != exitDone {
			t.Fatal(said)
		}
	}
	opened, err := store.Open(context.Background(), engine.Config{Data: filepath.Join(term.dir, "puntuale-data"), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	for id, name := range map[puntuale.PartnerID]string{1: "msg.example.com", 2: "app.example.com"} {
		if err := opened.Partner(id).SetBrand(context.Background(), puntuale.Brand{Host: name}); err != nil {
			t.Fatal(err)
		}
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		args []string
		code int
		says string
	}{
		{nil, exitDone, "app.example.com  2        Agenzia Verdi  not confirmed\nmsg.example.com  1        Agenzia Rossi  not confirmed\n"},
		{[]string{"--confirm", "msg.example.com"}, exitUsage, "--partner"},
		{[]string{"--partner", "1"}, exitUsage, "--confirm or --withdraw"},
		{[]string{"--partner", "1", "--confirm", "other.example.com"}, exitFailed, "host name not found"},
		{[]string{"--partner", "2", "--confirm", "APP.example.com", "--public-url", "https://app.example.com"}, exitFailed, "this service's own address"},
		{[]string{"--partner", "1", "--confirm", "MSG.example.com"}, exitDone, "is the host name of partner 1"},
		{nil, exitDone, "Agenzia Rossi  confirmed\n"},
		{[]string{"--partner", "1", "--withdraw"}, exitDone, "no confirmed host name"},
		{nil, exitDone, "Agenzia Rossi  not confirmed\n"},
	} {
		code, out, said := term.runs("", append([]string{"partner", "host"}, step.args...)...)
		if code != step.code || !strings.Contains(out+said, step.says) {
			t.Errorf("%v: exit code %d, %s%s", step.args, code, out, said)
		}
	}
}
