package store

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
)

// takeCredits subtracts from each client, in order, what it has of the amount asked, and returns that.
func takeCredits(ctx context.Context, a asker, clients []puntuale.ClientID, amounts []int64) ([]int64, error) {
	have := map[puntuale.ClientID]int64{}
	err := a.each(ctx, `update client set credits = client.credits - u.n from $u(c bigint, n bigint)
 where client.id = u.c and client.credits >= u.n returning client.id`, []any{creditColumns(clients, amounts)},
		func(rows *sql.Rows) error {
			var c puntuale.ClientID
			if err := rows.Scan(&c); err != nil {
				return err
			}
			have[c] = -1 // all
			return nil
		})
	if err != nil {
		return nil, fmt.Errorf("take credits: %w", err)
	}
	taken := slices.Clone(amounts)
	for i, c := range clients {
		if have[c] == -1 {
			continue
		}
		// Too few. Clients before this one are locked, clients after it may be too: an error here is a deadlock, and
		// the whole claim runs again.
		if taken[i], err = takeRest(ctx, a, c, amounts[i]); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// takeRest takes what a client has left, at most n.
func takeRest(ctx context.Context, a asker, c puntuale.ClientID, n int64) (int64, error) {
	var left sql.NullInt64
	if _, err := one(ctx, a, `select credits from client where id = $1 for no key update`, []any{c}, &left); err != nil {
		return 0, fmt.Errorf("lock credits: %w", err)
	}
	if !left.Valid {
		return 0, fmt.Errorf("credits became unlimited: %w", errAgain)
	}
	n = min(n, left.Int64)
	if n == 0 {
		return 0, nil
	}
	if _, err := a.exec(ctx, `update client set credits = credits - $2::bigint where id = $1`, c, n); err != nil {
		return 0, fmt.Errorf("take the rest of credits: %w", err)
	}
	return n, nil
}

func creditColumns(clients []puntuale.ClientID, amounts []int64) batch {
	return batch{pick(clients, func(c *puntuale.ClientID) int64 { return int64(*c) }), amounts}
}

// enter writes the ledger's entries for changes of credits made in the same transaction. The sum of a client's entries
// is its credits.
func enter(ctx context.Context, a asker, kind string, at time.Time, clients []puntuale.ClientID, amounts []int64) error {
	_, err := a.exec(ctx, `insert into credit_entry (client_id, at, kind, amount)
 select u.c, $1::bigint, $2::text, u.n from $u(c bigint, n bigint) where u.n <> 0`, micros(at), kind, creditColumns(clients, amounts))
	if err != nil {
		return fmt.Errorf("write the credit ledger: %w", err)
	}
	return nil
}

// giveBack returns credits on evidence that messages did not reach the network; counts is by client. Clients that have
// no limit by now get nothing.
func giveBack(ctx context.Context, a asker, at time.Time, counts map[puntuale.ClientID]int64) error {
	if len(counts) == 0 {
		return nil
	}
	clients := slices.Sorted(maps.Keys(counts))
	amounts := pick(clients, func(c *puntuale.ClientID) int64 { return counts[*c] })
	limited := map[puntuale.ClientID]bool{}
	err := a.each(ctx, `update client set credits = client.credits + u.n from $u(c bigint, n bigint)
 where client.id = u.c and client.credits is not null returning client.id`, []any{creditColumns(clients, amounts)},
		func(rows *sql.Rows) error {
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
	return enter(ctx, a, "return", at, clients, amounts)
}
