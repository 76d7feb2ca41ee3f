package yeartest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"puntuale"
	"puntuale/internal/automation"
	"puntuale/internal/automation/yeartest"
	"puntuale/internal/clock"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/control"
	rules "puntuale/internal/control/automation"
	"puntuale/internal/control/request"
	"puntuale/internal/dispatch"
	"puntuale/internal/intake"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
)

// practice plays a script to the real code, in the fake time of a synctest bubble.
//
// In a real server, some loops poll many times a second. For a whole year, that takes too long. So the runners wait for a bell instead of their two
// poll intervals, and the dispatcher polls every three hours. Everything else is as in a real server.
type practice struct {
	t       *testing.T
	script  *yeartest.Script
	db      engine.Config
	dies    int64 // in each group of this many transactions of Act, the server crashes twice: before a commit and after one; 0: never
	acts    atomic.Int64
	died    atomic.Bool
	node    *node // nil: the server is down
	session puntuale.SessionID
	client  puntuale.ClientID
	rules   [yeartest.RuleCount]puntuale.AutomationID
	network []puntuale.InboundMessage // replies that the network has not delivered yet

	firings []puntuale.Firing
	seen    [yeartest.RuleCount]int64 // id of the last line that was read from each log
	read    time.Time
}

// node is one server.
type node struct {
	store    *store.Store
	control  *control.Control
	rules    *rules.Automations
	intake   *intake.Intake
	dispatch *dispatch.Dispatcher

	triggers, dates bell
	stop            context.CancelFunc // stops the runners; nil: the runners are stopped
	running         sync.WaitGroup
}

const (
	runners  = 2
	polled   = 3 * time.Hour      // interval of the dispatcher's poll
	watched  = 7 * 24 * time.Hour // how often the logs are read
	lateness = time.Second        // the test allows small multiples of this delay, because the server acts a little later than the model
)

var fieldOf = map[int]string{yeartest.Birthday: "nascita", yeartest.Instalment: "rata", yeartest.Renewal: "rinnovo"}

func phoneOf(person int) string { return fmt.Sprintf("+39333%07d", 1_000_000+person) }

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

// bell wakes all goroutines that wait for its next ring.
type bell struct {
	mu    sync.Mutex
	rings chan struct{}
}

func (b *bell) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings == nil {
		b.rings = make(chan struct{})
	}
	return b.rings
}

func (b *bell) ring() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rings != nil {
		close(b.rings)
		b.rings = nil
	}
}

// patient is a clock for runners. Its Sleep replaces the runner's two poll intervals by a wait for a bell.
type patient struct {
	clock.Clock
	n *node
}

func (p patient) Sleep(ctx context.Context, d time.Duration) error {
	var rings <-chan struct{}
	switch d {
	case 100 * time.Millisecond:
		rings = p.n.triggers.wait()
	case 10 * time.Second:
		rings = p.n.dates.wait()
	default:
		return p.Clock.Sleep(ctx, d)
	}
	select {
	case <-rings:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// calm is a clock for the dispatcher. A new dispatcher looks for dead nodes twice a second; with this clock, it uses the poll interval.
type calm struct{ clock.Clock }

func (c calm) After(d time.Duration) (<-chan time.Time, func()) {
	if d == 500*time.Millisecond {
		d = polled
	}
	return c.Clock.After(d)
}

var errDied = errors.New("the server ends here")

// dying is a store whose server crashes before or after some transactions of Act.
type dying struct {
	*store.Store
	p *practice
}

func (d dying) Act(ctx context.Context, b *puntuale.ActBatch) error {
	before, after := false, false
	if d.p.dies > 0 && len(b.Acts) > 0 {
		n := d.p.acts.Add(1)
		before, after = n%d.p.dies == 0, n%d.p.dies == d.p.dies/2
	}
	if before {
		d.p.died.Store(true)
		return errDied
	}
	if err := d.Store.Act(ctx, b); err != nil || !after {
		return err
	}
	d.p.died.Store(true)
	return errDied
}

func (p *practice) must(err error, what string) {
	p.t.Helper()
	if err != nil {
		p.t.Fatalf("%s: %v: %s", time.Now().In(p.script.Zone).Format(time.DateTime), err, what)
	}
}

// open starts a server without its runners.
func (p *practice) open() {
	ctx := p.t.Context()
	n := &node{}
	var err error
	n.store, err = store.Open(ctx, p.db)
	p.must(err, "open the store")
	system := clock.System()
	n.control = control.New(control.Config{Tenants: n.store, Devices: n.store, Maintenance: n.store, Clock: system})
	n.rules = rules.New(rules.Config{Control: n.control, Tenants: n.store, Hooks: n.store, Clock: system})
	n.intake = intake.New(intake.Config{Store: n.store, Clock: system, Logger: quiet(), MessageMark: func(client puntuale.ClientID, session puntuale.SessionID, chat, id string) string {
		return fmt.Sprint(client, session, chat, id)
	}})
	phones := sandbox.New(n.store, system, 0)
	n.dispatch = dispatch.New(dispatch.Config{
		Queue: n.store, Fleet: n.store, Logger: quiet(), Clock: calm{system}, Connector: func(puntuale.Session) puntuale.Connector { return phones },
		Lease: 4 * 24 * time.Hour, Beat: 24 * time.Hour, Poll: polled, Horizon: polled + time.Hour,
	})
	p.must(n.dispatch.Start(ctx), "start the dispatcher")
	p.node = n
}

// run starts the runners of the server.
func (p *practice) run() {
	ctx, cancel := context.WithCancel(context.Background())
	n := p.node
	n.stop = cancel
	for range runners {
		r := automation.New(automation.Config{
			Node:  func() puntuale.NodeID { return 0 },
			Store: dying{n.store, p}, Planner: n.control.PlannerOf, Bound: n.store.ChunkBound, DatesBound: n.store.DatesBound, Wakeup: n.dispatch.Wake, Clock: patient{clock.System(), n}, Logger: quiet(),
		})
		n.running.Go(func() { r.Run(ctx) })
	}
}

// hang stops the runners.
func (p *practice) hang() {
	if p.node.stop != nil {
		p.node.stop()
		p.node.running.Wait()
		p.node.stop = nil
	}
}

// down stops the server and its runners.
func (p *practice) down() {
	p.hang()
	p.must(p.node.dispatch.Stop(context.Background()), "stop the dispatcher")
	p.must(p.node.store.Close(), "close the store")
	p.node = nil
}

// found creates the practice: a client with a sandbox session, sequences and rules.
func (p *practice) found() {
	ctx, now := p.t.Context(), time.Now()
	key := func(name string) puntuale.Key {
		return puntuale.Key{Name: name, Prefix: name, Hash: sha256.Sum256([]byte(name)), Created: now}
	}
	partner, err := p.node.store.CreatePartner(ctx, puntuale.Partner{Name: "P", Slug: "p", Created: now}, puntuale.Login{Email: "p@example.com", Password: "x"}, key("p"))
	p.must(err, "create a partner")
	c := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now))
	c.Name, c.Partner, c.Created, c.Zone = "Studio", partner, now, p.script.Zone.String()
	made, err := p.node.store.Partner(partner).CreateClient(ctx, puntuale.NewClient{
		Client: c, Login: puntuale.Login{Email: "c@example.com", Password: "x"}, Key: key("c"),
		Session: puntuale.Session{Name: "S", Type: puntuale.Socket, Sandbox: true, Default: true, Created: now},
	}, nil)
	p.must(err, "create a client")
	p.client, p.session = made.Client, made.Session
	keep := puntuale.KeepAllReplies
	_, err = p.caller().UpdateSettings(ctx, puntuale.SettingsPatch{KeepReplies: &keep}, nil)
	p.must(err, "keep replies")
	p.writeRules()
}

// caller returns the object through which the client's API calls are made.
func (p *practice) caller() *control.Client {
	c, err := p.node.control.OfNetwork(p.t.Context(), p.client)
	p.must(err, "find the client")
	return c
}

// at returns the timing of a step: the given number of days after the date in field. A negative number means days
// before the date.
func at(field string, days int, clock string) puntuale.Timing {
	o := puntuale.Offset{Amount: days, Unit: puntuale.Days, Direction: puntuale.After}
	if days < 0 {
		o.Amount, o.Direction = -days, puntuale.Before
	}
	return puntuale.Timing{Anchor: field, Offset: o, At: clock}
}

func (p *practice) sequence(steps ...puntuale.Step) puntuale.SequenceChoice {
	made, err := p.caller().CreateSequence(p.t.Context(), control.NewSequence{Name: steps[0].Text, Steps: steps}, control.Once[control.Sequence]{})
	p.must(err, "make a sequence")
	return puntuale.SequenceChoice(made.ID.String())
}

func (p *practice) writeRules() {
	start := func(q puntuale.SequenceChoice) []puntuale.Action {
		return []puntuale.Action{{Kind: puntuale.ActionStart, Sequence: q}}
	}
	info := p.sequence(puntuale.Step{Text: yeartest.TextInfo, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}},
		puntuale.Step{Text: yeartest.TextInfoAgain, Timing: at(puntuale.AnchorStart, 1, "")})
	reminder := p.sequence(puntuale.Step{Text: yeartest.TextReminder, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}},
		puntuale.Step{Text: yeartest.TextLast, Timing: puntuale.Timing{Anchor: puntuale.AnchorStart, Offset: puntuale.Offset{Amount: 2, Unit: puntuale.Hours, Direction: puntuale.After}}})
	for rule, a := range [yeartest.RuleCount]puntuale.Automation{
		yeartest.Birthday: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerDate, Field: fieldOf[yeartest.Birthday], Repeat: puntuale.RepeatYearly},
			Actions: start(p.sequence(puntuale.Step{Text: yeartest.TextBirthday, Timing: at(fieldOf[yeartest.Birthday], 0, "09:00")}))},
		yeartest.Instalment: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerDate, Field: fieldOf[yeartest.Instalment], Repeat: puntuale.RepeatMonthly},
			Actions: start(p.sequence(puntuale.Step{Text: yeartest.TextInstalment, Timing: at(fieldOf[yeartest.Instalment], 0, "02:30")}))},
		yeartest.Keyword: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}, Actions: start(info)},
		yeartest.Silence: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerNoReply, Sequence: info, Hours: 48}, Actions: start(reminder)},
		yeartest.Renewal: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerDate, Field: fieldOf[yeartest.Renewal], Repeat: puntuale.RepeatOnce},
			Actions: start(p.sequence(puntuale.Step{Text: yeartest.TextBefore, Timing: at(fieldOf[yeartest.Renewal], -7, "10:00")},
				puntuale.Step{Text: yeartest.TextToday, Timing: at(fieldOf[yeartest.Renewal], 0, "11:00")}))},
		yeartest.Reminded: {Trigger: puntuale.Trigger{Kind: puntuale.TriggerOutcome, Sequence: reminder, Is: puntuale.OutcomeCompleted},
			Actions: []puntuale.Action{{Kind: puntuale.ActionTag, Add: []string{"sollecitato"}}}},
	} {
		a.Name, a.Active = fmt.Sprint("Regola ", rule), true
		made, err := p.node.rules.OfClient(p.caller(), "").Create(p.t.Context(), rules.Draft{Automation: a}, control.Once[rules.Rule]{})
		p.must(err, "make a rule")
		p.rules[rule] = made.ID
	}
}

// event plays one event of the script.
func (p *practice) event(e yeartest.Event) {
	ctx := p.t.Context()
	switch e.Kind {
	case yeartest.Add, yeartest.Change, yeartest.Delete:
		p.contact(e)
	case yeartest.Reply:
		p.network = append(p.network, p.message(e, false))
		p.deliver()
	case yeartest.Answer:
		p.must(p.node.intake.Take(ctx, p.session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{p.message(e, true)}}), "answer a person")
	case yeartest.Pause, yeartest.Resume:
		_, err := p.node.rules.OfClient(p.caller(), "").Switch(ctx, p.rules[e.Rule].String(), e.Kind == yeartest.Resume)
		p.must(err, "switch a rule")
	case yeartest.Down:
		p.readFirings()
		p.down()
	case yeartest.Up:
		p.open()
		p.deliver()
		p.run()
	case yeartest.Hang:
		p.hang()
	case yeartest.Recover:
		p.run()
	}
}

func (p *practice) message(e yeartest.Event, own bool) puntuale.InboundMessage {
	m := puntuale.InboundMessage{Client: p.client, Session: p.session, Phone: phoneOf(e.Person), At: e.At, ID: e.ID, Own: own, Kind: puntuale.ReplyText, Text: e.Text}
	if own {
		m.ID, m.Text = fmt.Sprint("own", e.At.Unix()), "La richiamo io"
	}
	return m
}

// deliver lets the network deliver all waiting replies, each of them twice.
func (p *practice) deliver() {
	if p.node == nil {
		return
	}
	for _, m := range p.network {
		for range 2 {
			p.must(p.node.intake.Take(p.t.Context(), p.session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{m}}), "take a reply")
		}
	}
	p.network = nil
}

func (p *practice) contact(e yeartest.Event) {
	ctx, c, phone := p.t.Context(), p.caller(), phoneOf(e.Person)
	values := map[string]control.ContactValue{}
	for rule, value := range e.Dates {
		values[fieldOf[rule]] = control.ContactValue{Text: value}
	}
	if e.Kind == yeartest.Add {
		_, err := c.AddContact(ctx, control.NewContact{Phone: phone, Name: "Anna", Fields: values}, control.Once[puntuale.Contact]{})
		p.must(err, "add a contact")
		return
	}
	found, err := c.ContactsOf(ctx, phone)
	p.must(err, "find a contact")
	known, there := found[phone]
	switch {
	case !there:
	case e.Kind == yeartest.Delete:
		p.must(c.DeleteContact(ctx, known.ID.String()), "delete a contact")
	default:
		_, err = c.UpdateContact(ctx, known.ID.String(), control.ContactChange{Fields: values})
		p.must(err, "change a contact")
	}
}

// pass lets time pass. Inside a synctest bubble the clock is fake, so Sleep does not really wait.
func (*practice) pass(d time.Duration) { time.Sleep(d) }

// settle lets the runners and the dispatcher do all due work. dates says whether the loop for dates must work, too.
func (p *practice) settle(dates bool) {
	for quiet := 0; p.node != nil && quiet < 3; {
		if dates { // two rounds: in the first round, the stored dates of changed contacts may still be the old ones
			p.node.dates.ring()
			dates = quiet == 0
		}
		p.node.triggers.ring()
		synctest.Wait()
		p.pass(lateness / 5) // a batch of replies and an attempt take a few milliseconds
		synctest.Wait()
		quiet++
		if p.died.Swap(false) {
			p.pass(puntuale.TriggerLease + 2*time.Second) // the lease ends, so a runner takes the triggers of the crashed server again
			p.node.dispatch.Wake(p.session, time.Now())   // the wakeup of the crashed server was lost
			quiet = 0
		}
		if quiet == 3 && p.node.stop != nil && p.soon() {
			quiet = 0
		}
	}
}

// soon waits for the first timer that is due within two minutes, and reports whether there is one. The server sets its timers a little later than
// the model does, because sending takes some time.
func (p *practice) soon() bool {
	timers, err := p.node.store.DueTimers(p.t.Context(), time.Now().Add(2*time.Minute), 1, nil)
	p.must(err, "look for timers")
	if len(timers) > 0 {
		p.pass(time.Until(timers[0].Due) + time.Millisecond)
	}
	return len(timers) > 0
}

// look reads the logs and runs the server's maintenance, once a week, because maintenance removes log lines after 30 days.
func (p *practice) look() {
	now := time.Now()
	if p.node == nil || now.Sub(p.read) < watched {
		return
	}
	p.readFirings()
	p.must(p.node.store.Maintain(p.t.Context(), now, time.Time{}), "maintain")
}

func (p *practice) readFirings() {
	p.read = time.Now()
	for rule, id := range p.rules {
		last := p.seen[rule]
		for page := (request.Page{Limit: "1000"}); ; {
			some, next, err := p.node.rules.OfClient(p.caller(), "").Firings(p.t.Context(), id.String(), page)
			p.must(err, "read a log")
			for _, f := range some {
				if f.ID > last {
					p.firings, p.seen[rule] = append(p.firings, f), max(p.seen[rule], f.ID)
				}
			}
			if page.Cursor = next; next == "" || some[len(some)-1].ID <= last {
				break
			}
		}
	}
}

// ledger returns all messages that reached people.
func (p *practice) ledger() (all []puntuale.SandboxMessage) {
	for page := (puntuale.Page{Limit: 1000}); ; {
		some, next, err := p.node.store.Tenant(p.client).SandboxMessages(p.t.Context(), page)
		p.must(err, "read the ledger")
		all = append(all, some...)
		if page.Cursor = next; next == "" {
			return all
		}
	}
}

// play plays the script. At each time in moments it plays the due events, and lets the server do its due work.
func (p *practice) play(moments []time.Time) {
	p.pass(time.Until(p.script.Begin))
	p.open()
	p.found()
	p.run()
	events := p.script.Events
	for _, moment := range moments {
		p.pass(time.Until(moment))
		dates := moment.In(p.script.Zone).Hour() == 0
		for len(events) > 0 && !events[0].At.After(moment) {
			p.event(events[0])
			dates = dates || events[0].Kind != yeartest.Reply && events[0].Kind != yeartest.Answer
			events = events[1:]
		}
		p.settle(dates)
		p.look()
	}
	if p.node == nil {
		p.open()
	}
	p.readFirings()
}

func (p *practice) end() {
	if p.node != nil {
		p.down()
	}
}

// personOf returns the index of the person with the given phone, or -1 if no person has this phone.
func personOf(phone string) int {
	var n int
	if _, err := fmt.Sscanf(strings.TrimPrefix(phone, "+39333"), "%d", &n); err != nil {
		return -1
	}
	return n - 1_000_000
}
