package reply

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
)

// inbound is one message that a batch processes. If the batch runs again, it sets id and all fields after id again.
type inbound struct {
	puntuale.TakenMessage
	// reportedName is the name that the network reported, or "" if all names of the person are already found.
	reportedName string
	at           time.Time // when the person wrote the message; never in the future
	media        string    // the description of the message's file as JSON
	cancelled    int       // the number of messages that earlier transactions cancelled
	// uncancelled is used if the message stops more messages than one transaction may cancel. It contains the messages
	// that no earlier transaction cancelled. If it is nil, the batch itself searches for the messages to stop.
	uncancelled []puntuale.MessageRef

	answered puntuale.MessageID // the message that the reply answers; 0: not known
	matched  puntuale.AnswerMatch
	// answeredRun is the run of the message that the reply answers. It is 0 if this run is not known.
	answeredRun puntuale.RunID

	id      int64 // id of the reply
	fresh   bool  // this batch wrote the message's mark, so the message was not stored before
	refs    []puntuale.MessageRef
	stopped int // number of messages that this message stopped
	effect  puntuale.ReplyEffect
	run     puntuale.RunID // run of the message that the reply answers, else the latest run that sent a message to the person; 0: none
	// known is true if the person is a contact, got a message before, or has a planned message. It is also true if this
	// message had an effect, or if a rule waits for a word of this message.
	known bool
}

// inboundCall contains the messages of one call. The store stores all of them or none.
type inboundCall struct {
	now              time.Time
	all              []*inbound
	tooMany          bool // the messages stop more messages than one transaction may cancel
	mayChangeConsent bool // a message may change consent, so the caller must change the consent first and then repeat the call
	answersFirst     bool // a message answers a question, so the caller must change the booking first and then repeat the call
}

// leftOut reports whether the batch stores nothing of the call.
func (c *inboundCall) leftOut() bool { return c.tooMany || c.mayChangeConsent || c.answersFirst }

// inboundWeight is the largest number of messages in one batch.
const inboundWeight = 200

func newInboundKind() *engine.Kind {
	return &engine.Kind{
		Name: "inbound", Priority: engine.PriorityPrevent, Limit: inboundWeight, Background: true, // calls slow campaigns down, but replies must not: networks may report replies as fast as messages leave
		Linger:  collectFor,
		Check:   engine.RunAgain, // a message that is already stored changes nothing
		Prepare: prepareInbound,
		Run: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
			return runInbound(ctx, &w.Conn, tasks)
		},
	}
}

func (s *Replies) KeepInbound(ctx context.Context, now time.Time, all []puntuale.TakenMessage) (cancelled int, err error) {
	rows := make([]*inbound, len(all))
	for i, m := range all {
		x := &inbound{TakenMessage: m, at: m.At}
		if x.at.After(now) {
			x.at = now
		}
		if x.Names == nil {
			x.reportedName = m.Phone
		}
		if x.Media != nil {
			text, err := json.Marshal(x.Media)
			if err != nil {
				return 0, fmt.Errorf("keep a file's place: %w", err)
			}
			x.media = string(text)
		}
		rows[i] = x
	}
	for rest := rows; len(rest) > 0 && err == nil; {
		n := 1
		for n < min(len(rest), inboundWeight) && rest[n].Client == rest[0].Client {
			n++
		}
		err = s.takeInbound(ctx, now, rest[:n])
		rest = rest[n:]
	}
	for _, x := range rows {
		cancelled += x.cancelled
	}
	return cancelled, err
}

// collectFor is how long a message may wait for further messages, with which it shares a transaction. Under load, several
// replies come within ten milliseconds. If each reply had its own transaction, these transactions would delay calls more
// than anything else.
const collectFor = 10 * time.Millisecond

// takeInbound stores messages of one client, through the writer for outcomes. With this writer, replies of many clients
// share a transaction, and no call waits for them.
//
// A message that stops very many other messages is stored alone. Before that, most of the other messages are cancelled,
// one chunk in each transaction. If this fails, the network reports the message again, and then the rest is cancelled.
func (s *Replies) takeInbound(ctx context.Context, now time.Time, rows []*inbound) error {
	for {
		call := &inboundCall{now: now, all: rows}
		client := int64(rows[0].Client)
		if err := s.db.RecordWriter.Do(ctx, engine.Joined(s.inbound, len(rows), call).ForOwner(client), false); err != nil {
			return err
		}
		switch {
		case call.mayChangeConsent:
			return puntuale.ErrConsentFirst
		case call.answersFirst:
			return puntuale.ErrAnswerFirst
		case !call.tooMany:
			for _, x := range rows {
				x.cancelled += x.stopped
			}
			return nil
		case len(rows) > 1:
			for i := range rows {
				if err := s.takeInbound(ctx, now, rows[i:i+1]); err != nil {
					return err
				}
			}
			return nil
		}
		refs, err := candidatesOf(ctx, s.db.CallReads, rows)
		if err != nil {
			return engine.PublicError(err)
		}
		limit := max(0, len(refs[0])-engine.Chunk)
		n, err := s.cancel(ctx, refs[0][:limit], now)
		if rows[0].cancelled += n; err != nil {
			return err
		}
		rows[0].uncancelled = append([]puntuale.MessageRef{}, refs[0][limit:]...)
	}
}

// ReplyCandidates finds the messages that replies stop. These messages belong to sequences that stop on a reply. Their
// runs began before the person wrote, for this person and this session.
const ReplyCandidates = `
select u.n, m.client_id, m.id from $u(n bigint, c bigint, s bigint, t bigint, p text) cross join run r
 join sequence q on q.client_id = r.client_id and q.id = r.sequence_id and q.stop_on_reply = 1 cross join message m
where r.client_id = u.c and r.phone = u.p and r.session_id = u.s and r.received_at <= u.t
 and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.intent >= 0 and m.valid_until > 0
union all
select u.n, m.client_id, m.id from $u(n bigint, c bigint, s bigint, t bigint, p text) cross join run r
 join sequence q on q.client_id = r.client_id and q.id = r.sequence_id and q.stop_on_reply = 1 cross join message m
where r.client_id = u.c and r.phone = u.p and r.session_id = u.s and r.received_at <= u.t
 and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0 and m.intent >= 0 and m.valid_until > 0`

// candidatesOf returns, for each message in rows, which messages it stops.
func candidatesOf(ctx context.Context, a engine.Querier, rows []*inbound) ([][]puntuale.MessageRef, error) {
	names := namesOf(rows, func(x *inbound) bool {
		return !x.Own && x.Kind != puntuale.ReplyReaction && x.Kind != puntuale.ReplyCall && x.uncancelled == nil // own messages, reactions and phone calls stop none; uncancelled already lists the messages to stop
	})
	refs := make([][]puntuale.MessageRef, len(rows))
	if len(names) == 0 {
		return refs, nil
	}
	if err := a.Query(ctx, ReplyCandidates, []any{engine.Columns{
		engine.Column(names, func(n *inboundName) int64 { return int64(n.i) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Client) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Session) }),
		engine.Column(names, func(n *inboundName) int64 { return engine.Micros(n.at) }),
		engine.Column(names, func(n *inboundName) string { return n.name }),
	}}, func(r engine.Row) error {
		var i int
		var ref puntuale.MessageRef
		err := r.Scan(&i, &ref.Client, &ref.ID)
		if err == nil {
			refs[i] = append(refs[i], ref)
		}
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for messages that a reply stops: %w", err)
	}
	for i := range refs {
		engine.Sort(refs[i], queue.CompareRefs)
		refs[i] = slices.Compact(refs[i])
	}
	return refs, nil
}

// inboundName is one name of the person who wrote rows[i].
type inboundName struct {
	*inbound
	i    int
	name string
}

func namesOf(rows []*inbound, wanted func(*inbound) bool) (all []inboundName) {
	for i, x := range rows {
		if !wanted(x) {
			continue
		}
		for _, name := range x.Names {
			all = append(all, inboundName{x, i, name})
		}
	}
	return all
}

func prepareInbound(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
	n := 0
	for _, t := range tasks {
		n += t.Weight
	}
	if err := w.Stock(ctx, n); err != nil {
		return err
	}
	for _, t := range tasks {
		call := t.Body.(*inboundCall)
		call.tooMany, call.mayChangeConsent, call.answersFirst = false, false, false
		first := w.IDs.Take(len(call.all))
		for i, x := range call.all {
			x.id, x.fresh, x.refs, x.stopped, x.effect, x.run, x.known = first+int64(i), x.Mark == "", nil, 0, x.Effect, 0, false
			if x.reportedName != "" {
				x.Names, x.Phone = nil, x.reportedName
			}
		}
	}
	return nil
}

// inboundBatch is the work of one batch. It first writes the marks, which show whether a message was reported before.
// If another transaction has written the same mark, the batch waits until that transaction commits.
type inboundBatch struct {
	a     engine.Querier
	tasks []*engine.Task
	rows  []*inbound // messages that are stored for the first time
	set   map[puntuale.ClientID]puntuale.ClientSettings
}

func runInbound(ctx context.Context, a engine.Querier, tasks []*engine.Task) error {
	b := &inboundBatch{a: a, tasks: tasks}
	for _, step := range []func(context.Context) error{b.note, b.look} { // note and look together need one round trip
		if err := step(ctx); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{b.ask, b.relate, b.answer, b.stop, b.openWindows, b.classify, b.await, b.store, b.count, b.converse} {
		if err := step(ctx); err != nil || len(b.rows) == 0 {
			return err
		}
	}
	return nil
}

// note writes the marks of the messages. A message whose mark is new was not stored before. The result comes together
// with the result of look.
func (b *inboundBatch) note(ctx context.Context) error {
	marked := map[seenKey]*inbound{}
	for _, t := range b.tasks {
		for _, x := range t.Body.(*inboundCall).all {
			if k := (seenKey{int64(x.Client), x.Mark}); x.Mark != "" && marked[k] == nil {
				marked[k] = x
			}
		}
	}
	if len(marked) > 0 {
		keys := slices.SortedFunc(maps.Keys(marked), seenKey.compare)
		if err := b.a.Queue(ctx, `insert into inbound_seen (client_id, mark, at) select u.c, u.m, u.a from $u(c bigint, m text, a bigint) where true
 on conflict (client_id, mark) do nothing returning client_id, mark`, []any{engine.Columns{
			engine.Column(keys, func(k *seenKey) int64 { return k.client }),
			engine.Column(keys, func(k *seenKey) string { return k.mark }),
			engine.Column(keys, func(*seenKey) int64 { return engine.Micros(b.tasks[0].Body.(*inboundCall).now) }),
		}}, func(r engine.Row) error {
			var k seenKey
			err := r.Scan(&k.client, &k.mark)
			if x := marked[k]; err == nil && x != nil {
				x.fresh = true
			}
			return err
		}); err != nil {
			return fmt.Errorf("note what the network told: %w", err)
		}
	}
	return nil
}

// look reads the clients' settings, and finds all names of the people who wrote.
func (b *inboundBatch) look(ctx context.Context) error {
	b.set = map[puntuale.ClientID]puntuale.ClientSettings{}
	var clients []int64
	var names []string
	var rows []*inbound
	for _, t := range b.tasks {
		for _, x := range t.Body.(*inboundCall).all {
			b.set[x.Client] = puntuale.DefaultSettings()
			if x.reportedName == "" {
				continue
			}
			clients, names = append(clients, int64(x.Client)), append(names, x.reportedName)
			rows = append(rows, x)
		}
	}
	read := b.a.Queue
	if len(names) == 0 {
		read = b.a.Query // a statement that is sent immediately also returns the results of the queued statements about marks
	}
	if err := read(ctx, `select `+account.SettingColumns+` from client_setting where client_id in (select u.c from $u(c bigint))`, []any{engine.Columns{
		engine.Column(slices.Sorted(maps.Keys(b.set)), func(id *puntuale.ClientID) int64 { return int64(*id) }),
	}}, func(r engine.Row) error {
		var id puntuale.ClientID
		c := puntuale.DefaultSettings()
		err := account.ScanSettings(r, &id, &c)
		b.set[id] = c
		return err
	}); err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	others, err := alias.Others(ctx, b.a, clients, names)
	if err != nil {
		return err
	}
	if others, err = b.partFormer(ctx, rows, clients, names, others); err != nil {
		return err
	}
	for i, x := range rows {
		if x.Names = append([]string{x.reportedName}, others[i]...); x.Mark != "" {
			x.Phone, x.Keep = puntuale.ShownName(x.Names), b.set[x.Client].KeepReplies
		}
	}
	return nil
}

// ask leaves out calls with a message that may change consent, and deletes the marks of their messages.
func (b *inboundBatch) ask(ctx context.Context) error {
	b.collect()
	for _, t := range b.tasks {
		call := t.Body.(*inboundCall)
		call.mayChangeConsent = slices.ContainsFunc(call.all, func(x *inbound) bool {
			return x.fresh && x.reportedName != "" && x.Mark != "" && x.MayChangeConsent != nil && x.MayChangeConsent(b.set[x.Client])
		})
	}
	return b.leaveOut(ctx)
}

// leaveOut deletes the marks that this batch wrote for calls that are left out. Another call of the batch may contain
// the same message. Then the other call must also wait for a later batch. Otherwise the other call would report the
// message as stored.
func (b *inboundBatch) leaveOut(ctx context.Context) error {
	var out []*inbound
	removed := map[seenKey]bool{}
	for more := true; more; {
		more = false
		for _, t := range b.tasks {
			call := t.Body.(*inboundCall)
			if !t.Later && !call.leftOut() {
				t.Later = slices.ContainsFunc(call.all, func(x *inbound) bool { return !x.fresh && removed[seenKey{int64(x.Client), x.Mark}] })
			}
			if !t.Later && !call.leftOut() {
				continue
			}
			for _, x := range call.all {
				if x.fresh && x.Mark != "" {
					x.fresh, more, removed[seenKey{int64(x.Client), x.Mark}] = false, true, true
					out = append(out, x)
				}
			}
		}
	}
	b.collect()
	if len(out) == 0 {
		return nil
	}
	if _, err := b.a.Exec(ctx, `delete from inbound_seen where (client_id, mark) in (select u.c, u.m from $u(c bigint, m text))`, engine.Columns{
		engine.Column(out, func(x **inbound) int64 { return int64((*x).Client) }),
		engine.Column(out, func(x **inbound) string { return (*x).Mark }),
	}); err != nil {
		return fmt.Errorf("leave messages for later: %w", err)
	}
	return nil
}

// collect sets rows to the messages that this batch stores.
func (b *inboundBatch) collect() {
	b.rows = b.rows[:0]
	for _, t := range b.tasks {
		call := t.Body.(*inboundCall)
		if t.Later || call.leftOut() {
			continue
		}
		for _, x := range call.all {
			if x.fresh {
				b.rows = append(b.rows, x)
			}
		}
	}
}

// stop cancels the messages that the batch's messages stop. It leaves out a call that stops more messages than one
// transaction may cancel.
func (b *inboundBatch) stop(ctx context.Context) error {
	refs, err := candidatesOf(ctx, b.a, b.rows)
	if err != nil {
		return err
	}
	for i, x := range b.rows {
		if x.refs = refs[i]; x.uncancelled != nil {
			x.refs = x.uncancelled
		}
	}
	if err := b.bound(ctx); err != nil {
		return err
	}
	var all []puntuale.MessageRef
	byMessage := map[puntuale.MessageID]*inbound{}
	for _, x := range b.rows {
		for _, ref := range x.refs {
			if byMessage[ref.ID] == nil {
				byMessage[ref.ID] = x
				all = append(all, ref)
			}
		}
	}
	engine.Sort(all, queue.CompareRefs)
	done, err := queue.CancelOpen(ctx, b.a, all, b.tasks[0].Body.(*inboundCall).now)
	if err != nil {
		return err
	}
	for _, m := range done {
		byMessage[m.ID].stopped++
	}
	return nil
}

// bound leaves out calls as soon as the batch would stop too many messages. It deletes the marks of these calls.
func (b *inboundBatch) bound(ctx context.Context) error {
	sum := 0
	for _, t := range b.tasks {
		call, n := t.Body.(*inboundCall), 0
		if call.leftOut() || t.Later {
			continue
		}
		for _, x := range call.all {
			n += len(x.refs)
		}
		if n == 0 || sum+n <= engine.Chunk {
			sum += n
			continue
		}
		t.Later, call.tooMany = n <= engine.Chunk, n > engine.Chunk
	}
	return b.leaveOut(ctx)
}

// openWindows opens the 24-hour windows of the people who wrote.
func (b *inboundBatch) openWindows(ctx context.Context) error {
	return openWindows(ctx, b.a, b.rows)
}

// WhoWrote finds the last run that sent a message to a name between two times. If the client only plans messages to the
// name, or the name only belongs to a contact, the statement returns 0.
const WhoWrote = `
select u.n, max(case when m.state <> 0 or m.intent > 0 then r.id + 0 else 0 end)
from $u(n bigint, c bigint, p text, f bigint, t bigint) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages
 and (m.state = 0 and m.intent = 0 or m.intent_at between u.f and u.t and (m.outcome = 1 or m.intent > 0))
group by u.n
union all
select u.n, max(case when m.state <> 0 or m.intent > 0 then r.id + 0 else 0 end)
from $u(n bigint, c bigint, p text, f bigint, t bigint) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and m.client_id = r.client_id and m.run_id = r.id and m.resent_from <> 0
 and (m.state = 0 and m.intent = 0 or m.intent_at between u.f and u.t and (m.outcome = 1 or m.intent > 0))
group by u.n
union all
select u.n, 0 from $u(n bigint, c bigint, p text, f bigint, t bigint) join person c on c.client_id = u.c and c.phone = u.p`

// classify finds the runs that the messages may answer, and whether the client knows the people who wrote.
func (b *inboundBatch) classify(ctx context.Context) error {
	names := namesOf(b.rows, func(x *inbound) bool { return x.Mark != "" })
	if len(names) == 0 {
		return nil
	}
	if err := b.a.Query(ctx, WhoWrote, []any{engine.Columns{
		engine.Column(names, func(n *inboundName) int64 { return int64(n.i) }),
		engine.Column(names, func(n *inboundName) int64 { return int64(n.Client) }),
		engine.Column(names, func(n *inboundName) string { return n.name }),
		engine.Column(names, func(n *inboundName) int64 { return engine.Micros(n.at.Add(-puntuale.RunAnswerTime)) }),
		engine.Column(names, func(n *inboundName) int64 { return engine.Micros(n.at) }),
	}}, func(r engine.Row) error {
		var i int
		var run puntuale.RunID
		err := r.Scan(&i, &run)
		if err == nil {
			x := b.rows[i]
			x.run, x.known = max(x.run, run), true
		}
		return err
	}); err != nil {
		return fmt.Errorf("look for who wrote: %w", err)
	}
	for _, x := range b.rows {
		if x.answeredRun != 0 {
			x.run = x.answeredRun
		}
		if x.effect == puntuale.ReplyNoEffect && x.cancelled+x.stopped > 0 {
			x.effect = puntuale.ReplyStopped
		}
		x.known = x.known || x.run != 0 || x.effect != puntuale.ReplyNoEffect
	}
	return nil
}

// isReply reports whether the message is stored as a reply.
func (x *inbound) isReply() bool {
	return x.Mark != "" && (x.Keep == puntuale.KeepAllReplies || x.Keep == puntuale.KeepKnownReplies && x.known)
}

// storedEffect returns an effect as the columns effect and answer have it: the first versions had no answers.
func storedEffect(e puntuale.ReplyEffect) (effect, answer int64) {
	if e >= puntuale.ReplyAnswered {
		return 0, int64(e-puntuale.ReplyAnswered) + 1
	}
	return int64(e), 0
}

// label returns the label of the button that the person pressed or named.
func (x *inbound) label() string {
	if x.Button == "" && x.Kind == puntuale.ReplyButton {
		return x.Text
	}
	return x.Button
}

// count decides which messages the people answered, for reports. It does not matter whether the reply itself is kept.
func (b *inboundBatch) count(ctx context.Context) error {
	var all []result.Answer
	for _, x := range b.rows {
		if x.Mark == "" || x.Own || x.Kind == puntuale.ReplyCall || x.run == 0 && x.answered == 0 {
			continue
		}
		all = append(all, result.Answer{Client: x.Client, Names: x.Names, At: x.at, Message: x.answered, ID: x.id, Button: x.label()})
	}
	return result.KeepAnswers(ctx, b.a, b.tasks[0].Body.(*inboundCall).now, all)
}

func (b *inboundBatch) store(ctx context.Context) error {
	for _, x := range b.rows {
		if x.effect != puntuale.ReplyUnclear {
			continue
		}
		if err := notice.Add(ctx, b.a, puntuale.Notice{Client: x.Client, Kind: puntuale.NoticeAnswer, Subject: x.id, At: x.at}); err != nil {
			return fmt.Errorf("tell people of an unclear answer: %w", err)
		}
	}
	rows := slices.DeleteFunc(slices.Clone(b.rows), func(x *inbound) bool { return !x.isReply() })
	if len(rows) == 0 {
		return nil
	}
	type X = *inbound
	now := engine.Micros(b.tasks[0].Body.(*inboundCall).now)
	if err := b.a.Queue(ctx, `insert into reply (client_id, id, session_id, phone, at, own, kind, text, media, network_id, run_id, effect, read_at, answer, payload, button, in_reply_to, matched)
 select u.c, u.i, u.s, u.p, u.a, u.o, u.k, u.t, u.m, u.n, u.r, u.e, u.d, u.z, u.y, u.b, u.q, u.h
 from $u(c bigint, i bigint, s bigint, p text, a bigint, o smallint, k text, t text, m text, n text, r bigint, e smallint, d bigint, z smallint, y text, b text, q bigint, h text)`, []any{engine.Columns{
		engine.Column(rows, func(x *X) int64 { return int64((*x).Client) }),
		engine.Column(rows, func(x *X) int64 { return (*x).id }),
		engine.Column(rows, func(x *X) int64 { return int64((*x).Session) }),
		engine.Column(rows, func(x *X) string { return (*x).Phone }),
		engine.Column(rows, func(x *X) int64 { return engine.Micros((*x).at) }),
		engine.Column(rows, func(x *X) int64 { return engine.Bit((*x).Own) }),
		engine.Column(rows, func(x *X) string { return string((*x).Kind) }),
		engine.Column(rows, func(x *X) string { return (*x).Text }),
		engine.Column(rows, func(x *X) string { return (*x).media }),
		engine.Column(rows, func(x *X) string { return (*x).ID }),
		engine.Column(rows, func(x *X) int64 { return int64((*x).run) }),
		engine.Column(rows, func(x *X) int64 { effect, _ := storedEffect((*x).effect); return effect }),
		engine.Column(rows, func(x *X) int64 { return engine.Bit((*x).Own) * now }), // read_at: own messages are stored as already read
		engine.Column(rows, func(x *X) int64 { _, answer := storedEffect((*x).effect); return answer }),
		engine.Column(rows, func(x *X) string { return (*x).Payload }),
		engine.Column(rows, func(x *X) string { return (*x).label() }),
		engine.Column(rows, func(x *X) int64 { return int64((*x).answered) }),
		engine.Column(rows, func(x *X) string { return string((*x).matched) }),
	}}, nil); err != nil {
		return fmt.Errorf("keep replies: %w", err)
	}
	return b.tell(ctx, rows)
}
