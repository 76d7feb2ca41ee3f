package store_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"puntuale/internal/store/archive"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// later lists columns and tables that files with the first schema do not contain.
var later = []string{"secret", "late_run", "client.blanked_to", "client.erased", "run.blanked_at", "session.number"}

// TestOldFile imports a file with the first schema, in the first version of the format. Such files must stay readable
// for ever. The file was written once, with UPDATE=first, and must never be written again.
func TestOldFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join("testdata", "export-1-1.gz")
	if os.Getenv("UPDATE") == "first" {
		file := without(t, exported(t, newInstallation(t, storetest.SQLite(t)).DB, transfer.ExportConfig{Final: false}), later)
		if err := os.WriteFile(name, file, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			h, err := transfer.Import(context.Background(), d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, table := range h.Tables {
				n := count(t, d, "select count(*) from "+table.Name)
				if n < table.Rows || n > table.Rows && table.Name != "counter" {
					t.Errorf("%s has %d rows, the file %d", table.Name, n, table.Rows)
				}
			}
			if n := count(t, d, "select count(*) from run where blanked_at = 0"); h.Schema != 1 || n == 0 {
				t.Errorf("schema %d, %d runs with the default", h.Schema, n)
			}
			// The import must create this counter, because the file does not contain it.
			if n := count(t, d, "select count(*) from counter where noun = 'command'"); n != 1 {
				t.Error("a counter that the file does not have is gone")
			}
			s := d.Open(t)
			if err := s.Check(context.Background()); err != nil {
				t.Error(err)
			}
			for more := true; more; { // the file has no results, so all messages are counted
				if more, err = s.CountResults(context.Background(), 100); err != nil {
					t.Fatal(err)
				}
			}
			if n := count(t, d, "select count(*) from result_message"); n == 0 {
				t.Error("the messages of the file are not counted")
			}
		})
	}
}

// without removes tables and columns from a file as if they had never existed. It also removes the counters of these
// tables.
func without(t *testing.T, file []byte, names []string) []byte {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header
	h.Schema, h.Tables = 1, nil
	rows := map[string][][]any{}
	for {
		from, found, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		var keep []int
		to := archive.Table{Name: from.Name}
		for i, c := range from.Columns {
			if !slices.Contains(names, from.Name+"."+c.Name) {
				keep = append(keep, i)
				to.Columns = append(to.Columns, c)
			}
		}
		for row := make([]any, len(from.Columns)); ; {
			if found, err := r.Row(row); err != nil {
				t.Fatal(err)
			} else if !found {
				break
			}
			var kept []any
			for _, i := range keep {
				kept = append(kept, row[i])
			}
			if from.Name != "counter" || kept[0] != "command" {
				rows[to.Name] = append(rows[to.Name], kept)
			}
		}
		if to.Rows = int64(len(rows[to.Name])); !slices.Contains(names, to.Name) {
			h.Tables = append(h.Tables, to)
		}
	}
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, h)
	for _, table := range h.Tables {
		for i := -1; err == nil && i < len(rows[table.Name]); i++ {
			if i < 0 {
				err = w.Begin()
				continue
			}
			err = w.Row(rows[table.Name][i])
		}
		if err == nil {
			err = w.End()
		}
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}
