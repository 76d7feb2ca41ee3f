package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/automation"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/person"
	"puntuale/internal/store/queue"
)

// newActKind returns the kind of transactions in which rules act. If the answer to a COMMIT is lost, the writer does
// not know whether the transaction was stored. Then a runner takes the trigger again, and the stored occurrence
// prevents a second act.
func newActKind() *engine.Kind {
	return &engine.Kind{Name: "act", Priority: engine.PriorityFeed, Class: engine.ClassFeed, Background: true, GivesWay: true,
		Prepare: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
			x, ok := tasks[0].Body.(*actBatch)
			if !ok {
				return nil
			}
			if len(x.tasks) > 0 {
				if err := prepareStarts(ctx, w, x.tasks); err != nil {
					return err
				}
			}
			return x.prepareBookings(ctx, w)
		},
		Run: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
			x, ok := tasks[0].Body.(*actBatch)
			if !ok {
				return tasks[0].Run(ctx, &w.Conn)
			}
			x.A = &w.Conn
			return x.Run(ctx)
		},
	}
}

// DatesBound returns how many dates the next transaction may plan. It assumes one message for each date. rest says how
// long the runner rests after the transaction, as a multiple of the transaction's duration. If no calls arrive, rest is 0.
// DatesBound is safe for concurrent use.
func (s *Store) DatesBound() (dates, rest int) {
	dates, calls := s.bound(sizes{sqlite: 66, sqliteBeside: 24, postgres: 333, postgresBeside: 80})
	if !calls {
		return dates, 0
	}
	return dates, 2
}

// ResultsBound returns how many messages the next transaction may count for reports. While calls arrive, the counter rests
// as long as a transaction took. ResultsBound is safe for concurrent use.
func (s *Store) ResultsBound() (messages int, calls bool) {
	return s.bound(sizes{sqlite: 500, sqliteBeside: 100, postgres: 2000, postgresBeside: 500})
}

// actBatch is one transaction in which rules act. For the order of its locks, see package store/automation.
type actBatch struct {
	automation.ActTransaction
	s     *Store
	tasks []*engine.Task // the starts of all acts
	acts  []*puntuale.AutomationAct

	firsts []int64            // for each booking of the batch: the id of its run and of its first message
	booked []puntuale.Booking // the bookings of the sequences that acts stop
}

func (s *Store) Act(ctx context.Context, b *puntuale.ActBatch) error {
	x := &actBatch{ActTransaction: automation.ActTransaction{ActBatch: b}, s: s}
	for _, act := range b.Acts {
		for i := range act.Starts {
			r := &act.Starts[i]
			st := &start{StartRun: *r, client: b.Client, day: queue.UsageDay{Client: b.Client, Day: b.Day}}
			var err error
			if st.steps, err = engine.ToJSON(r.Run.Steps); err != nil {
				return err
			}
			x.tasks, x.acts = append(x.tasks, engine.Joined(s.kinds.free, len(r.Messages), st)), append(x.acts, act)
		}
	}
	t := &engine.Task{Kind: s.kinds.act, Weight: 1, Body: x, Done: make(chan error, 1)}
	err := s.FeedWriter.Do(ctx, t.ForOwner(int64(b.Client)), false)
	if errors.Is(err, errBookingMoved) { // nothing was stored
		for _, act := range b.Acts {
			act.Outcome = puntuale.ActAgain
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("act: %w", err)
	}
	return nil
}

// errNotActing refuses the starts of an act that is not executed.
var errNotActing = errors.New("the rule does not act")

func (x *actBatch) Run(ctx context.Context) error {
	for _, t := range x.tasks {
		t.Refused, t.Later = nil, false
	}
	for _, act := range x.Acts {
		if act.Decide != nil {
			act.Reason, act.Detail = "", ""
		}
	}
	if len(x.Acts) == 0 {
		return automation.RemoveTriggers(ctx, x.A, x.Triggers)
	}
	starts := &startBatch{a: x.A, tasks: x.tasks, free: true}
	if len(x.tasks) > 0 {
		if err := starts.count(ctx); err != nil {
			return err
		}
	}
	if _, err := queue.CountAlways(ctx, x.A, queue.UsageDay{Client: x.Client, Day: x.Day}, 0); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{x.Lock, x.lockBookings, x.lockPeople, x.DropChanged, x.Begin, x.Decide, x.stop} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if err := x.start(ctx, starts); err != nil {
		return err
	}
	for _, step := range []func(context.Context) error{x.book, x.tag, x.blacklist, x.End} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// lockPeople locks the client's count of contacts if an act changes tags. Every change of contacts must lock this count
// before the contacts.
func (x *actBatch) lockPeople(ctx context.Context) error {
	if !slices.ContainsFunc(x.Live, func(act *puntuale.AutomationAct) bool { return len(act.Add)+len(act.Remove) > 0 }) {
		return nil
	}
	return x.s.Persons.ForClient(x.Client, 0).Lock(ctx, x.A)
}

// stopOfPhone finds the pending messages of persons that a rule stops. Sequence 0 means all sequences.
const stopOfPhone = `
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and ($2::bigint = 0 or r.sequence_id = $2)
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0
union all
select m.client_id, m.id from $u(p text) cross join run r cross join message m
where r.client_id = $1 and r.phone = u.p and ($2::bigint = 0 or r.sequence_id = $2)
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0`

// stop cancels the messages that acts stop. It runs before the method start, so that it does not cancel new messages.
func (x *actBatch) stop(ctx context.Context) error {
	keysOf := map[puntuale.SequenceID][]string{}
	for _, act := range x.Live {
		if act.Reason == "" {
			for _, id := range act.Stops {
				keysOf[id] = append(keysOf[id], act.Phone)
			}
		}
	}
	var refs []puntuale.MessageRef
	var bookings []puntuale.Booking
	for id, phones := range keysOf {
		phones, err := alias.Names(ctx, x.A, x.Client, phones...)
		if err != nil {
			return err
		}
		for _, b := range x.booked {
			if (id == 0 || b.Sequence == id) && slices.Contains(phones, b.Phone) {
				bookings = append(bookings, b)
			}
		}
		some, err := engine.QueryAll(ctx, x.A, stopOfPhone, []any{x.Client, id, engine.Columns{phones}}, queue.ScanRef)
		if err != nil {
			return fmt.Errorf("look for messages to stop: %w", err)
		}
		refs = append(refs, some...)
	}
	engine.Sort(refs, queue.CompareRefs)
	done, err := queue.CancelMoved(ctx, x.A, slices.Compact(refs), x.Now)
	if err != nil {
		return err
	}
	engine.Sort(bookings, func(a, b puntuale.Booking) int { return cmp.Compare(a.ID, b.ID) })
	bookings = slices.CompactFunc(bookings, func(a, b puntuale.Booking) bool { return a.ID == b.ID })
	taken := sortedRefs(x.Client, engine.Column(done, func(m *puntuale.CancelledMessage) puntuale.MessageID { return m.ID }))
	return x.s.tenant(x.Client, true).stopBookings(ctx, x.A, bookings, taken, x.Now)
}

// start stores the runs. If an act does nothing but start runs, and none of its starts is possible, start stores the
// reason in the act.
func (x *actBatch) start(ctx context.Context, starts *startBatch) error {
	if len(x.tasks) == 0 {
		return nil
	}
	for i, t := range x.tasks {
		if act := x.acts[i]; act.Reason != "" || !slices.Contains(x.Live, act) {
			t.Refused = errNotActing
		}
	}
	for _, step := range []func(context.Context) error{starts.findStale, starts.passActs, starts.decideRunning, starts.insert} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	reasons := map[*puntuale.AutomationAct]puntuale.ReasonCode{}
	for i, t := range x.tasks {
		st, act := t.Body.(*start), x.acts[i]
		switch {
		case errors.Is(t.Refused, errNotActing):
		case puntuale.CodeOf(t.Refused) == puntuale.CodeNotFound:
			reasons[act] = puntuale.FiringGone
		case t.Refused != nil, t.Later, len(st.answer.IDs) == 0, st.answer.IDs[0] != st.ref(0):
			reasons[act] = puntuale.FiringRunning
		default:
			act.Message = append(act.Message, st.answer.IDs[0])
			act.Reached++
		}
	}
	for act, reason := range reasons {
		leftOut(act, reason, len(act.Bookings) > 0)
	}
	return nil
}

// leftOut notes why an act left an action out. If the act does anything else, it counts as done, and Detail says why.
func leftOut(act *puntuale.AutomationAct, reason puntuale.ReasonCode, more bool) {
	booked := slices.ContainsFunc(act.Booked, func(r puntuale.PutBookingResult) bool { return r.Changed })
	if more || booked || len(act.Message)+len(act.Stops)+len(act.Add)+len(act.Remove) > 0 || act.Blacklist != nil {
		act.Detail = puntuale.Because(reason).Stored()
	} else {
		act.Reason = reason
	}
}

// passActs accepts all starts that were not refused. The starts of automations do not count for the daily cap.
func (b *startBatch) passActs(context.Context) error {
	for _, t := range b.tasks {
		st := t.Body.(*start)
		if st.passed = t.Refused == nil; st.passed && st.staleError != nil {
			st.passed, t.Refused = false, st.staleError
		}
	}
	return nil
}

func (x *actBatch) tag(ctx context.Context) error {
	var tags []person.TagChange
	for _, act := range x.Live {
		if act.Reason == "" && len(act.Add)+len(act.Remove) > 0 {
			tags = append(tags, person.TagChange{Phone: act.Phone, Add: act.Add, Remove: act.Remove})
		}
	}
	if len(tags) == 0 {
		return nil
	}
	return x.s.Persons.ForClient(x.Client, 0).Tag(ctx, x.A, tags, x.Now)
}

func (x *actBatch) blacklist(ctx context.Context) error {
	all := x.Blacklisted()
	if len(all) == 0 {
		return nil
	}
	_, err := queue.AddAllBlacklisted(ctx, x.A, x.Client, all)
	return err
}
