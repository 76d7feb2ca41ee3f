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
	l := &listing{args: []any{t.id, last, limit + 1}}
	all, err := list(ctx, t.s.read, l.statement(f), l.args, scanDetail)
	if err != nil {
		return nil, "", outward(fmt.Errorf("list messages: %w", err))
	}
	all, next := cut(all, limit, "message", func(d *puntuale.MessageDetail) int64 { return int64(d.ID) })
	return all, next, nil
}

// listing writes the statement of a list of messages, newest first. Its first arguments are client, cursor and limit.
type listing struct {
	args      []any
	ofRun     string
	ofMessage string
}

// Pending messages are looked for among the open ones of the client's sessions; all others by way of the client's runs:
// those of a phone have an index, and else they are walked from the newest on, as far as the limit. A run's messages as
// planned are numbered from it, so the order of runs is theirs; re-sent ones have other numbers and come by their own
// index.
const (
	pendingList = `select m.id as i from session s cross join message m cross join run r
 where s.client_id = $1 and m.session_id = s.id and m.state = 0 and m.client_id + 0 = $1 and m.id < $2%[2]s
  and r.client_id = m.client_id and r.id = m.run_id%[1]s
 order by m.id desc limit $3`

	runList = `select i from (select m.id as i from run r cross join message m
 where r.client_id = $1 and r.id < $2%[1]s
  and m.client_id = r.client_id and m.id >= r.id and m.id < r.id + r.messages and m.id < $2%[2]s
 order by r.id desc, m.id desc limit $3) as planned
union all
select i from (select m.id as i from message m cross join run r
 where m.client_id = $1 and m.resent_from <> 0 and m.id < $2%[2]s and r.client_id = m.client_id and r.id = m.run_id%[1]s
 order by m.id desc limit $3) as resent
order by i desc limit $3`

	detailList = `with f as (%s) select ` + detailColumns + ` from f join message m on m.client_id = $1 and m.id = f.i
 join run r on r.client_id = m.client_id and r.id = m.run_id order by m.id desc`
)

// plannedAt is puntuale.Message.Planned.
const plannedAt = "case when m.intent > 0 and m.next_at > m.intent_at then m.intent_at else m.next_at end"

func (l *listing) statement(f puntuale.MessageFilter) string {
	source := runList
	if f.Sequence != 0 {
		l.ofRun += " and r.sequence_id = " + l.bind(f.Sequence)
	}
	if f.Phone != "" {
		l.ofRun += " and r.phone = " + l.bind(f.Phone)
	}
	switch {
	case f.State == nil:
	case *f.State == puntuale.Pending:
		source = pendingList
	default:
		l.ofMessage += " and m.state = " + l.bind(int64(*f.State))
	}
	if f.Origin != "" {
		l.ofMessage += " and m.origin = " + l.bind(originNumber(f.Origin))
	}
	if !f.From.IsZero() {
		l.ofMessage += " and " + plannedAt + " >= " + l.bind(micros(f.From))
	}
	if !f.To.IsZero() {
		l.ofMessage += " and " + plannedAt + " < " + l.bind(micros(f.To))
	}
	return fmt.Sprintf(detailList, fmt.Sprintf(source, l.ofRun, l.ofMessage))
}

// bind adds an argument and returns its sign.
func (l *listing) bind(value any) string {
	l.args = append(l.args, value)
	return fmt.Sprintf("$%d", len(l.args))
}
