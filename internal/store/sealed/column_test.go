//go:build !nosocket

package sealed_test

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/connector/socket"
	"puntuale/internal/store/sealed"
	"puntuale/internal/store/storetest"
)

// TestPurposes: the columns have what is sealed for every purpose. A browser's cookie is not in the database.
func TestPurposes(t *testing.T) {
	t.Parallel()
	all := sealed.Purposes()
	for _, purpose := range puntuale.SealPurposes {
		if slices.Contains(all, purpose) == (purpose == puntuale.SealedBrowser) {
			t.Errorf("no column, or one too many, is named for what is sealed for %q", purpose)
		}
	}
	for _, purpose := range all {
		if !slices.Contains(puntuale.SealPurposes, purpose) {
			t.Errorf("a column is named for %q, which is no purpose", purpose)
		}
	}
}

// notSealed are the columns of bytes whose data the vault does not seal.
var notSealed = []string{
	"api_key.hash", "brand.logo", "device.token", "file.hash", "file.small", "file_part.content", "file_part.hash", "idempotency.result", "automation.payload", "run.request",
	"result_change.messages", "result_month.counts", "result_month.hours", "result_month.words", "statement_part.messages",
}

// libraryNotSealed are those of linked numbers. [socket] says why pre-keys are not sealed. The keys of a device are in
// socket_device, and the library's own columns have zeros.
var libraryNotSealed = []string{
	"whatsmeow_device.*", "whatsmeow_identity_keys.identity", "whatsmeow_pre_keys.key", "whatsmeow_app_state_sync_keys.key_id", "whatsmeow_app_state_sync_keys.fingerprint",
	"whatsmeow_app_state_version.hash", "whatsmeow_app_state_mutation_macs.index_mac", "whatsmeow_app_state_mutation_macs.value_mac", "whatsmeow_event_buffer.ciphertext_hash",
}

// TestColumns: somebody has decided for each column of bytes whether a replacement of the data key must seal it again.
func TestColumns(t *testing.T) {
	t.Parallel()
	db := storetest.SQLite(t)
	s := db.Open(t)
	own, theirs := sealed.Names()
	compare(t, db.SQL, own, notSealed)
	numbers, _, err := s.WhatsApp(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	defer numbers.Close()
	if err := socket.MakeTables(context.Background(), socket.Database{DB: numbers}); err != nil {
		t.Fatal(err)
	}
	compare(t, numbers, theirs, libraryNotSealed)
}

func compare(t *testing.T, db *sql.DB, known, plain []string) {
	t.Helper()
	rows, err := db.Query(`select t.name, c.name from sqlite_schema t join pragma_table_xinfo(t.name) c where t.type = 'table' and lower(c.type) in ('blob', 'bytea')`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]bool{}
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			t.Fatal(err)
		}
		found[table+"."+name] = true
		named := slices.Contains(known, table+"."+name)
		if named == (slices.Contains(plain, table+"."+name) || slices.Contains(plain, table+".*")) {
			t.Errorf("is %s.%s sealed? Add it to the columns of this package, or to the list of this test", table, name)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Concat(known, plain) {
		if !found[name] && !strings.HasSuffix(name, ".*") {
			t.Errorf("there is no column %s of bytes", name)
		}
	}
}
