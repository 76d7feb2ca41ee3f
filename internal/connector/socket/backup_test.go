//go:build !nosocket

package socket_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/socket"
	"puntuale/internal/connector/socket/whatsapptest"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

func makeTables(ctx context.Context, db *sql.DB, postgres bool) error {
	return socket.MakeTables(ctx, socket.Database{DB: db, Postgres: postgres})
}

// backedUp writes a backup of a database and opens it.
func backedUp(t *testing.T, d *storetest.Database) *archive.BackupReader {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup.zip")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Backup(t.Context(), d.Config, file, transfer.BackupConfig{Program: "test", Finish: func() error {
		return errors.Join(file.Close(), transfer.CheckBackup(t.Context(), name))
	}}); err != nil {
		t.Fatal(err)
	}
	r, err := archive.OpenBackup(name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// TestRestoredNumber links a number, writes a backup, and lets the number send more messages. It then restores the
// backup to both kinds of database. The restored number is still linked, and phones show its messages.
//
// The restore leaves out the old encryption states. With them, the number would use message numbers a second time, and
// the phone would drop those messages.
func TestRestoredNumber(t *testing.T) {
	t.Parallel()
	drivers := map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres}
	for from, driver := range drivers {
		t.Run("from "+from, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			db, postgres, err := d.Open(t).WhatsApp(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			w := newWorldWith(t, db, postgres)
			w.net.FewKeys()
			w.link()
			anna, bert := w.net.Phone(annaNumber), w.net.Phone("393330000003")
			group := w.net.Group("banco", w.shop, anna.Account, bert.Account).JID().String()
			says := func(t *testing.T, to, text string) {
				t.Helper()
				w.mustSend(w.text(to, text))
				anna.Await(t, whatsapptest.Text(text))
			}
			says(t, "+"+annaNumber, "prima")
			says(t, group, "prima, a tutti")
			w.fillTables()
			backup := backedUp(t, d)
			want := rowsIn(t, backup)
			want["whatsmeow_sessions"], want["whatsmeow_sender_keys"] = 0, 0
			want["whatsmeow_pre_keys"]++ // a restored number gets one more pre-key, and only one number has keys
			for i := range 3 {
				says(t, "+"+annaNumber, fmt.Sprintf("dopo %d", i))
				says(t, group, fmt.Sprintf("dopo %d, a tutti", i))
			}
			for _, to := range slices.Sorted(maps.Keys(drivers)) {
				t.Run("to "+to, func(t *testing.T) {
					w.stop()
					w.db, w.postgres = w.restored(drivers[to](t), backup)
					for table, n := range want {
						var got int64
						if err := w.db.QueryRow("select count(*) from " + table).Scan(&got); err != nil || got != n {
							t.Errorf("%s: %d rows of %d, %v", table, got, n, err)
						}
					}
					w.reports = []puntuale.LinkReport{{Session: theSession, State: puntuale.LinkLinked, Number: "+" + shopNumber}} // the state in which a restore leaves the session
					w.start()
					w.open()
					w.awaitWord("online")
					says(t, "+"+annaNumber, "ripristinato in "+to)
					says(t, group, "ripristinato in "+to+", a tutti")
					if _, err := bert.Send(t.Context(), shopNumber, "eccomi da "+to); err != nil {
						t.Fatal(err)
					}
					w.await("what Bert wrote", func() bool { return w.heard(bert.JID().User) > 0 || w.heard("+"+bert.JID().User) > 0 })
				})
			}
			if n := len(w.shop.Devices()); n != 2 {
				t.Errorf("%d devices: it was linked anew", n)
			}
			t.Run("refused", func(t *testing.T) { refusedNumbers(t, driver, backup, d, db) })
		})
	}
}

// refusedNumbers tries to restore backups that must be refused, and backups that cannot be restored completely. from is
// the database from which the backup was made, and kept contains the keys of that database's numbers.
func refusedNumbers(t *testing.T, driver storetest.Driver, backup *archive.BackupReader, from *storetest.Database, kept *sql.DB) {
	to := driver(t)
	if done, err := transfer.Restore(t.Context(), to.Config, backup, transfer.RestoreConfig{}); err != nil || !done.LeftOut || done.Linked != 0 {
		t.Errorf("by a program that links none: %+v, %v", done, err)
	}
	taken := driver(t)
	s := taken.Open(t)
	db, postgres, err := s.WhatsApp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := makeTables(t.Context(), db, postgres); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("insert into socket_note (name, value) values ('x', 'y')"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Restore(t.Context(), taken.Config, backup, transfer.RestoreConfig{MakeNumbers: makeTables}); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("where numbers are already: %v", err)
	}
	for version, says := range map[int]string{99: archive.ErrNewer.Error(), 1: "restore with the program that made it (test)"} {
		if _, err := kept.Exec("update whatsmeow_version set version = $1", version); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second round shows that the refused restore left an empty database
			if _, err := transfer.Restore(t.Context(), taken.Config, backedUp(t, from), transfer.RestoreConfig{MakeNumbers: func(ctx context.Context, db *sql.DB, postgres bool) error {
				_, err := db.Exec("delete from socket_note")
				return errors.Join(err, makeTables(ctx, db, postgres))
			}}); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("version %d: %v", version, err)
			}
		}
	}
	if done, err := transfer.Restore(t.Context(), taken.Config, backup, transfer.RestoreConfig{MakeNumbers: makeTables}); err != nil || done.Linked != 2 {
		t.Errorf("restored after all: %+v, %v", done, err)
	}
}

// TestNumberAfterFailover checks two failovers. The first failover lost nothing, so the encryption states stay. The
// second failover lost commits. The lost commits may have contained changes of encryption states, so all states are
// removed.
func TestNumberAfterFailover(t *testing.T) {
	t.Parallel()
	d := storetest.Postgres(t)
	s := d.Open(t)
	db, postgres, err := s.WhatsApp(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldWith(t, db, postgres)
	w.net.FewKeys()
	w.link()
	anna := w.net.Phone(annaNumber)
	w.mustSend(w.text("+"+annaNumber, "prima"))
	anna.Await(t, whatsapptest.Text("prima"))
	states := func() (n int) {
		t.Helper()
		if err := db.QueryRow("select count(*) from whatsmeow_sessions").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, lost := range []bool{false, true} {
		want := states()
		if want == 0 {
			t.Error("there is no state to lose, so this shows nothing")
		}
		if lost {
			want = 0
		}
		if _, err := db.Exec("update cluster set timeline = timeline - 1, synchronous = $1", map[bool]int{false: 1}[lost]); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Join(t.Context(), time.Minute); err != nil {
			t.Fatal(err)
		}
		if got := states(); got != want {
			t.Errorf("commits were lost: %v; %d states of encryption, not %d", lost, got, want)
		}
	}
	w.mustSend(w.text("+"+annaNumber, "dopo"))
	anna.Await(t, whatsapptest.Text("dopo"))
}

// restored restores a backup into an empty database. It returns the database with the keys, and whether it is
// PostgreSQL.
func (w *world) restored(to *storetest.Database, backup *archive.BackupReader) (*sql.DB, bool) {
	w.t.Helper()
	done, err := transfer.Restore(w.t.Context(), to.Config, backup, transfer.RestoreConfig{MakeNumbers: makeTables})
	if err != nil || done.Linked != 2 || done.LeftOut {
		w.t.Fatalf("restored: %+v, %v", done, err)
	}
	s := to.Open(w.t.(*testing.T))
	db, postgres, err := s.WhatsApp(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	return db, postgres
}

// fillTables adds rows to the tables that are still empty after a number's first messages.
func (w *world) fillTables() {
	w.t.Helper()
	var jid string
	if err := w.db.QueryRow("select jid from socket_device").Scan(&jid); err != nil {
		w.t.Fatal(err)
	}
	bytes := []byte{0, 255, '"'}
	for _, row := range []struct {
		text string
		args []any
	}{
		{"insert into socket_device (session_id, jid, keys) values (8, 'x', $1)", []any{bytes}},
		{"insert into socket_note (name, value) values ('x', 'y')", nil},
		{"insert into whatsmeow_app_state_version (jid, name, version, hash) values ($1, 'critical', 3, $2)", []any{jid, make([]byte, 128)}},
		{"insert into whatsmeow_app_state_mutation_macs (jid, name, version, index_mac, value_mac) values ($1, 'critical', 3, $2, $2)", []any{jid, make([]byte, 32)}},
		{"insert into whatsmeow_app_state_sync_keys (jid, key_id, key_data, timestamp, fingerprint) values ($1, $2, $2, 5, $2)", []any{jid, bytes}},
		{"insert into whatsmeow_chat_settings (our_jid, chat_jid, muted_until, pinned) values ($1, 'x', 6, true)", []any{jid}},
		// The token is new, because a number that connects deletes old tokens in the background.
		{"insert into whatsmeow_privacy_tokens (our_jid, their_jid, token, timestamp) values ($1, 'x', $2, $3)", []any{jid, bytes, time.Now().Unix()}},
		{"insert into whatsmeow_event_buffer (our_jid, ciphertext_hash, server_timestamp, insert_timestamp) values ($1, $2, 8, 9)", []any{jid, make([]byte, 32)}},
		{"insert into whatsmeow_message_secrets (our_jid, chat_jid, sender_jid, message_id, key) values ($1, 'x', 'y', 'z', $2)", []any{jid, bytes}},
		{"insert into whatsmeow_contacts (our_jid, their_jid, push_name) values ($1, 'x', $2)", []any{jid, "Ànna \"'\n"}},
		{"update whatsmeow_device set facebook_uuid = 'c0ffee00-0000-4000-8000-00000000000a'", nil},
	} {
		if _, err := w.db.Exec(row.text, row.args...); err != nil {
			w.t.Fatalf("%s: %v", row.text, err)
		}
	}
	if !w.postgres { // PostgreSQL refuses text that is not UTF-8
		if _, err := w.db.Exec("update whatsmeow_contacts set full_name = cast($1 as text)", []byte("non \xff UTF-8\x00")); err != nil {
			w.t.Fatal(err)
		}
	}
}

// rowsIn counts the rows of each table of linked numbers in a backup.
func rowsIn(t *testing.T, backup *archive.BackupReader) map[string]int64 {
	t.Helper()
	from, err := backup.Open(archive.NumbersEntry)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	file, err := archive.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]int64{}
	for _, table := range file.Header.Tables {
		if rows[table.Name] = table.Rows; table.Rows == 0 && table.Name != "whatsmeow_nct_salt" {
			t.Errorf("the backup has no row of %s, so this shows nothing of it", table.Name)
		}
	}
	return rows
}
