package devicecommand

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale/internal/client"
	"puntuale/internal/clock"
)

func open(t *testing.T, name string, c clock.Clock) *Journal {
	t.Helper()
	j, err := OpenJournal(name, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

// TestJournalIsRead: if the last line of a journal is cut off, the lines before it are read. Any other damage is an
// error.
func TestJournalIsRead(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	name := filepath.Join(t.TempDir(), "journal")
	j := open(t, name, c)
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(j.noteTake("t1"))
	must(j.noteBegun(client.HeldMessage{Attempt: "a1", Message: "1"}))
	must(j.noteReport(client.Report{Message: "1", Attempt: "a1", Outcome: client.Sent, Detail: "però"}))
	must(j.noteBegun(client.HeldMessage{Attempt: "a2", Message: "2"}))
	text, err := os.ReadFile(name)
	must(err)
	if info, err := os.Stat(name); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	for cut := range len(text) + 1 {
		name := filepath.Join(t.TempDir(), "journal")
		must(os.WriteFile(name, text[:cut], 0o600))
		j := open(t, name, c)
		lines := strings.Count(string(text[:cut]), "\n")
		if took, reports, begun := j.take == "t1", len(j.reports()), len(j.begun()); took != (lines > 0) || (reports == 1) != (lines > 2) || (begun == 1) != (lines == 2 || lines == 4) {
			t.Fatalf("after %d lines: take %t, %d reports, %d begun", lines, took, reports, begun)
		}
	}
	must(os.WriteFile(name, append([]byte("{]\n"), text...), 0o600))
	if _, err := OpenJournal(name, c); err == nil || !strings.Contains(err.Error(), "damaged in line 1") {
		t.Errorf("a damaged journal: %v", err)
	}
}

// TestJournalStaysSmall: the journal is rewritten without old entries. An outcome is stored for a week after it was
// reported.
func TestJournalStaysSmall(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	name := filepath.Join(t.TempDir(), "journal")
	j := open(t, name, c)
	j.appended = rewriteAfter - 6 // as if the journal contained this number of lines
	for _, id := range []string{"1", "2"} {
		r := client.Report{Message: id, Attempt: "a" + id, Outcome: client.Sent, Detail: "done"}
		if err := j.noteBegun(client.HeldMessage{Attempt: r.Attempt, Message: "9"}); err != nil {
			t.Fatal(err)
		}
		if err := j.noteReport(r); err != nil {
			t.Fatal(err)
		}
		if id == "1" {
			if err := j.noteAcknowledged([]client.Report{r}); err != nil {
				t.Fatal(err)
			}
			c.Advance(keepSettled / 2)
		}
	}
	if err := j.noteTake("t2"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(name)
	if n := strings.Count(string(text), "\n"); err != nil || n != 3 {
		t.Errorf("%d lines (%v):\n%s", n, err, text)
	}
	c.Advance(keepSettled)
	again := open(t, name, c)
	if _, ok := again.settled["1"]; ok || len(again.reports()) != 1 || again.take != "t2" {
		t.Errorf("after a week: %+v, %+v, %s", again.settled, again.open, again.take)
	}
	if _, ok := again.settled["2"]; !ok {
		t.Error("what was not acknowledged is forgotten")
	}
}
