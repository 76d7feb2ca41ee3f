package store

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"puntuale"
)

func (p partnerTenant) Host(ctx context.Context) (puntuale.Host, error) {
	return p.s.host(ctx, `p.id = $1`, p.id)
}

func (p partnerTenant) Logo(ctx context.Context) (logo []byte, kind string, err error) {
	_, err = one(ctx, p.s.read, `select logo, logo_kind from brand where partner_id = $1 and logo_kind <> ''`, []any{p.id}, &logo, &kind)
	if err != nil {
		return nil, "", outward(fmt.Errorf("read a logo: %w", err))
	}
	return logo, kind, nil
}

func (p partnerTenant) SetBrand(ctx context.Context, b puntuale.Brand) error {
	sum := sha256.Sum256(append([]byte(b.Colour+"\n"+b.LogoKind+"\n"), b.Logo...))
	mark := hex.EncodeToString(sum[:8])
	if b.Logo == nil {
		b.Logo = []byte{}
	}
	return p.write(ctx, func(ctx context.Context, a asker) error {
		if err := p.lockUsers(ctx, a, 0); err != nil {
			return err
		}
		if _, err := a.exec(ctx, `insert into brand (partner_id, name, colour, logo, logo_kind, host, mark) values ($1, $2, $3, $4, $5, $6, $7)
 on conflict (partner_id) do update set name = excluded.name, colour = excluded.colour, logo = excluded.logo, logo_kind = excluded.logo_kind,
 host = excluded.host, mark = excluded.mark`, p.id, b.Name, b.Colour, b.Logo, b.LogoKind, b.Host, mark); err != nil {
			if repeated(err) {
				return puntuale.Conflict("another partner has this host name")
			}
			return fmt.Errorf("store a brand: %w", err)
		}
		return nil
	})
}
