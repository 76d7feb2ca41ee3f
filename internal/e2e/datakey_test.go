//go:build e2e

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/connector/sendapp/gatewaytest"
)

// TestDataKeyReplaced replaces the data key while servers send through Official and a gateway, and sign what they report
// to a webhook. The command is killed with SIGKILL while it waits for the servers, and again after it has sealed
// everything; then it runs to its end. Everything works at any time and after a restart, and at the end the former key
// opens nothing. On SQLite a second key wraps the data key. On PostgreSQL there is none, and a second server answers calls.
func TestDataKeyReplaced(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		number, gateway := graphtest.NewNumber("101"), gatewaytest.New(t)
		meta := graphtest.New(t, number)
		instance := gateway.Linked(gatewayNumber)
		s := prepare(t, database, "--lease", "2s", "--official-api-url", meta.URL, "--gateway-allow", "127.0.0.0/8", "--webhook-allow", "127.0.0.0/8")
		s.args = append(s.args, "--public-url", s.base)
		s.start()
		calls := s
		if strings.HasPrefix(database, "postgres") {
			calls = serve(t, database, "--roles", "api", "--official-api-url", meta.URL, "--gateway-allow", "127.0.0.0/8", "--webhook-allow", "127.0.0.0/8", "--public-url", s.base)
		}
		who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
		var official, sendapp struct {
			ID      string
			Webhook string `json:"webhook_path"`
		}
		must(t, "POST", calls.base+"/api/sessions", who.key, map[string]any{"name": "ufficiale", "connection_type": "Official", "sandbox": false, "official": json.RawMessage(number.Keys())}).into(t, &official)
		must(t, "POST", calls.base+"/api/sessions", who.key, map[string]any{"name": "gateway", "connection_type": "Send_app", "sandbox": false, "pace": map[string]any{"per_minute": 0, "jitter": 0},
			"gateway": map[string]any{"base_url": gateway.URL, "access_token": gatewaytest.Token, "instance_id": instance}}).into(t, &sendapp)
		events := newEventReceiver(t, 1)
		events.subscribe(calls.base, who.key)
		n := 0
		works := func() {
			t.Helper()
			n++
			phone := fmt.Sprintf("+39347%07d", n)
			if status := meta.Deliver(s.base+official.Webhook, number.ID, meta.Wrote(number.ID, phone, time.Now())); status != 200 { // signed with a sealed secret
				t.Fatalf("Meta's webhook was answered with %d", status)
			}
			for _, session := range []string{official.ID, sendapp.ID} {
				var made struct{ ID []string }
				must(t, "POST", calls.base+"/api/messages", who.key, map[string]any{"phone": phone, "text": "ciao", "id_sessione": session}).into(t, &made)
				var found detail
				eventually(t, time.Minute, "the message of session "+session+" left, and its event came", func() bool {
					found = details(t, s.base, who.key, made.ID)[made.ID[0]]
					return found.State == "COMPLETED" && events.hasEventOf(made.ID[0], found)
				})
			}
			var w struct{ ID string } // and another sealed secret is stored
			must(t, "POST", calls.base+"/api/webhooks", who.key, map[string]any{"url": fmt.Sprintf("https://example.com/%d", n), "types": []string{"message.uncertain"}}).into(t, &w)
			must(t, "POST", calls.base+"/api/webhooks/"+w.ID+"/rotate", who.key, nil)
			must(t, "DELETE", calls.base+"/api/webhooks/"+w.ID, who.key, nil)
		}
		works()
		keys := newSealedKeys(t, database)
		former := keys.vault()
		if opened := keys.opened(former); opened < 3 {
			t.Fatalf("the data key opens %d values", opened)
		}

		for _, until := range []string{"waiting for", "sealed again"} {
			cmd := exec.Command(binary, "key", "data", "--data", t.TempDir(), "--database", databaseFlag(database))
			errs, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			said := bufio.NewScanner(errs)
			for said.Scan() && !strings.Contains(said.Text(), until) { // as soon as it says so
			}
			_ = cmd.Process.Kill()
			if err := cmd.Wait(); err == nil {
				t.Fatalf("the command ended before it said %q", until)
			}
			works()
		}
		ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, binary, "key", "data", "--data", t.TempDir(), "--database", databaseFlag(database))
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		for running := true; running; {
			select {
			case err := <-ended:
				if running = false; err != nil || !strings.Contains(out.String(), "gone from the database") {
					t.Fatalf("%v: %s", err, out.String())
				}
			default:
				works()
			}
		}
		works()
		if code := s.terminate(time.Minute); code != 0 {
			t.Errorf("exit code %d", code)
		}
		s.start()
		works()
		if opened := keys.opened(former); opened != 0 {
			t.Errorf("the former data key opens %d values", opened)
		}
		if opened := keys.opened(keys.vault()); opened < 3 {
			t.Errorf("the new data key opens %d values", opened)
		}
		for _, w := range events.wrong {
			t.Error(w)
		}
	})
}

// sealedKeys reads what is sealed from a server's database.
type sealedKeys struct {
	t      *testing.T
	db     *sql.DB
	master []byte
}

func newSealedKeys(t *testing.T, database string) *sealedKeys {
	t.Helper()
	k := &sealedKeys{t: t}
	var err error
	if strings.HasPrefix(database, "postgres") {
		k.db, err = sql.Open("pgx", database)
	} else {
		k.db, err = sql.Open("sqlite", database)
		text, failed := os.ReadFile(database + ".key")
		if failed != nil {
			t.Fatal(failed)
		}
		k.master = bytes.TrimSpace(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.db.Close() })
	return k
}

// Secret returns the stored data key. It is the only secret that a vault reads.
func (k *sealedKeys) Secret(ctx context.Context, name string) (value []byte, err error) {
	err = k.db.QueryRowContext(ctx, `select value from secret where name = $1`, name).Scan(&value)
	return value, err
}

func (k *sealedKeys) SetSecret(context.Context, string, []byte, []byte) (bool, error) {
	return false, fmt.Errorf("the test stores nothing")
}

func (k *sealedKeys) vault() *auth.Vault {
	k.t.Helper()
	v, err := auth.OpenVault(context.Background(), k, k.master)
	if err != nil {
		k.t.Fatal(err)
	}
	return v
}

// opened counts the secrets of sessions and webhooks that a vault opens.
func (k *sealedKeys) opened(v *auth.Vault) (n int) {
	k.t.Helper()
	read := func(query string, scan func(rows *sql.Rows) (purpose, place string, sealed []byte, err error)) {
		rows, err := k.db.Query(query)
		if err != nil {
			k.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			purpose, place, sealed, err := scan(rows)
			if err != nil {
				k.t.Fatal(err)
			}
			if _, err := v.Open(purpose, place, sealed); err == nil {
				n++
			}
		}
		if err := rows.Err(); err != nil {
			k.t.Fatal(err)
		}
	}
	read(`select id, type, keys from session where length(keys) > 0`, func(rows *sql.Rows) (purpose, place string, sealed []byte, err error) {
		var id puntuale.SessionID
		err = rows.Scan(&id, &purpose, &sealed)
		return map[string]string{"Official": puntuale.SealedOfficial, "Send_app": puntuale.SealedGateway}[purpose], id.SealPlace(), sealed, err
	})
	read(`select client_id, created_at, secret from webhook`, func(rows *sql.Rows) (purpose, place string, sealed []byte, err error) {
		w := &puntuale.Webhook{}
		var at int64
		err = rows.Scan(&w.Client, &at, &sealed)
		w.Created = time.UnixMicro(at)
		return puntuale.SealedWebhook, w.SealPlace(), sealed, err
	})
	return n
}
