package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// Messages lists messages, newest first, which means by falling id. A page may be shorter than asked: it has at
// most 32 MiB, and the filter may limit the search. Codes: invalid (the cursor).
func (t tenant) Messages(ctx context.Context, f puntuale.MessageFilter, p puntuale.Page) ([]puntuale.MessageDetail, string, error) {
	last, limit, err := engine.ReadCursor(p, "message")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	last, floor, err := t.span(ctx, f, last)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("bound a list of messages: %w", err))
	}
	d, floor, err := t.listed(ctx, f, last, floor, limit+1)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list messages: %w", err))
	}
	fit, bytes := d.fit()
	if err := engine.TakeMemory(ctx, min(limit, fit), bytes); err != nil {
		return nil, "", err
	}
	all, next := engine.CutPage(d.all, min(limit, fit), "message", func(d *puntuale.MessageDetail) int64 { return int64(d.ID) })
	if next == "" && floor > 0 {
		next = engine.CursorAt("message", floor)
	}
	return all, next, t.fill(ctx, all)
}

// othersOf returns the other names of the person that the filter means.
func (t tenant) othersOf(ctx context.Context, f puntuale.MessageFilter) ([]string, error) {
	if f.Phone == "" {
		return nil, nil
	}
	names, err := t.names(ctx, f.Phone)
	if err != nil {
		return nil, err
	}
	return names[1:], nil
}

// listed returns the newest messages that match the filter, at most limit of them. Their ids are smaller than last and
// not smaller than floor. A search by text may stop before it reaches floor. Then listed also returns the id at which
// it stopped.
func (t tenant) listed(ctx context.Context, f puntuale.MessageFilter, last, floor int64, limit int) (*details, int64, error) {
	others, err := t.othersOf(ctx, f)
	if err != nil {
		return nil, 0, err
	}
	if f.Text == "" {
		if f.State != nil && *f.State == puntuale.Pending && f.Phone == "" && f.Reference == "" && f.Campaign == 0 && floor == 0 {
			d, err := t.newestPending(ctx, f, last, limit)
			if d != nil || err != nil {
				return d, 0, err
			}
		}
		d, l := &details{}, t.listing(last, floor, limit, others...)
		return d, floor, t.lists().Query(ctx, l.statement(f), l.args, d.scan)
	}
	found, floor, err := t.searched(ctx, f, last, floor, limit, others)
	if err != nil {
		return nil, 0, err
	}
	d, err := t.details(ctx, found)
	if err != nil {
		return nil, 0, err
	}
	engine.Sort(d.all, func(a, b puntuale.MessageDetail) int { return cmp.Compare(b.ID, a.ID) })
	return d, floor, nil
}

// newestCalls is how many of a client's newest calls are searched for waiting messages first.
const newestCalls = 300

// newestPending looks for a page of waiting messages in the newest calls, where most of them are. The index of waiting
// messages is not sorted by id, so a list that reads it has to read all that wait. newestPending returns nil if this does
// not fill the page.
func (t tenant) newestPending(ctx context.Context, f puntuale.MessageFilter, last int64, limit int) (*details, error) {
	floor := int64(0)
	if err := t.lists().Query(ctx, lookedAt, []any{t.id, last, newestCalls}, func(rows engine.Row) error { return rows.Scan(&floor) }); err != nil {
		return nil, err
	}
	d, l := &details{}, t.listing(last, max(floor, 1), limit)
	if err := t.lists().Query(ctx, l.statement(f), l.args, d.scan); err != nil || len(d.all) < limit && floor > 0 {
		return nil, err
	}
	return d, nil
}

const (
	// lookedAt finds the call that is $3 calls older than the cursor.
	lookedAt = `select r.id from run r where r.client_id = $1 and r.id < $2 order by r.id desc limit 1 offset $3`
	// runFrom finds the first call whose id is at least $2.
	runFrom = `select r.id, r.received_at from run r where r.client_id = $1 and r.id >= $2 order by r.id limit 1`
	// openUpTo counts a client's waiting messages, at most $2 of all sessions. SQLite reads the tables in the written order.
	openUpTo = `select count(*) from (select m.id from session s cross join message m
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 limit $2) as o`
	// openUpToPostgres also asks for the order of the index in each session, because PostgreSQL would read the whole table
	// otherwise, in the hope that most rows match.
	openUpToPostgres = `select count(*) from (select m.id from session s cross join lateral (select m.id from message m
 where m.session_id = s.id and m.state = 0 order by m.priority, m.next_at limit $2) as m where s.client_id = $1 limit $2) as o`
	runEnds = `select coalesce((select min(r.id) from run r where r.client_id = $1), 0), coalesce((select max(r.id) from run r where r.client_id = $1), 0)`
)

// runsApart allows for ids that are not in the order of time. A call with a smaller id may have been received later
// than a call with a larger id, by up to this time.
const runsApart = time.Hour

// waiting counts the client's waiting messages, up to limit.
func (t tenant) waiting(ctx context.Context, limit int) (n int, err error) {
	text := openUpTo
	if t.s.Dialect.Postgres {
		text = openUpToPostgres
	}
	err = t.lists().Query(ctx, text, []any{t.id, limit}, func(rows engine.Row) error { return rows.Scan(&n) })
	return n, err
}

// span returns which ids a list reads if its filter sets Look: ids smaller than below, and not smaller than floor. If
// floor is 0, there is no lower limit. Later calls have larger ids, except for the small differences that runsApart
// allows. So a binary search finds the first id of a period. If at most Look messages are waiting, the list reads all
// waiting messages.
func (t tenant) span(ctx context.Context, f puntuale.MessageFilter, last int64) (below, floor int64, err error) {
	if f.Look <= 0 || f.Phone != "" || f.Reference != "" || f.Campaign != 0 {
		return last, 0, nil
	}
	if f.State != nil && *f.State == puntuale.Pending {
		if n, err := t.waiting(ctx, f.Look+1); err != nil || n <= f.Look {
			return last, 0, err
		}
	}
	if !f.To.IsZero() {
		if last, err = t.firstIDSince(ctx, engine.Micros(f.To.Add(runsApart)), last); err != nil {
			return 0, 0, err
		}
	}
	err = t.lists().Query(ctx, lookedAt, []any{t.id, last, f.Look - 1}, func(rows engine.Row) error { return rows.Scan(&floor) })
	return last, floor, err
}

// firstIDSince returns the id of the first call that was received at the given moment (in µs) or later. If last is
// smaller than this id, it returns last. All messages that were stored earlier have smaller ids, both planned and resent
// messages.
func (t tenant) firstIDSince(ctx context.Context, moment, last int64) (int64, error) {
	var low, newest int64
	if err := t.lists().Query(ctx, runEnds, []any{t.id}, func(rows engine.Row) error { return rows.Scan(&low, &newest) }); err != nil {
		return 0, err
	}
	bound := last
	for high := min(last, newest+1); low < high; {
		middle := low + (high-low)/2
		id, at := newest, moment
		if err := t.lists().Query(ctx, runFrom, []any{t.id, middle}, func(rows engine.Row) error { return rows.Scan(&id, &at) }); err != nil {
			return 0, err
		}
		if at < moment {
			low = id + 1
		} else {
			high, bound = middle, min(id, last)
		}
	}
	return bound, nil
}

// listStatement builds the statement for a list of messages, newest first. Its first three arguments are client, cursor
// and limit.
type listStatement struct {
	postgres  bool
	args      []any
	ofRun     string
	ofPlanned string // conditions on runs; only for the part that finds planned messages
	ofMessage string
	bounded   bool
	others    []string // other names of the person that the filter means
}

// listing begins a statement for ids that are smaller than last and not smaller than floor.
func (t tenant) listing(last, floor int64, limit int, others ...string) *listStatement {
	l := &listStatement{postgres: t.s.Dialect.Postgres, args: []any{t.id, last, limit}, others: others}
	if floor > 0 {
		l.bounded = true
		sign := l.bind(floor)
		l.ofPlanned, l.ofMessage = " and r.id >= "+sign, " and m.id >= "+sign
	}
	return l
}

// pending returns the part that finds open messages of the client's sessions. Without other conditions, the index alone
// yields the newest messages, even if there are many.
func (l *listStatement) pending() string {
	runs := l.runs()
	return `select m.id as i from session s cross join message m` + runs + `
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.id < $2` + l.ofMessage + l.ofRun + `
 order by m.id desc limit $3`
}

// ended returns the part that finds messages of a state that is not pending. Its index is sorted by id.
func (l *listStatement) ended(state puntuale.State) string {
	runs := l.runs()
	return `select m.id as i from message m` + runs + `
 where m.client_id = $1 and m.state = ` + l.bind(int64(state)) + ` and m.state <> 0 and m.id < $2` + l.ofMessage + l.ofRun + `
 order by m.id desc limit $3`
}

// runs returns the join with the messages' runs if a condition needs it, and "" otherwise.
func (l *listStatement) runs() string {
	if l.ofRun == "" {
		return ""
	}
	l.ofRun += " and r.client_id = m.client_id and r.id = m.run_id"
	return " cross join run r"
}

// campaign returns the part that finds messages of one campaign. It checks the campaign's client in the campaign's row.
func (l *listStatement) campaign(f puntuale.MessageFilter) string {
	state := ""
	if f.State != nil { // the index of a campaign's messages contains the state
		state = " and m.state = " + l.bind(int64(*f.State))
	}
	runs := l.runs()
	return `select m.id as i from campaign c cross join message m` + runs + `
 where c.client_id = $1 and c.id = ` + l.bind(f.Campaign) + ` and m.campaign_id = c.id and m.campaign_id <> 0 and m.client_id = c.client_id and m.id < $2` +
		state + l.ofMessage + l.ofRun + `
 order by m.id desc limit $3`
}

// byRun returns the part that finds messages through the client's runs. Runs of one phone have an index. Other runs are
// read from the newest on, up to the limit. The ids of a run's planned messages follow the id of the run, so these
// messages are sorted like their runs. Resent messages have other ids, and an index of their own.
//
// PostgreSQL estimates that a range of ids contains a ninth of all rows. So the statement needs a lateral join to get
// the right plan. SQLite has no lateral join, but it reads the tables in the written order.
func (l *listStatement) byRun(ofFewRuns bool) string {
	resent, ofRuns, order := "message m cross join run r", "r.id < $2", "r.id"
	if ofFewRuns { // "+ 0" prevents SQLite from using an index only to sort
		resent, ofRuns, order = "run r cross join message m", "r.id + 0 < $2", "r.id + 0"
	}
	ofThisRun := "m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2" + l.ofMessage
	planned := "run r cross join message m where " + ofThisRun + " and"
	if l.postgres {
		planned = "run r cross join lateral (select m.id from message m where " + ofThisRun + " offset 0) as m where"
	}
	return `select i from (select m.id as i from ` + planned + ` r.client_id = $1 and ` + ofRuns + l.ofPlanned + l.ofRun + `
 order by ` + order + ` desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from ` + resent + `
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2` + l.ofMessage + ` and r.id = m.run_id` + l.ofRun + `
 order by m.id desc limit $3) as resent
order by i desc limit $3`
}

// plannedAt is puntuale.Message.Planned in SQL.
const plannedAt = "case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end"

func (l *listStatement) statement(f puntuale.MessageFilter) string {
	return `with f as (` + l.found(f) + `) select ` + detailColumns + ` from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id` + detailReceipts + ` order by m.id desc`
}

// found returns the statement that selects the ids. "+ 0" prevents SQLite from building a temporary index on a column.
func (l *listStatement) found(f puntuale.MessageFilter) string {
	if f.Sequence != 0 {
		l.ofRun += " and r.sequence_id = " + l.bind(f.Sequence)
	}
	if f.Phone != "" {
		l.ofRun += " and r.phone in (" + l.bind(f.Phone)
		for _, name := range l.others {
			l.ofRun += ", " + l.bind(name)
		}
		l.ofRun += ")"
	}
	if f.Reference != "" {
		l.ofRun += " and r.reference <> '' and r.reference = " + l.bind(f.Reference)
	}
	ofFewRuns := f.Phone != "" || f.Reference != ""
	pending := f.State != nil && *f.State == puntuale.Pending && !ofFewRuns
	ended := f.State != nil && *f.State != puntuale.Pending && !ofFewRuns
	if f.State != nil && f.Campaign == 0 && (!pending || l.bounded) && !ended {
		l.ofMessage += " and m.state + 0 = " + l.bind(int64(*f.State))
	}
	if f.WithoutRescheduled {
		l.ofMessage += " and m.state + 0 <> 5"
	}
	if f.Origin != "" {
		l.ofRun += " and r.origin + 0 = " + l.bind(queue.OriginNumber(f.Origin)) // all messages of a run have the same origin
	}
	if !f.From.IsZero() {
		l.ofMessage += " and " + plannedAt + " >= " + l.bind(engine.Micros(f.From))
	}
	if !f.To.IsZero() {
		l.ofMessage += " and " + plannedAt + " < " + l.bind(engine.Micros(f.To))
	}
	if f.Campaign != 0 {
		return l.campaign(f)
	}
	switch {
	case ended:
		return l.ended(*f.State)
	case pending && !l.bounded:
		return l.pending()
	}
	return l.byRun(ofFewRuns)
}

// bind adds an argument and returns its placeholder.
func (l *listStatement) bind(value any) string {
	l.args = append(l.args, value)
	return fmt.Sprintf("$%d", len(l.args))
}
