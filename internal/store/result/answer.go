package result

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Kinds of rows of result_answer.
const (
	answerReply  = 1
	answerOptOut = 2
)

// Answer is what a person did: they replied, or withdrew consent.
type Answer struct {
	Client  puntuale.ClientID
	Names   []string // all names of the person
	At      time.Time
	Message puntuale.MessageID // the message that they answered; 0: the last one that was tried before
	ID      int64              // of the reply or the entry of consent
	OptOut  bool
	Button  string // the label of the pressed or named button; "": none
}

// maxButton is the longest label that is counted, in characters. Networks have shorter ones.
const maxButton = 64

const (
	attemptColumns = `u.n, m.id, m.intent_at from $u(n bigint, c bigint, p text, f bigint, t bigint) cross join run r cross join message m
where r.client_id = u.c and r.phone = u.p and m.client_id = r.client_id and m.intent_at between u.f and u.t and (m.outcome = 1 or m.intent > 0)`
	// LastAttempts finds the attempts to people in the time in which an answer counts.
	LastAttempts = `select ` + attemptColumns + ` and m.id >= r.id and m.id < r.id + r.messages
 union all select ` + attemptColumns + ` and m.run_id = r.id and m.resent_from <> 0`
)

// KeepAnswers decides which messages the people answered, and stores this. An answer that no message of the last
// [puntuale.ResultAnswerTime] explains is not stored. Who named a message answered only that one.
func KeepAnswers(ctx context.Context, a engine.Querier, now time.Time, all []Answer) error {
	last := make([]struct {
		id puntuale.MessageID
		at int64
	}, len(all))
	take := func(r engine.Row) error {
		var i int
		var id puntuale.MessageID
		var at int64
		err := r.Scan(&i, &id, &at)
		if l := &last[i]; cmp.Or(cmp.Compare(at, l.at), cmp.Compare(id, l.id)) > 0 {
			l.id, l.at = id, at
		}
		return err
	}
	type name struct {
		i     int
		value string
	}
	var names []name
	var named []int
	for i, x := range all {
		if x.Message != 0 {
			named = append(named, i)
			continue
		}
		for _, value := range x.Names {
			names = append(names, name{i, value})
		}
	}
	from := func(i int) int64 { return engine.Micros(all[i].At.Add(-puntuale.ResultAnswerTime)) }
	if len(names) > 0 {
		if err := a.Query(ctx, LastAttempts, []any{engine.Columns{
			engine.Column(names, func(n *name) int64 { return int64(n.i) }), engine.Column(names, func(n *name) int64 { return int64(all[n.i].Client) }),
			engine.Column(names, func(n *name) string { return n.value }), engine.Column(names, func(n *name) int64 { return from(n.i) }),
			engine.Column(names, func(n *name) int64 { return engine.Micros(all[n.i].At) }),
		}}, take); err != nil {
			return fmt.Errorf("look for the message that was answered: %w", err)
		}
	}
	if len(named) > 0 {
		if err := a.Query(ctx, `select u.n, m.id, m.intent_at from $u(n bigint, c bigint, i bigint, f bigint) cross join message m where m.client_id = u.c and m.id = u.i and m.intent_at >= u.f`,
			[]any{engine.Columns{
				engine.Column(named, func(i *int) int64 { return int64(*i) }), engine.Column(named, func(i *int) int64 { return int64(all[*i].Client) }),
				engine.Column(named, func(i *int) int64 { return int64(all[*i].Message) }), engine.Column(named, func(i *int) int64 { return from(*i) }),
			}}, take); err != nil {
			return fmt.Errorf("look for the message that was answered: %w", err)
		}
	}
	var rows []Answer
	for i, x := range all {
		if x.Message = last[i].id; x.Message != 0 {
			rows = append(rows, x)
		}
	}
	return store(ctx, a, now, rows)
}

func store(ctx context.Context, a engine.Querier, now time.Time, rows []Answer) error {
	if len(rows) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `insert into result_answer (client_id, message_id, id, kind, button)
 select u.c, u.m, u.i, u.k, u.b from $u(c bigint, m bigint, i bigint, k smallint, b text) where true on conflict do nothing`, engine.Columns{
		engine.Column(rows, func(x *Answer) int64 { return int64(x.Client) }), engine.Column(rows, func(x *Answer) int64 { return int64(x.Message) }),
		engine.Column(rows, func(x *Answer) int64 { return x.ID }), engine.Column(rows, func(x *Answer) int64 { return answerReply + engine.Bit(x.OptOut) }),
		engine.Column(rows, func(x *Answer) string { return cut(x.Button, maxButton) }),
	}); err != nil {
		return fmt.Errorf("keep what people answered: %w", err)
	}
	return NoteAll(ctx, a, now, engine.Column(rows, func(x *Answer) puntuale.MessageRef { return puntuale.MessageRef{Client: x.Client, ID: x.Message} })...)
}

func cut(text string, most int) string {
	if all := []rune(text); len(all) > most {
		return string(slices.Clip(all[:most]))
	}
	return text
}
