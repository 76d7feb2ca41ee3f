package store_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/fleet"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

const patient = "+393331234567"

// installation is a world with rows in every table that a transfer moves.
type installation struct {
	*storetest.World
	client  *storetest.Client
	limited *storetest.Client // a client with 100 credits
	replay  puntuale.StartRun // a call whose answer is stored under its idempotency key
	ids     []puntuale.MessageID
	open    []puntuale.MessageID // messages with attempts that have no answer
}

func newInstallation(t testing.TB, d *storetest.Database) *installation {
	t.Helper()
	ctx := context.Background()
	in := &installation{World: storetest.NewWorld(t, d)}
	c, limited := in.World.Client(puntuale.AccountFull), in.World.Client(puntuale.AccountTest)
	in.client, in.limited = c, limited
	node := in.MustJoin()
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	end := func(o puntuale.Outcome) []puntuale.MessageID {
		ids := limited.MustStart(patient, storetest.Begin, 2)
		limited.MustEnd(node, storetest.Begin.Add(time.Minute), o, ids...)
		return ids
	}
	sent := end(puntuale.Outcome{Verdict: puntuale.Sent})
	failed := end(puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("numero inesistente"), Detail: puntuale.Quoted("4 \"virgolette\"\n")})
	end(puntuale.Outcome{Verdict: puntuale.Retry, Next: storetest.Begin.Add(time.Hour)})
	end(puntuale.Outcome{Verdict: puntuale.Uncertain, Next: storetest.Begin.Add(time.Hour)})
	limited.MustResend(sent[0], failed[0])
	in.open = limited.MustStart(patient, storetest.Begin, 2)
	in.MustClaim(node, storetest.Begin.Add(time.Minute), limited.Items(patient, 0, in.open...)...)
	c.MustStart(patient, storetest.Begin.Add(time.Hour), 3)
	must(c.PutBooking(ctx, c.Booking("visita")))
	in.Exec("insert into booking_former (client_id, reference, booking_id) values ($1, 'visita di prima', 1)", c.ID)
	must(c.CreateCalendar(ctx, puntuale.Calendar{Name: "Agenda", Host: "x.example", Sealed: []byte("s\x00\xff"), Sequence: c.Sequence, PhoneFrom: []string{"title"}, Created: storetest.Begin}, nil))
	in.Exec("insert into calendar_entry (client_id, calendar_id, reference, start_at, phone, digest) values ($1, 1, 'a@x', 5, '+393331234567', 'd')", c.ID)
	moved := puntuale.File{ID: movedFile, Name: "é.txt", Type: "text/plain", Hash: make([]byte, 32), Size: 5, Small: []byte{0xff, 0}, Created: storetest.Begin}
	must(c.CreateFile(ctx, moved))
	must(nil, c.AddFilePart(ctx, movedFile, 0, []byte{0, 0xff, '\n', '"', 0x80}))
	must(c.FinishFile(ctx, moved))
	cancelled := c.MustStart("+393337654321", storetest.Begin, 1)
	must(storetest.CancelPending(ctx, c, []string{"+393337654321"}, false, storetest.Day, storetest.Begin))
	must(nil, c.AddBlacklisted(ctx, puntuale.BlacklistEntry{Phone: "+393330000001", Reason: "chiesto", Added: storetest.Begin}, storetest.Day, nil))
	blocked := c.MustStart("+393330000001", storetest.Begin, 1)
	in.MustClaim(node, storetest.Begin.Add(time.Minute), c.Items("+393330000001", 0, blocked...)...)
	must(c.CreateTemplate(ctx, puntuale.Template{Name: "benvenuto", Text: "ciao 👋 {{nome}}", Latitude: new(45.4642), Longitude: new(-0.1 + 9.29)}, nil))
	must(nil, in.Receive(ctx, puntuale.SandboxMessage{Client: c.ID, Message: sent[0], ConnectorID: "x", Phone: patient, Received: storetest.Begin}))
	in.replay = c.Run(patient, storetest.Begin.Add(2*time.Hour), 2)
	in.replay.Idempotency = storetest.Keyed("POST /api/start/1", "chiave", "h")
	started, err := c.Start(ctx, in.replay)
	must(nil, err)
	in.ids = started.IDs
	session := limited.MustOfficial(false)
	must(nil, in.KeepUpload(ctx, puntuale.Upload{Client: limited.ID, Session: session, Number: "1", Hash: "h"}, "900", storetest.Begin.Add(time.Hour)))
	must(nil, in.KeepNetworkID(ctx, limited.ID, puntuale.NetworkID{MessageRef: puntuale.MessageRef{Client: limited.ID, ID: sent[1]}, Session: limited.MustGateway("one"), ID: "3EB0", Token: 1, At: storetest.Begin}))
	limited.MustHold()
	must(in.KeepInbound(ctx, storetest.Begin, []puntuale.TakenMessage{{InboundMessage: puntuale.InboundMessage{Client: limited.ID, Session: session, Phone: patient, At: storetest.Begin}, Names: []string{patient}}}))
	must(in.KeepInbound(ctx, storetest.Begin, []puntuale.TakenMessage{{Names: []string{patient}, Mark: "m", Keep: puntuale.KeepAllReplies, InboundMessage: puntuale.InboundMessage{
		Client: limited.ID, Session: session, Phone: patient, At: storetest.Begin, ID: "wamid.1", Kind: puntuale.ReplyText, Text: "Sì 👍",
	}}}))
	must(in.EnterConsent(ctx, puntuale.ConsentEntry{Client: limited.ID, Consent: puntuale.Consent{Phone: patient, Change: puntuale.ConsentGrant, At: storetest.Begin, Entered: storetest.Begin}}))
	must(in.Tenant(c.ID).MergeContacts(ctx, puntuale.ContactBatch{All: []puntuale.Contact{{Phone: patient, Name: "Anna", Tags: []string{"cliente"}}}, Now: storetest.Begin}))
	must(in.KeepReceipts(ctx, storetest.Begin, []puntuale.DeliveryReceipt{{MessageRef: puntuale.MessageRef{Client: limited.ID, ID: sent[1]}, Session: limited.Session,
		Kind: puntuale.ReceiptRead, At: storetest.Begin}}))
	limited.MustKnow(patient)
	limited.MustWaitForFile(patient)
	must(nil, in.Store.Partner(in.Partner).AddAudit(ctx, puntuale.AuditEntry{Client: c.ID, User: 1, Who: "a@b", Action: "client.enter", At: storetest.Begin}))
	must(nil, in.Store.Partner(in.Partner).SetOwnPrices(ctx, puntuale.Prices{Currency: "EUR", Each: map[string]string{"marketing": "0.10"}}))
	plan, err := in.Store.Partner(in.Partner).CreatePlan(ctx, puntuale.ClientPlan{Name: "Base", Values: puntuale.PlanValues{Credits: puntuale.ChangeTo[*int64](nil)}}, nil)
	must(plan, err)
	must(in.Store.Partner(in.Partner).UpdateClient(ctx, c.ID, puntuale.ClientPatch{Plan: puntuale.ChangeTo(plan), PlanSince: puntuale.ChangeTo(storetest.Day)}, storetest.Begin))
	must(in.Tenant(c.ID).ClaimStatement(ctx, 202610, storetest.Begin, storetest.Begin.Add(time.Hour)))
	must(nil, in.Tenant(c.ID).KeepStatementParts(ctx, 202610, storetest.Begin, 0, []puntuale.StatementPart{{Messages: []puntuale.MessageID{sent[0]}}}))
	must(in.Tenant(c.ID).FreezeStatement(ctx, puntuale.Statement{Month: 202610, Calls: 7, Frozen: storetest.Begin}, storetest.Begin.Add(time.Hour)))
	must(nil, in.Store.Partner(in.Partner).SetBrand(ctx, puntuale.Brand{Name: "Marca", Colour: "#123456", Logo: []byte{0, 255, 'x'}, LogoKind: "image/png"}))
	c.MustCampaign(2)
	in.Exec("insert into event_stream (client_id, wanted, feed_until, last_seq) values ($1, 2, 3, 4)", c.ID)
	in.Exec("insert into outbox_fact (client_id, type, subject, detail, at) values ($1, 2, $2, '{}', 4)", c.ID, sent[0])
	in.Exec("insert into outbox_event (client_id, seq, type, subject, detail, at) values ($1, 4, 2, $2, '{}', 4)", c.ID, sent[0])
	must(c.CreateWebhook(ctx, puntuale.Webhook{URL: "https://example.com/x", Session: c.Session, Description: "CRM"}, []byte("s\x00\xff"), storetest.Begin, nil))
	in.Exec("insert into delivery (webhook_id, at, client_id, seq, type, state, attempts, next_at, status, answer) values (1, 4, $1, 4, 2, 1, 2, 9, 200, 'ok')", c.ID)
	in.Exec("insert into chatwoot_link (client_id, session_id, webhook_id, account_id, inbox_id) values ($1, $2, 9, 3, 7)", c.ID, c.Session)
	in.Exec("insert into chatwoot_conversation (client_id, phone, webhook_id, contact_id, conversation_id, posting, assigned_at) values ($1, '+393331234567', 9, 1, 2, 'p', 3)", c.ID)
	in.Exec("insert into number_change (client_id, id, session_id, mark, old_phone, new_phone, names, at, noted_at, undone_at, moved) values ($1, 1, $2, 'm', '+39333', '+39334', '[]', 3, 4, 5, '{}')", c.ID, c.Session)
	in.Exec("insert into former_name (client_id, name, change_id, at) values ($1, '+39333', 1, 3)", c.ID)
	in.Exec("insert into notice (partner_id, client_id, kind, subject, detail, at, due_at, open, mailed) values ($1, $2, 1, $3, '{}', 4, 5, 1, 1)", in.Partner, c.ID, c.Session)
	in.Exec("insert into notice_read (login_id, notice_id) values (1, 7)")
	in.Exec("insert into notice_choice (login_id, on_kinds, off_kinds, mails, mails_from) values (1, 2, 4, 3, 5)")
	in.Exec("insert into automation (client_id, id, name, active, kind, wants, trigger_text, conditions, actions, stamp, created_at, updated_at, armed_at, sealed) values ($1, 1, 'Auguri', 1, 4, 2, '{}', '{}', '[]', 3, 4, 5, 6, $2)", c.ID, []byte("s\x00"))
	in.Exec("insert into automation_client (client_id, wanted) values ($1, 2)", c.ID)
	in.Exec("insert into replan (client_id, sequence_id, state, door, edited_at, cursor_id, last_id, bookings, done, planned, moved, cancelled, refused, started_at, ended_at, owner, owned_until) values ($1, $2, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)", c.ID, c.Sequence)
	in.Exec("insert into automation_trigger (client_id, kind, subject, at, next_at) values ($1, 1, 2, 3, 4)", c.ID)
	in.Exec("insert into automation_timer (client_id, rule_id, run_id, phone, since, due_at) values ($1, 1, $2, '+39333', 3, 4)", c.ID, sent[0])
	in.Exec("insert into automation_date (client_id, rule_id, person_id, value, version, since, day) values ($1, 1, 1, '1990-02-28', 1, 2, 20270228)", c.ID)
	in.Exec("insert into automation_occurrence (client_id, rule_id, phone, occurrence, keep_until) values ($1, 1, '+39333', 'x', 5)", c.ID)
	in.Exec("insert into automation_firing (client_id, rule_id, phone, at, occurrence, acted) values ($1, 1, '+39333', 4, 'x', 1)", c.ID)
	in.Exec("insert into day_total (client_id, day, sent, failed) values ($1, 20261120, 2, 1)", c.ID)
	in.Exec("insert into total_mark (client_id, at) values ($1, 5)", c.ID)
	in.Exec("insert into charge (client_id, campaign_id, country, category, billable, messages) values ($1, 1, 'IT', 'marketing', 1, 7)", c.ID)
	in.Exec("insert into budget (client_id, amount, currency, zone, began_at, ends_at, spent, unpriced, generation, counted, place_at, place_id, told, held_to, let_at) values ($1, 50000000, 'EUR', 'Europe/Rome', 3, 4, 5, 6, 7, 1, 8, 9, 3, 10, 11)", c.ID)
	in.Exec("insert into budget_message (client_id, generation, message_id, amount) values ($1, 7, $2, 65800)", c.ID, sent[0])
	in.Exec("insert into free_service (client_id, session_id, month, messages) values ($1, $2, 202611, 12)", c.ID, c.Session)
	in.Exec("insert into quota (client_id, noun, most) values ($1, 'sessions', 3)", c.ID)
	in.Exec("insert into invitation (login_id, hash, expires_at) values (1, 'h', 5)")
	in.Exec("insert into unknown_message (client_id, message_id, since, at) values ($1, $2, 3, 4)", c.ID, sent[0])
	in.Exec("insert into result_key (client_id, id, sequence_id, step, campaign_id, rule_id, session_id, template, told, variant) values ($1, 1, 2, 3, 4, 5, 6, 'modello', 3, 2)", c.ID)
	in.Exec("insert into result_message (client_id, message_id, key_id, day, marks, hour, words, generation) values ($1, $2, 1, 20261120, 7, 19, 'bSì', 1)", c.ID, sent[0])
	in.Exec("insert into result_answer (client_id, message_id, id, kind, button) values ($1, $2, 3, 1, 'Sì')", c.ID, sent[0])
	in.Exec("insert into link (client_id, run_id, step, n, code, address, clicked_at, clicks, machines) values ($1, 5, 0, 1, '23456789', 'https://negozio.example/', 6, 7, 8)", c.ID)
	in.Exec("insert into result_month (client_id, month, key_id, generation, counts, hours, words) values ($1, 202611, 1, 1, $2, $3, $4)", c.ID, []byte{18, 0, 255}, []byte{1}, []byte("x"))
	in.Exec("insert into result_client (client_id, generation, shown, place, state, began_at) values ($1, 1, 1, 2, 1, 3)", c.ID)
	in.Exec("insert into late_run (client_id, run_id, since) values ($1, $2, 3)", c.ID, cancelled[0])
	in.Exec("insert into archive (one, folder, serial) values (1, 'cartella', 7)")
	in.Exec("insert into archive_place (client_id, run_id) values ($1, $2)", c.ID, cancelled[0])
	in.Exec("insert into late_archive (client_id, run_id, since) values ($1, $2, 3)", c.ID, cancelled[0])
	in.Exec("insert into archive_erasure (client_id, mark) values ($1, '~x')", c.ID)
	in.Exec("insert into secret (name, value) values ('data key', $1)", []byte("w\x00\xff wrapped"))
	return in
}

// tables returns the moved tables with their columns, as the header of an exported file lists them.
func tables(t testing.TB, d *storetest.Database) []archive.Table {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(exported(t, d, transfer.ExportConfig{})))
	if err != nil {
		t.Fatal(err)
	}
	return r.Header.Tables
}

func exported(t testing.TB, d *storetest.Database, e transfer.ExportConfig) []byte {
	t.Helper()
	var file bytes.Buffer
	e.Program = "test"
	if _, err := transfer.Export(context.Background(), d.Config, &file, e); err != nil {
		t.Fatalf("export: %v", err)
	}
	return file.Bytes()
}

func imported(t testing.TB, d *storetest.Database, file []byte) {
	t.Helper()
	if _, err := transfer.Import(context.Background(), d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true}); err != nil {
		t.Fatalf("import: %v", err)
	}
}

// dump returns the rows of a table as sorted text.
func dump(t testing.TB, d *storetest.Database, table archive.Table) []string {
	t.Helper()
	var names []string
	for _, c := range table.Columns {
		names = append(names, c.Name)
	}
	rows, err := d.SQL.Query("select " + strings.Join(names, ", ") + " from " + table.Name)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		values, into := make([]any, len(names)), make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		for i, v := range values {
			if b, ok := v.([]byte); ok {
				values[i] = string(b)
			}
		}
		all = append(all, fmt.Sprintf("%q", values))
	}
	slices.Sort(all)
	return all
}

const movedFile = puntuale.FileID("aaaaaaaaaaaaaaaaaaaaaaaaaa.txt")

// same compares a database with its copy. In the copy, the tables of the archive must be empty, because the copy begins
// a new archive.
func same(t testing.TB, a, b *storetest.Database) {
	t.Helper()
	for _, table := range tables(t, a) {
		if table.Name == "archive" || table.Name == "archive_erasure" {
			if rows := dump(t, b, table); len(rows) > 0 {
				t.Errorf("%s went along: %v", table.Name, rows)
			}
			continue
		}
		if x, y := dump(t, a, table), dump(t, b, table); !slices.Equal(x, y) {
			t.Errorf("%s: %.400v became %.400v", table.Name, x, y)
		}
	}
}

// directions lists all ways to move between the two kinds of databases.
var directions = map[string][2]storetest.Driver{
	"sqlite to postgres":   {storetest.SQLite, storetest.Postgres},
	"postgres to sqlite":   {storetest.Postgres, storetest.SQLite},
	"sqlite to sqlite":     {storetest.SQLite, storetest.SQLite},
	"postgres to postgres": {storetest.Postgres, storetest.Postgres},
}

func eachDirection(t *testing.T, test func(t *testing.T, from, to *storetest.Database)) {
	for name, way := range directions {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, way[0](t), way[1](t))
		})
	}
}

// TestMove checks that an installation with every kind of row is the same after a move. Only the data about running
// servers differ.
func TestMove(t *testing.T) {
	t.Parallel()
	eachDirection(t, func(t *testing.T, from, to *storetest.Database) {
		in := newInstallation(t, from)
		for _, table := range tables(t, from) {
			if table.Rows == 0 {
				t.Errorf("nothing is in %s, so this shows nothing of it", table.Name)
			}
		}
		var told []string
		var file bytes.Buffer
		header, err := transfer.Export(context.Background(), from.Config, &file, transfer.ExportConfig{Progress: func(s transfer.Stage, done, total int64) {
			told = append(told, fmt.Sprint(s, done, total))
		}})
		if want := fmt.Sprint(transfer.Exporting, header.Rows(), header.Rows()); err != nil || told[len(told)-1] != want {
			t.Errorf("%v; told %v, want %s at the end", err, told, want)
		}
		imported(t, to, file.Bytes())
		same(t, from, to)
		if n := count(t, to, "select count(*) from session where owner <> 0") + count(t, to, "select count(*) from node"); n != 0 {
			t.Errorf("%d signs of servers", n)
		}
		checkMoved(t, in, to)
	})
}

func count(t testing.TB, d *storetest.Database, query string, args ...any) (n int64) {
	t.Helper()
	if err := d.SQL.QueryRow(query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// checkMoved uses a moved installation and checks that it works.
func checkMoved(t *testing.T, in *installation, d *storetest.Database) {
	ctx := context.Background()
	s := d.Open(t)
	if who, err := s.Principal(ctx, in.client.Key, storetest.Begin); err != nil || who.Client.ID != in.client.ID {
		t.Errorf("the old key: %+v, %v", who, err)
	}
	again, err := storetest.Start(ctx, s.Tenant(in.client.ID), in.replay)
	if err != nil || !again.Replayed || !slices.Equal(again.IDs, in.ids) {
		t.Errorf("the old call again: %+v, %v, want %v", again, err, in.ids)
	}
	if found, _, err := s.Tenant(in.client.ID).FindContacts(ctx, "Ana", 8); err != nil || len(found) != 0 { // a word of three letters has no typing errors
		t.Errorf("a short name: %v, %v", found, err)
	}
	if found, _, err := s.Tenant(in.client.ID).FindContacts(ctx, "Annna", 8); err != nil || len(found) != 1 {
		t.Errorf("a name with a typing error: %v, %v", found, err)
	}
	newest := count(t, d, "select max(id) from message")
	later := in.client.Run("+393339999999", storetest.Begin, 1)
	started, err := s.Tenant(in.client.ID).Start(ctx, later)
	if err != nil || int64(started.IDs[0]) <= newest {
		t.Errorf("a new message has the id %v, the last of the old ones %d: %v", started.IDs, newest, err)
	}
	oldNode := count(t, d, "select max(intent) from message where intent < $1", 1<<62) >> 32 // larger intents are attempts of devices
	node, err := s.Join(ctx, time.Minute)
	if err != nil || int64(node) <= oldNode {
		t.Errorf("node %d, after %d: %v", node, oldNode, err)
	}
	// A claim that uses credits writes the ledger, and a late receipt writes an event. The numbering of ledger
	// entries and of events must continue after the move.
	fresh, err := s.Tenant(in.limited.ID).Start(ctx, in.limited.Run(patient, storetest.Begin, 1))
	if err != nil {
		t.Fatal(err)
	}
	items := in.limited.Items(patient, 0, fresh.IDs...)
	granted, err := s.Claim(ctx, puntuale.Claim{Node: node, Token: storetest.Token(node), Now: storetest.Begin.Add(time.Minute), Messages: items})
	if err != nil || granted[0] != puntuale.ClaimGranted {
		t.Fatalf("claim: %v, %v", granted, err)
	}
	if err := s.Receive(ctx, puntuale.SandboxMessage{Client: in.limited.ID, Message: fresh.IDs[0], ConnectorID: "y", Phone: patient, Received: storetest.Begin}); err != nil {
		t.Errorf("receive: %v", err)
	}
	if _, err := s.Record(ctx, storetest.Begin, []puntuale.Result{{MessageRef: items[0].MessageRef, Token: 1, Outcome: puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("x")}}}); err != nil {
		t.Errorf("record: %v", err)
	}
	if n := count(t, d, `select count(*) from client k where k.credits is not null
 and k.credits <> (select coalesce(sum(e.amount), 0) from credit_entry e where e.client_id = k.id)`); n != 0 {
		t.Errorf("the ledger of %d clients does not add up", n)
	}
	// Attempts from the old installation are still open, and no node owns them.
	due, err := s.Due(ctx, []puntuale.QueueCursor{{Session: in.limited.Session}}, storetest.Begin.Add(time.Minute), 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range in.open {
		i := slices.IndexFunc(due, func(m puntuale.DueMessage) bool { return m.ID == id })
		if i < 0 || due[i].Intent <= 0 {
			t.Errorf("the open attempt of message %d is not found", id)
		}
	}
}

// TestImportRefuses checks that an import refuses a wrong file or a wrong database. The database must stay unchanged.
func TestImportRefuses(t *testing.T) {
	t.Parallel()
	file := exported(t, newInstallation(t, storetest.SQLite(t)).DB, transfer.ExportConfig{})
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refuse := func(what string, d *storetest.Database, file []byte, i transfer.ImportConfig, matches func(error) bool) {
				t.Helper()
				partners := count(t, d, "select count(*) from partner")
				if _, err := transfer.Import(context.Background(), d.Config, bytes.NewReader(file), i); err == nil || !matches(err) {
					t.Errorf("%s: %v", what, err)
				}
				if n := count(t, d, "select count(*) from partner"); n != partners {
					t.Errorf("%s: %d partners, %d before", what, n, partners)
				}
			}
			empty := driver(t)
			as := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
			everything := transfer.ImportConfig{Copy: true}
			refuse("not final", empty, file, transfer.ImportConfig{}, as(transfer.ErrNotFinal))
			refuse("cut", empty, file[:len(file)-20], everything, as(archive.ErrDamaged))
			refuse("cut early", empty, file[:len(file)/2], everything, as(archive.ErrDamaged))
			refuse("a newer schema", empty, rewritten(t, file, func(h *archive.Header) { h.Schema = 99 }), everything, as(archive.ErrNewer))
			refuse("a foreign column", empty, rewritten(t, file, func(h *archive.Header) { h.Tables[3].Columns[1].Name = "nome" }), everything, as(archive.ErrDamaged))
			refuse("a foreign table", empty, rewritten(t, file, func(h *archive.Header) { h.Tables[3].Name = "pg_authid" }), everything, as(archive.ErrDamaged))
			refuse("a missing table", empty, rewritten(t, file, func(h *archive.Header) {
				h.Tables = h.Tables[:len(h.Tables)-1]
			}), everything, as(archive.ErrDamaged))
			imported(t, empty, file) // succeeds, because the refused imports wrote nothing into the database
			conflict := func(err error) bool { return puntuale.CodeOf(err) == puntuale.CodeConflict }
			refuse("full", empty, file, everything, conflict)

			busy := driver(t)
			s := busy.Open(t)
			release, err := s.LockDispatch(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := s.Join(context.Background(), time.Minute); err != nil {
				t.Fatal(err)
			}
			refuse("a server runs", busy, file, everything, conflict)
			if err := release(); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// rewritten makes a file with a changed header and correct checksums.
func rewritten(t testing.TB, file []byte, change func(*archive.Header)) []byte {
	t.Helper()
	r, err := archive.NewReader(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	h := r.Header
	h.Tables = slices.Clone(h.Tables)
	for i := range h.Tables {
		h.Tables[i].Columns = slices.Clone(h.Tables[i].Columns)
	}
	change(&h)
	var out bytes.Buffer
	w, err := archive.NewWriter(&out, h)
	if err != nil {
		t.Fatal(err)
	}
	for range h.Tables {
		table, _, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		row := make([]any, len(table.Columns))
		err = w.Begin()
		for found := true; err == nil; {
			if found, err = r.Row(row); err != nil || !found {
				break
			}
			err = w.Row(row)
		}
		if err = cmp.Or(err, w.End()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// interrupted is a reader that cancels a context after it has read a number of bytes.
type interrupted struct {
	from *bytes.Reader
	left int
	end  func()
}

func (i *interrupted) Read(p []byte) (int, error) {
	n, err := i.from.Read(p[:min(len(p), 512)])
	if i.left -= n; i.left < 0 {
		i.end()
	}
	return n, err
}

// TestInterruptedImport checks that an import that is interrupted at several places leaves the database empty, and that
// the import can be repeated.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	from := newInstallation(t, storetest.SQLite(t)).DB
	file := exported(t, from, transfer.ExportConfig{})
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			for _, part := range []int{0, len(file) / 2, len(file) - 1} {
				ctx, cancel := context.WithCancel(context.Background())
				_, err := transfer.Import(ctx, d.Config, &interrupted{bytes.NewReader(file), part, cancel}, transfer.ImportConfig{Copy: true})
				cancel()
				if err == nil {
					t.Errorf("after %d bytes: it went on", part)
				}
			}
			for _, stage := range []transfer.Stage{transfer.Loading, transfer.Checking} {
				ctx, cancel := context.WithCancelCause(context.Background())
				why := errors.New("Ctrl-C")
				_, err := transfer.Import(ctx, d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true, Progress: func(s transfer.Stage, _, _ int64) {
					if s == stage {
						cancel(why)
					}
				}})
				if err == nil {
					t.Errorf("%s: it went on", stage)
				}
			}
			for _, table := range tables(t, d) {
				if n := count(t, d, "select count(*) from "+table.Name); n != 0 && table.Name != "counter" && table.Name != "id_block" {
					t.Errorf("%s holds %d rows", table.Name, n)
				}
			}
			imported(t, d, file)
			same(t, from, d)
		})
	}
}

// TestImportCutOff checks that an import leaves nothing in the database if its connection is cut before the end.
func TestImportCutOff(t *testing.T) {
	t.Parallel()
	file := exported(t, newInstallation(t, storetest.SQLite(t)).DB, transfer.ExportConfig{})
	d := storetest.Postgres(t)
	_, err := transfer.Import(context.Background(), d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true, Progress: func(s transfer.Stage, _, _ int64) {
		if s != transfer.Checking {
			return
		}
		if _, err := d.SQL.Exec("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"); err != nil {
			t.Error(err)
		}
	}})
	if puntuale.CodeOf(err) != puntuale.CodeUnavailable {
		t.Errorf("%v", err)
	}
	imported(t, d, file)
}

// TestImportChecks checks that an import compares the stored rows with the file. Here a trigger changes the rows, so
// the import must be undone.
func TestImportChecks(t *testing.T) {
	t.Parallel()
	file := exported(t, newInstallation(t, storetest.SQLite(t)).DB, transfer.ExportConfig{})
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			spoil := []string{`create trigger spoil after insert on run begin update run set content = content || ' ' where id = new.id; end`}
			if d.Postgres {
				spoil = []string{
					`create function spoil() returns trigger language plpgsql as $$ begin new.content := new.content || ' '; return new; end $$`,
					`create trigger spoil before insert on run for each row execute function spoil()`,
				}
			}
			for _, statement := range spoil {
				if _, err := d.SQL.Exec(statement); err != nil {
					t.Fatal(err)
				}
			}
			_, err := transfer.Import(context.Background(), d.Config, bytes.NewReader(file), transfer.ImportConfig{Copy: true})
			if err == nil || !strings.Contains(err.Error(), "table run came out other than it went in") {
				t.Errorf("%v", err)
			}
			if n := count(t, d, "select count(*) from client"); n != 0 {
				t.Errorf("%d clients", n)
			}
		})
	}
}

// TestFinalExport checks that servers do not start after a final export, until Reopen is called.
func TestFinalExport(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := context.Background()
			d := driver(t)
			in := newInstallation(t, d)
			final := func(e transfer.ExportConfig) ([]byte, error) {
				var file bytes.Buffer
				e.Final = true
				_, err := transfer.Export(ctx, d.Config, &file, e)
				return file.Bytes(), err
			}
			release, err := in.LockDispatch(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := final(transfer.ExportConfig{}); puntuale.CodeOf(err) != puntuale.CodeConflict {
				t.Errorf("beside a server: %v", err)
			}
			if err := errors.Join(release(), in.Close()); err != nil {
				t.Fatal(err)
			}
			if _, err := d.SQL.Exec("delete from node"); err != nil {
				t.Fatal(err)
			}
			full := errors.New("no space left")
			if _, err := final(transfer.ExportConfig{Finish: func() error { return full }}); !errors.Is(err, full) {
				t.Errorf("a disk that is full: %v", err)
			}
			s, err := store.Open(ctx, d.Config) // works, because the mark was removed
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			var file []byte
			for range 2 { // the export may be repeated
				if file, err = final(transfer.ExportConfig{}); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := store.Open(ctx, d.Config); !errors.Is(err, fleet.ErrMoved) {
				t.Errorf("the old one: %v", err)
			}
			to := storetest.SQLite(t)
			if _, err := transfer.Import(ctx, to.Config, bytes.NewReader(file), transfer.ImportConfig{}); err != nil {
				t.Errorf("import: %v", err)
			}
			to.Open(t)
			for _, want := range []bool{true, false} {
				if was, err := transfer.Reopen(ctx, d.Config); err != nil || was != want {
					t.Errorf("reopen: %v, %v", was, err)
				}
			}
			d.Open(t)
		})
	}
}

// TestExportIsOneMoment checks that an export contains one state of the database, while other connections write.
func TestExportIsOneMoment(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			in := newInstallation(t, d)
			stop, done := make(chan struct{}), make(chan struct{})
			go func() {
				defer close(done)
				for i := 0; ; i++ {
					select {
					case <-stop:
						return
					default:
						in.client.MustStart(fmt.Sprintf("+3933%08d", i), storetest.Begin, 2)
					}
				}
			}()
			var files [][]byte
			for range 3 {
				files = append(files, exported(t, d, transfer.ExportConfig{}))
			}
			close(stop)
			<-done
			for _, file := range files {
				to := storetest.SQLite(t)
				imported(t, to, file)
				if n := count(t, to, "select (select sum(messages) from run) - (select count(*) from message where resent_from = 0)"); n != 0 {
					t.Errorf("runs and messages differ by %d", n)
				}
			}
		})
	}
}

// TestEveryColumnIsKnown checks that each table and column is in MovedTables or LeftTables. A new migration must add
// its columns there.
func TestEveryColumnIsKnown(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			if foreign, err := store.ForeignTables(context.Background(), d.Open(t)); err != nil || len(foreign) > 0 {
				t.Errorf("%v are neither in movedTables nor in leftTables: %v", foreign, err)
			}
			tables(t, d)
			if _, err := d.SQL.Exec("create view mine as select id from partner"); err != nil { // an operator's own view must not be reported
				t.Fatal(err)
			}
			tables(t, d)
			if _, err := d.SQL.Exec("alter table run add column extra text not null default ''"); err != nil {
				t.Fatal(err)
			}
			var file bytes.Buffer
			if _, err := transfer.Export(context.Background(), d.Config, &file, transfer.ExportConfig{}); err == nil || !strings.Contains(err.Error(), "extra") {
				t.Errorf("a new column: %v", err)
			}
		})
	}
}
