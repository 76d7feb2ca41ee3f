package automation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/keyword"
)

// Config is what a [Runner] needs. All fields must be set.
type Config struct {
	Store   Queue
	Node    func() puntuale.NodeID                                               // the node for which triggers are taken; 0: it has no lease
	Planner func(ctx context.Context, client puntuale.ClientID) (Planner, error) // codes: not_found; forbidden
	Bound   func() (rows int, calls bool)                                        // how many rows one transaction may write, and whether calls arrive
	// DatesBound returns how many dates one transaction may plan if each date gets one message. It also returns how long the
	// runner rests after a transaction, as a multiple of its duration; 0 if no calls arrive.
	DatesBound func() (dates, rest int)
	Wakeup     puntuale.Wakeup
	Clock      clock.Clock
	Logger     *slog.Logger
}

// Runner executes the rules of all clients. Runners of any number of nodes may work at the same time.
type Runner struct {
	Config
	slots clientSlots
}

// New returns a runner. The runner does nothing before Run.
func New(cfg Config) *Runner {
	return &Runner{Config: cfg, slots: clientSlots{places: make(chan struct{}, clientsAtOnce), busy: map[puntuale.ClientID]bool{}}}
}

const (
	takeAtOnce = 200 // the limit of one round for triggers, and also for timers
	pollEvery  = 100 * time.Millisecond
	failWait   = time.Second // how long a loop waits after a failure
	callWithin = 15 * time.Second
	workWithin = puntuale.TriggerLease - callWithin // after this time of a round, no further work of it begins
	planTries  = 3                                  // an act is planned at most this often; it is planned again if something changed after the plan
	// keepFor is how long an occurrence is stored after the last fact that could cause it again. This time is much longer than the time in which
	// networks repeat replies and send late receipts.
	keepFor = 60 * 24 * time.Hour
)

// Run executes rules until ctx ends. Dates and changed contacts have their own loops, so that many birthdays or an import do not delay replies.
func (r *Runner) Run(ctx context.Context) {
	var loops sync.WaitGroup
	loops.Go(func() { r.runDates(ctx) })
	loops.Go(func() { r.repeat(ctx, r.Contacts) })
	r.repeat(ctx, r.Round)
	loops.Wait()
	r.slots.working.Wait()
}

// repeat calls round until ctx ends. It waits after each round, except after a full one.
func (r *Runner) repeat(ctx context.Context, round func(context.Context) (int, error)) {
	for ctx.Err() == nil {
		wait := pollEvery
		n := 0
		err := puntuale.Recovered(func() (err error) {
			n, err = round(ctx)
			return err
		})
		switch {
		case err != nil:
			r.failed(ctx, "automations failed", err)
			wait = failWait
		case n == takeAtOnce:
			wait = 0
		}
		if r.Clock.Sleep(ctx, wait) != nil {
			return
		}
	}
}

// failed logs a failure. It does not repeat the work: a runner takes the triggers again when their lease has ended.
func (r *Runner) failed(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		r.Logger.Warn(what, "error", err) //nolint:sloglint // the callers give constants
	}
}

// Round takes due triggers and timers, and acts on them. A slow client does not delay the others; see each. Round returns the
// number of triggers or the number of timers, the larger of the two. It must not be called again before it has returned.
func (r *Runner) Round(ctx context.Context) (int, error) {
	all, within := ctx, r.Clock.Now().Add(workWithin)
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	now := r.Clock.Now().Truncate(time.Microsecond)
	busy := r.slots.list()
	triggers, err := r.Store.TakeTriggers(ctx, r.Node(), now, takeAtOnce, busy)
	if err != nil {
		return 0, fmt.Errorf("take triggers: %w", err)
	}
	timers, err := r.Store.DueTimers(ctx, now, takeAtOnce, busy)
	if err != nil {
		return 0, fmt.Errorf("look for timers: %w", err)
	}
	if len(triggers)+len(timers) == 0 {
		return 0, nil
	}
	works, together, order := map[puntuale.ClientID][]*clientWork{}, map[puntuale.ClientID]*clientWork{}, []puntuale.ClientID{}
	work := func(id puntuale.ClientID, alone bool) *clientWork {
		w := together[id]
		if w == nil || alone {
			w = &clientWork{Runner: r, id: id, now: now}
			if works[id] == nil {
				order = append(order, id)
			}
			works[id] = append(works[id], w)
		}
		if !alone {
			together[id] = w
		}
		return w
	}
	for i := range triggers {
		t := &triggers[i]
		if t.Fault != nil {
			r.attemptFailed(ctx, t.Fault, triggers[i:i+1])
			continue
		}
		w := work(t.Client, t.Attempts > 0) // a trigger that failed before may be the reason why others failed with it
		w.triggers = append(w.triggers, *t)
	}
	for i := range timers {
		w := work(timers[i].Client, false)
		w.timers = append(w.timers, timers[i])
	}
	clients, err := r.clients(ctx, order)
	if err != nil {
		return 0, err
	}
	err = r.each(all, order, within, func(ctx context.Context, id puntuale.ClientID) error {
		var failures []error
		for _, w := range works[id] {
			if !r.Clock.Now().Before(within) {
				break // these triggers come back when their lease ends
			}
			w.client = clients[id]
			failures = append(failures, w.alone(ctx))
		}
		return errors.Join(failures...)
	})
	return max(len(triggers), len(timers)), err
}

// clients returns the clients with active rules. It leaves out rules that cannot be decoded, because a person must mend
// them.
func (r *Runner) clients(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]*puntuale.AutomatedClient, error) {
	clients, err := r.Store.AutomatedClients(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("read rules: %w", err)
	}
	for _, id := range ids {
		if clients[id] == nil {
			clients[id] = &puntuale.AutomatedClient{ID: id}
		}
		clients[id].Rules = slices.DeleteFunc(clients[id].Rules, func(a puntuale.ActiveAutomation) bool {
			if a.Fault != nil {
				r.Logger.Error("a rule cannot be decoded and does nothing", "rule", int64(a.ID), "client_id", int64(id), "error", a.Fault)
			}
			return a.Fault != nil
		})
	}
	return clients, nil
}

// attemptFailed counts a failed attempt of triggers, unless the store is away or the time is over. A trigger that
// failed too often is set aside, so that it does not come back for ever.
func (r *Runner) attemptFailed(ctx context.Context, cause error, triggers []puntuale.TakenTrigger) {
	if len(triggers) == 0 || ctx.Err() != nil || puntuale.StoreAway(cause) {
		return
	}
	if err := r.Store.FailTriggers(ctx, triggers); err != nil {
		r.failed(ctx, "counting failed attempts failed", err)
		return
	}
	for i := range triggers {
		if t := &triggers[i]; t.Attempts+1 >= puntuale.MaxTriggerAttempts {
			r.Logger.Error("a trigger of automations was set aside, because it failed too often", "trigger", t.ID, "client_id", int64(t.Client), "error", cause)
		}
	}
}

// clientWork is the work of one round for one client.
type clientWork struct {
	*Runner
	id       puntuale.ClientID
	now      time.Time
	client   *puntuale.AutomatedClient
	triggers []puntuale.TakenTrigger
	timers   []puntuale.AutomationTimer

	planner  Planner
	refusal  puntuale.ReasonCode // why nothing can be planned for the client; "": plans are possible
	settings Client
	plans    map[string]Plan

	dry    bool              // true: a trial; a planned message then has its earliest and its latest time, without jitter
	last   puntuale.StartRun // the last planned run; a trial shows it
	change puntuale.BookingChange
	faults []puntuale.Fault // the faults of the last refused plan; a trial shows them
}

// job is one rule that must decide about one trigger or one timer.
type job struct {
	rule    *puntuale.ActiveAutomation
	trigger *puntuale.TakenTrigger
	timer   *puntuale.AutomationTimer
	missed  bool
	tries   int
}

func (j *job) phone() string {
	if j.timer != nil {
		return j.timer.Phone
	}
	return j.trigger.Phone
}

// wanted returns which facts the decision about the job needs.
func (j *job) wanted() puntuale.WantedFacts {
	if j.trigger == nil {
		return j.rule.WantedFacts()
	}
	return WantedFacts(&j.rule.Automation, Occasion{Fields: j.trigger.Fields})
}

// within does work of one client within its own time, so that a slow client does not use up the time of others. A panic is
// an error of this work.
func (w *clientWork) within(ctx context.Context, do func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, callWithin)
	defer cancel()
	return puntuale.Recovered(func() error { return do(ctx) })
}

func (w *clientWork) alone(ctx context.Context) error {
	return w.within(ctx, func(ctx context.Context) error {
		err := puntuale.Recovered(func() error { return w.run(ctx) })
		if err != nil {
			w.attemptFailed(ctx, err, w.triggers)
		}
		return err
	})
}

func (w *clientWork) run(ctx context.Context) error {
	var jobs []*job
	var set []puntuale.AutomationTimer
	left := map[int64]int{} // number of unfinished jobs of each trigger, by the trigger's id
	for i := range w.triggers {
		t := &w.triggers[i]
		some, timers := w.jobs(t)
		jobs, set = append(jobs, some...), append(set, timers...)
		left[t.ID] = len(some)
	}
	var idle []puntuale.TakenTrigger // triggers that need no act
	for _, t := range w.triggers {
		if left[t.ID] == 0 {
			idle = append(idle, t)
		}
	}
	if err := w.Store.SetTimers(ctx, set, idle); err != nil {
		return err
	}
	timed, gone := w.timed()
	if err := w.Store.DropTimers(ctx, gone); err != nil {
		return err
	}
	return w.act(ctx, append(jobs, timed...), left)
}

// jobs returns one job for each rule that waits for the trigger, and the timers that the trigger sets.
func (w *clientWork) jobs(t *puntuale.TakenTrigger) (jobs []*job, timers []puntuale.AutomationTimer) {
	if t.Fact != puntuale.FactHook && silent(t) {
		return nil, nil
	}
	// A lossy failover or a restore may have lost a reply on which a rule had acted. The network may deliver this reply again.
	missed := t.At.Before(w.client.Since) || t.Fact == puntuale.FactReply && t.Wrote.Before(w.client.Since)
	for i := range w.client.Rules {
		a := &w.client.Rules[i]
		switch {
		case t.At.Before(a.Armed):
		case t.Fact == puntuale.FactHook:
			if a.ID == puntuale.AutomationID(t.Subject) {
				jobs = append(jobs, &job{rule: a, trigger: t, missed: missed})
			}
		case a.Trigger.Kind == puntuale.TriggerNoReply:
			if t.Fact == puntuale.FactSent && t.Ended && t.Sequence != 0 && t.Sequence == a.Trigger.Sequence.ID() {
				timers = append(timers, puntuale.AutomationTimer{Client: w.id, Rule: a.ID, Run: t.Run, Phone: t.Phone, Since: t.At,
					Due: t.At.Add(time.Duration(a.Trigger.Hours) * time.Hour)})
			}
		case Fits(a.Trigger, t):
			jobs = append(jobs, &job{rule: a, trigger: t, missed: missed})
		}
	}
	return jobs, timers
}

// silent reports whether rules ignore a trigger: its person was erased, or it is about a group, an opt-out, a reaction or a phone call.
func silent(t *puntuale.TakenTrigger) bool {
	return !isPerson(t.Phone) || t.Effect == puntuale.ReplyOptOut || t.Reply == puntuale.ReplyReaction || t.Reply == puntuale.ReplyCall
}

// isPerson reports whether a recipient is one person. A group is no person, and "" is no person.
func isPerson(recipient string) bool {
	return strings.HasPrefix(recipient, "+") || puntuale.IsPersonID(recipient) || strings.HasSuffix(recipient, "@lid")
}

// timed returns the jobs of timers. It also returns the timers to drop, because the rule is not active any more or the person was erased.
func (w *clientWork) timed() (jobs []*job, gone []puntuale.AutomationTimer) {
	for i := range w.timers {
		t := &w.timers[i]
		var rule *puntuale.ActiveAutomation
		for k := range w.client.Rules {
			if a := &w.client.Rules[k]; a.ID == t.Rule && a.Trigger.Kind == puntuale.TriggerNoReply {
				rule = a
			}
		}
		if rule == nil || !isPerson(t.Phone) {
			gone = append(gone, *t)
			continue
		}
		jobs = append(jobs, &job{rule: rule, timer: t, missed: t.Since.Before(w.client.Since)})
	}
	return jobs, gone
}

// act executes jobs. One transaction has at most one job of each person, and the jobs of a person keep their order. Jobs
// about bookings have a transaction each, because two people's jobs may be about the same booking.
func (w *clientWork) act(ctx context.Context, jobs []*job, left map[int64]int) error {
	stuck := map[int64]bool{} // ids of triggers whose rows must stay, because a job was planned planTries times without success
	for len(jobs) > 0 {
		batch := &puntuale.ActBatch{Client: w.id, Now: w.now}
		var round, rest []*job
		seen := map[string]bool{}
		rows, _ := w.Bound()
		for _, j := range jobs {
			alone := len(round) > 0 && (j.rule.Books() || round[0].rule.Books()) // a batch has one act that changes a booking, or none
			if seen[j.phone()] || alone || len(round) >= max(1, rows/4) {
				rest = append(rest, j)
			} else {
				round = append(round, j)
			}
			seen[j.phone()] = true
		}
		planned, err := w.plan(ctx, round, batch)
		if err != nil {
			return err
		}
		for _, j := range round {
			if t := j.trigger; t != nil {
				if left[t.ID]--; left[t.ID] == 0 && !stuck[t.ID] {
					batch.Triggers = append(batch.Triggers, *t)
				}
			}
		}
		if err := w.Store.Act(ctx, batch); err != nil {
			if puntuale.CodeOf(err) == puntuale.CodeNotFound {
				return w.Store.SetTimers(ctx, nil, w.triggers) // the client was deleted, so its triggers are only removed
			}
			return err
		}
		replan, err := w.jobsToReplan(ctx, planned, batch, left, stuck)
		if err != nil {
			return err
		}
		jobs = append(replan, rest...)
		w.wake(batch)
	}
	for i := range w.triggers {
		if stuck[w.triggers[i].ID] {
			w.attemptFailed(ctx, errStuck, w.triggers[i:i+1])
		}
	}
	return nil
}

var errStuck = errors.New("the act was planned several times, and each time something had changed meanwhile")

// jobsToReplan returns the jobs that must be planned again, with their present rules.
func (w *clientWork) jobsToReplan(ctx context.Context, planned []*job, batch *puntuale.ActBatch, left map[int64]int, stuck map[int64]bool) (replan []*job, err error) {
	for i, act := range batch.Acts {
		j := planned[i]
		if act.Outcome != puntuale.ActAgain {
			continue
		}
		if j.tries++; j.tries >= planTries {
			if j.trigger != nil {
				stuck[j.trigger.ID] = true
			}
			continue
		}
		if len(replan) == 0 {
			clients, err := w.clients(ctx, []puntuale.ClientID{w.id})
			if err != nil {
				return nil, err
			}
			w.client, w.planner, w.plans = clients[w.id], nil, nil
		}
		j.rule = w.ruleNow(j.rule)
		if j.rule == nil { // the rule was switched off or deleted
			if j.trigger != nil && left[j.trigger.ID] == 0 && !stuck[j.trigger.ID] {
				if err := w.Store.SetTimers(ctx, nil, []puntuale.TakenTrigger{*j.trigger}); err != nil {
					return nil, err
				}
			}
			continue
		}
		if j.trigger != nil {
			left[j.trigger.ID]++
		}
		replan = append(replan, j)
	}
	return replan, nil
}

func (w *clientWork) ruleNow(old *puntuale.ActiveAutomation) *puntuale.ActiveAutomation {
	for k := range w.client.Rules {
		if w.client.Rules[k].ID == old.ID {
			return &w.client.Rules[k]
		}
	}
	return nil
}

// wake sends the dispatcher a wakeup for each started run.
func (w *clientWork) wake(batch *puntuale.ActBatch) {
	for _, act := range batch.Acts {
		if len(act.Message) == 0 {
			continue
		}
		for _, s := range act.Starts {
			var first time.Time
			for _, m := range s.Messages {
				if first.IsZero() || m.Due.Before(first) {
					first = m.Due
				}
			}
			w.Wakeup(s.Run.Session, first)
		}
		for i, b := range act.Booked {
			if len(b.New) > 0 {
				first := slices.MinFunc(b.New, func(x, y puntuale.NewBookingMessage) int { return x.Due.Compare(y.Due) })
				w.Wakeup(act.Bookings[i].Run.Session, first.Due)
			}
		}
	}
}

// TakesBack reports whether a rule only stops messages and cancels bookings. An expired account does not prevent this.
func TakesBack(a *puntuale.Automation, o Occasion) bool {
	cancelled := a.Trigger.Preset != "" && o.Fields[puntuale.StatusField] == puntuale.BookingCancelled.String()
	return !slices.ContainsFunc(a.Actions, func(x puntuale.Action) bool {
		books := x.Kind == puntuale.ActionBook && !cancelled
		return books || x.Kind != puntuale.ActionBook && x.Kind != puntuale.ActionStop && x.Kind != puntuale.ActionCancelBooking
	})
}

// open reads the data that all plans of the client need. If the client may not start runs, open sets refusal. The planner
// is then nil, unless the client may still take things back.
func (w *clientWork) open(ctx context.Context) error {
	if w.planner != nil || w.refusal != "" {
		return nil
	}
	p, err := w.Planner(ctx, w.id)
	switch puntuale.CodeOf(err) {
	case "":
	case puntuale.CodeForbidden, puntuale.CodeNotFound:
		w.refusal = puntuale.FiringAccount
		if p == nil {
			w.settings = Client{Settings: w.client.Settings, Zone: time.UTC}
			return nil
		}
	default:
		return fmt.Errorf("read a client: %w", err)
	}
	zone, err := p.Zone()
	if err != nil {
		return err
	}
	w.planner, w.plans = p, map[string]Plan{}
	w.settings = Client{Settings: w.client.Settings, Zone: zone, Closed: p.Closed()}
	return nil
}

// plan adds the acts of jobs to the batch, and returns the jobs that have an act.
func (w *clientWork) plan(ctx context.Context, jobs []*job, batch *puntuale.ActBatch) (planned []*job, err error) {
	if err := w.open(ctx); err != nil {
		return nil, err
	}
	batch.Day = puntuale.DateOf(w.now.In(w.settings.Zone))
	var phones []string
	var wanted puntuale.WantedFacts
	for _, j := range jobs {
		phones, wanted = append(phones, j.phone()), wanted.Union(j.wanted())
	}
	known, err := w.Store.PersonFacts(ctx, w.id, phones, wanted, w.now)
	if err != nil {
		return nil, err
	}
	for _, j := range jobs {
		f := known[j.phone()]
		if j.rule.Trigger.First && f.First != puntuale.ReplyID(j.trigger.Subject) {
			continue // the rule waits for the person's first reply, and the trigger is a later reply
		}
		act, err := w.planJob(ctx, j, f)
		if err != nil {
			return nil, err
		}
		batch.Acts, planned = append(batch.Acts, act), append(planned, j)
	}
	return planned, nil
}

// planJob returns the act of one job. If the rule does not act, the act's Reason says why.
func (w *clientWork) planJob(ctx context.Context, j *job, f *puntuale.AutomationFacts) (*puntuale.AutomationAct, error) {
	a := &j.rule.Automation
	act := &puntuale.AutomationAct{Rule: a.ID, Stamp: j.rule.Stamp, Phone: j.phone(), Keep: w.now.Add(keepFor), Contact: f.Contact, Wanted: j.wanted(), Trigger: j.trigger, Timer: j.timer}
	o := Occasion{Kind: a.Trigger.Kind}
	if t := j.trigger; t != nil {
		act.Occurrence, act.Depth = t.Occurrence, t.Depth
		act.Keep = latest(w.now, t.LastDue).Add(keepFor) // a later message of the same run could cause the occurrence again
		o.Session, o.Depth, o.Fields, o.Whole = t.Session, t.Depth, t.Fields, keyword.Whole(t.Text)
	}
	if t := j.timer; t != nil {
		act.Occurrence, act.Depth = puntuale.MessageID(t.Run).String(), t.Depth
		o.Session, o.Depth, o.Since, o.Silent = t.Session, t.Depth, t.Since, !t.Answered
	}
	switch {
	case j.missed:
		act.Reason = puntuale.FiringMissed
	case o.Fields[puntuale.SkippedField] != "":
		act.Reason = puntuale.ReasonCode(o.Fields[puntuale.SkippedField])
	case !isPerson(act.Phone):
		act.Reason = puntuale.FiringNoPhone
	case w.refusal != "" && (w.planner == nil || !TakesBack(a, o)):
		act.Reason = w.refusal
	default:
		act.Reason = Decide(a, o, *f, w.settings, w.now)
	}
	if act.Reason != "" {
		return act, nil
	}
	settings, now, rule := w.settings, w.now, *a
	act.Decide = func(f puntuale.AutomationFacts) puntuale.ReasonCode {
		o := o
		if o.Kind == puntuale.TriggerNoReply {
			o.Silent = !f.Replied
		}
		return Decide(&rule, o, f, settings, now)
	}
	reason, detail, err := w.actions(ctx, a, o, f.Contact, act, w.now)
	if act.Reason, act.Detail = reason, detail; reason != "" {
		act.Decide = nil
	}
	return act, err
}
