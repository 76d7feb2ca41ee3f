package migration

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strings"

	"github.com/pressly/goose/v3"
)

// PendingStep is a migration that has not run on a database yet.
type PendingStep struct {
	Number  int64
	Name    string   // such as "health"
	Changes []string // what it does, such as "adds session.link", in the order of the kinds
}

// Missing returns the version of a database's tables, and the migrations that this program would run on it, in their
// order. It only reads. The version is 0 if the database has no tables yet. If a newer program wrote the tables, the
// error wraps puntuale.ErrUntrusted.
func Missing(ctx context.Context, db *sql.DB, database Database) (version int64, missing []PendingStep, err error) {
	err = Check(ctx, db, database)
	switch {
	case err == nil, errors.Is(err, ErrOlder):
		if err := db.QueryRowContext(ctx, "select max(version_id) from "+table).Scan(&version); err != nil {
			return 0, nil, fmt.Errorf("read the tables' version: %w", err)
		}
	case !errors.Is(err, ErrEmpty):
		return 0, nil, err
	}
	names, err := fs.Glob(files, string(database)+"/*.sql")
	if err != nil {
		return 0, nil, fmt.Errorf("list the migrations: %w", err)
	}
	for _, name := range names {
		n, err := goose.NumericComponent(name[len(database)+1:])
		if err != nil {
			return 0, nil, fmt.Errorf("read the number of %s: %w", name, err)
		}
		if n <= version {
			continue
		}
		text, err := fs.ReadFile(files, name)
		if err != nil {
			return 0, nil, fmt.Errorf("read %s: %w", name, err)
		}
		_, called, _ := strings.Cut(strings.TrimSuffix(name, ".sql"), "_")
		missing = append(missing, PendingStep{Number: n, Name: called, Changes: changesOf(string(text))})
	}
	slices.SortFunc(missing, func(a, b PendingStep) int { return int(a.Number - b.Number) })
	return version, missing, nil
}

var (
	sqlComment = regexp.MustCompile(`--.*`)
	alterTable = regexp.MustCompile(`alter table (?:only )?(?:if exists )?(\w+) ([^;]*)`)
	columnPart = regexp.MustCompile(`(add|drop) column (?:if (?:not )?exists )?(\w+)`)
	statements = []struct {
		verb  string
		shape *regexp.Regexp
	}{
		{"creates table %s", regexp.MustCompile(`create (?:unlogged )?table (?:if not exists )?(\w+)`)},
		{"removes table %s", regexp.MustCompile(`drop table (?:if exists )?(\w+)`)},
		{"creates an index on %s", regexp.MustCompile(`create (?:unique )?index (?:concurrently )?(?:if not exists )?\w+ on (?:only )?(\w+)`)},
		{"removes index %s", regexp.MustCompile(`drop index (?:concurrently )?(?:if exists )?(\w+)`)},
		{"changes rows of %s", regexp.MustCompile(`(?:^|;) ?update (\w+)`)},
		{"deletes rows of %s", regexp.MustCompile(`(?:^|;) ?delete from (\w+)`)},
	}
)

// changesOf summarizes the statements of a migration. It leaves out rows that a migration inserts, because these only
// belong to tables that are new.
func changesOf(text string) (changes []string) {
	_, text, _ = strings.Cut(text, "+goose Up")
	text = strings.Join(strings.Fields(strings.ToLower(sqlComment.ReplaceAllString(text, ""))), " ")
	add := func(form string, names []string) {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 0 {
			changes = append(changes, fmt.Sprintf(form, strings.Join(names, ", ")))
		}
	}
	names := func(shape *regexp.Regexp) (all []string) {
		for _, m := range shape.FindAllStringSubmatch(text, -1) {
			all = append(all, m[1])
		}
		return all
	}
	for _, s := range statements[:2] {
		add(s.verb, names(s.shape))
	}
	var added, dropped, altered []string
	for _, alter := range alterTable.FindAllStringSubmatch(text, -1) {
		columns := columnPart.FindAllStringSubmatch(alter[2], -1)
		for _, c := range columns {
			if name := alter[1] + "." + c[2]; c[1] == "add" {
				added = append(added, name)
			} else {
				dropped = append(dropped, name)
			}
		}
		if len(columns) == 0 {
			altered = append(altered, alter[1])
		}
	}
	add("adds %s", added)
	add("removes %s", dropped)
	add("alters %s", altered)
	for _, s := range statements[2:] {
		add(s.verb, names(s.shape))
	}
	return changes
}
