//go:build e2e

package e2e

import (
	"bytes"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale/internal/store/archive"
)

// TestRestoreDoublesNothing makes a backup while callers make 300 starts a second. It lets all due messages leave, and
// restores the backup. No message leaves again. The unknown messages are exactly those that were due and had not ended
// in the backup. On a busy machine there are fewer starts, but the checks are the same.
func TestRestoreDoublesNothing(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		old := serve(t, database)
		tenants := loadTenants(t, old.base, createPartner(t, database), 3)
		l := newLoadOf(manyStarts, seed, tenants, old.base)
		l.await(t, 1200) // this takes about four seconds
		file := filepath.Join(t.TempDir(), "backup.zip")
		began, before := time.Now(), l.acknowledged()
		command(t, "backup", "--to", file, "--data", t.TempDir(), "--database", databaseFlag(database))
		during, took := l.acknowledged()-before, time.Since(began)
		t.Logf("a backup took %v, with %.0f starts a second meanwhile and %.0f before", took.Round(time.Millisecond),
			float64(during)/took.Seconds(), float64(before)/began.Sub(l.begun).Seconds())
		l.await(t, l.acknowledged()+300)
		l.end()
		l.verify(t, old.base, 90*time.Second) // all due messages have left the old installation, which the test does not use after this
		old.kill()
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the backup: %v, %v", info, err)
		}

		to := filepath.Join(t.TempDir(), "puntuale.db")
		if strings.HasPrefix(database, "postgres") {
			to = postgres(t)
		}
		command(t, "restore", "--from", file, "--data", t.TempDir(), "--database", databaseFlag(to))
		held := readBackup(t, file)
		fresh := serve(t, to)
		// A session's messages leave in the order in which they are due. So the test sends a new message, and then
		// another new message. After both have arrived, all older messages have left, unless they wait for a person's
		// decision.
		made := map[string]bool{}
		for range 2 {
			for _, who := range tenants {
				made[sent(t, fresh.base, who)] = true
			}
		}
		for _, who := range tenants {
			left := slices.DeleteFunc(held.receivedSince(t, fresh.base, who), func(id string) bool { return made[id] })
			if len(left) > 0 {
				t.Errorf("client %s: %d messages left again, such as %v", who.id, len(left), left[:min(3, len(left))])
			}
			want := held.open[who.id]
			if got := unknown(t, fresh.base, who); !slices.Equal(got, want) {
				t.Errorf("client %s: %d messages are unknown, and %d were due and not ended", who.id, len(got), len(want))
			}
			if len(want) == 0 {
				t.Errorf("client %s: nothing was due in the backup, so this shows nothing", who.id)
			}
		}
		if n := number(t, to, "select count(*) from sandbox_message where copies > 1"); n != 0 {
			t.Errorf("%d messages were repeated", n)
		}
		decided(t, fresh, tenants, held)
	})
}

// decided sends one client's unknown messages again, and closes another client's unknown messages.
func decided(t *testing.T, s *server, tenants []tenant, held *backup) {
	t.Helper()
	var again struct {
		ID []string `json:"id"`
	}
	must(t, "POST", s.base+"/api/messages/unknown/resend", tenants[0].key, map[string]any{"all": true}).into(t, &again)
	if want := len(held.open[tenants[0].id]); len(again.ID) != want {
		t.Errorf("%d messages are sent again, of %d", len(again.ID), want)
	}
	last := again.ID[len(again.ID)-1]
	eventually(t, 30*time.Second, "what is sent again arrives", func() bool { return arrived(t, s.base, tenants[0], last) })
	must(t, "POST", s.base+"/api/messages/unknown/resend", tenants[0].key, map[string]any{"all": true}).into(t, &again)
	if len(again.ID) > 0 {
		t.Errorf("a second call sent %d more", len(again.ID))
	}
	var closed struct {
		Closed int `json:"closed"`
	}
	must(t, "POST", s.base+"/api/messages/unknown/close", tenants[1].key, map[string]any{"all": true}).into(t, &closed)
	if want := len(held.open[tenants[1].id]); closed.Closed != want {
		t.Errorf("%d messages were closed, of %d", closed.Closed, want)
	}
	for _, who := range tenants[:2] {
		if rest := unknown(t, s.base, who); len(rest) > 0 {
			t.Errorf("client %s: %d messages are still unknown", who.id, len(rest))
		}
	}
}

// sent sends a message and waits until it has arrived.
func sent(t *testing.T, base string, who tenant) (id string) {
	t.Helper()
	var made struct {
		ID []string `json:"id"`
	}
	must(t, "POST", base+"/api/messages", who.key, map[string]any{"phone": "+393479911111", "text": "nuovo"}).into(t, &made)
	eventually(t, 20*time.Second, "a new message arrives", func() bool { return arrived(t, base, who, made.ID[0]) })
	return made.ID[0]
}

// acknowledged is the number of starts that were acknowledged so far.
func (l *load) acknowledged() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.starts
}

// await waits until at least the given number of starts were acknowledged.
func (l *load) await(t *testing.T, starts int) {
	t.Helper()
	eventually(t, time.Minute, "enough starts were acknowledged", func() bool { return l.acknowledged() >= starts })
}

// backup contains the messages that a backup file contains, by client.
type backup struct {
	open map[string][]string        // messages that were due and had not ended
	had  map[string]map[string]bool // messages that the simulated network had received
}

// receivedSince returns the messages that the network has received, except those that the backup lists as received.
func (b *backup) receivedSince(t *testing.T, base string, who tenant) (ids []string) {
	t.Helper()
	for _, r := range ledger(t, base, who.key) {
		if id := strconv.FormatInt(r.ID, 10); !b.had[who.id][id] {
			ids = append(ids, id)
		}
	}
	return ids
}

// readBackup reads the tables in a backup directly, without the program that restores backups.
func readBackup(t *testing.T, file string) *backup {
	t.Helper()
	z, err := archive.OpenBackup(file)
	if err != nil {
		t.Fatal(err)
	}
	defer z.Close()
	var database bytes.Buffer
	if err := z.Copy(archive.DatabaseEntry, &database); err != nil {
		t.Fatal(err)
	}
	r, err := archive.NewReader(&database)
	if err != nil {
		t.Fatal(err)
	}
	b := &backup{open: map[string][]string{}, had: map[string]map[string]bool{}}
	now := time.Now().UnixMicro()
	for {
		table, found, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if !found {
			break
		}
		row := make([]any, len(table.Columns))
		value := func(name string) int64 {
			n, _ := row[slices.IndexFunc(table.Columns, func(c archive.Column) bool { return c.Name == name })].(int64)
			return n
		}
		for {
			found, err := r.Row(row)
			if err != nil {
				t.Fatal(err)
			}
			if !found {
				break
			}
			switch table.Name {
			case "message":
				if value("state") == 0 && (value("next_at") <= now || value("intent") > 0) {
					client := strconv.FormatInt(value("client_id"), 10)
					b.open[client] = append(b.open[client], strconv.FormatInt(value("id"), 10))
				}
			case "sandbox_message":
				client := strconv.FormatInt(value("client_id"), 10)
				if b.had[client] == nil {
					b.had[client] = map[string]bool{}
				}
				b.had[client][strconv.FormatInt(value("message_id"), 10)] = true
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	for _, ids := range b.open {
		slices.SortFunc(ids, byNumber)
	}
	return b
}

func byNumber(a, b string) int {
	x, _ := strconv.ParseInt(a, 10, 64)
	y, _ := strconv.ParseInt(b, 10, 64)
	return int(x - y)
}

// unknown returns the ids of the messages about which a client must decide.
func unknown(t *testing.T, base string, who tenant) (ids []string) {
	t.Helper()
	for cursor := ""; ; {
		var page struct {
			Messages []struct {
				ID    int64  `json:"id"`
				State string `json:"stato"`
			} `json:"messages"`
			Next *string `json:"next_cursor"`
		}
		must(t, "GET", base+"/api/messages/unknown?limit=1000&cursor="+url.QueryEscape(cursor), who.key, nil).into(t, &page)
		for _, m := range page.Messages {
			ids = append(ids, strconv.FormatInt(m.ID, 10))
			if m.State != "PENDING" {
				t.Errorf("unknown message %d is %s", m.ID, m.State)
			}
		}
		if page.Next == nil {
			return ids
		}
		cursor = *page.Next
	}
}

func arrived(t *testing.T, base string, who tenant, id string) bool {
	t.Helper()
	return strings.Contains(string(must(t, "GET", base+"/api/messages/details?message_ids[]="+id, who.key, nil).body), `"stato":"COMPLETED"`)
}
