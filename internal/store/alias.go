package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"puntuale"
)

func (s *Store) KeepAliases(ctx context.Context, all []puntuale.Alias) error {
	for _, x := range all {
		if x.Name == x.Phone || x.Name == "" || x.Phone == "" {
			continue
		}
		if err := s.tenantWriter(x.Client).perform(ctx, single(s.kinds.heard, func(ctx context.Context, a asker) error {
			_, err := a.exec(ctx, `insert into alias (client_id, session_id, alias, phone)
 select s.client_id, s.id, $3::text, $4::text from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0
 on conflict (client_id, session_id, alias, phone) do nothing`, x.Client, x.Session, x.Name, x.Phone)
			return err
		}), false); err != nil {
			return fmt.Errorf("note another name of a person: %w", err)
		}
	}
	return nil
}

// Names of one person are few, and not far from each other: an id stands for a number, and that for the number as the
// network writes it.
const (
	namesMost  = 16
	namesSteps = 3
)

func (s *Store) Recipients(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, name string) ([]string, error) {
	names := []string{name}
	for fresh, steps := names, 0; len(fresh) > 0 && steps < namesSteps && len(names) < namesMost; steps++ {
		found, err := list(ctx, s.read, `
select a.phone from $u(n text) join alias a on a.client_id = $1 and a.session_id = $2 and a.alias = u.n
union
select a.alias from $u(n text) join alias a on a.client_id = $1 and a.phone = u.n and a.session_id = $2
order by 1`, []any{client, session, batch{fresh}}, func(rows *sql.Rows, name *string) error { return rows.Scan(name) })
		if err != nil {
			return nil, outward(fmt.Errorf("read for whom a name stands: %w", err))
		}
		fresh = nil
		for _, other := range found {
			if !slices.Contains(names, other) {
				names, fresh = append(names, other), append(fresh, other)
			}
		}
	}
	return names, nil
}
