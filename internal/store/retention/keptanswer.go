package retention

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"puntuale"
	"puntuale/internal/store/engine"
)

// keptText is an answer that is stored for repeated calls with the same idempotency key.
type keptText struct {
	scope, key string
	result     []byte
}

// answersNaming finds stored answers that contain the number, even as the beginning of a longer number. The two
// databases have different functions for searching in bytes.
const (
	answersNaming = `select i.scope, i.key, i.result from idempotency i
 where i.client_id = $1 and (i.scope, i.key) > ($3, $4) and instr(i.result, $2) > 0 order by i.scope, i.key limit $5`
	answersNamingPostgres = `select i.scope, i.key, i.result from idempotency i
 where i.client_id = $1 and (i.scope, i.key) > ($3, $4) and position($2::bytea in i.result) > 0 order by i.scope, i.key limit $5`
)

// answers removes the person's names from answers that are stored for repeated calls. The records themselves stay. Without its
// record, a repeated call would take effect again.
func (x *erasureTransaction) answers(ctx context.Context) error {
	for _, name := range x.names {
		if err := x.answersNaming(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

func (x *erasureTransaction) answersNaming(ctx context.Context, name string) error {
	text := answersNaming
	if x.s.Dialect.Postgres {
		text = answersNamingPostgres
	}
	for last := (keptText{}); ; {
		part, err := engine.QueryAll(ctx, x.s.CallReads, text, []any{x.id, []byte(name), last.scope, last.key, engine.Chunk}, scanKept)
		if err != nil {
			return engine.PublicError(fmt.Errorf("look for kept answers: %w", err))
		}
		if len(part) == 0 {
			return nil
		}
		last = part[len(part)-1]
		part = strip(part, name)
		done := 0
		if len(part) > 0 {
			if err := x.write(ctx, func(ctx context.Context, a engine.Querier) (err error) {
				done, err = x.rewrite(ctx, a, part, name)
				return err
			}); err != nil {
				return fmt.Errorf("erase kept answers: %w", err)
			}
		}
		x.done.Answers += done
	}
}

// rewrite reads the answers again before it changes them, because another erasure may have changed them after the first
// read.
func (x *erasureTransaction) rewrite(ctx context.Context, a engine.Querier, part []keptText, name string) (int, error) {
	now, err := engine.QueryAll(ctx, a, `select i.scope, i.key, i.result from $u(c bigint, s text, k text) join idempotency i
 on i.client_id = u.c and i.scope = u.s and i.key = u.k order by i.client_id, i.scope, i.key for update of i`, []any{keptColumns(x.id, part)}, scanKept)
	if err != nil {
		return 0, err
	}
	now = strip(now, name)
	if len(now) == 0 {
		return 0, nil
	}
	_, err = a.Exec(ctx, `update idempotency set result = u.r from $u(c bigint, s text, k text, r bytea)
 where idempotency.client_id = u.c and idempotency.scope = u.s and idempotency.key = u.k`,
		append(keptColumns(x.id, now), engine.Column(now, func(k *keptText) []byte { return k.result })))
	return len(now), err
}

// strip removes the number from answers. It returns only the answers that contained the number.
func strip(all []keptText, name string) []keptText {
	var holding []keptText
	for _, k := range all {
		if rest, found := cutNumber(k.result, name); found {
			holding = append(holding, keptText{k.scope, k.key, rest})
		}
	}
	return holding
}

// cutNumber removes a number from a text, except where the number is a part of a longer number.
func cutNumber(text []byte, number string) (rest []byte, found bool) {
	part := isDigit
	phone := strings.HasPrefix(number, "+")
	if !phone { // the recipient is a group
		part = func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' || c == '-' }
	}
	rest = make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		end := i + len(number)
		if number == "" || !bytes.HasPrefix(text[i:], []byte(number)) || !phone && i > 0 && part(text[i-1]) || end < len(text) && part(text[end]) {
			rest = append(rest, text[i])
			i++
			continue
		}
		i, found = end, true
	}
	return rest, found
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func keptColumns(client puntuale.ClientID, all []keptText) engine.Columns {
	return engine.Columns{
		engine.Column(all, func(*keptText) int64 { return int64(client) }),
		engine.Column(all, func(k *keptText) string { return k.scope }),
		engine.Column(all, func(k *keptText) string { return k.key }),
	}
}

func scanKept(rows engine.Row, k *keptText) error { return rows.Scan(&k.scope, &k.key, &k.result) }
