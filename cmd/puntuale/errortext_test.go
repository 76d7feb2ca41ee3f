package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"puntuale"
)

// coded is an error with a number, like the errors of SQLite's driver.
type coded int

func (c coded) Error() string { return "attempt to write a readonly database" }
func (c coded) Code() int     { return int(c) }

// TestRefusalsBeginWithTheReason: error texts are the sentences of docs/troubleshooting.md, without codes and
// passwords.
func TestRefusalsBeginWithTheReason(t *testing.T) {
	t.Parallel()
	file := &baseSettings{Data: "data"}
	server := &baseSettings{Database: "postgres://u:hunter2@h/db"}
	unavailable := func(err error) error {
		return fmt.Errorf("open the store: %w", puntuale.Unavailable(fmt.Errorf("check the file: %w", err)))
	}
	for _, test := range []struct {
		settings *baseSettings
		err      error
		want     string
	}{
		{file, unavailable(&fs.PathError{Op: "open", Path: "data/x", Err: fs.ErrPermission}), "permission denied: cannot open data/x"},
		{file, unavailable(coded(1544)), "read-only: data/puntuale.db cannot be written"},
		{&baseSettings{Database: "sqlite:/a/b.db?_pragma=x"}, unavailable(coded(8)), "read-only: /a/b.db cannot be written"},
		{file, unavailable(coded(5)), "the store cannot be reached: check the file"},
		{server, unavailable(errors.New("refused")), "the store cannot be reached: check the file: refused"},
		{file, puntuale.Conflict("store.dispatched_by_another"), "this database is in use: another process dispatches from this file (data/puntuale.db)"},
		{file, fmt.Errorf("%w: newer", puntuale.ErrUntrusted), "puntuale: the store cannot be trusted: newer"},
	} {
		if got := opening(test.err, test.settings).Error(); !strings.HasPrefix(got, test.want) || strings.Contains(got, "hunter2") {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	for address, want := range map[string]string{"postgres://u:hunter2@h/db": "postgres://u:xxxxx@h/db", "sqlite:/a/b.db": "/a/b.db", "sqlite:b.db": "b.db"} {
		if got := databaseName(&baseSettings{Database: address}); got != want {
			t.Errorf("%s is shown as %s", address, got)
		}
	}
}

// TestTerminalText: an error is printed with the sentence of its reason, even if another error wraps it.
func TestTerminalText(t *testing.T) {
	t.Parallel()
	inner := puntuale.Conflict("store.dispatched_by_another")
	for want, err := range map[string]error{
		"open: unavailable: the store cannot be reached: lock: conflict: another process dispatches from this file": fmt.Errorf("open: %w", puntuale.Unavailable(fmt.Errorf("lock: %w", inner))),
		"invalid: the request is not valid; body.name: is longer than 3 characters":                                 puntuale.Invalid(puntuale.Because(puntuale.FaultLongerThanCharacters, "3").At("body.name", nil)),
		"plain": errors.New("plain"),
	} {
		if got := terminalText(err); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
