package automation_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/store"
)

// change moves the clock by a second, and then changes a rule.
func (w *world) change(id puntuale.AutomationID, f func(*puntuale.Automation)) {
	w.t.Helper()
	w.DB.Clock.Advance(time.Second)
	a, err := w.c.Automation(context.Background(), id)
	if err != nil {
		w.t.Fatal(err)
	}
	f(&a)
	a.Updated = w.DB.Clock.Now()
	if err := w.c.UpdateAutomation(context.Background(), a); err != nil {
		w.t.Fatal(err)
	}
}

// If a rule's repetition changes, each stored date gets a new next day. A day that is already planned is not planned again.
func TestChangedRepeat(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) { // the clock starts on 20 November 2026
		const march = "+393330000002"
		id := w.greeting()
		w.born(phone, "1990-11-21")
		w.born(march, "1990-03-10")
		w.dates()
		w.wantPending(phone, "2026-11-21 08:00")
		for repeat, want := range map[puntuale.Repeat]int{puntuale.RepeatMonthly: 20261210, puntuale.RepeatOnce: 99999999, puntuale.RepeatYearly: 20270310} {
			w.change(id, func(a *puntuale.Automation) { a.Trigger.Repeat = repeat })
			w.dates()
			if day := w.Int("select day from automation_date d join person p on p.client_id = d.client_id and p.id = d.person_id where p.phone = $1", march); int(day) != want {
				t.Errorf("%s: the next day is %d, not %d", repeat, day, want)
			}
			w.wantPending(phone, "2026-11-21 08:00")
		}
		w.change(id, func(a *puntuale.Automation) { a.Trigger.Repeat = puntuale.RepeatMonthly })
		w.dates()
		w.DB.Clock.Set(time.Date(2026, 12, 20, 12, 0, 0, 0, time.UTC))
		w.dates()
		w.wantPending(phone, "2026-11-21 08:00", "2026-12-21 08:00")
	})
}

// If a contact's date changes, all messages that the rule planned for the old date are cancelled, in all runs.
func TestChangedDateOfSeveralRuns(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		day := func(after int) puntuale.Timing {
			return puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Amount: after, Unit: puntuale.Days, Direction: puntuale.After}, At: "08:00"}
		}
		q := w.sequence("Mensile", func(q *puntuale.Sequence) {
			q.Steps = []puntuale.Step{{Text: "oggi", Timing: day(0)}, {Text: "poi", Timing: day(45)}}
		})
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatMonthly}, starts(q))
		other := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("altro")))
		w.born(phone, "1990-11-21")
		w.dates()
		w.DB.Clock.Set(time.Date(2026, 12, 20, 12, 0, 0, 0, time.UTC))
		w.dates()
		w.wantPending(phone, "2026-11-21 08:00", "2026-12-21 08:00", "2027-01-05 08:00", "2027-02-04 08:00")
		w.writes(phone, "ciao")
		w.runs()
		w.want(other, 1, "")
		w.born(phone, "1990-11-30")
		w.dates()
		if got := w.pending(phone); len(got) != 1 { // only the message of the other rule is left
			t.Errorf("%v", got)
		}
	})
}

// between is a store that calls the function happen before each call of FollowContacts.
type between struct {
	*store.Store
	happen func()
}

func (b *between) FollowContacts(ctx context.Context, client puntuale.ClientID, all []puntuale.TakenTrigger, now time.Time, next func(puntuale.ActiveAutomation, string, time.Time) puntuale.Date) error {
	if b.happen != nil {
		b.happen()
	}
	return b.Store.FollowContacts(ctx, client, all, now, next)
}

// A rule's field changes while a runner updates the dates of contacts. Afterwards the rule has the dates of the new field.
func TestRuleChangesMeanwhile(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.greeting()
		w.dates()
		queue := &between{Store: w.Store}
		late := newRunner(w.World, w.Store, queue)
		queue.happen = func() {
			w.change(id, func(a *puntuale.Automation) { a.Trigger.Field, a.Trigger.Repeat = "scadenza", puntuale.RepeatOnce })
			if _, err := w.runner.Dates(t.Context()); err != nil {
				t.Error(err)
			}
		}
		w.DB.Clock.Advance(time.Second)
		c := puntuale.Contact{Phone: phone, Fields: map[string]puntuale.ContactField{
			"nascita": {Kind: puntuale.FieldDate, Value: "1990-11-24"}, "scadenza": {Kind: puntuale.FieldDate, Value: "2026-12-24"},
		}}
		if _, err := w.c.MergeContacts(t.Context(), puntuale.ContactBatch{All: []puntuale.Contact{c}, Now: w.DB.Clock.Now()}); err != nil {
			t.Fatal(err)
		}
		if n, err := late.Contacts(t.Context()); err != nil || n != 1 {
			t.Fatalf("%d, %v", n, err)
		}
		if n := w.Int("select count(*) from automation_date where client_id = $1 and value = '2026-12-24' and day = 20261224", w.c.ID); n != 1 {
			t.Errorf("%d dates of the new field", n)
		}
	})
}

// While calls arrive, each transaction updates and reads the dates of only a few contacts.
func TestFewContactsBesideCalls(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		counted := &counting{Store: w.Store}
		cfg := newRunner(w.World, w.Store, counted).Config
		cfg.Bound = func() (int, bool) { return 8, true }
		cfg.DatesBound = func() (int, int) { return 2, 1 }
		w.runner = automation.New(cfg)
		for i := range 20 {
			w.born(fmt.Sprintf("+3933300000%02d", i), "1990-11-24")
		}
		id := w.greeting()
		w.dates()
		for i := range 20 {
			w.born(fmt.Sprintf("+3933300000%02d", i), "1990-11-23")
		}
		w.dates()
		if n := w.Int("select count(*) from automation_date where rule_id = $1 and value = '1990-11-23'", id); n != 20 {
			t.Errorf("%d contacts are followed", n)
		}
		if len(counted.followed) != 10 || slices.Max(counted.followed) != 2 || len(counted.scanned) != 4 || slices.Max(counted.scanned) != 6 {
			t.Errorf("followed %v, read %v", counted.followed, counted.scanned)
		}
	})
}

// counting is a store that records how many contacts each transaction may handle.
type counting struct {
	*store.Store
	followed, scanned []int
}

func (c *counting) FollowContacts(ctx context.Context, client puntuale.ClientID, all []puntuale.TakenTrigger, now time.Time, next func(puntuale.ActiveAutomation, string, time.Time) puntuale.Date) error {
	c.followed = append(c.followed, len(all))
	return c.Store.FollowContacts(ctx, client, all, now, next)
}

func (c *counting) ScanDates(ctx context.Context, r puntuale.DateRule, limit int, now time.Time, next func(string, time.Time) puntuale.Date) (bool, error) {
	c.scanned = append(c.scanned, limit)
	return c.Store.ScanDates(ctx, r, limit, now, next)
}

// A person is erased while a rule reads all contacts. Afterwards no run contains the person's number.
func TestErasedWhileRead(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.born(phone, "1990-11-21")
		for range 50 { // the erasure of 50 runs needs several transactions
			w.c.MustStart(phone, w.DB.Clock.Now().Add(time.Hour), 100)
		}
		w.greeting()
		read := make(chan error, 1)
		go func() { // the rule reads the contact when the erasure has begun to clear runs
			for w.Int("select count(*) from run where client_id = $1 and phone = ''", w.c.ID) == 0 {
				runtime.Gosched()
			}
			_, err := w.runner.Dates(context.Background())
			read <- err
		}()
		now := w.DB.Clock.Now()
		if _, err := w.c.Erase(t.Context(), puntuale.Erasure{Person: puntuale.Person{Names: []string{phone}, Mark: func(string) string { return puntuale.MarkPrefix + "x" }}, Day: puntuale.DateOf(now), Now: now}); err != nil {
			t.Fatal(err)
		}
		if err := <-read; err != nil {
			t.Fatal(err)
		}
		w.dates()
		if n := w.Int("select count(*) from run where client_id = $1 and phone <> ''", w.c.ID); n != 0 {
			t.Errorf("%d runs name an erased person", n)
		}
	})
}
