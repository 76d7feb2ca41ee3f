//go:build e2e && figures

package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Of the server that TestFigureBackup backs up.
const (
	backupSteps  = 50
	backupStarts = 20_000 // makes 1,000,000 messages with backupSteps each
	backupRate   = 500    // messages that leave in a second
)

// TestFigureBackup backs up a server with 1,000,000 planned messages, of which 500 a second leave meanwhile, and prints how
// long it takes, the file's size, and how late messages were before and meanwhile.
func TestFigureBackup(t *testing.T) {
	conditions(t)
	databases(t, func(t *testing.T, database string) {
		s := serve(t, database)
		partner := createPartner(t, database)
		var later, soon []any
		for i := range backupSteps {
			later = append(later, step("Promemoria numero "+fmt.Sprint(i)+" per {{n}}: l'appuntamento si avvicina", 100+i, "days"))
			soon = append(soon, step("{{n}}", 1+i, "seconds"))
		}
		full, busy := createTenant(t, s.base, partner, "full", later...), createTenant(t, s.base, partner, "full", soon...)
		var callers sync.WaitGroup
		for w := range 8 {
			callers.Go(func() {
				for n := w; n < backupStarts; n += 8 {
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
	})
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
