package store

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// PartnersByLogin returns the partners that have a login of their own with this e-mail, in any case of letters, oldest
// first.
func (s *Store) PartnersByLogin(ctx context.Context, email string) ([]puntuale.Partner, error) {
	partners, err := engine.QueryAll(ctx, s.CallReads, `select p.id, p.name, p.slug, p.created_at from partner p
 where exists (select 1 from login l where l.partner_id = p.id and l.client_id = 0 and lower(l.email) = lower($1))
 order by p.id`, []any{email}, func(rows engine.Row, p *puntuale.Partner) error {
		return rows.Scan(&p.ID, &p.Name, &p.Slug, engine.ScanTime(&p.Created))
	})
	if err != nil {
		return nil, fmt.Errorf("read partners by login: %w", err)
	}
	return partners, nil
}
