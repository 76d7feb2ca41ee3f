package intake_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/intake"
	"puntuale/internal/store/storetest"
)

// messageMark replaces the keyed hash in tests.
func messageMark(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
	return fmt.Sprint(client, session, chat, id)
}

// failing is a store that fails in one of its methods, as if the server crashed during this method.
type failing struct {
	intake.Store
	at string
}

var errCrash = errors.New("the server ends here")

func (f *failing) EnterConsent(ctx context.Context, e puntuale.ConsentEntry) (puntuale.ConsentResult, error) {
	r, err := f.Store.EnterConsent(ctx, e)
	return r, errors.Join(err, f.fail("entered"))
}

func (f *failing) CancelMarketing(ctx context.Context, client puntuale.ClientID, phone string, now time.Time) (int, error) {
	n, err := f.Store.CancelMarketing(ctx, client, phone, now)
	return n, errors.Join(err, f.fail("cancelled"))
}

func (f *failing) KeepInbound(ctx context.Context, now time.Time, all []puntuale.TakenMessage) (int, error) {
	if all[0].Names == nil { // nothing of the opt-out is stored yet
		n, err := f.Store.KeepInbound(ctx, now, all)
		if crash := f.fail("asked"); crash != nil {
			return n, crash
		}
		return n, err
	}
	if err := f.fail("before keeping"); err != nil {
		return 0, err
	}
	n, err := f.Store.KeepInbound(ctx, now, all)
	return n, errors.Join(err, f.fail("kept"))
}

func (f *failing) fail(at string) error {
	if f.at == at {
		f.at = ""
		return errCrash
	}
	return nil
}

// world contains one client that gets replies.
type world struct {
	*storetest.World
	c         *storetest.Client
	store     *failing
	in        *intake.Intake
	log       bytes.Buffer
	confirmed map[string]intake.Confirmation // the sent confirmations, by their keys
	confirms  int
}

func newWorld(t *testing.T, driver storetest.Driver) *world {
	w := &world{World: storetest.NewWorld(t, driver(t)), confirmed: map[string]intake.Confirmation{}}
	w.c, w.store = w.Client(puntuale.AccountFull), &failing{Store: w.Store}
	w.in = intake.New(intake.Config{
		Store: w.store, Clock: w.DB.Clock, MessageMark: messageMark, Logger: slog.New(slog.NewTextHandler(&w.log, nil)),
		Mark: func(client puntuale.ClientID, phone string) string {
			return puntuale.MarkPrefix + client.String() + phone[1:]
		},
		Confirm: func(ctx context.Context, c intake.Confirmation) error {
			w.confirms++
			if windowEnd, err := w.Store.ReplyWindowEnd(ctx, c.Client, c.Session, c.Phone); err != nil || windowEnd.IsZero() {
				t.Errorf("an answer would not leave: the window is open until %v, %v", windowEnd, err)
			}
			w.confirmed[c.Key] = c
			return nil
		},
	})
	return w
}

func (w *world) message(id, phone, text string) puntuale.InboundMessage {
	return puntuale.InboundMessage{Client: w.c.ID, Session: w.c.Session, Phone: phone, At: w.DB.Clock.Now(), ID: id, Kind: puntuale.ReplyText, Text: text}
}

func onDatabases(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, driver))
		})
	}
}

// TestOptOutSurvivesCrashes stops the server at each point between the arrival of a report and the report's last
// effect. When the network sends the message again, the server does the rest, and does nothing twice.
func TestOptOutSurvivesCrashes(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		if _, err := w.c.UpdateSettings(ctx, puntuale.SettingsPatch{OptOutAnswer: new("Fatto.")}); err != nil {
			t.Fatal(err)
		}
		for i, at := range []string{"", "asked", "entered", "cancelled", "before keeping", "kept"} {
			phone := fmt.Sprintf("+39333000100%d", i)
			ids := w.c.MustStart(phone, storetest.Begin.Add(time.Hour), 2)
			w.Exec("update message set purpose = 1 where client_id = $1 and id = $2", w.c.ID, int64(ids[0]))
			reported := puntuale.InboundBatch{Messages: []puntuale.InboundMessage{w.message("m", phone, " Basta! ")}}
			w.store.at = at
			if err := w.in.Take(ctx, w.c.Session, reported); (err != nil) != (at != "") {
				t.Fatalf("%s: %v", at, err)
			}
			for range 2 { // the network sends the message two more times
				if err := w.in.Take(ctx, w.c.Session, reported); err != nil {
					t.Fatal(err)
				}
			}
			ledger, _, err := w.c.Consents(ctx, puntuale.Person{Names: []string{phone}}, puntuale.Page{})
			if err != nil || len(ledger) != 1 || ledger[0].Words != " Basta! " || ledger[0].Message != "m" || ledger[0].Source != "reply" {
				t.Errorf("%s: ledger %+v, %v", at, ledger, err)
			}
			replies, _, err := w.c.Replies(ctx, puntuale.ReplyFilter{Phone: phone}, puntuale.Page{})
			if err != nil || len(replies) != 1 || replies[0].Effect != puntuale.ReplyOptOut {
				t.Errorf("%s: replies %+v, %v", at, replies, err)
			}
			if n := w.Int("select count(*) from blacklist where client_id = $1 and phone = $2 and reason = 'Disiscrizione: Basta!' and origin = 1", w.c.ID, phone); n != 1 {
				t.Errorf("%s: %d entries in the blacklist", at, n)
			}
			if m, s := w.c.Detail(ids[0]).State, w.c.Detail(ids[1]).State; m != puntuale.Cancelled || s != puntuale.Pending {
				t.Errorf("%s: marketing is %v, service %v", at, m, s)
			}
			if c := w.confirmed[messageMark(w.c.ID, w.c.Session, phone, "m")]; len(w.confirmed) != i+1 || c.Phone != phone || c.Text != "Fatto." {
				t.Errorf("%s: confirmed %+v", at, w.confirmed)
			}
			if talk, err := w.c.Conversation(ctx, phone); err != nil || talk.Unread != 1 {
				t.Errorf("%s: %+v, %v", at, talk, err)
			}
		}
		if strings.Contains(w.log.String(), "333000") || strings.Contains(w.log.String(), "Basta") {
			t.Errorf("the log holds numbers or words: %s", w.log.String())
		}
	})
}

// TestOnlyWholeMessagesOptOut checks that a sentence that begins with an opt-out word is only a reply. A client may
// choose other opt-out words.
func TestOnlyWholeMessagesOptOut(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		set := func(words []string) {
			t.Helper()
			if _, err := w.c.UpdateSettings(ctx, puntuale.SettingsPatch{OptOutWords: &words, KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		wrote := func(m puntuale.InboundMessage) puntuale.ReplyEffect {
			t.Helper()
			n++
			m.ID = fmt.Sprint("n", n)
			w.DB.Clock.Advance(time.Second)
			m.At = w.DB.Clock.Now()
			if err := w.in.Take(ctx, w.c.Session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{m}}); err != nil {
				t.Fatal(err)
			}
			all, _, err := w.c.Replies(ctx, puntuale.ReplyFilter{Own: true}, puntuale.Page{Limit: 1})
			if err != nil || len(all) != 1 || all[0].NetworkID != m.ID {
				t.Fatalf("%q is not kept: %+v, %v", m.Text, all, err)
			}
			return all[0].Effect
		}
		const phone = "+393330002000"
		set(nil)
		image, own, group := w.message("", phone, "STOP"), w.message("", phone, "STOP"), w.message("", "123@g.us", "STOP")
		image.Kind, own.Own, group.Group = puntuale.ReplyImage, true, true
		for _, m := range []puntuale.InboundMessage{w.message("", phone, "Stop, arrivo tardi"), w.message("", phone, "start"), w.message("", phone, "dammi info"), image, own} {
			if e := wrote(m); e != puntuale.ReplyNoEffect {
				t.Errorf("%q has the effect %v", m.Text, e)
			}
		}
		for _, step := range []struct {
			text   string
			effect puntuale.ReplyEffect
		}{{"stop", puntuale.ReplyOptOut}, {"Riprendi!", puntuale.ReplyOptIn}, {"riprendi", puntuale.ReplyNoEffect}, {"UNSUBSCRIBE", puntuale.ReplyOptOut}} {
			if e := wrote(w.message("", phone, step.text)); e != step.effect {
				t.Errorf("%q has the effect %v", step.text, e)
			}
		}
		set([]string{"non più"})
		if e := wrote(w.message("", phone, "Non piu.")); e != puntuale.ReplyOptOut {
			t.Errorf("the client's own word has the effect %v", e)
		}
		if e := wrote(w.message("", phone, "stop")); e != puntuale.ReplyNoEffect {
			t.Errorf("a word that the client removed has the effect %v", e)
		}
		if err := w.in.Take(ctx, w.c.Session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{group}}); err != nil {
			t.Fatal(err)
		}
		if all, _, err := w.c.Consents(ctx, puntuale.Person{}, puntuale.Page{}); err != nil || len(all) != 4 {
			t.Errorf("the ledger: %+v, %v", all, err)
		}
		long := w.message("", phone, strings.Repeat("è", puntuale.MaxReply+5)+"\x00")
		wrote(long)
		if all, _, err := w.c.Replies(ctx, puntuale.ReplyFilter{}, puntuale.Page{Limit: 1}); err != nil || all[0].Text != strings.Repeat("è", puntuale.MaxReply) {
			t.Errorf("a long text: %d bytes, %v", len(all[0].Text), err)
		}
	})
}

// TestOtherNameOfAChat checks that a message is stored once, even if the network reports it twice: under the person's
// own id, and under the person's number.
func TestOtherNameOfAChat(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		ctx := context.Background()
		if _, err := w.c.UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
			t.Fatal(err)
		}
		const id = "123456789@lid"
		for _, m := range []puntuale.InboundMessage{w.message("n1", id, "Basta!"), w.message("n1", "+393330002000", "Basta!"), w.message("n1", "+393330002001", "ciao")} {
			if m.Phone != "+393330002001" { // a message of another chat may have the same id
				m.Chat = id
			}
			if err := w.in.Take(ctx, w.c.Session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{m}}); err != nil {
				t.Fatal(err)
			}
		}
		all, _, err := w.c.Replies(ctx, puntuale.ReplyFilter{Own: true}, puntuale.Page{Limit: 10})
		if err != nil || len(all) != 2 || all[0].Phone != "+393330002001" || all[1].Phone != id {
			t.Errorf("kept: %+v, %v", all, err)
		}
	})
}

// TestStrangersWord checks that the reply of a cold contact is stored if the reply is a keyword of a rule. No other
// message of a cold contact is stored.
func TestStrangersWord(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		now := w.DB.Clock.Now()
		if _, err := w.c.CreateAutomation(ctx, puntuale.Automation{Name: "Info", Active: true, Created: now, Updated: now,
			Trigger: puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}},
			Actions: []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"info"}}}}, nil, nil); err != nil {
			t.Fatal(err)
		}
		reaction, own := w.message("c", "+393330000003", "info"), w.message("d", "+393330000004", "info")
		reaction.Kind, own.Own = puntuale.ReplyReaction, true
		if err := w.in.Take(ctx, w.c.Session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{
			w.message("a", "+393330000001", " Info. "), w.message("b", "+393330000002", "info per favore"), reaction, own,
		}}); err != nil {
			t.Fatal(err)
		}
		all, _, err := w.c.Replies(ctx, puntuale.ReplyFilter{Own: true}, puntuale.Page{Limit: 10})
		if err != nil || len(all) != 1 || all[0].NetworkID != "a" {
			t.Errorf("%+v, %v", all, err)
		}
		if n := w.Int("select count(*) from automation_trigger where client_id = $1", w.c.ID); n != 1 {
			t.Errorf("%d triggers", n)
		}
	})
}
