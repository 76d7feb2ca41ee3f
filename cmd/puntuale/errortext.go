package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"puntuale"
	"puntuale/internal/catalogue"

	"puntuale/internal/logging"
)

// forPeople returns an error with a text for people. The text has no codes, and its faults name flags.
func forPeople(err error) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok || e.Code == puntuale.CodeInternal || puntuale.StoreAway(e) {
		return err
	}
	if len(e.Faults) == 0 {
		return errors.New(catalogue.Message(e.Reason))
	}
	var texts []string
	for _, f := range e.Faults {
		texts = append(texts, "--"+f.Location+" "+catalogue.Message(f.Reason()))
	}
	return errors.New(strings.Join(texts, "; "))
}

// terminalText returns an error's text. Reasons appear as sentences, and not as codes.
func terminalText(err error) string {
	e, ok := errors.AsType[*puntuale.Error](err)
	if !ok {
		return err.Error()
	}
	said := string(e.Code) + ": " + catalogue.Message(e.Reason)
	for _, f := range e.Faults {
		said += "; " + f.Location + ": " + catalogue.Message(f.Reason())
	}
	if e.Err != nil {
		said += ": " + terminalText(e.Err)
	}
	return strings.Replace(err.Error(), e.Error(), said, 1)
}

// sqliteReadOnly is SQLite's code for a read-only file or folder.
const sqliteReadOnly = 8

// opening returns the error of a store that could not be opened. Its text begins with the reason, as
// docs/troubleshooting.md writes it.
func opening(err error, s *baseSettings) error {
	e, ok := errors.AsType[*puntuale.Error](err)
	where := databaseName(s)
	switch {
	case !ok:
		return err
	case e.Code == puntuale.CodeConflict:
		return fmt.Errorf("this database is in use: %s (%s)", catalogue.Message(e.Reason), where)
	case !puntuale.StoreAway(e):
		return forPeople(err)
	}
	if denied, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("%w: cannot %s %s, so the store cannot be opened", denied.Err, denied.Op, denied.Path)
	}
	if coded, ok := errors.AsType[interface {
		error
		Code() int
	}](err); ok && coded.Code()&0xff == sqliteReadOnly {
		return fmt.Errorf("read-only: %s cannot be written, or its folder cannot", where)
	}
	return fmt.Errorf("%s: %w", catalogue.Message(e.Reason), e.Err)
}

// databaseName says where the data is, for people.
func databaseName(s *baseSettings) string {
	if file := databaseFile(s, s.Data); file != "" {
		return file
	}
	return logging.MaskedAddress(s.Database)
}

// databaseFile returns the SQLite file that the settings name, or "" if they name another database.
func databaseFile(s *baseSettings, data string) string {
	if s.Database == "" {
		return filepath.Join(data, "puntuale.db")
	}
	u, err := url.Parse(s.Database)
	switch {
	case err != nil || u.Scheme != "sqlite":
		return ""
	case u.Opaque != "":
		return u.Opaque
	}
	return u.Path
}

// newFile returns the SQLite file that the settings name, if the file does not exist yet. Otherwise it returns "".
func newFile(s *baseSettings, data string) string {
	file := databaseFile(s, data)
	if file == "" {
		return ""
	}
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return file
	}
	return ""
}
