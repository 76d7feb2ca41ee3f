//go:build e2e && figures

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Of the server that TestFigureBackup backs up.
const (
	backupSteps = 50
	backupRate  = 500 // messages that leave in a second
)

// backupMessages is how many messages TestFigureBackup plans: what PUNTUALE_BACKUP says, or 1,000,000.
func backupMessages(t *testing.T) int {
	text := os.Getenv("PUNTUALE_BACKUP")
	if text == "" {
		return 1_000_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestFigureBackup backs up a server with 1,000,000 planned messages, of which 500 a second leave meanwhile, and prints how
// long it takes, the file's size, and how late messages were before and meanwhile. Then it restores the backup, and checks
// that nobody gets a message twice.
func TestFigureBackup(t *testing.T) {
	conditions(t)
	planned := backupMessages(t)
	// The restore ends before the messages of the client "waiting" are due.
	wait := 180 + planned/4000 // seconds
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		partner := createPartner(t, database)
		var later, soon, afterwards []any
		for i := range backupSteps {
			later = append(later, step("Promemoria numero "+fmt.Sprint(i)+" per {{n}}: l'appuntamento si avvicina", 100+i, "days"))
			soon = append(soon, step("{{n}}", 1+i, "seconds"))
			afterwards = append(afterwards, step("{{n}}", wait+i, "seconds"))
		}
		full, busy := createTenant(t, s.base, partner, "full", later...), createTenant(t, s.base, partner, "full", soon...)
		waiting := createTenant(t, s.base, partner, "full", afterwards...)
		var callers sync.WaitGroup
		for w := range 8 {
			callers.Go(func() {
				for n := w; n < planned/backupSteps; n += 8 {
					startOne(t, s.base, full, n)
				}
			})
		}
		callers.Wait()
		stop := make(chan struct{})
		callers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				case <-time.After(time.Second * backupSteps / backupRate):
				}
				callers.Go(func() { startOne(t, s.base, busy, n) })
			}
		})
		time.Sleep((backupSteps + 5) * time.Second)
		began := time.Now()
		time.Sleep(30 * time.Second)
		before := lateOf(t, database, began, time.Now())
		for n := range waitingStarts {
			startOne(t, s.base, waiting, n)
		}
		file := filepath.Join(t.TempDir(), "backup.zip")
		began = time.Now()
		if out, err := exec.Command(binary, "backup", "--to", file, "--data", t.TempDir(), "--database", databaseFlag(database)).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		ended := time.Now()
		close(stop)
		callers.Wait()
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("BACKUP of %d messages: %v, %.0f MB; messages late before: %s; meanwhile: %s", number(t, database, "select count(*) from message"),
			ended.Sub(began).Round(100*time.Millisecond), float64(info.Size())/1e6, before, lateOf(t, database, began, ended))
		restoredOnce(t, s, file, busy, waiting)
	})
}

// waitingStarts is how many starts the client "waiting" makes, right before the backup.
const waitingStarts = 20

// restoredOnce lets all due messages leave from the server that was backed up, kills it, restores the backup, and serves
// it until the messages of the client "waiting" have left. No message has left from both. What was due and had not ended
// in the backup waits for a person.
func restoredOnce(t *testing.T, old *server, file string, busy, waiting tenant) {
	t.Helper()
	open := func(database string, who tenant) int {
		return number(t, database, "select count(*) from message where state = 0 and client_id = "+who.id)
	}
	eventually(t, 3*time.Minute, "all due messages leave", func() bool { return open(old.database, busy) == 0 })
	gone := map[int64]int{} // how often a message arrived
	for _, who := range []tenant{busy, waiting} {
		for _, r := range ledger(t, old.base, who.key) {
			gone[r.ID]++
		}
	}
	old.kill()

	to := filepath.Join(t.TempDir(), "puntuale.db")
	if strings.HasPrefix(old.database, "postgres") {
		to = postgres(t)
	}
	began := time.Now()
	if out, err := exec.Command(binary, "restore", "--from", file, "--data", t.TempDir(), "--database", databaseFlag(to)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	took := time.Since(began)
	held := readBackup(t, file)
	fresh := serve(t, to)
	eventually(t, 15*time.Minute, "what is due after the restore leaves", func() bool { return open(to, waiting) == 0 })
	for range 2 { // a session's messages leave in the order in which they are due
		gone[asNumber(t, sent(t, fresh.base, busy))]--
	}
	for _, who := range []tenant{busy, waiting} {
		for _, id := range held.receivedSince(t, fresh.base, who) {
			gone[asNumber(t, id)]++
		}
		if got, want := unknown(t, fresh.base, who), held.open[who.id]; !slices.Equal(got, want) {
			t.Errorf("client %s: %d messages are unknown, and %d were due and not ended", who.id, len(got), len(want))
		}
	}
	twice := 0
	for _, times := range gone {
		if times > 1 {
			twice++
		}
	}
	for _, database := range []string{old.database, to} {
		twice += number(t, database, "select count(*) from sandbox_message where copies > 1")
	}
	left, aside := len(held.receivedSince(t, fresh.base, waiting)), len(held.open[busy.id])
	t.Logf("RESTORE of %d messages: %v; %d set aside, %d left afterwards, %d twice", number(t, to, "select count(*) from message"),
		took.Round(100*time.Millisecond), aside, left, twice)
	if twice > 0 || aside == 0 || left != waitingStarts*backupSteps {
		t.Errorf("%d messages arrived twice, %d were set aside, %d of %d left", twice, aside, left, waitingStarts*backupSteps)
	}
}

func asNumber(t *testing.T, id string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func startOne(t *testing.T, base string, who tenant, n int) {
	a, err := call("POST", base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": fmt.Sprintf("+39347%07d", n), "n": fmt.Sprint(n)})
	if err != nil || a.status != http.StatusOK {
		t.Errorf("%v %d %s", err, a.status, a.body)
	}
}

// lateOf describes the messages that left between two moments: how many in a second, and how long after their due times
// their outcomes were on disk.
func lateOf(t *testing.T, database string, from, to time.Time) string {
	where := fmt.Sprintf("from message where outcome = 1 and done_at >= %d and done_at < %d", from.UnixMicro(), to.UnixMicro())
	n := number(t, database, "select count(*) "+where)
	all := []string{fmt.Sprintf("%.0f/s", float64(n)/to.Sub(from).Seconds())}
	for _, percent := range []int{50, 99} {
		late := number(t, database, fmt.Sprintf("select done_at - due_at %s order by 1 limit 1 offset %d", where, max(0, n-1)*percent/100))
		all = append(all, fmt.Sprintf("p%d %v", percent, (time.Duration(late)*time.Microsecond).Round(100*time.Microsecond)))
	}
	return strings.Join(all, ", ")
}
