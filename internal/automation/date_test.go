package automation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/store/storetest"
)

// NextDay handles leap days, short months, dates in the future, and dates that come once.
func TestNextDay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		repeat            puntuale.Repeat
		value, from, want string
	}{
		{puntuale.RepeatYearly, "1990-11-26", "2026-11-25", "2026-11-26"},
		{puntuale.RepeatYearly, "1990-11-25", "2026-11-25", "2026-11-25"},
		{puntuale.RepeatYearly, "1990-11-24", "2026-11-25", "2027-11-24"},
		{puntuale.RepeatYearly, "1992-02-29", "2026-11-25", "2027-02-28"},
		{puntuale.RepeatYearly, "1992-02-29", "2027-03-01", "2028-02-29"},
		{puntuale.RepeatYearly, "2030-01-01", "2026-11-25", "2030-01-01"},
		{puntuale.RepeatMonthly, "2026-01-31", "2026-02-01", "2026-02-28"},
		{puntuale.RepeatMonthly, "2026-01-31", "2026-03-01", "2026-03-31"},
		{puntuale.RepeatMonthly, "2026-01-05", "2026-12-06", "2027-01-05"},
		{puntuale.RepeatOnce, "2026-11-25T10:30", "2026-11-25", "2026-11-25"},
		{puntuale.RepeatOnce, "2026-11-24", "2026-11-25", ""},
		{puntuale.RepeatYearly, "domani", "2026-11-25", ""},
	} {
		from, err := puntuale.ParseDate(c.from)
		if err != nil {
			t.Fatal(err)
		}
		got := automation.NextDay(c.repeat, c.value, from)
		if got.IsZero() != (c.want == "") || c.want != "" && got.String() != c.want {
			t.Errorf("%s %s from %s: %v, want %s", c.repeat, c.value, c.from, got, c.want)
		}
	}
}

// birthday makes a sequence with a greeting at 8 on the day, and a reminder at 8 two days before.
func (w *world) birthday() puntuale.SequenceChoice {
	return w.sequence("Auguri {{nome|}}", func(q *puntuale.Sequence) {
		q.Steps[0].Timing = puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}, At: "08:00"}
		q.Steps = append(q.Steps, puntuale.Step{Text: "Tra due giorni", Timing: puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Amount: 2, Unit: puntuale.Days, Direction: puntuale.Before}, At: "08:00"}})
	})
}

// born sets a contact's date of birth; "" removes it.
func (w *world) born(phone, date string) {
	w.t.Helper()
	w.DB.Clock.Advance(time.Second)
	c := puntuale.Contact{Phone: phone, Name: "Anna", Fields: map[string]puntuale.ContactField{"nascita": {Kind: puntuale.FieldDate, Value: date}}}
	if _, err := w.c.MergeContacts(context.Background(), puntuale.ContactBatch{All: []puntuale.Contact{c}, Now: w.DB.Clock.Now()}); err != nil {
		w.t.Fatal(err)
	}
}

// dates lets the runner update stored dates and plan all dates that are near enough.
func (w *world) dates() {
	w.t.Helper()
	w.runs()
	for more := true; more; {
		var err error
		if more, err = w.runner.Dates(context.Background()); err != nil {
			w.t.Fatalf("dates: %v", err)
		}
	}
}

// pending returns the due times of a person's pending automatic messages, in the client's zone.
func (w *world) pending(phone string) (all []string) {
	w.t.Helper()
	zone, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		w.t.Fatal(err)
	}
	rows, err := w.DB.SQL.Query(fmt.Sprintf("select due_at from message where client_id = %d and phone = '%s' and origin = 4 and state = 0 order by due_at", w.c.ID, phone))
	if err != nil {
		w.t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var at int64
		if err := rows.Scan(&at); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, time.UnixMicro(at).In(zone).Format("2006-01-02 15:04"))
	}
	if err := rows.Err(); err != nil {
		w.t.Fatal(err)
	}
	return all
}

func (w *world) wantPending(phone string, want ...string) {
	w.t.Helper()
	if got := w.pending(phone); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Errorf("%s: pending %v, want %v", phone, got, want)
	}
}

// A long closure of the client moves a message that must leave before a date to the day before the closure. The rule
// plans it in time, also if the closure is longer than the usual look ahead, or consists of single days.
func TestDateAfterLongClosure(t *testing.T) {
	for name, weekdays := range map[string][]int{"every day": nil, "only Mondays": {1}} {
		t.Run(name, func(t *testing.T) {
			onDatabases(t, func(t *testing.T, w *world) { // the clock starts on 20 November 2026, a Friday
				var closed []puntuale.Date
				for day := (puntuale.Date{Year: 2026, Month: 12, Day: 8}); day.Before(puntuale.Date{Year: 2027, Month: 2, Day: 1}); day = day.AddDays(1) {
					closed = append(closed, day)
				}
				if _, err := w.Store.Partner(w.Partner).UpdateClient(t.Context(), w.c.ID, puntuale.ClientPatch{Closed: storetest.To(closed)}, w.DB.Clock.Now()); err != nil {
					t.Fatal(err)
				}
				w.born(phone, "1990-01-31")
				w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(w.sequence("Si avvicina", func(q *puntuale.Sequence) {
					q.Steps[0].Timing = puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.Before}, At: "10:00",
						Window: &puntuale.Window{Weekdays: weekdays, From: "09:00", To: "18:00", Holidays: puntuale.HolidaysAvoid}}
				})))
				w.DB.Clock.Advance(16 * 24 * time.Hour) // 6 December
				w.dates()
				w.wantPending(phone, "2026-12-07 10:00")
			})
		})
	}
}

// A birthday is planned once a year, early enough for the earliest step. If the date changes, the planned messages are
// cancelled. If the date changes back, the messages are planned again.
func TestDates(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) { // the clock starts on 20 November 2026
		w.born(phone, "1990-11-24")
		w.born("+393330000002", "1992-02-29")
		w.born("+393330000003", "1990-11-21") // the time of the reminder has passed
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(w.birthday()))
		w.dates()
		w.wantPending(phone) // it is too early: four days before the date
		w.wantPending("+393330000003", "2026-11-21 08:00")
		w.DB.Clock.Advance(24 * time.Hour)
		w.dates()
		w.dates()
		w.wantPending(phone, "2026-11-22 08:00", "2026-11-24 08:00")
		w.born(phone, "1990-11-23")
		w.dates()
		w.wantPending(phone, "2026-11-23 08:00") // without the reminder, which was due at 8 this morning
		w.born(phone, "1990-11-24")
		w.dates()
		w.wantPending(phone, "2026-11-22 08:00", "2026-11-24 08:00")
		changed := 0
		for _, f := range w.log(id) {
			if f.Reason == puntuale.FiringChanged {
				changed++
			}
		}
		if changed != 2 {
			t.Errorf("%d changes are logged: %+v", changed, w.log(id))
		}
		w.born("+393330000004", "1980-11-24") // today is three days before the date
		w.dates()
		w.wantPending("+393330000004", "2026-11-22 08:00", "2026-11-24 08:00")
		c, _, err := w.c.ContactOf(t.Context(), phone)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.c.DeleteContact(t.Context(), c.ID, puntuale.DateOf(w.DB.Clock.Now())); err != nil {
			t.Fatal(err)
		}
		w.dates()
		w.wantPending(phone)
		w.DB.Clock.Set(time.Date(2027, 2, 25, 12, 0, 0, 0, time.UTC))
		w.dates()
		w.wantPending("+393330000002", "2027-02-26 08:00", "2027-02-28 08:00")
	})
}

// After an outage, dates of the last 24 hours are still planned. Older dates are logged as missed. Dates from before a lossy failover are also
// logged as missed.
func TestDatesAfterOutage(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		q := w.sequence("Auguri", func(q *puntuale.Sequence) {
			q.Steps[0].Timing = puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}, At: "08:00"}
		})
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(q))
		w.born(phone, "1990-11-24")
		w.born("+393330000002", "1990-11-23")
		w.born("+393330000003", "1990-11-26")
		w.dates()
		w.DB.Clock.Set(time.Date(2026, 11, 24, 20, 0, 0, 0, time.UTC))
		w.dates()
		w.wantPending(phone, "2026-11-24 08:00")
		w.wantPending("+393330000002")
		w.DB.Clock.Set(time.Date(2026, 11, 25, 20, 0, 0, 0, time.UTC))
		w.Exec("update automation_client set since = $2 where client_id = $1", w.c.ID, w.DB.Clock.Now().UnixMicro())
		w.dates()
		w.wantPending("+393330000003")
		missed := map[string]bool{}
		for _, f := range w.log(id) {
			if f.Reason == puntuale.FiringMissed {
				missed[f.Phone] = true
			}
		}
		if !missed["+393330000002"] || !missed["+393330000003"] || len(missed) != 2 {
			t.Errorf("missed %v", missed)
		}
	})
}

// greeting makes a rule that sends a greeting at 8 on the birthday.
func (w *world) greeting() puntuale.AutomationID {
	q := w.sequence("Auguri", func(q *puntuale.Sequence) {
		q.Steps[0].Timing = puntuale.Timing{Anchor: "nascita", Offset: puntuale.Offset{Unit: puntuale.Days, Direction: puntuale.After}, At: "08:00"}
	})
	return w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(q))
}

// turn switches a rule on or off.
func (w *world) turn(id puntuale.AutomationID, on bool) {
	w.t.Helper()
	a, err := w.c.Automation(context.Background(), id)
	if a.Active, a.Updated = on, w.DB.Clock.Now(); err == nil {
		err = w.c.UpdateAutomation(context.Background(), a)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// Dates that came while a rule was off are not planned. If a contact was deleted in that time, its stored date is removed.
func TestDatesWhileOff(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.greeting()
		w.born(phone, "1990-11-24")
		w.born("+393330000002", "1990-11-24")
		w.born("+393330000003", "1990-11-25")
		w.born("+393330000004", "1990-11-26")
		w.dates()
		w.turn(id, false)
		c, _, err := w.c.ContactOf(t.Context(), "+393330000002")
		if err == nil {
			err = w.c.DeleteContact(t.Context(), c.ID, puntuale.DateOf(w.DB.Clock.Now()))
		}
		if err != nil {
			t.Fatal(err)
		}
		w.DB.Clock.Set(time.Date(2026, 11, 25, 10, 0, 0, 0, time.UTC))
		w.turn(id, true)
		w.dates()
		w.wantPending(phone)
		w.wantPending("+393330000003") // due two hours ago, while the rule was off: nothing is planned
		w.wantPending("+393330000004", "2026-11-26 08:00")
		reasons := map[string]puntuale.ReasonCode{}
		for _, f := range w.log(id) {
			reasons[f.Phone] = f.Reason
		}
		if len(reasons) != 2 || reasons["+393330000003"] != puntuale.FiringPast || reasons["+393330000004"] != "" {
			t.Errorf("%v", reasons)
		}
		if n := w.Int("select count(*) from automation_date where client_id = $1", w.c.ID); n != 3 {
			t.Errorf("%d dates are kept", n)
		}
	})
}

// A runner that reads a changed date late makes the same plan as a runner that reads the date immediately. No runner plans a date that the contact
// no longer has.
func TestDatesReadLate(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.greeting()
		w.born("+393330000002", "1990-11-24")
		w.dates()
		w.DB.Clock.Set(time.Date(2026, 11, 24, 6, 0, 0, 0, time.UTC))
		w.born(phone, "1990-11-24")
		w.born("+393330000002", "1990-11-30")
		w.DB.Clock.Set(time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC))
		if _, err := w.runner.Dates(t.Context()); err != nil { // before the runner takes the triggers of the changes
			t.Fatal(err)
		}
		w.dates()
		w.wantPending(phone, "2026-11-24 08:00")
		w.wantPending("+393330000002")
		if all := w.log(id); len(all) != 1 || all[0].Phone != phone || !all[0].Acted {
			t.Errorf("%+v", all)
		}
	})
}
