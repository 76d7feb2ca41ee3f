package yeartest_test

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // for a machine without time zone files

	"puntuale"
	"puntuale/internal/automation/yeartest"
	"puntuale/internal/clock"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/storetest"
)

var long = os.Getenv("PUNTUALE_LONG") == "1" // "make long" sets this variable

// A small practice has six rules and 100 people, or 300 people with PUNTUALE_LONG=1. In its year people reply, dates change, contacts are deleted,
// rules are switched off, and servers stop. The clocks change twice, and the year contains a 29 February. As in the model, each rule acts exactly
// once for each occurrence, and each message leaves at its due time.
func TestYear(t *testing.T) {
	t.Parallel()
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Date(2027, 12, 1, 8, 0, 0, 0, zone)
	type run struct {
		name   string
		driver storetest.Driver
		seed   uint64
		dies   int64
		people int
		days   int
	}
	all := []run{{"seed 19", storetest.SQLite, 19, 41, 100, 396}}
	if long {
		for seed := uint64(2); seed < 7; seed++ {
			all = append(all, run{fmt.Sprint("seed ", seed), storetest.SQLite, seed, int64(seed) % 3 * 17, 300, 456})
		}
	}
	for _, c := range all {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", c.seed)
			script := yeartest.NewScript(c.seed, zone, begin, begin.AddDate(0, 0, c.days), c.people)
			want := yeartest.Play(script)
			synctest.Test(t, func(t *testing.T) {
				p := &practice{t: t, script: script, dies: c.dies, db: engine.Config{Clock: clock.System(), Logger: quiet()}}
				d := c.driver(t)
				p.db.Data, p.db.Database = inMemory(t, d.Config.Data), d.Config.Database
				defer p.end()
				p.play(moments(script, want.Moments))
				p.compare(want)
			})
		})
	}
}

// inMemory copies a database to a file system in memory, if the machine has one. It returns the database's folder. A year has about 20,000
// transactions, and the test needs no protection against a power failure.
func inMemory(t *testing.T, folder string) string {
	t.Helper()
	const memory = "/dev/shm"
	if info, err := os.Stat(memory); folder == "" || err != nil || !info.IsDir() {
		return folder
	}
	place, err := os.MkdirTemp(memory, "puntuale-year")
	if err != nil {
		return folder
	}
	t.Cleanup(func() { _ = os.RemoveAll(place) })
	if err := os.CopyFS(place, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return place
}

// moments returns the given times, plus midnight and noon of each day, sorted and without duplicates.
func moments(s *yeartest.Script, all []time.Time) []time.Time {
	all = slices.Clone(all)
	for day := 1; ; day++ {
		y, m, d := s.Begin.In(s.Zone).Date()
		at := time.Date(y, m, d+day, 0, 0, 0, 0, s.Zone)
		if at.After(s.End) {
			break
		}
		all = append(all, at, time.Date(y, m, d+day, 12, 0, 0, 0, s.Zone))
	}
	slices.SortFunc(all, time.Time.Compare)
	all = slices.CompactFunc(all, time.Time.Equal)
	return slices.DeleteFunc(all, func(at time.Time) bool { return at.After(s.End) })
}

var verdicts = map[puntuale.ReasonCode]string{
	"": yeartest.Acted, puntuale.FiringMissed: yeartest.Missed, puntuale.FiringPast: yeartest.Past, puntuale.FiringChanged: yeartest.Changed, puntuale.FiringMost: yeartest.Most,
	puntuale.FiringDepth: yeartest.Depth, puntuale.FiringTakeover: yeartest.Takeover, puntuale.FiringAnswered: yeartest.Answered,
}

// compare compares the logs of the rules and the messages on the phones with the model.
func (p *practice) compare(want yeartest.Year) {
	p.t.Helper()
	var got []yeartest.Occurrence
	once := map[string]bool{}
	runs := map[puntuale.MessageID]string{}
	slices.SortFunc(p.firings, func(a, b puntuale.Firing) int { return cmp.Compare(a.ID, b.ID) })
	for _, f := range p.firings {
		rule := slices.Index(p.rules[:], f.Automation)
		o := yeartest.Occurrence{Rule: rule, Person: personOf(f.Phone), What: f.Occurrence, Verdict: cmp.Or(verdicts[f.Reason], string(f.Reason)), At: f.At}
		switch {
		case rule == yeartest.Silence || rule == yeartest.Reminded:
			id, _ := puntuale.ParseID[puntuale.MessageID](f.Occurrence)
			o.What = runs[id]
		case rule != yeartest.Keyword:
			o.What, _, _ = strings.Cut(f.Occurrence, "/")
		}
		for _, id := range f.Messages {
			runs[id] = o.What
		}
		if key := fmt.Sprint(rule, f.Phone, f.Occurrence); o.Verdict != yeartest.Changed {
			if once[key] {
				p.t.Errorf("twice: %v", o)
			}
			once[key] = true
		}
		got = append(got, o)
	}
	late := 5 * lateness
	if p.dies > 0 {
		late += 3 * (puntuale.TriggerLease + 2*time.Second)
	}
	differ(p.t, "in the logs", want.Occurrences, got, late, func(o yeartest.Occurrence) (string, time.Time) { return o.String(), o.At })
	var left []yeartest.Departure
	for _, m := range p.ledger() {
		left = append(left, yeartest.Departure{Person: personOf(m.Phone), Text: m.Content.Text, At: m.Received})
		if m.Copies != 1 {
			p.t.Errorf("%d copies reached %s", m.Copies, m.Phone)
		}
	}
	differ(p.t, "on the phones", want.Departures, left, late, func(d yeartest.Departure) (string, time.Time) {
		return fmt.Sprintf("person %d, %s", d.Person, d.Text), d.At
	})
	count := map[string]int{}
	for _, o := range want.Occurrences {
		count[fmt.Sprint(o.Rule, " ", o.Verdict)]++
	}
	for _, verdict := range verdicts {
		if !slices.ContainsFunc(want.Occurrences, func(o yeartest.Occurrence) bool { return o.Verdict == verdict }) {
			p.t.Errorf("no occurrence of the year is %s", verdict)
		}
	}
	p.t.Logf("%d occurrences %v, %d messages, %d expired", len(want.Occurrences), count, len(want.Departures), want.Expired)
}

// differ reports entries that only one of the two lists contains. It also compares the times of an entry that both lists
// contain. The time in the list got must not be earlier than in the list want, and later by at most the duration late.
func differ[T any](t *testing.T, where string, want, got []T, late time.Duration, key func(T) (string, time.Time)) {
	t.Helper()
	type two struct{ want, got []time.Time }
	all := map[string]*two{}
	get := func(x T) (*two, time.Time) {
		name, at := key(x)
		if all[name] == nil {
			all[name] = &two{}
		}
		return all[name], at
	}
	for _, x := range want {
		pair, at := get(x)
		pair.want = append(pair.want, at)
	}
	for _, x := range got {
		pair, at := get(x)
		pair.got = append(pair.got, at)
	}
	var faults []string
	for name, pair := range all {
		slices.SortFunc(pair.want, time.Time.Compare)
		slices.SortFunc(pair.got, time.Time.Compare)
		same := slices.EqualFunc(pair.want, pair.got, func(a, b time.Time) bool { return !b.Before(a) && b.Sub(a) <= late })
		if !same {
			faults = append(faults, fmt.Sprintf("%s: at %v, want %v", name, shown(pair.got), shown(pair.want)))
		}
	}
	slices.Sort(faults)
	for _, f := range faults[:min(len(faults), 20)] {
		t.Errorf("%s: %s", where, f)
	}
	if len(faults) > 20 {
		t.Errorf("%s: %d differences", where, len(faults))
	}
}

func shown(all []time.Time) (texts []string) {
	for _, at := range all {
		texts = append(texts, at.UTC().Format(time.DateTime))
	}
	return texts
}
