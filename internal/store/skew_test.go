package store_test

import (
	_ "embed"
	"strings"
	"testing"

	"puntuale/internal/store/storetest"
)

//go:embed testdata/statements-1.sql
var statementsBefore string

// TestStatementsOfVersionBefore checks the statements of the previous version of the program. They must still work
// after a node of the new version has migrated the tables.
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
