package reply

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// askedBookings finds the questions that bookings with a date to come sent to a person. Words cannot answer a question of
// a cancelled booking.
const askedBookings = `
select u.n, ` + questionColumns + `
from $u(n bigint, c bigint, p text) cross join booking b cross join booking_step s left join message m on m.client_id = s.client_id and m.id = s.message_id
where b.client_id = u.c and b.phone = u.p and b.date_at > $1 and b.status in (0, 1) and b.erased_at = 0 and s.client_id = b.client_id and s.booking_id = b.id and s.question <> ''
 and (m.state = 1 or m.intent > 0)`

// askedBy finds the questions that messages are.
const askedBy = `
select u.n, ` + questionColumns + `
from $u(n bigint, c bigint, i bigint) cross join booking_step s join booking b on b.client_id = s.client_id and b.id = s.booking_id and b.erased_at = 0
 left join message m on m.client_id = s.client_id and m.id = s.message_id
where s.client_id = u.c and s.message_id = u.i and s.question <> ''`

const questionColumns = `b.id, b.reference, b.sequence_id, b.date_at, s.step, s.message_id, s.phone, s.question, s.answered_at <> 0, coalesce(m.session_id, 0), coalesce(m.intent_at, 0)`

// StoredQuestion is the JSON form of what a row of a booking's ledger asks.
type StoredQuestion struct {
	Date    int64                 `json:"date"` // microseconds of the Unix epoch
	Buttons []puntuale.StepButton `json:"buttons"`
}

func scanQuestion(r engine.Row) (n int, q puntuale.Question, err error) {
	var stored StoredQuestion
	err = r.Scan(&n, &q.Booking, &q.Reference, &q.Sequence, engine.ScanTime(&q.Now), &q.Step, &q.Message, &q.Phone, engine.ScanJSON(&stored),
		&q.Answered, &q.Session, engine.ScanTime(&q.Asked))
	q.Date, q.Buttons = time.UnixMicro(stored.Date).UTC(), stored.Buttons
	return n, q, err
}

// quotedMessages resolves the network's ids of quoted messages. Some connectors store which id a message got; else the id
// is in what the network answered when it took the message, so only the person's own latest messages are read.
const quotedMessages = `
select u.n, w.message_id from $u(n bigint, c bigint, s bigint, p text, q text) cross join network_id w
where w.client_id = u.c and w.session_id = u.s and w.id = u.q
union
select u.n, m.id from $u(n bigint, c bigint, s bigint, p text, q text) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.session_id = u.s and m.intent_at > $1
 and (m.state = 1 or m.intent > 0) and m.detail like '%' || u.q || '%'
union
select u.n, m.id from $u(n bigint, c bigint, s bigint, p text, q text) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.session_id = u.s and m.intent_at > $1
 and (m.state = 1 or m.intent > 0) and m.detail like '%' || u.q || '%'`

// relate finds the messages that the batch's messages answer: those whose button was pressed, or that were quoted, and
// their runs. A message counts only if it went to the person. The run of a message in the archive is not found.
func (b *inboundBatch) relate(ctx context.Context) error {
	for _, x := range b.rows {
		x.answered, x.matched, x.answeredRun = 0, "", 0
		switch {
		case x.Mark == "" || x.Decided && x.Matched == "":
		case x.Matched != "": // decided before
			x.answered, x.matched = x.InReplyTo, x.Matched
		case x.Tap.Message != 0:
			x.answered, x.matched = x.Tap.Message, puntuale.MatchPayload
		case x.InReplyTo != 0:
			x.answered, x.matched = x.InReplyTo, puntuale.MatchQuote
		}
	}
	if err := b.quoted(ctx); err != nil {
		return err
	}
	names := namesOf(b.rows, func(x *inbound) bool { return x.answered != 0 })
	if len(names) == 0 {
		return nil
	}
	found := map[int]bool{}
	if err := b.a.Query(ctx, `select u.n, m.run_id from $u(n bigint, c bigint, i bigint, p text) cross join message m where m.client_id = u.c and m.id = u.i and m.phone = u.p
 union select u.n, 0 from $u(n bigint, c bigint, i bigint, p text) cross join booking_step s where s.client_id = u.c and s.message_id = u.i and s.phone = u.p`, []any{engine.Columns{
		engine.Column(names, func(n *inboundName) int64 { return int64(n.i) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Client) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.answered) }),
		engine.Column(names, func(n *inboundName) string { return n.name }),
	}}, func(r engine.Row) error {
		var i int
		var run puntuale.RunID
		err := r.Scan(&i, &run)
		if err == nil {
			found[i], b.rows[i].answeredRun = true, max(b.rows[i].answeredRun, run)
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for the message that a reply answers: %w", err)
	}
	for i, x := range b.rows {
		if !found[i] {
			x.answered, x.matched = 0, ""
		}
	}
	return nil
}

// quoted resolves the network's ids of quoted messages.
func (b *inboundBatch) quoted(ctx context.Context) error {
	names := namesOf(b.rows, func(x *inbound) bool {
		return x.Mark != "" && x.answered == 0 && !x.Decided && len(x.Quoted) >= shortestID
	})
	if len(names) == 0 {
		return nil
	}
	if err := b.a.Query(ctx, quotedMessages, []any{engine.Micros(names[0].at.Add(-puntuale.RunAnswerTime)), engine.Columns{
		engine.Column(names, func(n *inboundName) int64 { return int64(n.i) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Client) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Session) }),
		engine.Column(names, func(n *inboundName) string { return n.name }),
		engine.Column(names, func(n *inboundName) string { return likeText(n.Quoted) }),
	}}, func(r engine.Row) error {
		var i int
		var id puntuale.MessageID
		err := r.Scan(&i, &id)
		if err == nil {
			b.rows[i].answered, b.rows[i].matched = id, puntuale.MatchQuote
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for a quoted message: %w", err)
	}
	return nil
}

// shortestID is the length of the shortest id that a quote can be found by. Networks' ids are longer.
const shortestID = 8

// likeText returns the id, if like compares all its characters as they are; else "?", which is in no id.
func likeText(id string) string {
	for _, r := range id {
		if r == '%' || r == '_' || r == '\\' {
			return "?"
		}
	}
	return id
}

// answer asks, for each message that may answer a question of a booking, whether it does. It leaves out calls with such a
// message, because the answer changes the booking first.
func (b *inboundBatch) answer(ctx context.Context) error {
	asked := func(x *inbound) bool { return x.Answers != nil && !x.Decided && x.Mark != "" }
	names := namesOf(b.rows, asked)
	if len(names) == 0 {
		return nil
	}
	questions := make([][]puntuale.Question, len(b.rows))
	take := func(r engine.Row) error {
		n, q, err := scanQuestion(r)
		if err == nil && slices.Contains(b.rows[n].Names, q.Phone) && !slices.ContainsFunc(questions[n], func(o puntuale.Question) bool { return o.Message == q.Message }) {
			questions[n] = append(questions[n], q)
		}
		return err
	}
	if err := b.a.Query(ctx, askedBookings, []any{engine.Micros(b.tasks[0].Body.(*inboundCall).now), engine.Columns{
		engine.Column(names, func(n *inboundName) int64 { return int64(n.i) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Client) }),
		engine.Column(names, func(n *inboundName) string { return n.name }),
	}}, take); err != nil {
		return fmt.Errorf("look for questions to a person: %w", err)
	}
	var rows []int64
	var clients, messages []int64
	for i, x := range b.rows {
		if asked(x) && x.answered != 0 {
			rows, clients, messages = append(rows, int64(i)), append(clients, int64(x.Client)), append(messages, int64(x.answered))
		}
	}
	if len(rows) > 0 {
		if err := b.a.Query(ctx, askedBy, []any{engine.Columns{rows, clients, messages}}, take); err != nil {
			return fmt.Errorf("look for the question that a reply answers: %w", err)
		}
	}
	byRow := map[*inbound][]puntuale.Question{}
	for i, x := range b.rows {
		if asked(x) && len(questions[i]) > 0 {
			byRow[x] = questions[i]
		}
	}
	for _, t := range b.tasks {
		call := t.Body.(*inboundCall)
		for _, x := range call.all {
			if all := byRow[x]; len(all) > 0 && x.fresh {
				asked := puntuale.AskedQuestions{Questions: all, InReplyTo: x.answered, Matched: x.matched, Settings: b.set[x.Client]}
				call.answersFirst = x.Answers(asked) || call.answersFirst
			}
		}
	}
	return b.leaveOut(ctx)
}

// KeptAnswer is a reply that is stored in the transaction that also changes the booking.
type KeptAnswer struct {
	batch inboundBatch
	row   *inbound
}

// BeginAnswer notes the reply in the caller's transaction, and finds all names of the person. It returns nil if the reply
// was stored before. id is the id of the reply.
func BeginAnswer(ctx context.Context, a engine.Querier, now time.Time, id int64, m puntuale.TakenMessage) (*KeptAnswer, error) {
	x := &inbound{TakenMessage: m, reportedName: m.Phone, at: m.At, id: id, uncancelled: []puntuale.MessageRef{}} // what the reply stops was cancelled before
	if x.at.After(now) {
		x.at = now
	}
	k := &KeptAnswer{row: x, batch: inboundBatch{a: a, tasks: []*engine.Task{{Body: &inboundCall{now: now, all: []*inbound{x}}}}}}
	for _, step := range []func(context.Context) error{k.batch.note, k.batch.look} {
		if err := step(ctx); err != nil {
			return nil, err
		}
	}
	if k.batch.collect(); len(k.batch.rows) == 0 {
		return nil, nil //nolint:nilnil // the caller has nothing to do
	}
	return k, nil
}

// End stores the reply with its effect.
func (k *KeptAnswer) End(ctx context.Context, effect puntuale.ReplyEffect) error {
	k.row.Effect, k.row.effect, k.row.Decided = effect, effect, true
	for _, step := range []func(context.Context) error{k.batch.relate, k.batch.openWindows, k.batch.classify, k.batch.await, k.batch.store, k.batch.count, k.batch.converse} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// StopByReply cancels what a reply stops, one chunk in each transaction, before the reply itself is stored.
func (s *Replies) StopByReply(ctx context.Context, now time.Time, m puntuale.TakenMessage) error {
	names, err := s.Recipients(ctx, m.Client, m.Phone)
	if err != nil {
		return err
	}
	x := &inbound{TakenMessage: m, at: m.At}
	x.Names = names
	refs, err := candidatesOf(ctx, s.db.CallReads, []*inbound{x})
	if err != nil {
		return engine.PublicError(err)
	}
	_, err = s.cancel(ctx, refs[0], now)
	return err
}
