package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
)

// start is one call to Start in a batch. The statements of a batch follow the order of locks: idempotency keys, usage,
// messages.
type start struct {
	puntuale.StartRun
	client puntuale.ClientID
	steps  string // the frozen steps as JSON
	first  int64  // id of the run and of its first message

	passed       bool  // the call was counted and not refused, so its run will be stored
	staleError   error // the error if the start was planned from data that changed later
	answer       puntuale.StartedRun
	storedAnswer []byte // stored answer of an earlier call with the same key
	day          queue.UsageDay
	running      []runningMessage // empty if if_running is allow
}

func (s *start) ref(i int) puntuale.MessageID { return puntuale.MessageID(s.first + int64(i)) }

// Start stores the run, its messages, the day's usage and the idempotency record in one transaction. The store may
// put several waiting calls into the same transaction. If Start returns one of these codes, nothing is stored or
// counted. cap_reached: the cap is used up; the counters in the error are exact under any concurrency. conflict:
// the sequence is already running and if_running is reject, or an earlier call with the same idempotency key had a
// different body. not_found: the sequence or session is gone.
func (t tenant) Start(ctx context.Context, r puntuale.StartRun) (puntuale.StartedRun, error) {
	st := &start{StartRun: r, client: t.id, day: queue.UsageDay{Client: t.id, Day: r.Day}}
	if len(r.Run.Steps) != len(r.Messages) {
		st.Run.Steps = make([]puntuale.FrozenStep, len(r.Messages))
		for i, m := range r.Messages {
			st.Run.Steps[i] = puntuale.FrozenOf(&m)
		}
	}
	var err error
	if st.steps, err = engine.ToJSON(st.Run.Steps); err != nil {
		return puntuale.StartedRun{}, err
	}
	k := t.s.kinds.start
	if t.free {
		k = t.s.kinds.free
	}
	task := engine.Joined(k, len(r.Messages), st).ForOwner(int64(t.id))
	task.Bytes = len(r.Run.Request) + len(st.steps)
	if err := t.s.TenantWriter(int64(t.id)).Do(ctx, task, false); err != nil {
		return puntuale.StartedRun{}, err
	}
	if st.storedAnswer != nil {
		return puntuale.StartedRun{}, &puntuale.Replayed{Answer: st.storedAnswer}
	}
	return st.answer, nil
}

// AddBytes adds n to the bytes that the client's calls have stored on the day. If the sum would exceed most, AddBytes
// adds nothing and returns false.
func (t tenant) AddBytes(ctx context.Context, day puntuale.Date, n, most int64) (added bool, err error) {
	err = t.s.TenantWriter(int64(t.id)).Do(ctx, engine.Single(t.s.kinds.bytes, func(ctx context.Context, a engine.Querier) (err error) {
		added, err = queue.AddBytes(ctx, a, queue.UsageDay{Client: t.id, Day: day}, n, most)
		return err
	}).ForOwner(int64(t.id)), false)
	return added, err
}

// startsWeight is the largest number of messages in one batch of starts.
const startsWeight = 1000

func newStartKind() *engine.Kind {
	return &engine.Kind{Name: "start", Priority: engine.PriorityCall, Limit: startsWeight, Prepare: prepareStarts, Check: checkStarts, Run: func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
		return runStarts(ctx, w, &startBatch{a: &w.Conn, tasks: tasks})
	}}
}

// newFreeStartKind returns the task kind of starts that are not counted as calls.
func newFreeStartKind() *engine.Kind {
	k := newStartKind()
	k.Run = func(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
		return runStarts(ctx, w, &startBatch{a: &w.Conn, tasks: tasks, free: true})
	}
	return k
}

func prepareStarts(ctx context.Context, w *engine.Writer, tasks []*engine.Task) error {
	n := 0
	for _, t := range tasks {
		n += len(t.Body.(*start).Messages)
	}
	if err := w.Stock(ctx, n); err != nil {
		return err
	}
	for _, t := range tasks {
		st := t.Body.(*start)
		st.passed, st.staleError, st.answer, st.storedAnswer, st.running = false, nil, puntuale.StartedRun{}, nil, nil
		st.first = w.IDs.Take(len(st.Messages))
	}
	return nil
}

func runStarts(ctx context.Context, w *engine.Writer, b *startBatch) error {
	for _, step := range []func(context.Context) error{
		b.takeKeys, b.count, b.findStale, b.findFiles, b.pass, b.decideRunning, b.settleCounts, b.insert, b.keepAnswers,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	w.DB.Config.Meter.CapRefused(b.capRefused)
	return nil
}

// startBatch is the work of one batch of starts. Each of its methods does a part of this work.
type startBatch struct {
	a     engine.Querier
	tasks []*engine.Task
	free  bool // the calls of this batch are not counted, but the batch still locks their usage rows

	keyed      []*engine.Task // calls whose idempotency key this batch has written
	days       []queue.UsageDay
	counts     map[queue.UsageDay]queue.UsageCount
	calls      map[queue.UsageDay][]*engine.Task // the calls of each client and day, in the order of the batch
	waiting    map[queue.UsageDay][]*engine.Task // calls that the cap allows
	beyondCap  map[queue.UsageDay][]*engine.Task // calls beyond the cap; some are accepted if calls before them are refused for another reason
	capRefused int
}

// live iterates over the calls of the batch that are not decided yet.
func (b *startBatch) live(yield func(*engine.Task, *start) bool) {
	for _, t := range b.tasks {
		if st := t.Body.(*start); t.Refused == nil && !t.Later && st.storedAnswer == nil && !yield(t, st) {
			return
		}
	}
}

// count counts the live calls for each client and day.
func (b *startBatch) count(ctx context.Context) (err error) {
	b.calls = map[queue.UsageDay][]*engine.Task{}
	for t, st := range b.live {
		b.calls[st.day] = append(b.calls[st.day], t)
	}
	if len(b.calls) == 0 {
		return nil
	}
	for d := range b.calls {
		b.days = append(b.days, d)
	}
	slices.SortFunc(b.days, queue.UsageDay.Compare)
	b.counts, err = queue.Count(ctx, b.a.Queue, b.days, engine.Column(b.days, func(d *queue.UsageDay) int64 {
		if b.free {
			return 0
		}
		return int64(len(b.calls[*d]))
	}))
	return err
}

// staleStarts finds starts whose client changed after the caller read the client, or whose sequence or session was
// deleted. A deletion first locks the client's usage rows, and so does this batch. So rows that exist now stay until
// this transaction commits.
//
// It also finds starts whose recipient is on the blacklist, so that the answer can say so without another read. It does
// not find a person who was erased, of whom the blacklist has only a mark.
const staleStarts = `
select x.n, x.r, x.q, x.s, x.b from (
 select u.n, u.v = 0 or exists (select 1 from client c where c.id = u.c and c.revision = u.v) as r,
  u.v <> 0 or u.q = 0 or exists (select 1 from sequence q where q.client_id = u.c and q.id = u.q and q.deleted_at = 0) as q,
  u.v <> 0 or exists (select 1 from session s where s.client_id = u.c and s.id = u.s and s.deleted_at = 0) as s,
  exists (select 1 from blacklist b where b.client_id = u.c and b.phone = u.p)
   or exists (select 1 from alias a cross join blacklist b where a.client_id = u.c and a.phone = u.p and b.client_id = u.c and b.phone = a.alias)
   or exists (select 1 from alias a cross join blacklist b where a.client_id = u.c and a.alias = u.p and b.client_id = u.c and b.phone = a.phone) as b
 from $u(n bigint, c bigint, v bigint, q bigint, s bigint, p text)) x
where not (x.r and x.q and x.s) or x.b`

// findStale marks the starts that were planned from an old client revision, or whose sequence or session was deleted.
func (b *startBatch) findStale(ctx context.Context) error {
	requested, phones := make([]*start, 0, len(b.tasks)), make([]string, 0, len(b.tasks))
	for _, t := range b.tasks {
		if st := t.Body.(*start); st.Revision != 0 || t.Refused == nil && !t.Later && st.storedAnswer == nil {
			requested, phones = append(requested, st), append(phones, st.Run.Phone)
			if other := puntuale.OtherForm(st.Run.Phone); other != "" { // a second row, for the other form of the number
				requested, phones = append(requested, st), append(phones, other)
			}
		}
	}
	if len(requested) == 0 {
		return nil
	}
	n := make([]int64, len(requested))
	for i := range n {
		n[i] = int64(i)
	}
	type S = *start
	err := b.a.Query(ctx, staleStarts, []any{engine.Columns{
		n,
		engine.Column(requested, func(s *S) int64 { return int64((*s).client) }),
		engine.Column(requested, func(s *S) int64 { return (*s).Revision }),
		engine.Column(requested, func(s *S) int64 { return int64((*s).Run.Sequence) }),
		engine.Column(requested, func(s *S) int64 { return int64((*s).Run.Session) }),
		phones,
	}}, func(r engine.Row) error {
		var i int
		var current, sequence, session, listed bool // whether the client is unchanged, and whether the sequence and the session exist; whether the blacklist has the recipient
		if err := r.Scan(&i, &current, &sequence, &session, &listed); err != nil {
			return err
		}
		requested[i].Notes.Blacklisted = requested[i].Notes.Blacklisted || listed
		switch {
		case current && sequence && session:
		case !current:
			requested[i].staleError = puntuale.ErrStale
		case !sequence:
			requested[i].staleError = puntuale.NotFound(puntuale.NoSequence)
		default:
			requested[i].staleError = puntuale.NotFound(puntuale.NoSession)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for sequences and sessions: %w", err)
	}
	return nil
}

// pass accepts the calls that their client's daily cap allows. A call that was planned from an old client revision gets
// the error [puntuale.ErrStale]. This is so even if its key was used before or the cap is reached.
func (b *startBatch) pass(context.Context) error {
	b.waiting, b.beyondCap = map[queue.UsageDay][]*engine.Task{}, map[queue.UsageDay][]*engine.Task{}
	for d, tasks := range b.calls {
		c, ok := b.counts[d]
		if !ok {
			for _, t := range tasks {
				t.Refused = puntuale.NotFound(puntuale.NoClient)
			}
			continue
		}
		passed := int(c.Used - c.Prev)
		if b.free {
			passed = len(tasks)
		}
		b.waiting[d], b.beyondCap[d] = tasks[:passed], tasks[passed:]
		for _, t := range b.waiting[d] {
			st := t.Body.(*start)
			st.passed, t.Refused = true, st.staleError
		}
	}
	for _, t := range b.tasks {
		if st := t.Body.(*start); errors.Is(st.staleError, puntuale.ErrStale) {
			t.Refused, t.Later = st.staleError, false
		}
	}
	return nil
}

const faultCallerCapReached puntuale.ReasonCode = "caller.cap_reached"

// settleCounts subtracts the refused calls from the counts, and puts the client's usage into the answers of the other
// calls.
func (b *startBatch) settleCounts(ctx context.Context) error {
	var days []queue.UsageDay
	var returned []int64
	for _, d := range b.days {
		c, ok := b.counts[d]
		if !ok {
			continue
		}
		i, lost := int64(0), int64(0)
		for _, t := range b.waiting[d] {
			st := t.Body.(*start)
			if t.Refused != nil || t.Later {
				st.passed = false
				lost++
				continue
			}
			if !b.free {
				i++
			}
			st.answer.Usage = c.Usage(i)
		}
		if lost > 0 && !b.free {
			days, returned = append(days, d), append(returned, lost)
		}
		for _, t := range b.beyondCap[d] {
			if t.Refused != nil {
				continue // the start was already refused as stale
			}
			if lost > 0 {
				t.Later = true // the cap has room again, because calls before this one were refused
				continue
			}
			u := c.Usage(c.Used - c.Prev)
			t.Refused = &puntuale.Error{Code: puntuale.CodeCapReached, Reason: puntuale.Because(faultCallerCapReached), Usage: &u}
			b.capRefused++
		}
	}
	if err := queue.Uncount(ctx, b.a, days, returned); err != nil {
		return err
	}
	return b.tellCaps(ctx, days, returned)
}

// tellCaps writes the events about how much of each client's cap is used. days are the days on which this batch
// subtracted refused calls. For each day in days, lost contains the number of subtracted calls.
func (b *startBatch) tellCaps(ctx context.Context, days []queue.UsageDay, lost []int64) error {
	for _, d := range b.days {
		c, ok := b.counts[d]
		if !ok {
			continue
		}
		used := c.Used
		if len(days) > 0 && days[0] == d {
			used -= lost[0]
			days, lost = days[1:], lost[1:]
		}
		if err := c.Report(ctx, b.a, d, used); err != nil {
			return err
		}
	}
	return nil
}

const insertRuns = `
insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request,
 client_name, sequence_name, content, campaign_id, reference, depth, steps, rule_id)
select u.c, u.i, u.q, u.s, u.p, u.o, u.m, u.n, u.z, u.r, u.b, u.cn, u.sn, u.t, u.g, u.e, u.y, u.st, u.ru
from $u(c bigint, i bigint, q bigint, s bigint, p text, o smallint, m smallint, n text, z text, r bigint, b bytea,
 cn text, sn text, t text, g bigint, e text, y smallint, st text, ru bigint)`

const insertMessages = `
insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, campaign_id, priority, purpose)
select u.c, u.i, u.s, u.r, u.w, u.d, u.d, u.v, u.t, u.o, u.p, u.g, u.k, u.z
from $u(c bigint, i bigint, s bigint, r bigint, w bigint, d bigint, v bigint, t smallint, o smallint, p text, g bigint, k smallint, z smallint)`

// insert stores the runs and messages of the accepted calls.
func (b *startBatch) insert(ctx context.Context) error {
	var runs []*start
	type row struct {
		*start
		i int
	}
	var rows []row
	for _, st := range b.live {
		if !st.passed || st.answer.IDs != nil { // skip refused calls, and calls whose answer lists running messages instead of new messages
			continue
		}
		st.answer.Skipped, st.answer.Notes = st.Skipped, st.Notes
		st.answer.IDs = make([]puntuale.MessageID, len(st.Messages))
		if len(st.Messages) == 0 {
			continue
		}
		runs = append(runs, st)
		for i := range st.Messages {
			st.answer.IDs[i] = st.ref(i)
			rows = append(rows, row{st, i})
		}
	}
	if len(runs) == 0 {
		return nil
	}
	slices.SortFunc(runs, func(x, y *start) int { return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.first, y.first)) })
	type S = *start
	if err := b.a.Queue(ctx, insertRuns, []any{engine.Columns{
		engine.Column(runs, func(s *S) int64 { return int64((*s).client) }),
		engine.Column(runs, func(s *S) int64 { return (*s).first }),
		engine.Column(runs, func(s *S) int64 { return int64((*s).Run.Sequence) }),
		engine.Column(runs, func(s *S) int64 { return int64((*s).Run.Session) }),
		engine.Column(runs, func(s *S) string { return (*s).Run.Phone }),
		engine.Column(runs, func(s *S) int64 { return queue.OriginNumber((*s).Run.Origin) }),
		engine.Column(runs, func(s *S) int64 { return int64(len((*s).Messages)) }),
		engine.Column(runs, func(s *S) string { return (*s).Run.Name }),
		engine.Column(runs, func(s *S) string { return (*s).Run.Zone }),
		engine.Column(runs, func(s *S) int64 { return engine.Micros((*s).Run.Received) }),
		engine.Column(runs, func(s *S) []byte { return append([]byte{}, (*s).Run.Request...) }),
		engine.Column(runs, func(s *S) string { return (*s).Run.ClientName }),
		engine.Column(runs, func(s *S) string { return (*s).Run.SequenceName }),
		engine.Column(runs, func(s *S) string { return (*s).steps }),
		engine.Column(runs, func(s *S) int64 { return int64((*s).Run.Campaign) }),
		engine.Column(runs, func(s *S) string { return (*s).Run.Reference }),
		engine.Column(runs, func(s *S) int64 { return int64((*s).Run.Depth) }),
		engine.Column(runs, func(s *S) string { return result.StepsOf((*s).Run.Steps) }),
		engine.Column(runs, func(s *S) int64 { return int64((*s).Run.Rule) }),
	}}, nil); err != nil {
		return fmt.Errorf("insert runs: %w", err)
	}
	planned := func(r *row) *puntuale.PlannedMessage { return &r.Messages[r.i] }
	if err := b.a.Queue(ctx, insertMessages, []any{engine.Columns{
		engine.Column(rows, func(r *row) int64 { return int64(r.client) }),
		engine.Column(rows, func(r *row) int64 { return int64(r.ref(r.i)) }),
		engine.Column(rows, func(r *row) int64 { return int64(r.Run.Session) }),
		engine.Column(rows, func(r *row) int64 { return r.first }),
		engine.Column(rows, func(r *row) int64 { return engine.Micros(planned(r).Desired) }),
		engine.Column(rows, func(r *row) int64 { return engine.Micros(planned(r).Due) }),
		engine.Column(rows, func(r *row) int64 { return engine.Micros(planned(r).ValidUntil) }),
		engine.Column(rows, func(r *row) int64 { return int64(r.i) }),
		engine.Column(rows, func(r *row) int64 { return queue.OriginNumber(r.Run.Origin) }),
		engine.Column(rows, func(r *row) string { return r.Run.Phone }),
		engine.Column(rows, func(r *row) int64 { return int64(r.Run.Campaign) }),
		engine.Column(rows, func(r *row) int64 { return engine.Bit(r.Run.Campaign != 0) }),
		engine.Column(rows, func(r *row) int64 { return int64(planned(r).Purpose) }),
	}}, nil); err != nil {
		return fmt.Errorf("insert messages: %w", err)
	}
	if err := result.Note(ctx, b.a, runs[0].Now, func(yield func(puntuale.MessageRef) bool) {
		for i := range rows {
			if r := &rows[i]; !yield(puntuale.MessageRef{Client: r.client, ID: r.ref(r.i)}) {
				return
			}
		}
	}); err != nil {
		return err
	}
	return b.needFiles(ctx, runs)
}

// filesOf returns the uploaded files that the messages of a run need, and how long.
func filesOf(st *start) (uses []file.Use) {
	for i, step := range st.Run.Steps {
		if i >= len(st.Messages) {
			break
		}
		if u, ok := file.UseOf(step.Content, st.Messages[i].Due, st.Messages[i].ValidUntil); ok {
			u.Client, u.Run, u.Phone = st.client, st.first, st.Run.Phone
			uses = append(uses, u)
		}
	}
	return uses
}

func (b *startBatch) needFiles(ctx context.Context, runs []*start) error {
	var uses []file.Use
	for _, st := range runs {
		uses = append(uses, filesOf(st)...)
	}
	return file.Needed(ctx, b.a, uses)
}

// findFiles marks the starts with an uploaded file that was deleted after the caller looked for it.
func (b *startBatch) findFiles(ctx context.Context) error {
	var uses []file.Use
	var of []*start
	for _, st := range b.live {
		for _, u := range filesOf(st) {
			uses, of = append(uses, u), append(of, st)
		}
	}
	missing, err := file.Missing(ctx, b.a, uses)
	for _, i := range missing {
		if of[i].staleError == nil {
			of[i].staleError = puntuale.Invalid(puntuale.Fault{Location: "body.media", Code: puntuale.FaultFileGone, Value: uses[i].File.Address()})
		}
	}
	return err
}

// checkStarts finds out whether a batch is on disk, after the connection was lost during COMMIT. If one run of the
// batch is stored, the whole batch is. checkStarts first writes a usage row, so that it waits for a COMMIT that is
// still running. A lock would not be enough, because before a client's first call of the day there is no row to lock.
func checkStarts(ctx context.Context, w *engine.Writer, tasks []*engine.Task) (bool, error) {
	for _, t := range tasks {
		st := t.Body.(*start)
		if len(st.answer.IDs) == 0 || st.answer.IDs[0] != st.ref(0) {
			continue
		}
		if err := w.Conn.Begin(ctx); err != nil {
			return false, fmt.Errorf("begin: %w", err)
		}
		_, err := w.Conn.Exec(ctx, `insert into api_usage as g (client_id, day, asked, prev, used) values ($1, $2, 0, 0, 0)
 on conflict (client_id, day) do update set used = g.used`, st.client, st.Day.Int())
		var stored bool
		if err == nil {
			var id int64
			stored, err = engine.QueryOne(ctx, &w.Conn, `select id from run where client_id = $1 and id = $2`, []any{st.client, st.first}, &id)
		}
		return stored, errors.Join(err, w.Conn.Rollback(ctx))
	}
	return false, fmt.Errorf("no run tells whether the batch was stored")
}
