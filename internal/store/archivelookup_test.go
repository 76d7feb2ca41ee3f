package store_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store"
	"puntuale/internal/store/archive"
	"puntuale/internal/store/archiver"
	"puntuale/internal/store/storetest"
)

func (a *archiveWorld) find(r archiver.Search) (all []archiver.Message) {
	a.t.Helper()
	if err := archiver.Find(a.folder, r, func(m archiver.Message) error {
		all = append(all, m)
		return nil
	}); err != nil {
		a.t.Fatal(err)
	}
	return all
}

// TestLookup checks that a lookup in the archive shows an archived message exactly as the API showed it before. The API
// itself no longer finds the message.
func TestLookup(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		node := w.MustJoin()
		ids := c.MustStart(someone, longAgo, 2)
		failed := c.MustStart("+393330000002", longAgo.AddDate(0, 0, 1), 1)
		theirs := other.MustStart(someone, longAgo, 1)
		c.MustSend(node, longAgo.Add(time.Minute), ids...)
		other.MustSend(node, longAgo.Add(time.Minute), theirs...)
		later := longAgo.AddDate(0, 0, 1).Add(time.Minute)
		c.MustEnd(node, later, puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("numero inesistente"), Detail: puntuale.Quoted("131026")}, failed...)
		till := longAgo.AddDate(0, 0, 2)
		if err := a.Maintain(t.Context(), nowadays, till); err != nil {
			t.Fatal(err)
		}
		all := slices.Concat(ids, failed, theirs)
		var were []puntuale.MessageDetail
		for _, id := range slices.Concat(ids, failed) {
			were = append(were, c.Detail(id))
		}
		a.run(till)
		if found, err := c.Details(t.Context(), all); err != nil || len(found) != 0 {
			t.Errorf("the API shows %v, %v", found, err)
		}
		if _, err := c.Resend(t.Context(), c.Again(ids[0])); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("sent again: %v", err)
		}
		got := a.find(archiver.Search{Client: c.ID})
		for i := range were {
			were[i].Request = nil
			if len(got) != len(were) || fmt.Sprint(got[i].MessageDetail) != fmt.Sprint(were[i]) {
				t.Fatalf("message %d:\n%+v, was\n%+v", i, got, were[i])
			}
		}
		if e := got[2].Events; len(e) != 1 || e[0].Kind != "refused" || !strings.Contains(e[0].Detail.String(), "131026") || got[2].Outcome != 2 || got[0].Outcome != 1 {
			t.Errorf("%+v", got[2])
		}
		want := func(what string, r archiver.Search, ids ...puntuale.MessageID) {
			t.Helper()
			var found []puntuale.MessageID
			for _, m := range a.find(r) {
				found = append(found, m.ID)
			}
			if !slices.Equal(found, ids) {
				t.Errorf("%s: %v, want %v", what, found, ids)
			}
		}
		want("an id", archiver.Search{IDs: failed}, failed...)
		want("no such id", archiver.Search{IDs: []puntuale.MessageID{1}})
		want("a number", archiver.Search{Phone: someone}, slices.Concat(ids, theirs)...)
		want("a client's number", archiver.Search{Phone: someone, Client: other.ID}, theirs...)
		want("a period", archiver.Search{From: longAgo.Add(time.Second), To: longAgo.AddDate(0, 0, 1)}, ids[1])
		want("to its end, exclusive", archiver.Search{From: longAgo.AddDate(0, 0, 1)}, failed...)
	})
}

// TestArchiveForgets checks that an erased person is also removed from the archive's files. If the archiver is killed
// during the removal, it repeats the removal when it works again.
func TestArchiveForgets(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		const number = "393471112223"
		c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
		node := w.MustJoin()
		refused := puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("a " + number), Detail: puntuale.Quoted(number)}
		for _, client := range []*storetest.Client{c, other} {
			for range 3 {
				ids := append(client.MustStart("+"+number, longAgo, 1), client.MustStart(someone, longAgo, 1)...)
				client.MustEnd(node, longAgo.Add(time.Minute), refused, ids[0])
				client.MustSend(node, longAgo.Add(time.Minute), ids[1])
				if err := w.Receive(t.Context(), puntuale.SandboxMessage{Client: client.ID, Message: ids[0], ConnectorID: puntuale.ConnectorID(ids[0], 0), Phone: "+" + number, Received: longAgo}); err != nil {
					t.Fatal(err)
				}
			}
			a.run(oldTill)
			a.Exec("update archive set done_to = 0")
		}
		lines := len(a.kept())
		if err := erased(c, "+"+number); err != nil {
			t.Fatal(err)
		}
		random := rand.New(rand.NewPCG(rand.Uint64(), 0))
		for kills := 0; ; kills++ {
			worker := archiver.New(a.Store.DB, a.config())
			left := 1 + random.IntN(3)
			store.FailAt(worker, func(string) error {
				if left--; left == 0 {
					return store.ErrKilled
				}
				return nil
			})
			if _, err := worker.Run(t.Context(), nowadays, oldTill); err == nil {
				break
			}
			if n := a.Int("select count(*) from archive_erasure"); n != 1 && kills == 0 {
				t.Errorf("%d erasures are noted", n)
			}
		}
		if n := a.Int("select count(*) from archive_erasure"); n != 0 {
			t.Errorf("%d erasures are left", n)
		}
		kept := a.kept()
		n := 0
		for line, times := range kept {
			if strings.Contains(line, number) && !strings.Contains(line, fmt.Sprintf("[%d,", other.ID)) && !strings.Contains(line, fmt.Sprintf(",%d,", other.ID)) {
				t.Errorf("the archive says %s", line)
			}
			n += times
		}
		if len(a.find(archiver.Search{Client: c.ID})) != 6 || len(a.find(archiver.Search{Client: c.ID, Phone: someone})) != 3 || len(a.find(archiver.Search{Phone: "+" + number})) != 3 {
			t.Errorf("of %d lines %d are left", lines, n)
		}
		files, err := os.ReadDir(a.folder)
		if err != nil || len(files) != 3 { // the folder contains its identity file and two archive files; no replaced file is left
			t.Errorf("%v, %v", files, err)
		}
	})
}

func erased(c *storetest.Client, phone string) error {
	_, err := c.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(name string) string { return mark(c.ID, name) }}, Day: storetest.Day, Now: nowadays})
	return err
}

// TestArchiveForgetsWhatIsUnderWay erases a person after a file was written, and before the file's rows are deleted
// from the database. The person must then be removed from both the file and the database.
func TestArchiveForgetsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		for _, step := range []string{"gathered", "written", "removing", "removed", "finished"} {
			a := newArchiveWorld(t, w)
			a.Exec("delete from archive")
			c := w.Client(puntuale.AccountFull)
			const number = "+393471112223"
			ids := append(c.MustStart(number, longAgo, 1), c.MustStart(someone, longAgo, 1)...)
			c.MustSend(w.MustJoin(), longAgo.Add(time.Minute), ids...)
			if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
				t.Fatal(err)
			}
			worker := archiver.New(a.Store.DB, a.config())
			store.FailAt(worker, func(at string) error {
				if at == step {
					return erased(c, number)
				}
				return nil
			})
			if _, err := worker.Run(t.Context(), nowadays, oldTill); err != nil {
				t.Fatal(err)
			}
			a.run(oldTill)
			if len(a.find(archiver.Search{})) != 2 || len(a.find(archiver.Search{Phone: someone})) != 1 || len(a.find(archiver.Search{Phone: number})) != 0 {
				t.Errorf("%s: the archive shows %+v", step, a.find(archiver.Search{}))
			}
			if n := a.Int("select count(*) from run where client_id = $1", c.ID); n != 0 {
				t.Errorf("%s: %d runs are left", step, n)
			}
		}
	})
}

// TestArchiversTogether runs several archivers with one folder. Each row must be moved once. An archiver that was
// stopped for a while must delete nothing after it lost the lease.
func TestArchiversTogether(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		a.addRuns(seed, 4, 12)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		was := a.rows()
		stores := []*store.Store{w.Store, w.DB.Open(t)}
		var wg sync.WaitGroup
		for i := range 4 { // each lease ends immediately, so the archivers take over from each other all the time
			wg.Go(func() {
				random := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 10 {
					worker := archiver.New(stores[i%2].DB, a.config())
					store.FailAt(worker, func(string) error {
						if random.IntN(6) == 0 {
							return store.ErrKilled
						}
						return nil
					})
					_, err := worker.Run(t.Context(), nowadays, oldTill)
					if err != nil && !errors.Is(err, store.ErrKilled) && !errors.Is(err, archive.ErrTaken) && !errors.Is(err, os.ErrNotExist) {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		a.run(oldTill)
		a.checkComplete(was)
		a.balanced()
		if n := a.old(oldTill); n != 0 {
			t.Errorf("%d old runs are left", n)
		}
	})
}

// TestArchiveDamaged checks two cases: a written file is damaged before its rows are deleted, or the file cannot be
// written. In both cases the archiver must delete no row and return an error.
func TestArchiveDamaged(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		a.addRuns(2, 2, 10)
		if err := a.Maintain(t.Context(), nowadays, oldTill); err != nil {
			t.Fatal(err)
		}
		was := a.rows()
		worker := archiver.New(a.Store.DB, a.config())
		name := filepath.Join(a.folder, "00000001-1.gz")
		var whole []byte
		store.FailAt(worker, func(step string) error {
			if step != "written" {
				return nil
			}
			var err error
			if whole, err = os.ReadFile(name); err != nil {
				return err
			}
			return os.WriteFile(name, whole[:len(whole)/2], 0o600)
		})
		for range 2 {
			if _, err := worker.Run(t.Context(), nowadays, oldTill); !errors.Is(err, archive.ErrDamaged) || !strings.Contains(err.Error(), name) {
				t.Fatalf("%v", err)
			}
		}
		if rows := a.rows(); len(rows) != len(was) {
			t.Errorf("%d rows, were %d", len(rows), len(was))
		}
		flaws := 0
		if err := archiver.ListArchive(a.folder, true, func(f archiver.ArchivedFile) error {
			if f.Err != nil {
				flaws++
			}
			return nil
		}); err != nil || flaws != 1 {
			t.Errorf("%d flaws are found, %v", flaws, err)
		}
		if err := os.WriteFile(name, whole, 0o600); err != nil {
			t.Fatal(err)
		}
		a.run(oldTill)
		a.checkComplete(was)
	})
}

// TestArchivedYears creates the same number of runs every year. The archive grows, but the database must not grow.
func TestArchivedYears(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		a := newArchiveWorld(t, w)
		c := w.Client(puntuale.AccountBaby)
		a.Exec("update client set credits = credits + 100000 where id = $1", int64(c.ID))
		a.Exec("insert into credit_entry (client_id, at, kind, amount) values ($1, $2, 'grant', 100000)", int64(c.ID), storetest.Begin.UnixMicro())
		keep := puntuale.Retention{Months: 3}
		var sizes []int64
		started := 0
		for month := range 15 {
			now := longAgo.AddDate(0, month, 0)
			w.DB.Clock.Set(now)
			node := w.MustJoin()
			for i := range 20 {
				ids := c.MustStart(fmt.Sprintf("+39333000%04d", i), now, 3)
				started += len(ids)
				items := c.Items("", 0, ids...)
				token, granted := w.MustClaim(node, now.Add(10*time.Second), items...)
				for j, item := range items {
					if granted[j] != puntuale.ClaimGranted {
						t.Fatal(granted)
					}
					o := puntuale.Outcome{Verdict: puntuale.Sent}
					if i%5 == 0 {
						o = puntuale.Outcome{Verdict: puntuale.Refused, Reason: puntuale.Quoted("numero inesistente")}
					}
					w.MustRecord(now, item, token, o)
				}
			}
			a.Exec("insert into statement (client_id, month, frozen_at) values ($1, $2, $3)", int64(c.ID), int64(puntuale.MonthOf(now).Add(-1)), now.UnixMicro())
			if err := a.Maintain(t.Context(), now, keep.Cutoff(now)); err != nil {
				t.Fatal(err)
			}
			if _, err := archiver.New(a.Store.DB, a.config()).Run(t.Context(), now, keep.Cutoff(now).Truncate(24*time.Hour)); err != nil {
				t.Fatal(err)
			}
			sum := int64(0)
			for _, table := range []string{"run", "message", "event", "credit_entry", "late_run", "late_archive", "archive_place", "sandbox_message"} {
				sum += a.Int("select count(*) from " + table)
			}
			sizes = append(sizes, sum)
		}
		t.Log(sizes)
		for _, n := range sizes[6:] {
			if n > sizes[5]+1 {
				t.Errorf("the database goes on growing: %v", sizes)
				break
			}
		}
		if n := int64(len(a.find(archiver.Search{}))) + a.Int("select count(*) from message"); n != int64(started) {
			t.Errorf("%d of %d messages are there", n, started)
		}
		a.balanced()
	})
}
