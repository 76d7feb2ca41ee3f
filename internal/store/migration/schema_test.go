package migration_test

import (
	"errors"
	"math"
	"os"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/store/migration"
)

func (x *target) exec(t *testing.T, text string) {
	t.Helper()
	if _, err := x.db.Exec(text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestCompare removes one thing at a time from the tables. The error must name the removed thing.
func TestCompare(t *testing.T) {
	t.Parallel()
	for what, names := range map[string]string{
		"drop index message_done":                                                             "index",
		"alter table session drop column link_detail":                                         "column session.link_detail text not null",
		"drop table late_archive":                                                             "column late_archive.since",
		"delete from counter where noun = 'erasure'":                                          "counter erasure",
		"alter table audit rename column target to target_gone":                               "column audit.target",
		"drop index message_open; create index message_open on message (session_id, next_at)": "message_open",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			targets(t, func(t *testing.T, make func() *target) {
				x := make()
				x.up(t, math.MaxInt64)
				x.exec(t, "create table others (a integer); create index others_own on message (phone)") // Compare must ignore these additions
				if err := migration.Compare(t.Context(), x.db, x.which); err != nil {
					t.Fatalf("as the steps make them: %v", err)
				}
				x.exec(t, what)
				err := migration.Compare(t.Context(), x.db, x.which)
				if !errors.Is(err, puntuale.ErrUntrusted) || !strings.Contains(err.Error(), names) {
					t.Errorf("error = %v, want one that names %q", err, names)
				}
			})
		})
	}
}

// TestRepairsEditedStep uses a database that ran an earlier text of migration 2. The later migrations must repair the
// tables and keep the rows.
func TestRepairsEditedStep(t *testing.T) {
	t.Parallel()
	targets(t, func(t *testing.T, make func() *target) {
		x := make()
		x.up(t, 1)
		step, err := os.ReadFile("testdata/" + string(x.which) + "_00002_618c0ec.sql")
		if err != nil {
			t.Fatal(err)
		}
		x.exec(t, string(step))
		x.exec(t, "insert into puntuale_version (version_id, is_applied) values (2, true)")
		x.exec(t, "insert into late_run (client_id, run_id) values (3, 4)")
		x.up(t, math.MaxInt64)
		if err := migration.Compare(t.Context(), x.db, x.which); err != nil {
			t.Error(err)
		}
		var rows, since int
		if err := x.db.QueryRow("select count(*), max(since) from late_run where client_id = 3 and run_id = 4").Scan(&rows, &since); err != nil || rows != 1 || since != 0 {
			t.Errorf("%d rows since %d (%v)", rows, since, err)
		}
	})
}
