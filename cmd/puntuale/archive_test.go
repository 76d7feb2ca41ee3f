package main

import (
	"strings"
	"testing"
)

// TestArchiveSettings: the command refuses settings that exclude each other, before it archives anything.
func TestArchiveSettings(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"config --archive a": "",
		"config --archive a --keep-contents 12w --archive-after 84d": "",
		"config --archive a --archive-after never":                   "",
		"config --archive-after 1d":                                  "",
		"config --archive a --keep-contents never":                   "only what is blanked",
		"config --archive a --archive-after 23mo":                    "less than keep-contents, which is 24mo",
		"config --archive a --archive-after soon":                    "is not a time",
		"archive show --archive a":                                   "say which messages",
		"archive show --archive a --id 1,x":                          "--id",
		"archive show --archive a --from yesterday":                  "is not a moment such as",
		"archive list": "must name the archive's folder",
		"archive show --archive a --id 1 --from 2024-03-01T09:00:00Z --to 2024-03-02": "no archive yet",
		"archive check --archive a": "no archive yet",
		"archive begin --archive a": "there is no database",
	} {
		term := newConsole(t, nil)
		code, _, errs := term.runs("", strings.Fields(line)...)
		if (says == "") != (code == exitDone) || !strings.Contains(errs, says) {
			t.Errorf("puntuale %s: exit code %d, %s", line, code, errs)
		}
	}
}

func TestArchiveBegin(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	for _, args := range [][]string{
		{"partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42"},
		{"archive", "begin", "--archive", "first"}, {"archive", "begin", "--archive", "second"},
		{"archive", "check", "--archive", "first"}, {"archive", "list", "--archive", "second"},
	} {
		if code, _, errs := term.runs("", args...); code != exitDone {
			t.Errorf("puntuale %v: exit code %d, %s", args, code, errs)
		}
	}
	if code, _, errs := term.runs("", "archive", "show", "--archive", "first", "--id", "7"); code != exitFailed || !strings.Contains(errs, "holds no such message") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}
