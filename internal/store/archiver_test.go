package store_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/archiver"
	"puntuale/internal/store/storetest"
)

// Times of these tests. Identifiers of runs come from the database's own clock. The old runs are twenty years later
// than the time of that clock. The variable nowadays is three years later than the old runs.
var (
	longAgo  = storetest.Begin.AddDate(20, 0, 0)
	oldTill  = longAgo.Add(time.Hour)
	nowadays = oldTill.AddDate(3, 0, 0)
)

// archiveWorld is a world that has an archive.
type archiveWorld struct {
	*storetest.World
	t      testing.TB
	folder string
}

func newArchiveWorld(t testing.TB, w *storetest.World) *archiveWorld {
	return &archiveWorld{w, t, filepath.Join(t.TempDir(), "archive")}
}

func mark(client puntuale.ClientID, phone string) string {
	return fmt.Sprintf("%s%d:%s", puntuale.MarkPrefix, client, phone)
}

func (a *archiveWorld) config() archiver.Config {
	return archiver.Config{
		// The lease lasts zero microseconds. A lease of one microsecond would last up to one millisecond, because SQLite's clock
		// counts milliseconds. Meanwhile another archiver would do nothing.
		Folder: a.folder, Program: "test", Mark: mark, Lease: time.Nanosecond,
		Wait: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	}
}

func (a *archiveWorld) run(before time.Time) archiver.ArchiveResult {
	a.t.Helper()
	if err := a.Maintain(context.Background(), nowadays, before); err != nil {
		a.t.Fatal(err)
	}
	now := nowadays
	if open := before.AddDate(1, 2, 0); now.Before(open) { // statements need the runs of the last year, because no month was closed
		now = open
	}
	done, err := archiver.New(a.Store.DB, a.config()).Run(context.Background(), now, before)
	if err != nil {
		a.t.Fatal(err)
	}
	return done
}

// rows reads each row of the tables whose old rows are moved to the archive. The map's key is the row's text, and its
// value is how often the row exists.
func (a *archiveWorld) rows() map[string]int {
	a.t.Helper()
	all := map[string]int{}
	for name, columns := range store.ArchivedTables() {
		names := strings.Fields(columns)
		rows, err := a.DB.SQL.Query("select " + strings.Join(names, ", ") + " from " + name)
		if err != nil {
			a.t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			values, into := make([]any, len(names)), make([]any, len(names))
			for i := range values {
				into[i] = &values[i]
			}
			if err := rows.Scan(into...); err != nil {
				a.t.Fatal(err)
			}
			if name == "credit_entry" && slices.Contains(values, any("carried")) {
				continue
			}
			line, err := archive.AppendRow(nil, values)
			if err != nil {
				a.t.Fatal(err)
			}
			all[name+string(line)]++
		}
		if err := rows.Err(); err != nil {
			a.t.Fatal(err)
		}
	}
	return all
}

// kept returns how often each row exists in the files of the archive. The keys are the same as in rows.
func (a *archiveWorld) kept() map[string]int {
	a.t.Helper()
	all := map[string]int{}
	folder, err := archive.OpenFolder(a.folder)
	if errors.Is(err, archive.ErrNoFolder) {
		return all
	}
	if err != nil {
		a.t.Fatal(err)
	}
	files, err := folder.Files()
	if err != nil {
		a.t.Fatal(err)
	}
	for _, file := range files {
		if _, err := folder.Read(file, func(t archive.Table, values []any) error {
			line, err := archive.AppendRow(nil, values)
			all[t.Name+string(line)]++
			return err
		}); err != nil {
			a.t.Fatal(err)
		}
	}
	return all
}

// checkComplete checks that the database and the archive together contain exactly the rows in the argument was, each of
// them once.
func (a *archiveWorld) checkComplete(was map[string]int) {
	a.t.Helper()
	rows := a.rows()
	for line, n := range a.kept() {
		rows[line] += n
	}
	if maps.Equal(was, rows) {
		return
	}
	for line, n := range was {
		if rows[line] != n {
			a.t.Errorf("%d times, and should be %d: %.300s", rows[line], n, line)
		}
	}
	for line, n := range rows {
		if was[line] == 0 {
			a.t.Errorf("%d times, and was not there: %.300s", n, line)
		}
	}
}

// addRuns creates old runs and younger runs. Their messages are open, or ended in all possible ways.
func (a *archiveWorld) addRuns(seed uint64, clients, runs int) {
	a.t.Helper()
	random := rand.New(rand.NewPCG(seed, 0))
	node := a.MustJoin()
	for range clients {
		c := a.World.Client(puntuale.AccountBaby)
		for i := range runs {
			phone := fmt.Sprintf("+3933300000%02d", random.IntN(5))
			ids := c.MustStart(phone, longAgo, 1+random.IntN(4))
			items := c.Items(phone, 0, ids...)
			at := longAgo.Add(time.Minute)
			if random.IntN(5) == 0 {
				at = oldTill.Add(time.Microsecond) // makes the run too young for the archive
			}
			for j := range ids[:1+random.IntN(len(ids))] {
				token, granted := a.MustClaim(node, longAgo.Add(30*time.Second), items[j])
				if granted[0] != puntuale.ClaimGranted {
					a.t.Fatalf("not granted: %v", granted)
				}
				outcome := []puntuale.Outcome{
					{Verdict: puntuale.Sent}, {Verdict: puntuale.Sent, Detail: puntuale.Quoted("wamid.1")}, {Verdict: puntuale.Refused, Reason: puntuale.Quoted("numero inesistente")},
					{Verdict: puntuale.Retry, Next: longAgo.Add(time.Hour)}, {Verdict: puntuale.Uncertain, Next: longAgo.Add(time.Hour)},
				}[random.IntN(5)]
				a.MustRecord(at, items[j], token, outcome)
				if err := a.Receive(context.Background(), puntuale.SandboxMessage{Client: c.ID, Message: ids[j], ConnectorID: puntuale.ConnectorID(ids[j], 0), Phone: phone,
					Content: puntuale.Content{Text: "testo"}, Received: at}); err != nil {
					a.t.Fatal(err)
				}
			}
			if i%3 == 0 {
				a.Exec("insert into receipt (client_id, message_id, delivered_at) values ($1, $2, $3)", int64(c.ID), int64(ids[0]), at.UnixMicro())
			}
			if random.IntN(4) > 0 { // cancels the other messages of the run
				if _, err := c.CancelMessages(context.Background(), ids, storetest.Day, at); err != nil {
					a.t.Fatal(err)
				}
			}
			if i%7 == 0 && c.Detail(ids[0]).State == puntuale.Completed {
				c.MustResend(ids[0])
			}
		}
		// Some resent messages are closed. The others stay open.
		a.Exec(`update message set intent = -1, state = 3, done_at = $1 where client_id = $2 and resent_from <> 0 and id % 2 = 0`, longAgo.UnixMicro(), int64(c.ID))
	}
	half := a.Int("select (min(id) + max(id)) / 2 from credit_entry")
	a.Exec("update credit_entry set at = $1 where id < $2", longAgo.UnixMicro(), half)
	a.Exec("update credit_entry set at = $1 where id >= $2", nowadays.UnixMicro(), half)
}

// old counts the runs in the database that are old enough for the archive.
func (a *archiveWorld) old(before time.Time) int64 {
	return a.Int(`select count(*) from run r where not exists (select 1 from message m where m.client_id = r.client_id and m.run_id = r.id
 and (m.state = 0 or m.done_at > $1))`, before.UnixMicro())
}

// balanced checks that the entries of each client's credit ledger add up to the client's credits.
func (a *archiveWorld) balanced() {
	a.t.Helper()
	if n := a.Int(`select count(*) from client k where k.credits is not null
 and k.credits <> (select coalesce(sum(e.amount), 0) from credit_entry e where e.client_id = k.id)`); n != 0 {
		a.t.Errorf("%d ledgers do not add up", n)
	}
}

// TestArchive checks that the database and the archive together contain every row once. A run stays in the database
// while one of its messages is open or uncertain, or ended too recently.
func TestArchive(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		a.addRuns(seed, 3, 40)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		was, old := a.rows(), a.old(oldTill)
		if old < 20 {
			t.Fatalf("only %d runs are old", old)
		}
		done := a.run(oldTill)
		a.checkComplete(was)
		a.balanced()
		if n := a.old(oldTill); n != 0 || int64(done.Runs) != old || done.Files != 1 {
			t.Errorf("%d old runs are left of %d; %+v", n, old, done)
		}
		if n := a.Int("select count(*) from receipt v where not exists (select 1 from message m where m.id = v.message_id)") +
			a.Int("select count(*) from message m where not exists (select 1 from run r where r.id = m.run_id)") +
			a.Int("select count(*) from event e where not exists (select 1 from message m where m.id = e.message_id)") +
			a.Int("select count(*) from sandbox_message e where not exists (select 1 from message m where m.id = e.message_id)"); n != 0 {
			t.Errorf("%d rows hang on nothing", n)
		}
		if n := a.Int("select count(*) from credit_entry where at < $1 and kind <> 'carried'", oldTill.UnixMicro()); n != 0 {
			t.Errorf("%d old entries of ledgers are left", n)
		}
		if done := a.run(oldTill); done != (archiver.ArchiveResult{}) {
			t.Errorf("a second time: %+v", done)
		}

		// When the last messages of the other runs have ended, the archiver moves these runs to the archive.
		later := nowadays.Add(time.Hour)
		a.Exec("update message set intent = -1, state = 3, done_at = $1 where state = 0", nowadays.UnixMicro())
		if err := a.Maintain(t.Context(), later, later); err != nil {
			t.Fatal(err)
		}
		was = a.rows()
		for line, n := range a.kept() {
			was[line] += n
		}
		a.run(later)
		a.checkComplete(was)
		a.balanced()
		for _, table := range []string{"run", "message", "event", "sandbox_message", "receipt", "late_run", "late_archive"} {
			if n := a.Int("select count(*) from " + table); n != 0 {
				t.Errorf("%d rows of %s are left", n, table)
			}
		}
		if n := a.Int("select count(*) from credit_entry where kind <> 'carried'"); n != 0 {
			t.Errorf("%d entries of ledgers are left", n)
		}
	})
}

// TestArchiveLeavesWhatStatementsNeed: a run stays in the database until its month is closed, and the next month too, because
// that has the corrections. The runs of a month that no server closed stay, because they are counted whenever somebody asks;
// those of a month before the first closed one stay for a year.
func TestArchiveLeavesWhatStatementsNeed(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a, c := newArchiveWorld(t, w), w.Client(puntuale.AccountBaby)
		first := puntuale.MonthOf(longAgo)
		in := func(month, day int) time.Time { return first.Add(month).Begin(time.UTC).AddDate(0, 0, day-1) }
		sent := func(month int) {
			at := in(month, 15)
			w.DB.Clock.Set(at)
			node, ids := a.MustJoin(), c.MustStart("+393330000001", at, 1)
			items := c.Items("+393330000001", 0, ids...)
			token, _ := a.MustClaim(node, at, items[0])
			a.MustRecord(at, items[0], token, puntuale.Outcome{Verdict: puntuale.Sent})
		}
		closed := func(month int) {
			at := in(month+1, 4)
			if claimed, err := c.ClaimStatement(t.Context(), first.Add(month), at, at.Add(time.Hour)); err != nil || !claimed {
				t.Fatalf("%v, %v", claimed, err)
			}
			if frozen, err := c.FreezeStatement(t.Context(), puntuale.Statement{Month: first.Add(month), Frozen: at, CountedTo: at}, at.Add(time.Hour)); err != nil || !frozen {
				t.Fatalf("%v, %v", frozen, err)
			}
		}
		left := func(now time.Time, want ...int) {
			t.Helper()
			before := now.Add(-24 * time.Hour)
			if err := a.Maintain(t.Context(), now, before); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if _, err := archiver.New(a.Store.DB, a.config()).Run(t.Context(), now, before); err != nil {
					t.Fatal(err)
				}
			}
			for month := -1; month < 5; month++ {
				counted, err := c.BilledMessages(t.Context(), puntuale.BilledPeriod{From: in(month, 1), To: in(month+1, 1), Limit: 10})
				if err != nil || len(counted) == 1 != slices.Contains(want, month) {
					t.Errorf("on %v, month %d: %d messages, want some of months %v; %v", now, month, len(counted), want, err)
				}
			}
		}
		sent(-1)
		sent(0)
		left(in(1, 3), -1, 0) // no month was closed yet
		closed(0)
		sent(1)
		left(in(1, 31), -1, 0, 1) // the month before may still get corrections
		left(in(2, 3), -1, 0, 1)
		closed(1)
		left(in(2, 5), -1, 1)
		sent(2)
		sent(3)
		closed(3) // no server closed the month before
		sent(4)
		left(in(5, 3), -1, 2, 3, 4)
		closed(4)
		left(in(5, 10), -1, 2, 4)
		left(in(8, 10), -1, 2, 4)
		a.Exec("update client set deleted_at = $1 where id = $2", in(5, 10).UnixMicro(), int64(c.ID))
		left(in(8, 11), -1, 2) // a deleted client gets no more statements
		left(in(11, 28), -1, 2)
		left(in(15, 5), 2)
	})
}

// TestArchiverKilledAnywhere kills the archiver many times, at each point of its work. No row may ever be missing. At
// the end each row must exist once.
func TestArchiverKilledAnywhere(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		random := rand.New(rand.NewPCG(seed, 1))
		a.addRuns(seed, 3, 12)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		was := a.rows()
		stores := []*store.Store{w.Store, w.DB.Open(t)}
		steps := map[string]int{}
		for kills := 0; ; kills++ {
			worker := archiver.New(stores[kills%2].DB, a.config())
			left := 1 + random.IntN(7)
			store.FailAt(worker, func(step string) error {
				if left--; left == 0 {
					steps[step]++
					return store.ErrKilled
				}
				return nil
			})
			_, err := worker.Run(t.Context(), nowadays, oldTill)
			rows := a.rows()
			for line, n := range a.kept() {
				rows[line] += n
			}
			for line, n := range was {
				if rows[line] < n {
					t.Fatalf("after %v: lost: %.300s", steps, line)
				}
			}
			if err == nil {
				break
			}
			if kills == 200 {
				t.Fatal("it never ends")
			}
			if kills%3 == 0 { // changes a run after its file was written and before its rows are deleted
				a.change(was)
			}
		}
		t.Logf("killed at %v", steps)
		a.run(oldTill)
		a.checkComplete(was)
		a.balanced()
		if n := a.old(oldTill); n != 0 {
			t.Errorf("%d old runs are left", n)
		}
	})
}

// TestArchiveKeepsWhatChanges changes a run after its file was written, and before its rows are deleted. The changed
// run must stay in the database and be removed from the file. A later file contains the run.
func TestArchiveKeepsWhatChanges(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		a.addRuns(3, 2, 10)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		was := a.rows()
		worker := archiver.New(a.Store.DB, a.config())
		changes := 0
		store.FailAt(worker, func(step string) error {
			if step == "written" && changes < 2 {
				changes++
				a.change(was)
			}
			return nil
		})
		done, err := worker.Run(t.Context(), nowadays, oldTill)
		if err != nil || done.Files != 3 {
			t.Errorf("%+v, %v", done, err)
		}
		a.checkComplete(was)
		if n := a.old(oldTill); n != 0 {
			t.Errorf("%d old runs are left", n)
		}
	})
}

// change changes one message in the database, as a late receipt would.
func (a *archiveWorld) change(was map[string]int) {
	a.t.Helper()
	id := a.Int("select coalesce(min(m.id), 0) from message m join run r on r.client_id = m.client_id and r.id = m.run_id where m.state <> 0 and r.blanked_at <> 0")
	before := a.rows()
	a.Exec("update message set detail = 'tardi' || detail where id = $1", id)
	after := a.rows()
	for line := range before {
		if after[line] == 0 {
			delete(was, line)
		}
	}
	for line, n := range after {
		if before[line] == 0 {
			was[line] = n
		}
	}
}

// TestArchiveFolders checks that the archiver moves nothing into a wrong folder. A folder is wrong if it is not the
// folder of the earlier runs, or if it contains another installation's archive.
func TestArchiveFolders(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		a.addRuns(1, 1, 10)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		first := a.folder
		other := newArchiveWorld(t, w)
		if _, err := archive.BeginFolder(other.folder); err != nil {
			t.Fatal(err)
		}
		blocked := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(blocked, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		refuse := func(what, folder, says string) {
			t.Helper()
			was := a.rows()
			a.folder = folder
			_, err := archiver.New(a.Store.DB, a.config()).Run(t.Context(), nowadays, oldTill)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", what, err)
			}
			if !maps.Equal(was, a.rows()) {
				t.Errorf("%s: something was deleted", what)
			}
		}
		refuse("a file in its place", filepath.Join(blocked, "archive"), "not a directory")
		a.folder = first
		a.run(longAgo.AddDate(-1, 0, 0)) // creates the archive; no run is old enough to be moved
		refuse("another folder", other.folder, "another archive")
		refuse("a disk that is not mounted", t.TempDir(), "no archive yet")
		if err := archiver.Begin(t.Context(), a.Store.DB, other.folder); err != nil {
			t.Fatal(err)
		}
		refuse("the former folder", first, "another archive")
		a.folder = other.folder
		if done := a.run(oldTill); done.Runs == 0 {
			t.Errorf("into the new folder: %+v", done)
		}
		if _, err := os.Stat(filepath.Join(first, "00000001-1.gz")); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("in the former one: %v", err)
		}
		stranger := storetest.NewWorld(t, storetest.SQLite(t))
		if _, err := archiver.New(stranger.Store.DB, a.config()).Run(t.Context(), nowadays, oldTill); err == nil || !strings.Contains(err.Error(), "of another installation") {
			t.Errorf("another installation: %v", err)
		}
	})
}
