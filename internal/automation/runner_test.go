package automation_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/control"
	"puntuale/internal/store"
	"puntuale/internal/store/storetest"
)

// world is a client with rules, and a runner whose rounds the test calls.
type world struct {
	t *testing.T
	*storetest.World
	c      *storetest.Client
	runner *automation.Runner
	node   puntuale.NodeID // the node that sends messages; 0: no node sends
	wrote  int
}

func newRunner(w *storetest.World, s *store.Store, queue automation.Queue) *automation.Runner {
	c := control.New(control.Config{Tenants: s, Devices: s, Maintenance: s, Clock: w.DB.Clock})
	return automation.New(automation.Config{
		Node:  func() puntuale.NodeID { return 0 },
		Store: queue, Planner: c.PlannerOf, Bound: s.ChunkBound, DatesBound: s.DatesBound, Wakeup: func(puntuale.SessionID, time.Time) {}, Clock: w.DB.Clock, Logger: slog.New(slog.DiscardHandler),
	})
}

func onDatabases(t *testing.T, test func(t *testing.T, w *world)) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, driver(t)))
		})
	}
}

func newWorld(t *testing.T, d *storetest.Database) *world {
	t.Helper()
	w := &world{t: t, World: storetest.NewWorld(t, d)}
	w.c = w.Client(puntuale.AccountFull)
	if _, err := w.c.UpdateSettings(t.Context(), puntuale.SettingsPatch{KeepReplies: new(puntuale.KeepAllReplies)}); err != nil {
		t.Fatal(err)
	}
	w.runner = newRunner(w.World, w.Store, w.Store)
	return w
}

// sequence makes a sequence of one step.
func (w *world) sequence(text string, change ...func(*puntuale.Sequence)) puntuale.SequenceChoice {
	w.t.Helper()
	now := w.DB.Clock.Now()
	q := puntuale.Sequence{Name: text, Created: now, Updated: now, Steps: []puntuale.Step{{Text: text, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}}}}
	for _, f := range change {
		f(&q)
	}
	id, err := w.c.CreateSequence(context.Background(), q, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return puntuale.SequenceChoice(id.String())
}

func (w *world) rule(t puntuale.Trigger, actions []puntuale.Action, conditions ...puntuale.Conditions) puntuale.AutomationID {
	w.t.Helper()
	now := w.DB.Clock.Now()
	a := puntuale.Automation{Name: "Regola", Active: true, Trigger: t, Actions: actions, Created: now, Updated: now}
	if len(conditions) > 0 {
		a.Conditions = conditions[0]
	}
	if faults := automation.Check(a); len(faults) > 0 {
		w.t.Fatalf("the rule is refused: %+v", faults)
	}
	var secret *puntuale.HookSecret
	if t.Kind == puntuale.TriggerHook {
		secret = &puntuale.HookSecret{Hash: puntuale.KeyHash{1, byte(w.wrote)}, Sealed: []byte("s")}
	}
	id, err := w.c.CreateAutomation(context.Background(), a, secret, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func starts(q puntuale.SequenceChoice) []puntuale.Action {
	return []puntuale.Action{{Kind: puntuale.ActionStart, Sequence: q}}
}

// writes moves the clock by a second, and then lets a person write to the client's session.
func (w *world) writes(phone, text string, change ...func(*puntuale.TakenMessage)) {
	w.t.Helper()
	w.wrote++
	w.DB.Clock.Advance(time.Second)
	now := w.DB.Clock.Now()
	id := fmt.Sprint("n", w.wrote)
	m := puntuale.TakenMessage{Mark: id, InboundMessage: puntuale.InboundMessage{Client: w.c.ID, Session: w.c.Session, Phone: phone, At: now, ID: id, Kind: puntuale.ReplyText, Text: text}}
	for _, f := range change {
		f(&m)
	}
	if _, err := w.KeepInbound(context.Background(), now, []puntuale.TakenMessage{m}); err != nil {
		w.t.Fatal(err)
	}
}

// runs calls rounds of the runner until no trigger and no timer is due.
func (w *world) runs() {
	w.t.Helper()
	for range 20 {
		n, err := w.runner.Round(context.Background())
		if err != nil {
			w.t.Fatalf("round: %v", err)
		}
		changed, err := w.runner.Contacts(context.Background())
		if err != nil {
			w.t.Fatalf("contacts: %v", err)
		}
		if n+changed == 0 {
			return
		}
	}
	w.t.Fatal("the runner does not come to an end")
}

// got counts the messages to a phone that automations made.
func (w *world) got(phone string) int {
	return int(w.Int("select count(*) from message where client_id = $1 and phone = $2 and origin = 4", w.c.ID, phone))
}

func (w *world) log(id puntuale.AutomationID) []puntuale.Firing {
	w.t.Helper()
	all, _, err := w.c.Firings(context.Background(), id, puntuale.Page{Limit: 100})
	if err != nil {
		w.t.Fatal(err)
	}
	return all
}

// want checks the number of lines in a rule's log, and the reason in the newest line.
func (w *world) want(id puntuale.AutomationID, lines int, reason puntuale.ReasonCode) {
	w.t.Helper()
	all := w.log(id)
	if len(all) != lines || lines > 0 && (all[0].Reason != reason || all[0].Acted != (reason == "")) {
		w.t.Errorf("the log has %d lines, not %d, for %q: %+v", len(all), lines, reason, all)
	}
}

const phone = "+393331234567"

// A keyword starts a sequence. The message's details show the rule's name, the origin and the stored request. Further rounds change nothing.
func TestReply(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		q := w.sequence("Ecco {{nome|le informazioni}}")
		const earlier = "+393330000002" // this person wrote before the rules existed
		w.writes(earlier, "ciao")
		w.DB.Clock.Advance(time.Second)
		words := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}, starts(q))
		first := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, First: true}, []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"nuovo"}}})
		w.writes(phone, " Info! ")
		w.runs()
		w.runs()
		w.want(words, 1, "")
		w.want(first, 1, "")
		f := w.log(words)[0]
		if len(f.Messages) != 1 || f.Phone != phone || f.Occurrence != "n2" {
			t.Fatalf("%+v", f)
		}
		details, err := w.c.Details(t.Context(), f.Messages)
		if err != nil || len(details) != 1 || details[0].Origin != puntuale.OriginAutomation || details[0].RunName != "Regola" ||
			string(details[0].Request) != fmt.Sprintf(`{"automation":"%s","occurrence":"n2","phone":"%s"}`, words, phone) {
			t.Errorf("%+v, %v", details, err)
		}
		c, found, err := w.c.ContactOf(t.Context(), phone)
		if err != nil || !found || len(c.Tags) != 1 || c.Tags[0] != "nuovo" {
			t.Errorf("%+v %v %v", c, found, err)
		}
		w.writes(phone, "altro")
		w.writes(phone, "info", func(m *puntuale.TakenMessage) { m.Kind = puntuale.ReplyReaction })
		w.writes(phone, "info", func(m *puntuale.TakenMessage) { m.Effect = puntuale.ReplyOptOut })
		w.writes("12036304@g.us", "info")
		w.writes(earlier, "altro")
		w.runs()
		if n := w.Int("select count(*) from message where client_id = $1 and origin = 4", w.c.ID); n != 1 {
			t.Errorf("%d messages", n)
		}
		w.want(first, 1, "")
		if n := w.Int("select count(*) from automation_trigger where client_id = $1", w.c.ID); n != 0 {
			t.Errorf("%d triggers are left", n)
		}
		if n := w.Int("select count(*) from run where client_id = $1 and depth = 1", w.c.ID); n != 1 {
			t.Errorf("%d runs have the depth 1", n)
		}
	})
}

// Each condition can prevent a rule from acting, and the log says which condition did.
func TestConditions(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		ctx := t.Context()
		q := w.sequence("testo", func(s *puntuale.Sequence) {
			s.Steps[0].Timing.Offset = puntuale.Offset{Amount: 1, Unit: puntuale.Hours, Direction: puntuale.After}
		})
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(q), puntuale.Conditions{
			Tags: []string{"cliente"}, Fields: []puntuale.FieldCondition{{Name: "eta", Op: puntuale.FieldMore, Value: "17"}}, NotIn: q, CooldownHours: 1,
		})
		step := func(lines int, reason puntuale.ReasonCode) {
			t.Helper()
			w.writes(phone, "ciao")
			w.runs()
			w.want(id, lines, reason)
		}
		merge := func(tags []string, age string) {
			t.Helper()
			c := puntuale.Contact{Phone: phone, Tags: tags, Fields: map[string]puntuale.ContactField{"eta": {Kind: puntuale.FieldNumber, Value: age}}}
			w.DB.Clock.Advance(time.Second)
			if _, err := w.c.MergeContacts(ctx, puntuale.ContactBatch{All: []puntuale.Contact{c}, Now: w.DB.Clock.Now()}); err != nil {
				t.Fatal(err)
			}
		}
		step(1, puntuale.FiringTags)
		merge([]string{"cliente"}, "9")
		step(2, puntuale.FiringField)
		merge(nil, "30")
		step(3, "")
		step(4, puntuale.FiringNotIn)
		w.Exec("update message set state = 3, intent = -1, done_at = 1 where client_id = $1 and origin = 4", w.c.ID)
		step(5, puntuale.FiringCooldown)
		w.DB.Clock.Advance(time.Hour)
		if err := w.c.Answered(ctx, phone, w.DB.Clock.Now()); err != nil {
			t.Fatal(err)
		}
		step(6, puntuale.FiringTakeover)
		w.DB.Clock.Advance(12 * time.Hour)
		link, err := w.c.LinkChatwoot(ctx, puntuale.ChatwootLink{Webhook: puntuale.Webhook{URL: "https://chat.example", Session: w.c.Session, Created: storetest.Begin}}, []byte("sealed"), storetest.Begin)
		if err == nil {
			link, err = w.c.FinishChatwoot(ctx, link.ID, 7)
		}
		assign := func(assigned bool) {
			t.Helper()
			if err := errors.Join(err, w.AssignChatwoot(ctx, link.ID, w.c.ID, phone, assigned, w.DB.Clock.Now())); err != nil {
				t.Fatal(err)
			}
		}
		assign(true)
		w.DB.Clock.Advance(48 * time.Hour)
		step(7, puntuale.FiringTakeover)
		assign(false)
		step(8, "")
		w.Exec("update run set depth = 3 where client_id = $1", w.c.ID)
		w.DB.Clock.Advance(time.Hour)
		w.Exec("update message set state = 1, intent = -1, outcome = 1, done_at = $2, intent_at = $2 where client_id = $1 and origin = 4", w.c.ID, w.DB.Clock.Now().UnixMicro())
		w.Exec("update run set received_at = $2 where client_id = $1", w.c.ID, w.DB.Clock.Now().UnixMicro())
		step(9, puntuale.FiringDepth)
	})
}

// A reply has its run's depth within an hour of the run's last message, not only within an hour of the run's start.
func TestDepthOfReplies(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 1, "")
		w.DB.Clock.Advance(72 * time.Hour)
		w.Exec("update run set depth = 3 where client_id = $1", w.c.ID)
		w.Exec("update message set state = 1, intent = -1, outcome = 1, done_at = $2, intent_at = $2 where client_id = $1 and origin = 4", w.c.ID, w.DB.Clock.Now().UnixMicro())
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 2, puntuale.FiringDepth)
		w.DB.Clock.Advance(2 * time.Hour)
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 3, "")
	})
}

// A person gets at most five starts and sends in 24 hours. Stops come before starts. If if_running prevents a start, the log says so.
func TestMost(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		q := w.sequence("testo")
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"ciao"}}, []puntuale.Action{
			{Kind: puntuale.ActionStart, Sequence: q}, {Kind: puntuale.ActionStop, Sequence: puntuale.SequenceAll}, {Kind: puntuale.ActionSend, Text: "{{nome|ciao}}"},
		})
		for range 3 {
			w.writes(phone, "ciao")
			w.runs()
		}
		w.want(id, 3, puntuale.FiringMost)
		if n := w.got(phone); n != 4 {
			t.Errorf("%d messages", n)
		}
		if n := w.Int("select count(*) from message where client_id = $1 and origin = 4 and state = 0", w.c.ID); n != 2 {
			t.Errorf("%d messages wait, the others are stopped", n)
		}
		w.DB.Clock.Advance(24 * time.Hour)
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 4, "")
		other := w.sequence("unica", func(s *puntuale.Sequence) { s.IfRunning = puntuale.IfRunningReject })
		single := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"unica"}}, starts(other))
		for range 2 {
			w.writes("+393330000002", "unica")
			w.runs()
		}
		w.want(single, 2, puntuale.FiringRunning)
	})
}

// A rule may name the default sequences of its session. If the session has none, the log says so.
func TestDefaultPair(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, []puntuale.Action{{Kind: puntuale.ActionStop, Sequence: puntuale.SequenceDefault}, {Kind: puntuale.ActionStart, Sequence: puntuale.SequenceDefault}})
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 1, puntuale.FiringNoDefault)
		if err := w.c.SetDefaultPair(t.Context(), w.c.Session, w.sequence("benvenuto").ID(), w.c.Sequence); err != nil {
			t.Fatal(err)
		}
		waiting := w.c.MustStart(phone, storetest.Begin.Add(time.Hour), 1)
		w.writes(phone, "ciao")
		w.runs()
		w.want(id, 2, "")
		if s := w.c.Detail(waiting[0]).State; s != puntuale.Cancelled {
			t.Errorf("the default stop leaves %v", s)
		}
	})
}

// If a person does not answer a sequence, the rule acts once. It does not act if the person answers. A later message of the run sets a new time.
func TestNoReply(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerNoReply, Sequence: puntuale.SequenceChoice(w.c.Sequence.String()), Hours: 2}, starts(w.sequence("Ci ha pensato?")))
		outcome := w.rule(puntuale.Trigger{Kind: puntuale.TriggerOutcome, Sequence: puntuale.SequenceChoice(w.c.Sequence.String()), Is: puntuale.OutcomeCompleted}, []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"scritto"}}})
		w.node = w.MustJoin()
		const other, late = "+393330000002", "+393330000003"
		for _, to := range []string{phone, other} {
			w.sends(to, 0, w.c.MustStart(to, w.DB.Clock.Now(), 1)[0])
		}
		two := w.c.MustStart(late, w.DB.Clock.Now(), 2)
		w.sends(late, 0, two[0])
		w.runs()
		w.want(outcome, 3, "")
		w.DB.Clock.Advance(time.Hour)
		w.writes(other, "grazie")
		w.runs()
		w.sends(late, 1, two[1])
		w.runs()
		w.DB.Clock.Advance(time.Hour + time.Minute)
		w.runs()
		if w.got(late) != 0 {
			t.Errorf("a rule counts from a message that was not the last one: %+v", w.log(id))
		}
		if w.got(phone) != 1 || w.got(other) != 0 {
			t.Errorf("%d and %d messages: %+v", w.got(phone), w.got(other), w.log(id))
		}
		w.DB.Clock.Advance(time.Hour)
		w.runs()
		if w.got(late) != 1 {
			t.Errorf("two hours after the last message: %+v", w.log(id))
		}
		if n := w.Int("select count(*) from automation_timer where client_id = $1", w.c.ID); n != 0 {
			t.Errorf("%d timers are left", n)
		}
		reasons := map[puntuale.ReasonCode]int{}
		for _, f := range w.log(id) {
			reasons[f.Reason]++
		}
		if reasons[""] != 2 || reasons[puntuale.FiringAnswered] != 1 {
			t.Errorf("%v", reasons)
		}
	})
}

// A rule on followed links acts once, when a person follows the message's link. A preview of the chat is no person.
func TestClicked(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := driver(t)
			d.Config.Public = "https://m.example.com/"
			w := newWorld(t, d)
			w.node = w.MustJoin()
			if _, err := w.c.UpdateSettings(t.Context(), puntuale.SettingsPatch{TrackLinks: new(true)}); err != nil {
				t.Fatal(err)
			}
			id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerOutcome, Sequence: puntuale.SequenceChoice(w.c.Sequence.String()), Is: puntuale.OutcomeClicked},
				[]puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"interessato"}}})
			run := w.c.Run(phone, w.DB.Clock.Now(), 1)
			run.Messages[0].Content.Text = "Ecco: https://negozio.example/offerta"
			started, err := w.c.Start(t.Context(), run)
			if err != nil {
				t.Fatal(err)
			}
			step := puntuale.StepRef{RunRef: puntuale.RunRef{Client: w.c.ID, ID: puntuale.RunID(started.IDs[0])}}
			contents, err := w.Contents(t.Context(), []puntuale.StepRef{step})
			if err != nil {
				t.Fatal(err)
			}
			_, code, _ := strings.Cut(contents[step].Content.Text, "https://m.example.com"+puntuale.LinkPath)
			w.sends(phone, 0, started.IDs[0])
			for i, c := range []struct {
				machine bool
				acted   int
			}{{true, 0}, {false, 1}, {false, 1}} {
				w.DB.Clock.Advance(time.Minute)
				ref, _, err := w.Links.LinkOf(t.Context(), code)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.Links.RecordClicks(t.Context(), w.DB.Clock.Now(), []puntuale.Click{{LinkRef: ref, At: w.DB.Clock.Now(), Machine: c.machine}}); err != nil {
					t.Fatal(err)
				}
				w.runs()
				if n := len(w.log(id)); n != c.acted {
					t.Errorf("after call %d the rule has acted %d times: %+v", i, n, w.log(id))
				}
			}
			w.want(id, 1, "")
		})
	}
}

// sends sends one message of a run. place is the index of the message in the run, from 0.
func (w *world) sends(to string, place int, id puntuale.MessageID) {
	w.t.Helper()
	now := w.DB.Clock.Now()
	item := w.c.Items(to, 0, id)[0]
	token, granted := w.MustClaim(w.node, now.Add(time.Duration(place+1)*time.Second), item)
	if granted[0] != puntuale.ClaimGranted || !w.MustRecord(now, item, token, puntuale.Outcome{Verdict: puntuale.Sent}) {
		w.t.Fatalf("message %d does not leave: %v", id, granted)
	}
}

// Several runners work at the same time, and their servers crash before or after some transactions. Still, the rule acts once for each person.
func TestTogether(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("testo")))
		const people = 40
		for i := range people {
			w.writes(fmt.Sprintf("+3933300001%02d", i), "ciao")
		}
		w.together(30)
		if n := w.Int("select count(*) from (select phone from message where client_id = $1 and origin = 4 group by phone having count(*) = 1) x", w.c.ID); n != people {
			t.Errorf("%d people got one message", n)
		}
		if n := w.Int("select count(*) from message where client_id = $1 and origin = 4", w.c.ID); n != people {
			t.Errorf("%d messages", n)
		}
		if n := len(w.log(id)); n != people {
			t.Errorf("%d lines", n)
		}
	})
}

// together lets several runners work at the same time, each for some rounds, while their servers crash. Then a runner does what is left.
func (w *world) together(rounds int) {
	w.t.Helper()
	var all sync.WaitGroup
	for k := range 4 {
		r := newRunner(w.World, w.Store, &dying{Store: w.Store, every: 3 + k})
		all.Go(func() {
			for range rounds {
				if _, err := r.Round(context.Background()); err != nil && !errors.Is(err, errDied) {
					w.t.Errorf("round: %v", err)
				}
				w.DB.Clock.Advance(puntuale.TriggerLease / 4)
			}
		})
	}
	all.Wait()
	w.DB.Clock.Advance(puntuale.TriggerLease)
	w.runs()
}

var errDied = errors.New("the server ends here")

// dying is a store whose server crashes before every n-th transaction of Act, and after the transaction that follows. n is the field every.
type dying struct {
	*store.Store
	mu       sync.Mutex
	every, n int
}

// FailTriggers counts nothing, because a crashed server does not.
func (*dying) FailTriggers(context.Context, []puntuale.TakenTrigger) error { return errDied }

func (d *dying) Act(ctx context.Context, b *puntuale.ActBatch) error {
	d.mu.Lock()
	d.n++
	before, after := d.n%d.every == 0, d.n%d.every == 1
	d.mu.Unlock()
	if before {
		return errDied
	}
	if err := d.Store.Act(ctx, b); err != nil || !after {
		return err
	}
	return errDied
}

// The fields of a hook's call fill the text. They replace the contact's fields with the same names.
func TestHook(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		id := w.rule(puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{"phone": "/p", "nome": "/n"}}, starts(w.sequence("Ciao {{nome}}")))
		now := w.DB.Clock.Now()
		for _, call := range []puntuale.HookCall{{Key: "a", Phone: phone, Fields: map[string]string{"nome": "Anna"}}, {Key: "a", Phone: phone}, {Key: "b"}, {Key: "c", Phone: phone}} {
			call.Automation, call.At = id, now
			if _, err := w.CallHook(t.Context(), w.c.ID, call); err != nil {
				t.Fatal(err)
			}
		}
		w.runs()
		reasons := map[puntuale.ReasonCode]int{}
		for _, f := range w.log(id) {
			reasons[f.Reason]++
		}
		if reasons[""] != 1 || reasons[puntuale.FiringNoPhone] != 1 || reasons[puntuale.FiringRefused] != 1 || len(w.log(id)) != 3 {
			t.Errorf("%v", reasons)
		}
		if n := w.Int("select count(*) from run where client_id = $1 and content like '%Ciao Anna%'", w.c.ID); n != 1 {
			t.Errorf("%d runs greet Anna", n)
		}
	})
}

// TestContactDateInText: a message that a rule sends prints a contact's date in the same form as the date of a call.
func TestContactDateInText(t *testing.T) {
	onDatabases(t, func(t *testing.T, w *world) {
		w.rule(puntuale.Trigger{Kind: puntuale.TriggerReply}, starts(w.sequence("Scade il {{scade}}")))
		c := puntuale.Contact{Phone: phone, Fields: map[string]puntuale.ContactField{"scade": {Kind: puntuale.FieldDate, Value: "2027-02-28"}}}
		w.DB.Clock.Advance(time.Second)
		if _, err := w.c.MergeContacts(t.Context(), puntuale.ContactBatch{All: []puntuale.Contact{c}, Now: w.DB.Clock.Now()}); err != nil {
			t.Fatal(err)
		}
		w.writes(phone, "ciao")
		w.runs()
		if n := w.Int("select count(*) from run where client_id = $1 and content like '%Scade il 28/02/2027%'", w.c.ID); n != 1 {
			t.Errorf("%d runs print the date in the usual form", n)
		}
	})
}
