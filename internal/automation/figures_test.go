//go:build figures

package automation_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"puntuale"
)

// TestManyBirthdays plans the birthdays of 100,000 people on one day. It takes long, so only `make figures-automations` runs it.
func TestManyBirthdays(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		const people = 100_000
		for at := 0; at < people; at += 1000 {
			var all []puntuale.Contact
			for i := range 1000 {
				all = append(all, puntuale.Contact{Phone: fmt.Sprintf("+39333%07d", at+i), Name: "Anna", Fields: map[string]puntuale.ContactField{"nascita": {Kind: puntuale.FieldDate, Value: "1990-11-21"}}})
			}
			if _, err := w.c.MergeContacts(context.Background(), puntuale.ContactBatch{All: all, Now: w.DB.Clock.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerDate, Field: "nascita", Repeat: puntuale.RepeatYearly}, starts(w.birthday()))
		begun := time.Now()
		w.dates()
		took := time.Since(begun)
		if n := w.Int("select count(*) from message where client_id = $1 and origin = 4", w.c.ID); n != people {
			t.Errorf("%d messages", n)
		}
		if a, err := w.c.Automation(t.Context(), id); err != nil || a.Fired != people {
			t.Errorf("fired %d, %v", a.Fired, err)
		}
		t.Logf("%d birthdays in %v, %.0f a second", people, took, people/took.Seconds())
	})
}

// TestManyReplies lets 10,000 people write to a client with the maximum number of rules. It takes long, so only `make figures-automations` runs
// it.
func TestManyReplies(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		const people = 10_000
		q := w.sequence("testo")
		for i := range puntuale.MaxAutomations {
			w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{fmt.Sprint("parola", i)}}, starts(q))
		}
		var all []puntuale.TakenMessage
		now := w.DB.Clock.Now()
		for i := range people {
			id := fmt.Sprint("m", i)
			all = append(all, puntuale.TakenMessage{Mark: id, InboundMessage: puntuale.InboundMessage{Client: w.c.ID, Session: w.c.Session, Phone: fmt.Sprintf("+39333%07d", i), At: now, ID: id,
				Kind: puntuale.ReplyText, Text: fmt.Sprint("Parola", i%200)}}) // half of the words trigger a rule
		}
		if _, err := w.KeepInbound(context.Background(), now, all); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		for n := 1; n > 0; {
			var err error
			if n, err = w.runner.Round(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		took := time.Since(begun)
		if n := w.Int("select count(*) from message where client_id = $1 and origin = 4", w.c.ID); n != people/2 {
			t.Errorf("%d messages", n)
		}
		t.Logf("%d replies in %v, %.0f a second", people, took, people/took.Seconds())
	})
}
