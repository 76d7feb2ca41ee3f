package store

import (
	"context"
	"database/sql"
	"fmt"

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

func (s *Store) Recipients(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, name string) ([]string, error) {
	all, err := list(ctx, s.read, `select phone from alias where client_id = $1 and session_id = $2 and alias = $3 order by phone`, []any{client, session, name},
		func(rows *sql.Rows, phone *string) error { return rows.Scan(phone) })
	if err != nil {
		return nil, outward(fmt.Errorf("read for whom a name stands: %w", err))
	}
	return append([]string{name}, all...), nil
}
