//go:build !nosocket

package datakey_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/connector/socket"
	"puntuale/internal/datakey"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// instant is a clock whose waits are over at once.
type instant struct {
	*clock.Fake
	w *world
}

func (i instant) Sleep(ctx context.Context, d time.Duration) error {
	if late := i.w.late; late != nil && d > 10*time.Second {
		i.w.late = nil
		late()
	}
	i.Advance(d)
	return ctx.Err()
}

// world is an installation with something sealed in every column, and one server that uses it.
type world struct {
	*testing.T
	db     *storetest.Database
	store  *store.Store
	clock  instant
	master []byte
	server *auth.Vault // of the server that runs
	behind bool        // true: the server does not read the keys any more
	late   func()      // stores what the server sealed long ago, during the long wait of the command
	added  int64       // webhooks that the server made
	values []value
}

// value is sealed data in the database.
type value struct {
	file                  string // "": the store's database
	query, purpose, place string
	plain                 string
}

func each(t *testing.T, rows int, run func(w *world)) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := driver(t)
			w := &world{T: t, db: db, store: db.Open(t), master: []byte(rand.Text() + rand.Text())}
			w.clock = instant{clock.NewFake(storetest.Begin), w}
			w.server = w.vault()
			w.server.Follow(w.store, w.clock, func(context.Context) ([]byte, error) { return w.master, nil })
			w.seed(rows)
			run(w)
		})
	}
}

func (w *world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// vault is that of a server that starts now.
func (w *world) vault() *auth.Vault {
	w.Helper()
	v, err := auth.OpenVault(context.Background(), w.store, w.master)
	w.must(err)
	return v
}

func (w *world) exec(text string, args ...any) {
	w.Helper()
	_, err := w.db.SQL.Exec(text, args...)
	w.must(err)
}

const (
	manyRows = 450 // more than two transactions seal again
	fewRows  = 3
)

// seed seals something in every column. The places are computed by the code that seals.
func (w *world) seed(rows int) {
	w.Helper()
	at, session := storetest.Begin, puntuale.SessionID(7)
	seal := func(query, purpose, place string) []byte {
		plain := rand.Text()
		w.values = append(w.values, value{"", query, purpose, place, plain})
		return w.server.Seal(purpose, place, []byte(plain))
	}
	keys := func(id puntuale.SessionID, kind puntuale.ConnectionType, purpose string) {
		w.exec(`insert into session (client_id, id, name, type, created_at, keys, code) values (1, $1, 'a', $2, 1, $3, $4)`, int64(id), string(kind),
			seal(fmt.Sprintf("select keys from session where id = %d", id), purpose, id.SealPlace()),
			seal(fmt.Sprintf("select code from session where id = %d", id), puntuale.SealedCode, id.SealPlace()))
	}
	keys(session, puntuale.Official, puntuale.SealedOfficial)
	keys(8, puntuale.SendApp, puntuale.SealedGateway)
	w.exec(`insert into command (id, client_id, session_id, verb, created_at, expires_at, detail, answer) values (1, 1, 7, 'x', 1, 9000000000000000, $1, $2)`,
		seal("select detail from command", puntuale.SealedCommand, session.SealPlace()), seal("select answer from command", puntuale.SealedAnswer, session.SealPlace()))
	calendar := &puntuale.Calendar{Client: 3, Created: at}
	w.exec(`insert into calendar (client_id, id, name, host, address, sequence_id, sources, created_at, next_at) values (3, 5, 'a', 'a', $1, 1, '[]', $2, 1)`,
		seal("select address from calendar", puntuale.SealedCalendar, calendar.SealPlace()), at.UnixMicro())
	for id := range int64(rows) {
		webhook := &puntuale.Webhook{Client: puntuale.ClientID(id % 3), Created: at.Add(time.Duration(id) * time.Second)} // 0: the partner's
		w.exec(`insert into webhook (id, partner_id, client_id, url, types, created_at, secret, secret_before) values ($1, 1, $2, 'https://a', 1, $3, $4, $5)`,
			id+1, int64(webhook.Client), webhook.Created.UnixMicro(), seal(fmt.Sprintf("select secret from webhook where id = %d", id+1), puntuale.SealedWebhook, webhook.SealPlace()),
			seal(fmt.Sprintf("select secret_before from webhook where id = %d", id+1), puntuale.SealedWebhook, webhook.SealPlace()))
	}
	w.exec(`insert into webhook (id, partner_id, client_id, url, types, created_at, secret, secret_before) values (9000, 1, 1, 'https://a', 1, 1, $1, $1)`, []byte{})
	w.exec(`insert into automation (client_id, id, name, active, kind, wants, trigger_text, conditions, actions, stamp, created_at, updated_at, armed_at, sealed)
 values (4, 1, 'a', 1, 5, 0, '{}', '{}', '[]', 1, $1, 1, 1, $2)`, at.UnixMicro(), seal("select sealed from automation", puntuale.SealedHook, "hook of 4, "+strconv.FormatInt(at.UnixMicro(), 10)))
	w.exec(`insert into device (client_id, id, session_id, name, token, dedupes, assisted, linked_at, seen_at, push) values (1, 2, 7, 'a', $1, 0, 0, 1, 1, $2)`,
		make([]byte, 32), seal("select push from device", puntuale.SealedPush, session.SealPlace()))
	w.exec(`insert into login (id, partner_id, email, password, created_at, second) values (6, 1, 'a@b', 'x', 1, $1)`, seal("select second from login where id = 6", puntuale.SealedSecond, "user 6"))
	for kind, purpose := range map[puntuale.MailKind]string{puntuale.MailResetAsked: puntuale.SealedReset, puntuale.MailReset: puntuale.SealedReset, puntuale.MailInvitation: puntuale.SealedInvitation} {
		w.exec(`insert into mail (partner_id, login_id, kind, sealed, queued_at, next_at) values (1, 6, $1, $2, 1, 1)`,
			int64(kind), seal(fmt.Sprintf("select sealed from mail where kind = %d", kind), purpose, purpose))
	}
	w.exec(`insert into mail (partner_id, login_id, kind, sealed, queued_at, next_at) values (1, 6, $1, $2, 1, 1)`, int64(puntuale.MailNotices), []byte("{}")) // not sealed
	w.exec(`insert into visit (token, data, expires_at) values ('abc', $1, 9000000000000000)`, seal("select data from visit", puntuale.SealedVisit, "abc"))
	for name, place := range map[string]string{puntuale.SealedPushKey: puntuale.SealedPushKey, puntuale.SealedCertificate + " example.com": "example.com"} {
		w.exec(`insert into secret (name, value) values ($1, $2)`, name, seal("select value from secret where name = '"+name+"'", map[bool]string{true: puntuale.SealedPushKey, false: puntuale.SealedCertificate}[name == place], place))
	}
	w.exec(`insert into backup_work (kind, result, opener) values (1, '{"name": "b.zip.age", "bytes": 5}', $1)`, seal("select opener from backup_work where kind = 1", puntuale.SealedOpener, "b.zip.age"))
	w.exec(`insert into backup_work (kind) values (2)`)
	w.seedNumbers(session, rows)
}

func (w *world) seedNumbers(session puntuale.SessionID, rows int) {
	w.Helper()
	ctx := context.Background()
	numbers, postgres, err := w.store.WhatsApp(ctx)
	w.must(err)
	defer numbers.Close()
	w.must(socket.MakeTables(ctx, socket.Database{DB: numbers, Postgres: postgres}))
	seal := func(query string) []byte {
		plain := rand.Text()
		w.values = append(w.values, value{"numbers", query, puntuale.SealedWhatsApp, session.SealPlace(), plain})
		return w.server.Seal(puntuale.SealedWhatsApp, session.SealPlace(), []byte(plain))
	}
	exec := func(text string, args ...any) {
		w.Helper()
		_, err := numbers.ExecContext(ctx, text, args...)
		w.must(err)
	}
	const jid = "39333:1@s.whatsapp.net"
	b := func(n int) []byte { return make([]byte, n) }
	exec(`insert into whatsmeow_device (jid, registration_id, noise_key, identity_key, signed_pre_key, signed_pre_key_id, signed_pre_key_sig, adv_key, adv_details, adv_account_sig, adv_account_sig_key, adv_device_sig)
 values ($1, 1, $2, $2, $2, 1, $3, $2, $2, $3, $2, $3)`, jid, b(32), b(64))
	exec(`insert into socket_device (session_id, jid, keys) values ($1, $2, $3)`, int64(session), jid, seal("select keys from socket_device"))
	for i := range rows {
		exec(`insert into whatsmeow_sessions (our_jid, their_id, session) values ($1, $2, $3)`, jid, strconv.Itoa(i), seal(fmt.Sprintf("select session from whatsmeow_sessions where their_id = '%d'", i)))
	}
	exec(`insert into whatsmeow_sessions (our_jid, their_id, session) values ($1, 'none', null)`, jid)
	exec(`insert into whatsmeow_sender_keys (our_jid, chat_id, sender_id, sender_key) values ($1, 'a', 'b', $2)`, jid, seal("select sender_key from whatsmeow_sender_keys"))
	exec(`insert into whatsmeow_app_state_sync_keys (jid, key_id, key_data, timestamp, fingerprint) values ($1, $2, $3, 1, $2)`, jid, b(4), seal("select key_data from whatsmeow_app_state_sync_keys"))
	exec(`insert into whatsmeow_message_secrets (our_jid, chat_jid, sender_jid, message_id, key) values ($1, 'a', 'b', 'c', $2)`, jid, seal("select key from whatsmeow_message_secrets"))
	exec(`insert into whatsmeow_privacy_tokens (our_jid, their_jid, token, timestamp) values ($1, 'a', $2, 1)`, jid, seal("select token from whatsmeow_privacy_tokens"))
	exec(`insert into whatsmeow_nct_salt (our_jid, salt) values ($1, $2)`, jid, seal("select salt from whatsmeow_nct_salt"))
	exec(`insert into whatsmeow_event_buffer (our_jid, ciphertext_hash, plaintext, server_timestamp, insert_timestamp) values ($1, $2, $3, 1, 1)`, jid, b(32), seal("select plaintext from whatsmeow_event_buffer"))
	exec(`insert into whatsmeow_retry_buffer (our_jid, chat_jid, message_id, format, plaintext, timestamp) values ($1, 'a', 'b', 'c', $2, 1)`, jid, seal("select plaintext from whatsmeow_retry_buffer"))
}

// write lets the server store another sealed secret.
func (w *world) write() {
	w.Helper()
	if !w.behind {
		w.sealNow()()
	}
}

// sealNow seals another secret. The function that it returns stores it.
func (w *world) sealNow() (store func()) {
	w.Helper()
	w.added++
	id := 10000 + w.added
	webhook := &puntuale.Webhook{Client: 1, Created: storetest.Begin}
	plain := rand.Text()
	sealed := w.server.Seal(puntuale.SealedWebhook, webhook.SealPlace(), []byte(plain))
	return func() {
		w.exec(`insert into webhook (id, partner_id, client_id, url, types, created_at, secret, secret_before) values ($1, 1, 1, 'https://a', 1, $2, $3, $4)`, id, storetest.Begin.UnixMicro(), sealed, []byte{})
		w.values = append(w.values, value{"", fmt.Sprintf("select secret from webhook where id = %d", id), puntuale.SealedWebhook, webhook.SealPlace(), plain})
	}
}

// all reads everything that is sealed.
func (w *world) all() map[value][]byte {
	w.Helper()
	numbers, _, err := w.store.WhatsApp(context.Background())
	w.must(err)
	defer numbers.Close()
	all := map[value][]byte{}
	for _, v := range w.values {
		db := w.db.SQL
		if v.file != "" {
			db = numbers
		}
		var sealed []byte
		w.must(db.QueryRow(v.query).Scan(&sealed))
		all[v] = sealed
	}
	return all
}

// opens checks that the vaults open everything.
func (w *world) opens(vaults ...*auth.Vault) {
	w.Helper()
	for v, sealed := range w.all() {
		for i, vault := range vaults {
			if plain, err := vault.Open(v.purpose, v.place, sealed); err != nil || string(plain) != v.plain {
				w.Fatalf("vault %d: %s: %q, %v", i, v.query, plain, err)
			}
		}
	}
}

// gone checks that the former keys open nothing, and that the database does not have them.
func (w *world) gone(former [][]byte) {
	w.Helper()
	var kept []byte
	w.must(w.db.SQL.QueryRow(`select value from secret where name = 'data key'`).Scan(&kept))
	if now := w.dataKeys(); len(now) != 1 || slices.ContainsFunc(former, func(k []byte) bool { return bytes.Equal(k, now[0]) }) {
		w.Errorf("%d keys are stored, or a former one", len(now))
	}
	for _, key := range former {
		if bytes.Contains(kept, key) || bytes.Contains(kept, []byte(base64.StdEncoding.EncodeToString(key))) {
			w.Error("a former key is stored as it is")
		}
		vault, err := auth.NewVault(key)
		w.must(err)
		for v, sealed := range w.all() {
			for _, content := range [][]byte{sealed, sealed[min(8, len(sealed)):]} { // without the id, too
				if _, err := vault.Open(v.purpose, v.place, content); err == nil {
					w.Fatalf("%s opens with a former key", v.query)
				}
			}
		}
	}
}

// dataKeys returns the data keys that are stored, the one that seals first.
func (w *world) dataKeys() [][]byte {
	w.Helper()
	kept, err := w.store.Secret(context.Background(), "data key")
	w.must(err)
	copied := &one{kept}
	if w.master != nil {
		w.must(auth.Rewrap(context.Background(), copied, w.master, nil))
	}
	if copied.value[0] == 'p' {
		return [][]byte{copied.value[1:]}
	}
	var ring struct {
		Keys []struct{ Key []byte }
	}
	w.must(json.Unmarshal(copied.value[9:], &ring))
	var all [][]byte
	for _, k := range ring.Keys {
		all = append(all, k.Key)
	}
	return all
}

// one is a store of one secret.
type one struct{ value []byte }

func (o *one) Secret(context.Context, string) ([]byte, error) { return o.value, nil }

func (o *one) SetSecret(_ context.Context, _ string, _, value []byte) (bool, error) {
	o.value = value
	return true, nil
}

// beside is the store of the command, beside the server: each time when the command looks for servers, the server reads
// the keys, and it writes before and after. From the call kill on, all calls fail, as if the process had been killed.
type beside struct {
	*store.Store
	w      *world
	calls  int
	kill   int  // 0: never
	late   bool // true: the call itself is still done
	within int  // >0: the process dies in a pass, after so many values
}

var errKilled = errors.New("killed")

func (b *beside) call(do func() error) error {
	b.calls++
	if b.kill > 0 && (b.calls > b.kill || b.calls == b.kill && !b.late) {
		return errKilled
	}
	if err := do(); err != nil {
		return err
	}
	if b.calls == b.kill {
		return errKilled
	}
	return nil
}

func (b *beside) Secret(ctx context.Context, name string) (value []byte, err error) {
	err = b.call(func() (err error) { value, err = b.Store.Secret(ctx, name); return err })
	return value, err
}

func (b *beside) SetSecret(ctx context.Context, name string, old, value []byte) (set bool, err error) {
	err = b.call(func() (err error) { set, err = b.Store.SetSecret(ctx, name, old, value); return err })
	return set, err
}

func (b *beside) KeyReaders(ctx context.Context, version int64) (running, behind, former int64, err error) {
	err = b.call(func() (err error) {
		b.w.write()
		running, behind, former, err = b.Store.KeyReaders(ctx, version)
		b.w.read()
		b.w.write()
		return err
	})
	return running, behind, former, err
}

func (b *beside) SealAgain(ctx context.Context, id []byte, again func(purpose, place string, sealed []byte) ([]byte, error)) (count, lost int, err error) {
	err = b.call(func() (err error) {
		b.w.write()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		done := 0
		count, lost, err = b.Store.SealAgain(ctx, id, func(purpose, place string, sealed []byte) ([]byte, error) {
			if done++; b.within > 0 && done == b.within {
				cancel()
			}
			return again(purpose, place, sealed)
		})
		b.w.write()
		return err
	})
	return count, lost, err
}

// read lets the server read the keys and report itself, as it does every few seconds.
func (w *world) read() {
	w.Helper()
	err := w.server.ReadAgain(context.Background())
	if !w.behind {
		w.must(err)
	}
	w.must(w.store.ReportKeys(context.Background(), "server", w.server.Version(), time.Hour))
}

func (w *world) replace(b *beside) (datakey.Result, error) {
	w.Helper()
	b.Store, b.w = w.store, w
	return datakey.Replace(context.Background(), datakey.Config{Store: b, Master: w.master, Clock: w.clock, Settle: datakey.Settle, Report: func(datakey.Progress) {}})
}

// TestReplace: everything is sealed again while a server writes; the server and one that starts later open everything, and
// the former key opens nothing. The keyed hashes stay.
func TestReplace(t *testing.T) {
	t.Parallel()
	each(t, manyRows, func(w *world) {
		w.read()
		former, mark := w.dataKeys(), w.server.Mark("blacklist", "1", "+393331234567")
		other := w.server.Mark("a purpose of later", "1")
		w.opens(w.server)
		for range 2 {
			all := len(w.values)
			w.late = w.sealNow() // a call that seals before the replacement begins, and commits after everything was sealed again once
			done, err := w.replace(&beside{})
			if err != nil || done.Lost != 0 || done.Sealed < all {
				w.Fatalf("%+v, %v", done, err)
			}
			if w.late != nil {
				t.Error("the command does not wait for what was sealed before")
			}
			w.opens(w.server, w.vault())
			w.gone(former)
			for _, v := range []*auth.Vault{w.server, w.vault()} {
				if v.Mark("blacklist", "1", "+393331234567") != mark || v.Mark("a purpose of later", "1") != other {
					t.Error("a keyed hash changed")
				}
			}
			former = append(former, w.dataKeys()...)
		}
		// What belongs to nobody, or was never sealed by this installation, stays and is counted.
		w.exec(`insert into visit (token, data, expires_at) values ('strange', $1, 9000000000000000)`, []byte("strange strange strange"))
		if done, err := w.replace(&beside{}); err != nil || done.Lost != 1 {
			w.Fatalf("%+v, %v", done, err)
		}
	})
}

// TestReplaceKilled: the command is killed before and after each of its calls, and in the middle of a pass. The server
// opens everything at any time, as does one that starts then; and the next call finishes.
func TestReplaceKilled(t *testing.T) {
	t.Parallel()
	each(t, fewRows, func(w *world) {
		w.read()
		var former [][]byte
		finish := func(what string) {
			w.Helper()
			w.opens(w.server, w.vault())
			former = append(former[max(0, len(former)-1):], w.dataKeys()...)
			if _, err := w.replace(&beside{}); err != nil {
				w.Fatalf("%s, and called again: %v", what, err)
			}
			w.opens(w.server, w.vault())
			now := w.dataKeys()[0]
			w.gone(slices.DeleteFunc(slices.Clone(former), func(k []byte) bool { return bytes.Equal(k, now) }))
			former = [][]byte{now}
		}
		for _, late := range []bool{false, true} {
			for kill := 1; ; kill++ {
				_, err := w.replace(&beside{kill: kill, late: late})
				if err != nil && !errors.Is(err, errKilled) {
					w.Fatal(err)
				}
				finish(fmt.Sprint("killed at call ", kill, ", late ", late))
				if err == nil {
					if kill < 10 {
						w.Errorf("only %d calls", kill)
					}
					break
				}
			}
		}
		for _, within := range []int{1, 10, 20} {
			if _, err := w.replace(&beside{within: within}); err == nil {
				w.Fatalf("not killed after %d values", within)
			}
			finish(fmt.Sprint("killed after ", within, " values"))
		}
	})
}

// TestReplaceRefused: nothing begins while a server of a former version runs, and nothing ends while a server cannot read
// the keys. Then the former key still opens everything.
func TestReplaceRefused(t *testing.T) {
	t.Parallel()
	each(t, fewRows, func(w *world) {
		w.read()
		before := w.dataKeys()
		w.exec(`insert into node (id, lease_until) values (99, 9000000000000000)`)
		refused := func() {
			w.Helper()
			if _, err := w.replace(&beside{}); !errors.Is(err, datakey.ErrFormerServers) {
				w.Errorf("beside a server of a former version: %v", err)
			}
			if now := w.dataKeys(); len(now) != 1 || !bytes.Equal(now[0], before[0]) {
				w.Error("the keys changed")
			}
		}
		refused()
		w.exec(`delete from node where id = 99`)
		if w.db.Postgres { // one that only answers calls has no lease
			conn, err := w.db.SQL.Conn(context.Background())
			w.must(err)
			_, err = conn.ExecContext(context.Background(), `set application_name = 'puntuale'`)
			w.must(err)
			refused()
			_, err = conn.ExecContext(context.Background(), `reset application_name`)
			w.must(errors.Join(err, conn.Close()))
		}
		// The second key is replaced after the switch: a running server with the former one reads nothing new.
		if _, err := w.replace(&beside{kill: 6, late: true}); !errors.Is(err, errKilled) {
			w.Fatal(err)
		}
		old, fresh := w.master, []byte(strings.Repeat("n", 44))
		w.must(auth.Rewrap(context.Background(), w.store, old, fresh))
		if _, err := w.replace(&beside{}); !errors.Is(err, auth.ErrMasterKey) {
			w.Fatalf("with the former second key: %v", err)
		}
		w.master, w.behind = fresh, true
		w.server.Follow(w.store, w.clock, func(context.Context) ([]byte, error) { return old, nil })
		w.opens(w.server, w.vault())
		if _, err := w.replace(&beside{}); w.server.Version() < 3 && !errors.Is(err, datakey.ErrServersWait) {
			w.Fatalf("beside a server that cannot read the keys: %v", err)
		}
		w.opens(w.server, w.vault())
		if keys := w.dataKeys(); len(keys) != 2 {
			w.Errorf("%d keys", len(keys))
		}
		w.server.Follow(w.store, w.clock, func(context.Context) ([]byte, error) { return fresh, nil })
		if _, err := w.replace(&beside{}); err != nil {
			w.Fatal(err)
		}
		w.opens(w.server, w.vault())
		w.gone(before)
	})
}

// TestReplaceTwice: two commands do the same replacement at once, or one after the other.
func TestReplaceTwice(t *testing.T) {
	t.Parallel()
	each(t, fewRows, func(w *world) {
		former := w.dataKeys()
		failed := make(chan error, 2)
		for range 2 {
			s := w.db.Open(t)
			go func() {
				_, err := datakey.Replace(context.Background(), datakey.Config{Store: s, Master: w.master, Clock: w.clock, Report: func(datakey.Progress) {}})
				failed <- err
			}()
		}
		for range 2 {
			w.must(<-failed)
		}
		w.opens(w.vault())
		w.gone(former)
	})
}

// TestReplaceKeepsChanges: a secret that a server changes in the middle of a pass is not overwritten.
func TestReplaceKeepsChanges(t *testing.T) {
	t.Parallel()
	each(t, fewRows, func(w *world) {
		changed := false
		c := &changing{Store: w.store, change: func() {
			if !changed {
				w.values[0].plain = "changed"
				w.exec(`update session set keys = $1 where id = 7`, w.server.Seal(w.values[0].purpose, w.values[0].place, []byte("changed")))
			}
			changed = true
		}}
		former := w.dataKeys()
		_, err := datakey.Replace(context.Background(), datakey.Config{Store: c, Master: w.master, Clock: w.clock, Report: func(datakey.Progress) {}})
		w.must(err)
		w.opens(w.vault())
		w.gone(former)
		if !changed {
			t.Error("nothing changed meanwhile")
		}
	})
}

type changing struct {
	*store.Store
	change func()
}

func (c *changing) SealAgain(ctx context.Context, id []byte, again func(purpose, place string, sealed []byte) ([]byte, error)) (count, lost int, err error) {
	return c.Store.SealAgain(ctx, id, func(purpose, place string, sealed []byte) ([]byte, error) {
		c.change()
		return again(purpose, place, sealed)
	})
}
