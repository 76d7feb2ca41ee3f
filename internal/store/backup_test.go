package store_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/storetest"
	"puntuale/internal/store/transfer"
)

// onDrivers runs a test on both databases.
func onDrivers(t *testing.T, test func(t *testing.T, driver storetest.Driver)) {
	t.Helper()
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, driver)
		})
	}
}

// backedUp writes a backup and returns its path.
func backedUp(t *testing.T, d *storetest.Database) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "backup.zip")
	var file bytes.Buffer
	_, err := transfer.Backup(t.Context(), d.Config, &file, transfer.BackupConfig{Program: "test", Key: []byte("chiave"), Finish: func() error {
		if err := os.WriteFile(name, file.Bytes(), 0o600); err != nil {
			return err
		}
		return transfer.CheckBackup(t.Context(), name)
	}})
	if err != nil {
		t.Fatalf("back up: %v", err)
	}
	return name
}

func restored(t *testing.T, d *storetest.Database, name string, hold bool) transfer.RestoreResult {
	t.Helper()
	r, err := archive.OpenBackup(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	done, err := transfer.Restore(t.Context(), d.Config, r, transfer.RestoreConfig{Hold: hold})
	if err != nil {
		t.Fatalf("restore: %v", err)
	}
	return done
}

// unknownOf lists the unknown messages about which the client must decide.
func unknownOf(t *testing.T, c puntuale.Tenant) (ids []puntuale.MessageID) {
	t.Helper()
	var p puntuale.Page
	for {
		p.Limit = 2
		all, next, err := c.UnknownMessages(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range all {
			ids = append(ids, m.ID)
		}
		if next == "" {
			return ids
		}
		p.Cursor = next
	}
}

// TestRestoreSetsAside checks which messages a restore makes unknown. A message becomes unknown if it is due and has
// not ended in the backup, even if it could not leave then. The restore does not change other messages.
func TestRestoreSetsAside(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver storetest.Driver) {
		ctx := t.Context()
		d := driver(t)
		w := storetest.NewWorld(t, d)
		node := w.MustJoin()
		free, poor := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountTest, func(c *puntuale.Client) { c.Credits = new(int64(2)) })
		idle := w.Client(puntuale.AccountFull)
		if _, err := w.Store.Partner(w.Partner).UpdateClient(ctx, idle.ID, puntuale.ClientPatch{Suspended: puntuale.Change[bool]{Set: true, To: true}}, storetest.Begin); err != nil {
			t.Fatal(err)
		}
		due := free.MustStart(patient, storetest.Begin.Add(-time.Hour), 2)
		flying := free.MustStart("+393330000002", storetest.Begin, 1)
		w.MustClaim(node, storetest.Begin, free.Items("+393330000002", 0, flying...)...)
		sent := free.MustStart("+393330000003", storetest.Begin, 1)
		free.MustSend(node, storetest.Begin, sent...)
		later := free.MustStart(patient, storetest.Begin.Add(time.Hour), 1)
		many := poor.MustStart(patient, storetest.Begin.Add(-time.Minute), 3)
		held := idle.MustStart(patient, storetest.Begin, 1)
		name := backedUp(t, d)
		if at, err := w.LastBackup(ctx); err != nil || !at.Equal(storetest.Begin) {
			t.Errorf("the last backup is of %v, %v", at, err)
		}

		to := driver(t)
		done := restored(t, to, name, false)
		s := to.Open(t)
		next, err := s.Join(ctx, time.Minute)
		if err != nil || next <= node+1000 {
			t.Fatalf("node %d after %d: %v", next, node, err)
		}
		for who, c := range map[*storetest.Client][]puntuale.MessageID{free: slices.Concat(due, flying), poor: many, idle: held} {
			if got := unknownOf(t, s.Tenant(who.ID)); !slices.Equal(got, c) {
				t.Errorf("unknown are %v, not %v", got, c)
			}
		}
		if done.Unknown != 7 || done.Clients != 3 || done.Later != 1 || !done.Since.Equal(storetest.Begin) {
			t.Errorf("said: %+v", done)
		}
		// No device or node may repeat these messages, even if the network would recognise a repeat.
		for _, m := range details(t, s.Tenant(free.ID), slices.Concat(due, flying)...) {
			if m.State != puntuale.Pending || m.Intent <= 0 || m.Detail.IsZero() {
				t.Errorf("set aside: %+v", m.Message)
			}
			granted, err := s.Claim(ctx, puntuale.Claim{Node: next, Token: storetest.Token(next), Now: storetest.Begin.Add(26 * time.Hour),
				Messages: []puntuale.ClaimItem{{MessageRef: puntuale.MessageRef{Client: free.ID, ID: m.ID}, Session: m.Session, Phone: m.Phone, Intent: m.Intent}}})
			if err != nil || granted[0] != puntuale.ClaimStale {
				t.Errorf("a claim to repeat it: %v, %v", granted, err)
			}
		}
		if m := details(t, s.Tenant(free.ID), later...)[0]; m.Intent != 0 || m.State != puntuale.Pending || !m.Next.Equal(m.Due) {
			t.Errorf("due later: %+v", m.Message)
		}
		if n := count(t, to, "select credits from client where credits is not null"); n != 0 {
			t.Errorf("%d credits left of two", n)
		}
		if n := count(t, to, "select count(*) from message where credit = 1"); n != 2 {
			t.Errorf("%d messages have a credit", n)
		}
		fresh, err := s.Tenant(free.ID).Start(ctx, free.Run(patient, storetest.Begin.Add(time.Hour), 1))
		if err != nil || fresh.IDs[0] < later[0]+puntuale.MessageID((30*time.Minute).Microseconds()) {
			t.Errorf("numbered %v after %v: %v", fresh.IDs, later, err)
		}
	})
}

func details(t *testing.T, c puntuale.Tenant, ids ...puntuale.MessageID) []puntuale.MessageDetail {
	t.Helper()
	found, err := c.Details(t.Context(), ids)
	if err != nil || len(found) != len(ids) {
		t.Fatalf("details: %v, %v", found, err)
	}
	return found
}

// TestRestoredTwice restores one backup twice, at a time when identifiers are up to an hour ahead of the clock. The two
// installations must never create the same new identifier.
func TestRestoredTwice(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver storetest.Driver) {
		d := driver(t)
		w := storetest.NewWorld(t, d)
		c := w.Client(puntuale.AccountFull)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.MarkRestored(t.Context(), d.Config, storetest.Begin, transfer.RestoreConfig{}); err != nil {
			t.Fatal(err)
		}
		name := backedUp(t, d)
		made := map[puntuale.MessageID]bool{}
		for range 2 {
			d.Clock.Advance(10 * time.Second)
			to := driver(t)
			to.Config.Clock = d.Clock
			restored(t, to, name, false)
			for range 3 {
				started, err := to.Open(t).Tenant(c.ID).Start(t.Context(), c.Run(patient, storetest.Begin.Add(time.Hour), 4))
				if err != nil {
					t.Fatal(err)
				}
				for _, id := range started.IDs {
					if made[id] {
						t.Errorf("%d was given out twice", id)
					}
					made[id] = true
				}
			}
		}
	})
}

// TestUnknownIsDecided checks that a person can decide about each unknown message once: send it again, or close it. A
// receipt for the message also decides.
func TestUnknownIsDecided(t *testing.T) {
	onDrivers(t, func(t *testing.T, driver storetest.Driver) {
		ctx := t.Context()
		d := driver(t)
		w := storetest.NewWorld(t, d)
		node := w.MustJoin()
		c := w.Client(puntuale.AccountFull)
		ids := c.MustStart(patient, storetest.Begin.Add(-time.Hour), 4)
		if err := w.Leave(ctx, node); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := transfer.MarkRestored(ctx, d.Config, storetest.Begin.Add(time.Hour), transfer.RestoreConfig{}); puntuale.CodeOf(err) != puntuale.CodeInvalid {
			t.Errorf("a copy of an hour ahead: %v", err)
		}
		if _, err := transfer.MarkRestored(ctx, d.Config, storetest.Begin.Add(-time.Hour), transfer.RestoreConfig{Hold: true}); err != nil {
			t.Fatal(err)
		}
		s := d.Open(t)
		own := s.Tenant(c.ID)
		if r, err := own.Restored(ctx); err != nil || r.Unknown != 4 || !r.Since.Equal(storetest.Begin.Add(-time.Hour)) || !r.At.Equal(storetest.Begin) || !r.Held.Equal(storetest.Begin) {
			t.Errorf("%+v, %v", r, err)
		}
		if _, err := own.Resend(ctx, c.Again(ids[0])); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("a re-send that does not say so: %v", err)
		}
		again := c.Again(ids[0])
		again.Unknown = true
		resent, err := own.Resend(ctx, again)
		if err != nil {
			t.Fatalf("send again: %v", err)
		}
		if _, err := own.Resend(ctx, again); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("send again twice: %v", err)
		}
		if closed, err := own.CloseUnknown(ctx, []puntuale.MessageID{ids[0], ids[1]}, storetest.Day, storetest.Begin); err != nil || !slices.Equal(closed, ids[1:2]) {
			t.Errorf("closed %v, %v", closed, err)
		}
		if _, err := s.Record(ctx, storetest.Begin, []puntuale.Result{{MessageRef: puntuale.MessageRef{Client: c.ID, ID: ids[2]}, Token: 77, Outcome: puntuale.Outcome{Verdict: puntuale.Sent}}}); err != nil {
			t.Fatal(err)
		}
		if got := unknownOf(t, own); !slices.Equal(got, ids[3:]) {
			t.Errorf("unknown are %v, not %v", got, ids[3:])
		}
		for i, m := range details(t, own, append(slices.Clone(ids), resent.IDs...)...) {
			want := []puntuale.State{puntuale.Rescheduled, puntuale.Failed, puntuale.Completed, puntuale.Pending, puntuale.Pending}[i]
			if m.State != want || i < 2 && m.Reason.Code != puntuale.ReasonUncertain || i == 4 && (m.Intent != 0 || m.ResentFrom != ids[0]) {
				t.Errorf("message %d of %v: %+v", i, want, m.Message)
			}
		}

		next, err := s.Join(ctx, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		claim := func() puntuale.ClaimAnswer {
			granted, err := s.Claim(ctx, puntuale.Claim{Node: next, Token: storetest.Token(next), Now: storetest.Begin.Add(2 * time.Hour),
				Messages: []puntuale.ClaimItem{{MessageRef: puntuale.MessageRef{Client: c.ID, ID: resent.IDs[0]}, Phone: patient}}})
			if err != nil {
				t.Fatal(err)
			}
			return granted[0]
		}
		if got := claim(); got != puntuale.ClaimHeld {
			t.Errorf("while the client is held: %v", got)
		}
		all, err := s.RestoredClients(ctx)
		if err != nil || len(all) != 1 || all[0].Client != c.ID || all[0].Unknown != 1 || all[0].Held.IsZero() {
			t.Errorf("clients: %+v, %v", all, err)
		}
		if err := own.Release(ctx, storetest.Day); err != nil {
			t.Fatal(err)
		}
		if got := claim(); got != puntuale.ClaimGranted {
			t.Errorf("once it is released: %v", got)
		}
	})
}

// TestBackupRefused checks that a backup's database cannot be imported, because messages could then leave twice. A
// damaged backup is refused, too.
func TestBackupRefused(t *testing.T) {
	t.Parallel()
	d := storetest.SQLite(t)
	storetest.NewWorld(t, d).Client(puntuale.AccountFull)
	name := backedUp(t, d)
	r, err := archive.OpenBackup(name)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var database bytes.Buffer
	if err := r.Copy(archive.DatabaseEntry, &database); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Import(context.Background(), storetest.SQLite(t).Config, &database, transfer.ImportConfig{Copy: true}); !errors.Is(err, transfer.ErrBackup) {
		t.Errorf("import of a backup's database: %v", err)
	}
	whole, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[200] ^= 1 // this byte belongs to the zip entry with the database
	for what, c := range map[string]struct {
		file []byte
		is   error
	}{
		"cut":     {whole[:len(whole)-30], archive.ErrNoBackup},
		"empty":   {nil, archive.ErrNoBackup},
		"flipped": {flipped, archive.ErrDamagedBackup},
	} {
		if err := os.WriteFile(name, c.file, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := transfer.CheckBackup(t.Context(), name); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
