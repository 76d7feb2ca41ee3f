package queue

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// TakeCredits takes an amount of credits from each client, or as many as the client has. It returns the amounts that it
// took. clients must be sorted, because TakeCredits locks their rows in this order.
func TakeCredits(ctx context.Context, a engine.Querier, clients []puntuale.ClientID, amounts []int64, at time.Time) ([]int64, error) {
	left := map[puntuale.ClientID]sql.NullInt64{}
	marks := map[puntuale.ClientID]creditMark{}
	err := a.Query(ctx, `select k.id, k.credits, k.credits_topped, k.credits_told from $u(c bigint) join client k on k.id = u.c order by k.id for no key update of k`,
		[]any{engine.Columns{engine.Column(clients, func(c *puntuale.ClientID) int64 { return int64(*c) })}}, func(rows engine.Row) error {
			var c puntuale.ClientID
			var n sql.NullInt64
			var m creditMark
			if err := rows.Scan(&c, &n, &m.topped, &m.reported); err != nil {
				return err
			}
			left[c], marks[c] = n, m
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("lock credits: %w", err)
	}
	taken := slices.Clone(amounts)
	var changes []creditChange
	for i, c := range clients {
		if !left[c].Valid {
			return nil, fmt.Errorf("credits became unlimited: %w", engine.ErrAgain)
		}
		before := left[c].Int64
		taken[i] = min(taken[i], before)
		if m, types := marks[c].eventsAfterFall(before, before-taken[i]); taken[i] > 0 && m != marks[c] {
			changes = append(changes, creditChange{c, before - taken[i], m, types})
		}
	}
	if _, err := a.Exec(ctx, `update client set credits = client.credits - u.n from $u(c bigint, n bigint)
 where client.id = u.c and u.n > 0`, creditColumns(clients, taken)); err != nil {
		return nil, fmt.Errorf("take credits: %w", err)
	}
	return taken, tellCredits(ctx, a, at, changes)
}

func creditColumns(clients []puntuale.ClientID, amounts []int64) engine.Columns {
	return engine.Columns{engine.Column(clients, func(c *puntuale.ClientID) int64 { return int64(*c) }), amounts}
}

// Enter writes entries of the credit ledger. The same transaction must change the credits. The sum of a client's
// entries always equals the client's credits.
func Enter(ctx context.Context, a engine.Querier, kind string, at time.Time, clients []puntuale.ClientID, amounts []int64) error {
	_, err := a.Exec(ctx, `insert into credit_entry (client_id, at, kind, amount)
 select u.c, $1::bigint, $2::text, u.n from $u(c bigint, n bigint) where u.n <> 0`, engine.Micros(at), kind, creditColumns(clients, amounts))
	if err != nil {
		return fmt.Errorf("write the credit ledger: %w", err)
	}
	return nil
}

// giveBack returns credits for messages that certainly did not reach the network. counts contains the number of credits
// for each client. A client whose credits are now unlimited gets nothing.
func giveBack(ctx context.Context, a engine.Querier, at time.Time, counts map[puntuale.ClientID]int64) error {
	if len(counts) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(counts))
	amounts := engine.Column(clients, func(c *puntuale.ClientID) int64 { return counts[*c] })
	limited := map[puntuale.ClientID]bool{}
	err := a.Query(ctx, `update client set credits = client.credits + u.n from $u(c bigint, n bigint)
 where client.id = u.c and client.credits is not null returning client.id`, []any{creditColumns(clients, amounts)},
		func(rows engine.Row) error {
			var c puntuale.ClientID
			if err := rows.Scan(&c); err != nil {
				return err
			}
			limited[c] = true
			return nil
		})
	if err != nil {
		return fmt.Errorf("give credits back: %w", err)
	}
	for i, c := range clients {
		if !limited[c] {
			amounts[i] = 0
		}
	}
	return Enter(ctx, a, "return", at, clients, amounts)
}
