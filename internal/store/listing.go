package store

import (
	"context"
	"fmt"

	"puntuale"
)

func (t tenant) Messages(ctx context.Context, f puntuale.MessageFilter, p puntuale.Page) ([]puntuale.MessageDetail, string, error) {
	last, limit, err := after(p, "message")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	l := &listing{postgres: t.s.d.postgres, args: []any{t.id, last, limit + 1}}
	var d details
	if err := t.lists().each(ctx, l.statement(f), l.args, d.scan); err != nil {
		return nil, "", outward(fmt.Errorf("list messages: %w", err))
	}
	all, next := cut(d.all, min(limit, d.fit()), "message", func(d *puntuale.MessageDetail) int64 { return int64(d.ID) })
	return all, next, t.fill(ctx, all)
}

// listing writes the statement of a list of messages, newest first. Its first arguments are client, cursor and limit.
type listing struct {
	postgres  bool
	args      []any
	ofRun     string
	ofMessage string
}

// pending looks among the open messages of the client's sessions, which are the client's: where nothing else is asked, the
// index alone tells which are the newest, however many there are.
func (l *listing) pending() string {
	runs := ""
	if l.ofRun != "" {
		runs = " cross join run r"
		l.ofRun += " and r.client_id = m.client_id and r.id = m.run_id"
	}
	return `select m.id as i from session s cross join message m` + runs + `
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.id < $2` + l.ofMessage + l.ofRun + `
 order by m.id desc limit $3`
}

// byRun goes by way of the client's runs: those of a phone have an index, and else they are walked from the newest on, as
// far as the limit. A run's messages as planned are numbered from it, so the order of runs is theirs; re-sent ones have
// other numbers and come by their own index. PostgreSQL knows no better of a range of numbers than that it holds a ninth
// of all; a lateral join leaves it no choice. SQLite has none, and takes tables as they are written.
func (l *listing) byRun(ofPhone bool) string {
	resent := "message m cross join run r"
	if ofPhone {
		resent = "run r cross join message m"
	}
	ofThisRun := "m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2" + l.ofMessage
	planned := "run r cross join message m where " + ofThisRun + " and"
	if l.postgres {
		planned = "run r cross join lateral (select m.id from message m where " + ofThisRun + " offset 0) as m where"
	}
	return `select i from (select m.id as i from ` + planned + ` r.client_id = $1 and r.id < $2` + l.ofRun + `
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from ` + resent + `
 where r.client_id = $1 and m.client_id = $1 and m.resent_from <> 0 and m.id < $2` + l.ofMessage + ` and r.id = m.run_id` + l.ofRun + `
 order by m.id desc limit $3) as resent
order by i desc limit $3`
}

// plannedAt is puntuale.Message.Planned.
const plannedAt = "case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end"

func (l *listing) statement(f puntuale.MessageFilter) string {
	return `with f as (` + l.found(f) + `) select ` + detailColumns + ` from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id` + detailReceipts + ` order by m.id desc`
}

// found selects the ids. It adds zero to columns that SQLite shall not build an index of, for this one statement, to
// look them up.
func (l *listing) found(f puntuale.MessageFilter) string {
	if f.Sequence != 0 {
		l.ofRun += " and r.sequence_id = " + l.bind(f.Sequence)
	}
	if f.Phone != "" {
		l.ofRun += " and r.phone = " + l.bind(f.Phone)
	}
	pending := f.State != nil && *f.State == puntuale.Pending && f.Phone == ""
	if f.State != nil && !pending {
		l.ofMessage += " and m.state + 0 = " + l.bind(int64(*f.State))
	}
	if f.Origin != "" {
		l.ofMessage += " and m.origin + 0 = " + l.bind(originNumber(f.Origin))
	}
	if !f.From.IsZero() {
		l.ofMessage += " and " + plannedAt + " >= " + l.bind(micros(f.From))
	}
	if !f.To.IsZero() {
		l.ofMessage += " and " + plannedAt + " < " + l.bind(micros(f.To))
	}
	if pending {
		return l.pending()
	}
	return l.byRun(f.Phone != "")
}

// bind adds an argument and returns its sign.
func (l *listing) bind(value any) string {
	l.args = append(l.args, value)
	return fmt.Sprintf("$%d", len(l.args))
}
