//go:build e2e

package e2e

import (
	"database/sql"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestArchive: messages that ended long ago move from the database into files. An operator finds them in the files. If
// a person is erased, the files contain nothing about this person any more.
func TestArchive(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		x := createTenant(t, s.base, createPartner(t, database), "full", step("prova", 0, ""))
		var started struct {
			ID []string `json:"id"`
		}
		begin := func(phone string) string {
			must(t, "POST", s.base+"/api/start/"+x.sequence, x.key, map[string]any{"phone": phone}).into(t, &started)
			return started.ID[0]
		}
		first, second := begin("+393471110001"), begin("+393471110002")
		known := func(id string) (state string) {
			var found struct {
				Messages []struct {
					State string `json:"stato"`
				} `json:"messages"`
			}
			must(t, "GET", s.base+"/api/messages/details?message_ids[]="+id, x.key, nil).into(t, &found)
			if len(found.Messages) == 0 {
				return ""
			}
			return found.Messages[0].State
		}
		for _, id := range []string{first, second} {
			eventually(t, 20*time.Second, "it left", func() bool { return known(id) == "COMPLETED" })
		}
		s.terminate(25 * time.Second)
		first, second = monthsAgo(t, database, first), monthsAgo(t, database, second)

		keep := []string{"--keep-contents", "1d"}
		s.args = append(s.args, keep...)
		s.start()
		eventually(t, 20*time.Second, "both are blanked", func() bool {
			return number(t, database, "select count(*) from run where blanked_at <> 0") == 2
		})
		s.terminate(25 * time.Second)
		folder := filepath.Join(t.TempDir(), "archive")
		s.args = append(s.args, "--archive", folder, "--archive-after", "2d")
		s.start()
		eventually(t, 20*time.Second, "both are archived", func() bool { return number(t, database, "select count(*) from message") == 0 })
		if state := known(first); state != "" {
			t.Errorf("the API shows it as %s", state)
		}
		eventually(t, 20*time.Second, "the file is finished", func() bool { return number(t, database, "select serial from archive") == 1 })

		var shown struct {
			ID      json.Number `json:"id"`
			Outcome string      `json:"outcome"`
			Message struct {
				Phone  string `json:"telefono"`
				State  string `json:"stato"`
				Client string `json:"cliente"`
			} `json:"message"`
		}
		if err := json.Unmarshal([]byte(command(t, "archive", "show", "--archive", folder, "--id", first)), &shown); err != nil {
			t.Fatal(err)
		}
		if shown.ID.String() != first || shown.Outcome != "SENT" || shown.Message.Phone != "+393471110001" || shown.Message.State != "COMPLETED" || shown.Message.Client == "" {
			t.Errorf("%+v", shown)
		}
		if out := command(t, "archive", "show", "--archive", folder, "--phone", "+393471110002"); !strings.Contains(out, second) || strings.Contains(out, first) {
			t.Errorf("by number: %s", out)
		}
		if out := command(t, "archive", "list", "--archive", folder); !strings.Contains(out, "00000001-1.gz") {
			t.Errorf("the list: %s", out)
		}
		if out := command(t, "archive", "check", "--archive", folder); !strings.Contains(out, "1 files with 2 runs and 2 messages are whole") {
			t.Errorf("the check: %s", out)
		}

		must(t, "POST", s.base+"/api/contacts/erase", x.key, map[string]any{"phone": "+393471110001"})
		s.terminate(25 * time.Second)
		s.start() // the new server's archiver begins to work immediately
		eventually(t, 20*time.Second, "the file is rewritten", func() bool {
			_, err := os.Stat(filepath.Join(folder, "00000001-2.gz"))
			return err == nil && number(t, database, "select count(*) from archive_erasure") == 0
		})
		if out := command(t, "archive", "show", "--archive", folder, "--client", x.id); strings.Contains(out, "3471110001") || !strings.Contains(out, first) || !strings.Contains(out, "3471110002") {
			t.Errorf("after the erasure: %s", out)
		}
	})
}

// open opens the server's database.
func open(t *testing.T, database string) *sql.DB {
	t.Helper()
	driver, address := "pgx", database
	if !strings.HasPrefix(database, "postgres") {
		driver, address = "sqlite", "file:"+database+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func number(t *testing.T, database, query string) (n int) {
	t.Helper()
	db := open(t, database)
	defer db.Close()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// monthsAgo changes an ended message so that it ended a hundred days ago: statements need younger ones. It returns the message's new identifier.
func monthsAgo(t *testing.T, database, id string) string {
	t.Helper()
	db := open(t, database)
	defer db.Close()
	const days = 100 * 24 * 3600 * 1_000_000
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"update message set id = id - $1, run_id = run_id - $1, done_at = done_at - $1, due_at = due_at - $1, intent_at = intent_at - $1 where id = $2",
		"update run set id = id - $1, received_at = received_at - $1 where id = $2",
		"delete from sandbox_message where received_at > $1 and message_id = $2",
	} {
		if _, err := db.Exec(text, int64(days), n); err != nil {
			t.Fatal(err)
		}
	}
	return strconv.FormatInt(n-days, 10)
}
