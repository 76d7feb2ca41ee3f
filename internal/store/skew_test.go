package store_test

import (
	_ "embed"
	"strings"
	"testing"

	"puntuale/internal/store/storetest"
)

//go:embed testdata/statements-1.sql
var statementsBefore string

// TestStatementsOfVersionBefore checks that the statements of nodes of the previous version still work after a newer
// node has migrated the tables.
func TestStatementsOfVersionBefore(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	_, statements, _ := strings.Cut(statementsBefore, "\n\n")
	n := 0
	for text := range strings.SplitSeq(strings.TrimSpace(statements), ";\n") {
		prepared, err := d.SQL.Prepare(strings.TrimSuffix(strings.TrimSpace(text), ";"))
		if err != nil {
			t.Errorf("%s\n%v", text, err)
			continue
		}
		prepared.Close()
		n++
	}
	if n < 140 {
		t.Errorf("only %d statements", n)
	}
}
