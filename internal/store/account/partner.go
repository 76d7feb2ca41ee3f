package account

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Accounts stores partners, their clients and their users. It has what people need to sign in, and the methods of
// puntuale.Operator about accounts.
type Accounts struct{ *engine.DB }

// NewAccounts returns Accounts that run their statements on db.
func NewAccounts(db *engine.DB) *Accounts { return &Accounts{db} }

// Partner gives access to one partner's data. Every statement of its methods contains the partner's id.
type Partner struct {
	s  *Accounts
	id puntuale.PartnerID
}

// Partner gives access to this partner's data, and to no other data. It does not check in the database whether the
// partner exists.
func (s *Accounts) Partner(id puntuale.PartnerID) Partner { return Partner{s, id} }

// write runs a transaction for the partner.
func (p Partner) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return p.s.Write(ctx, p.owner(), do)
}

// once runs a transaction for the partner. o is the caller's idempotency key, or nil.
func (p Partner) once(ctx context.Context, o *puntuale.Idempotency, do func(ctx context.Context, a engine.Querier) (any, error)) error {
	return p.s.Once(ctx, p.owner(), o, do)
}

func (p Partner) KeptAnswer(ctx context.Context, o puntuale.Idempotency) ([]byte, error) {
	answer, err := engine.FindAnswer(ctx, p.s.CallReads, p.owner(), &o)
	return answer, engine.PublicError(err)
}

// owner returns the negative id of the partner, so that a partner's idempotency keys are separate from those of
// clients.
func (p Partner) owner() int64 { return -int64(p.id) }

// PartnersByLogin returns the partners that have a login with this e-mail, oldest first. It ignores case.
func (s *Accounts) PartnersByLogin(ctx context.Context, email string) ([]puntuale.Partner, error) {
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

// ClientOfSession returns the partner's client that has the session. Codes: not_found.
func (p Partner) ClientOfSession(ctx context.Context, id puntuale.SessionID) (client puntuale.ClientID, err error) {
	found, err := engine.QueryOne(ctx, p.s.CallReads, `select c.id from session s join client c on c.id = s.client_id and c.partner_id = $1 and c.deleted_at = 0
 where s.id = $2 and s.deleted_at = 0`, []any{p.id, id}, &client)
	return client, engine.FoundOr(found, err, puntuale.NoSession)
}
