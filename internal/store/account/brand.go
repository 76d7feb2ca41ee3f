package account

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

func (p Partner) Host(ctx context.Context) (puntuale.Host, error) {
	return p.s.host(ctx, `p.id = $1`, p.id)
}

// Logo returns the logo and its media type. The result logo is nil if there is none.
func (p Partner) Logo(ctx context.Context) (logo []byte, kind string, err error) {
	_, err = engine.QueryOne(ctx, p.s.CallReads, `select logo, logo_kind from brand where partner_id = $1 and logo_kind <> ''`, []any{p.id}, &logo, &kind)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("read a logo: %w", err))
	}
	return logo, kind, nil
}

var errOthersHost = puntuale.Conflict(puntuale.FaultPartnerHostTaken)

// SetBrand stores the brand. The store sets Mark. Confirmed stays true only if Host is unchanged. A new host name
// must be confirmed, and several partners may wait for the same name. If the argument known is not empty, the
// stored version must be in it. Codes: conflict (the name is confirmed for another partner); precondition_failed.
func (p Partner) SetBrand(ctx context.Context, b puntuale.Brand, known ...puntuale.Version) error {
	sum := sha256.Sum256(append([]byte(b.Colour+"\n"+b.LogoKind+"\n"), b.Logo...))
	mark := hex.EncodeToString(sum[:8])
	if b.Logo == nil {
		b.Logo = []byte{}
	}
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := p.lockUsers(ctx, a, 0); err != nil { // until this transaction commits, no other transaction can set the brand
			return err
		}
		var h puntuale.Host
		found, err := engine.QueryOne(ctx, a, `select `+hostColumns+` from partner p left join brand b on b.partner_id = p.id where p.id = $1`, []any{p.id}, hostFields(&h)...)
		if err := engine.ThereOr(found, err, puntuale.NoPartner); err != nil {
			return err
		}
		if err := puntuale.CheckVersion(h.Brand.Version(), known); err != nil {
			return err
		}
		var other puntuale.PartnerID
		taken, err := engine.QueryOne(ctx, a, `select partner_id from brand where confirmed = $1 and confirmed <> '' and partner_id <> $2`, []any{b.Host, p.id}, &other)
		switch {
		case err != nil:
			return fmt.Errorf("look for a host name: %w", err)
		case taken:
			return errOthersHost
		}
		if _, err := a.Exec(ctx, `insert into brand (partner_id, name, colour, logo, logo_kind, host, mark) values ($1, $2, $3, $4, $5, $6, $7)
 on conflict (partner_id) do update set name = excluded.name, colour = excluded.colour, logo = excluded.logo, logo_kind = excluded.logo_kind,
 host = excluded.host, mark = excluded.mark, confirmed = case when brand.host = excluded.host then brand.confirmed else '' end`,
			p.id, b.Name, b.Colour, b.Logo, b.LogoKind, b.Host, mark); err != nil {
			return fmt.Errorf("store a brand: %w", err)
		}
		return nil
	})
}

// ConfirmHost confirms the host name that the partner asks for. If several partners confirm the same name at
// the same time, only one call succeeds. Codes: not_found (the partner does not ask for this name); conflict (the name is
// confirmed for another partner).
func (p Partner) ConfirmHost(ctx context.Context, name string) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update brand set confirmed = host where partner_id = $1 and host = $2 and host <> ''`, p.id, name)
		if engine.Repeated(err) {
			return errOthersHost
		}
		return engine.ThereOr(n > 0, err, puntuale.NoHost)
	})
}

// WithdrawHost ends the confirmation, so the name waits to be confirmed again. Codes: not_found (no name is
// confirmed).
func (p Partner) WithdrawHost(ctx context.Context) error {
	return p.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update brand set confirmed = '' where partner_id = $1 and confirmed <> ''`, p.id)
		return engine.ThereOr(n > 0, err, puntuale.NoHost)
	})
}

// Hosts returns the partners that have requested a host name, sorted by name and partner, without logos.
func (s *Accounts) Hosts(ctx context.Context) ([]puntuale.Host, error) {
	all, err := engine.QueryAll(ctx, s.CallReads, `select `+hostColumns+` from partner p join brand b on b.partner_id = p.id where b.host <> '' order by b.host, p.id`,
		nil, func(rows engine.Row, h *puntuale.Host) error { return rows.Scan(hostFields(h)...) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list host names: %w", err))
	}
	return all, nil
}
