package store

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/reply"
	"puntuale/internal/store/result"
)

// newBookingKind returns the kind of transactions that change bookings. If the answer to a COMMIT is lost, a put with a
// reference runs again: what is already stored changes nothing. A booking without a reference has the first of its
// message identifiers as its own, so this row tells.
func newBookingKind() *engine.Kind {
	k := engine.NewEffect("booking")
	keyed := k.Check
	k.Check = func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) (bool, error) {
		e, ok := tasks[0].Body.(*engine.Effect)
		if !ok || e.Key != nil {
			return keyed(ctx, w, tasks)
		}
		if err := w.Conn.Begin(ctx); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		var id int64
		stored, err := engine.QueryOne(ctx, &w.Conn, `select id from booking where client_id = $1 and id = $2 and reference = $3`,
			[]any{e.Owner, e.First, puntuale.RunReference + puntuale.MessageID(e.First).String()}, &id)
		if rolled := w.Conn.Rollback(ctx); err == nil {
			err = rolled
		}
		return stored, err
	}
	return k
}

// newReplanKind returns the kind of transactions that replan bookings.
func newReplanKind() *engine.Kind {
	k := newBookingKind()
	k.Name, k.Priority, k.Class, k.Background, k.GivesWay = "replan", engine.PriorityFeed, engine.ClassFeed, true, true
	return k
}

// bookingPut is the transaction of one change of a booking. Locks: the idempotency key, the client's usage, the booking,
// its pending messages, its run.
type bookingPut struct {
	tenant
	*puntuale.PutBooking
	a      engine.Querier
	first  int64 // id of the new run and of its first message; of a new booking, too
	kept   *reply.KeptAnswer
	state  puntuale.BookingState
	result puntuale.PutBookingResult
}

// PutBooking changes a booking: its state, its messages, its history and its events, all in one transaction. Codes: those
// of Decide; not_found, if the sequence or the session is gone; cap_reached.
func (t tenant) PutBooking(ctx context.Context, r puntuale.PutBooking) (puntuale.PutBookingResult, error) {
	var result puntuale.PutBookingResult
	e := &engine.Effect{Owner: int64(t.id), Key: r.Keep, At: engine.Micros(r.Now), IDsNeeded: puntuale.MaxSteps + 1}
	writer, kind := t.s.TenantWriter(int64(t.id)), t.s.kinds.booking
	if r.Replan {
		writer, kind = t.s.FeedWriter, t.s.kinds.replan
	}
	err := e.Do(ctx, writer, kind, func(ctx context.Context, a engine.Querier) (any, error) {
		p := &bookingPut{tenant: t, PutBooking: &r, a: a, first: e.First}
		err := p.run(ctx)
		result = p.result
		return result, err
	})
	return result, err
}

func (p *bookingPut) run(ctx context.Context) (err error) {
	day := queue.UsageDay{Client: p.id, Day: p.Day}
	if p.result.Usage, err = queue.CountAlways(ctx, p.a, day, 0); err != nil {
		return err
	}
	if p.Unchanged != nil {
		p.state, p.result.Before, p.result.BookingChange = p.Read, p.Read.Steps, *p.Unchanged
		if kept, err := p.keepAsOf(ctx); err != nil || kept {
			return err
		}
	}
	if p.Reply != nil {
		if p.kept, err = reply.BeginAnswer(ctx, p.a, p.Now, p.first+puntuale.MaxSteps, *p.Reply); err != nil || p.kept == nil {
			return err
		}
	}
	reference := p.Reference
	if reference == "" {
		reference = puntuale.RunReference + puntuale.MessageID(p.first).String()
	}
	if p.state, err = p.readMoved(ctx, p.a, reference, p.PutBooking, true); err != nil {
		return err
	}
	if err := p.refuseErased(ctx); err != nil {
		return err
	}
	p.result.Before = p.state.Steps
	if p.result.BookingChange, err = p.Decide(p.state); err != nil {
		return err
	}
	c := &p.result.BookingChange
	c.Reference = reference
	if err := p.count(ctx, day); err != nil {
		return err
	}
	if err := p.keepAnswer(ctx); err != nil {
		return err
	}
	if !c.Changed {
		if p.result.AsOf == p.state.AsOf || p.state.Revision == 0 {
			return nil
		}
		_, err := p.keepAsOf(ctx)
		return err
	}
	for _, step := range []func(context.Context) error{p.takeBack, p.insertMessages, p.writeBooking, p.writeSteps, p.emit} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refuseErased refuses to make a booking again that an erased person had.
func (p *bookingPut) refuseErased(ctx context.Context) error {
	if p.Erased == "" || p.state.Revision != 0 {
		return nil
	}
	var n int
	erased, err := engine.QueryOne(ctx, p.a, `select 1 from booking b where b.client_id = $1 and b.reference > $2 || '.' and b.reference < $2 || '/' and b.erased_at <> 0 limit 1`, []any{p.id, p.PutBooking.Erased}, &n)
	if err != nil {
		return fmt.Errorf("look for an erased booking: %w", err)
	}
	if erased {
		return puntuale.Conflict(puntuale.FaultBookingErased)
	}
	return nil
}

// keepAnswer stores the reply, and that its question is answered. An answer also closes the booking's other questions that
// have left.
//
// An answer on the page has no reply. If it is unclear, people get a notice all the same.
func (p *bookingPut) keepAnswer(ctx context.Context) error {
	if p.result.Effect == puntuale.ReplyAnswered || p.result.Effect == puntuale.ReplyUnclear && p.result.Changed {
		if _, err := p.a.Exec(ctx, `update booking_step set answered_at = $3 where client_id = $1 and booking_id = $2 and question <> '' and answered_at = 0
 and exists (select 1 from message m where m.client_id = booking_step.client_id and m.id = booking_step.message_id and (m.state = 1 or m.intent > 0))`,
			p.id, p.state.ID, engine.Micros(p.Now)); err != nil {
			return fmt.Errorf("write that a booking's questions are answered: %w", err)
		}
	}
	if p.kept == nil {
		if p.result.Effect != puntuale.ReplyUnclear {
			return nil
		}
		if err := notice.Add(ctx, p.a, puntuale.Notice{Client: p.id, Kind: puntuale.NoticeAnswer, Subject: int64(p.state.ID), At: p.Now}); err != nil {
			return fmt.Errorf("tell people of an unclear answer: %w", err)
		}
		return nil
	}
	if _, err := p.a.Exec(ctx, `update booking_step set answered_at = $3 where client_id = $1 and message_id = $2 and question <> ''`,
		p.id, p.Reply.InReplyTo, engine.Micros(p.Now)); err != nil {
		return fmt.Errorf("write that a question is answered: %w", err)
	}
	if err := p.kept.End(ctx, p.result.Effect); err != nil {
		return fmt.Errorf("keep an answer: %w", err)
	}
	return nil
}

// count counts the call. A call that changes nothing is counted only if it always counts.
func (p *bookingPut) count(ctx context.Context, day queue.UsageDay) (err error) {
	if !p.result.Changed && !p.Always {
		return nil
	}
	if p.Unrefused {
		p.result.Usage, err = queue.CountAlways(ctx, p.a, day, p.calls())
		return err
	}
	u, exhausted, err := p.countOne(ctx, p.a, day)
	if p.result.Usage = u; err == nil && exhausted {
		return p.capReached(u)
	}
	return err
}

// keepAsOf stores how new a put was that changed nothing else. It returns false if the booking is no longer as it was
// read.
func (p *bookingPut) keepAsOf(ctx context.Context) (bool, error) {
	given, old := p.result.AsOf, p.state.Booking
	n, err := p.a.Exec(ctx, `update booking set as_of = $3, as_of_kind = $4 where client_id = $1 and id = $2 and reference = $5 and revision = $6 and as_of = $7 and as_of_kind = $8`,
		p.id, old.ID, given.Value, given.Kind, old.Reference, old.Revision, old.AsOf.Value, old.AsOf.Kind)
	if err != nil {
		return false, fmt.Errorf("write how new a booking is: %w", err)
	}
	return n > 0, nil
}

// refsOf returns the messages of rows of the ledger, sorted.
func (p *bookingPut) refsOf(places []int) []puntuale.MessageRef {
	return sortedRefs(p.id, engine.Column(places, func(i *int) puntuale.MessageID { return p.state.Steps[*i].Message }))
}

// takeBack cancels, stops and replaces messages. Their rows are locked, so none of them can have left since they were
// read.
func (p *bookingPut) takeBack(ctx context.Context) error {
	places := engine.Column(p.result.Withdraw, func(w *puntuale.Withdrawal) int { return w.Step })
	if _, err := queue.CancelOpen(ctx, p.a, p.refsOf(slices.Concat(places, p.result.Stop)), p.Now); err != nil {
		return err
	}
	type W = puntuale.Withdrawal
	if len(places) > 0 {
		if _, err := p.a.Exec(ctx, `update message set reason = u.t from $u(c bigint, i bigint, t text) where message.client_id = u.c and message.id = u.i and message.state = 3`, engine.Columns{
			slices.Repeat([]int64{int64(p.id)}, len(places)),
			engine.Column(places, func(i *int) int64 { return int64(p.state.Steps[*i].Message) }),
			engine.Column(p.result.Withdraw, func(w *W) string { return puntuale.Because(w.Reason).Stored() }),
		}); err != nil {
			return fmt.Errorf("write why messages were taken back: %w", err)
		}
	}
	var replaced []int
	for _, n := range p.result.New {
		if n.Same {
			replaced = append(replaced, n.Before)
		}
	}
	if len(replaced) == 0 {
		return nil
	}
	refs := p.refsOf(replaced)
	n, err := p.a.Exec(ctx, `update message set intent = -1, state = 5, done_at = $1::bigint from $u(c bigint, i bigint)
 where message.client_id = u.c and message.id = u.i and message.intent = 0 and message.state = 0`, engine.Micros(p.Now), queue.RefColumns(refs))
	if err == nil && int(n) != len(refs) {
		err = fmt.Errorf("a booking's message left meanwhile: %w", engine.ErrAgain)
	}
	if err != nil {
		return fmt.Errorf("replace messages: %w", err)
	}
	return nil
}

// insertMessages stores the new run. A booking's messages are planned like those of a start.
func (p *bookingPut) insertMessages(ctx context.Context) error {
	c := &p.result.BookingChange
	run := p.Run
	run.Phone, run.Reference = c.Phone, c.Reference
	run.Steps = make([]puntuale.FrozenStep, len(c.New))
	messages := make([]puntuale.PlannedMessage, len(c.New))
	for i, m := range c.New {
		messages[i] = m.PlannedMessage
		run.Steps[i] = puntuale.FrozenOf(&m.PlannedMessage)
		run.Steps[i].ID = puntuale.FrozenID(m.Key.Step)
	}
	st := &start{StartRun: puntuale.StartRun{Run: run, Messages: messages, Day: p.Day, Now: p.Now, Revision: p.Revision}, client: p.id, first: p.first, passed: true}
	b := &startBatch{a: p.a, tasks: []*engine.Task{engine.Joined(p.s.kinds.start, len(messages), st)}}
	if len(c.New) > 0 || p.Revision != 0 {
		if err := b.findStale(ctx); err != nil || st.staleError != nil {
			return cmp.Or(err, st.staleError)
		}
	}
	if len(c.New) == 0 {
		return nil
	}
	var err error
	if st.steps, err = engine.ToJSON(run.Steps); err != nil {
		return err
	}
	if err := b.insert(ctx); err != nil {
		return err
	}
	p.result.IDs = st.answer.IDs
	return p.delay(ctx)
}

// delay keeps what a replaced message had to wait for, such as a retry.
func (p *bookingPut) delay(ctx context.Context) error {
	var ids, next []int64
	for i, n := range p.result.New {
		if !n.Next.IsZero() && !n.Next.Equal(n.Due) {
			ids, next = append(ids, int64(p.result.IDs[i])), append(next, engine.Micros(n.Next))
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := p.a.Exec(ctx, `update message set next_at = u.n from $u(i bigint, n bigint) where message.client_id = $1 and message.id = u.i`, p.id, engine.Columns{ids, next}); err != nil {
		return fmt.Errorf("delay messages: %w", err)
	}
	return nil
}

// writeBooking stores the new state and the entry in the history.
func (p *bookingPut) writeBooking(ctx context.Context) error {
	c := &p.result.BookingChange
	fields, err := engine.ToJSON(c.Fields)
	if err != nil {
		return err
	}
	moments, err := engine.ToJSON(c.Moments)
	if err != nil {
		return err
	}
	answer := ""
	if c.Answer != nil {
		if answer, err = engine.ToJSON(c.Answer); err != nil {
			return err
		}
	}
	if p.state.Revision == 0 {
		c.ID = puntuale.BookingID(p.first)
	} else if err := p.rename(ctx); err != nil {
		return err
	}
	n, err := p.a.Exec(ctx, `
insert into booking as b (client_id, id, reference, sequence_id, session_id, phone, zone, fields, date_at, status, status_by, revision, as_of, as_of_kind, told_at, moments, created_at, changed_at, answer, page_token)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)
on conflict (client_id, reference) do update set sequence_id = excluded.sequence_id, session_id = excluded.session_id, phone = excluded.phone, zone = excluded.zone,
 fields = excluded.fields, date_at = excluded.date_at, status = excluded.status, status_by = excluded.status_by, revision = excluded.revision, as_of = excluded.as_of,
 as_of_kind = excluded.as_of_kind, told_at = excluded.told_at, moments = excluded.moments, changed_at = excluded.changed_at, answer = excluded.answer,
 page_token = excluded.page_token where b.revision = excluded.revision - 1`,
		p.id, c.ID, c.Reference, c.Sequence, c.Session, c.Phone, c.Zone, fields, engine.Micros(c.Date), c.Status, c.StatusBy, c.Revision, c.AsOf.Value, c.AsOf.Kind,
		engine.Micros(c.Told), moments, engine.Micros(c.Created), engine.Micros(c.Updated), answer, c.Page)
	if err == nil && n == 0 { // another day's first put of the same booking was faster
		err = fmt.Errorf("a booking was made meanwhile: %w", engine.ErrAgain)
	}
	if err != nil {
		return fmt.Errorf("write a booking: %w", err)
	}
	return noteBooking(ctx, p.a, p.id, c.ID, puntuale.BookingEntry{Revision: c.Revision, At: p.Now, By: c.By, What: c.What})
}

// noteBooking writes an entry of a booking's history. Every change of a booking's date, sequence or status has one, so the
// booking is counted anew.
func noteBooking(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.BookingID, e puntuale.BookingEntry) error {
	what, err := engine.ToJSON(e.What)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `insert into booking_change (client_id, booking_id, revision, at, door, what) values ($1, $2, $3, $4, $5, $6)`,
		client, id, e.Revision, engine.Micros(e.At), e.By, what); err != nil {
		return fmt.Errorf("write a booking's history: %w", err)
	}
	return result.NoteBookings(ctx, a, e.At, client, id)
}

// writeSteps stores in the ledger what the change did.
func (p *bookingPut) writeSteps(ctx context.Context) error {
	places := slices.Concat(engine.Column(p.result.Withdraw, func(w *puntuale.Withdrawal) int { return w.Step }), p.result.Stop)
	if err := withdrawSteps(ctx, p.a, p.refsOf(places)); err != nil {
		return err
	}
	if len(p.result.New) == 0 {
		return nil
	}
	type N = puntuale.NewBookingMessage
	questions := make([]string, len(p.result.New))
	for i, n := range p.result.New {
		if n.Asks.IsZero() {
			continue
		}
		var err error
		if questions[i], err = engine.ToJSON(reply.StoredQuestion{Date: engine.Micros(n.Asks), Buttons: n.Content.Buttons()}); err != nil {
			return err
		}
	}
	of := func(f func(*N) int64) []int64 { return engine.Column(p.result.New, f) }
	if _, err := p.a.Exec(ctx, `
insert into booking_step as s (client_id, booking_id, sequence_id, step, occurrence, phone, message_id, previous_id, timing, digest, question)
select $1::bigint, $2::bigint, u.q, u.s, u.o, u.p, u.m, u.b, u.t, u.d, u.a from $u(q bigint, s text, o bigint, p text, m bigint, b bigint, t text, d text, a text) where true
on conflict (client_id, booking_id, sequence_id, step, occurrence, phone) do update set message_id = excluded.message_id, previous_id = excluded.previous_id,
 timing = excluded.timing, digest = excluded.digest, fate = 0, question = excluded.question, answered_at = 0`, p.id, p.result.ID, engine.Columns{
		of(func(n *N) int64 { return int64(n.Key.Sequence) }),
		engine.Column(p.result.New, func(n *N) string { return n.Key.Step }),
		of(func(n *N) int64 { return n.Key.Occurrence }),
		engine.Column(p.result.New, p.phoneOf),
		engine.Column(p.result.IDs, func(id *puntuale.MessageID) int64 { return int64(*id) }),
		of(func(n *N) int64 { return int64(p.before(n)) }),
		engine.Column(p.result.New, func(n *N) string { return n.Timing }),
		engine.Column(p.result.New, func(n *N) string { return n.Digest }),
		questions,
	}); err != nil {
		return fmt.Errorf("write a booking's ledger: %w", err)
	}
	return nil
}

// phoneOf returns the phone under which the ledger has a key. All names of a person share one row.
func (p *bookingPut) phoneOf(n *puntuale.NewBookingMessage) string {
	for _, s := range p.state.Steps {
		if s.Key == n.Key && (s.Phone == p.result.Phone || slices.Contains(p.state.Names, s.Phone)) {
			return s.Phone
		}
	}
	return p.result.Phone
}

// before returns the message that a new one replaces, or 0.
func (p *bookingPut) before(n *puntuale.NewBookingMessage) puntuale.MessageID {
	if n.Before < 0 {
		return 0
	}
	return p.state.Steps[n.Before].Message
}

// withdrawSteps notes that these messages were taken back by the booking itself, so that their keys are free again.
func withdrawSteps(ctx context.Context, a engine.Querier, refs []puntuale.MessageRef) error {
	if len(refs) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update booking_step set fate = 1 from $u(c bigint, i bigint) where booking_step.client_id = u.c and booking_step.message_id = u.i`, queue.RefColumns(refs)); err != nil {
		return fmt.Errorf("write a booking's ledger: %w", err)
	}
	return nil
}

// emit writes the events of the change.
func (p *bookingPut) emit(ctx context.Context) error {
	facts, err := bookingFacts(p.id, p.result.Booking, p.result.By, p.result.Events)
	if err != nil {
		return err
	}
	for i := range facts {
		facts[i].Occurrence, facts[i].Depth = fmt.Sprintf("booking:%d/%d", p.result.ID, p.result.Revision), p.Run.Depth
	}
	for i := range p.result.New {
		n := &p.result.New[i]
		former := p.before(n)
		if former == 0 {
			continue
		}
		detail, err := outbox.Detail(struct {
			New puntuale.MessageID `json:"new_message_id"`
		}{p.result.IDs[i]})
		if err != nil {
			return err
		}
		facts = append(facts, outbox.Fact{Client: p.id, Type: puntuale.EventMessageRescheduled, Subject: int64(former), Detail: detail})
	}
	return outbox.Emit(ctx, p.a, p.Now, facts)
}

// bookingFacts returns the facts that a change of a booking makes true. They trigger no rules.
func bookingFacts(client puntuale.ClientID, b puntuale.Booking, by puntuale.BookingDoor, types []puntuale.EventType) ([]outbox.Fact, error) {
	detail, err := outbox.Detail(struct {
		Sequence string `json:"sequence"`
		Date     string `json:"date"`
		Status   string `json:"status"`
		Answer   any    `json:"answer"`
		By       string `json:"by"`
		Revision int64  `json:"revision"`
	}{b.Sequence.String(), outbox.Moment(b.Date), b.Status.String(), answerDetail(b.Answer), by.String(), b.Revision})
	return engine.Column(types, func(t *puntuale.EventType) outbox.Fact {
		return outbox.Fact{Client: client, Type: *t, Subject: int64(b.ID), Detail: detail}
	}), err
}

// answerDetail returns what events tell of a person's answer: nil if there is none.
func answerDetail(a *puntuale.GivenAnswer) any {
	if a == nil {
		return nil
	}
	return struct {
		Does    string `json:"does"`
		Label   string `json:"label"`
		Step    string `json:"step"`
		At      string `json:"at"`
		Matched string `json:"matched"`
		Stale   bool   `json:"stale"`
	}{string(a.Does), a.Label, a.Step, outbox.Moment(a.At), string(a.Matched), a.Stale}
}

// stopBookings cancels the bookings of a stopped sequence, in the stop's transaction and before it looks for messages, so
// that no change of these bookings can plan a message that the stop does not see. taken are the messages that the stop
// cancelled. A stop tells nobody and plans nothing. It changes a booking only if something of it was pending, or if its
// date is to come and nobody has ended it.
func (t tenant) stopBookings(ctx context.Context, a engine.Querier, all []puntuale.Booking, taken []puntuale.MessageRef, now time.Time) error {
	if len(all) == 0 {
		return nil
	}
	if err := withdrawSteps(ctx, a, taken); err != nil {
		return err
	}
	stopped, err := engine.QueryAll(ctx, a, `select distinct s.booking_id from $u(c bigint, i bigint) cross join booking_step s where s.client_id = u.c and s.message_id = u.i`,
		[]any{queue.RefColumns(taken)}, engine.ScanOne[puntuale.BookingID])
	if err != nil {
		return fmt.Errorf("look for stopped bookings: %w", err)
	}
	var facts []outbox.Fact
	for _, b := range all {
		toCome := b.Date.After(now) && (b.Status == puntuale.BookingOpen || b.Status == puntuale.BookingConfirmed)
		if b.Status == puntuale.BookingCancelled || !toCome && !slices.Contains(stopped, b.ID) {
			continue
		}
		b.Status, b.StatusBy, b.Revision = puntuale.BookingCancelled, puntuale.DoorStop, b.Revision+1
		if _, err := a.Exec(ctx, `update booking set status = $3, status_by = $4, revision = $5, changed_at = $6 where client_id = $1 and id = $2`,
			t.id, b.ID, b.Status, b.StatusBy, b.Revision, engine.Micros(now)); err != nil {
			return fmt.Errorf("cancel a stopped booking: %w", err)
		}
		if err := noteBooking(ctx, a, t.id, b.ID, puntuale.BookingEntry{Revision: b.Revision, At: now, By: puntuale.DoorStop, What: []string{"cancelled"}}); err != nil {
			return err
		}
		some, err := bookingFacts(t.id, b, puntuale.DoorStop, []puntuale.EventType{puntuale.EventBookingCancelled})
		if err != nil {
			return err
		}
		facts = append(facts, some...)
	}
	return outbox.Emit(ctx, a, now, facts)
}
