package store

import (
	"context"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
)

func (t tenant) Settings(ctx context.Context) (puntuale.ClientSettings, error) {
	return t.s.SettingsOf(ctx, t.id)
}

func (s *Store) SettingsOf(ctx context.Context, client puntuale.ClientID) (puntuale.ClientSettings, error) {
	c, err := account.ReadSettings(ctx, s.CallReads, client)
	return c, engine.PublicError(err)
}

// UpdateSettings changes settings. It first locks the client's row, as all changes of settings do.
func (t tenant) UpdateSettings(ctx context.Context, p puntuale.SettingsPatch, known ...puntuale.Version) (c puntuale.ClientSettings, err error) {
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var one int64
		found, err := engine.QueryOne(ctx, a, `select id from client where id = $1 and deleted_at = 0 for update`, []any{t.id}, &one)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		if c, err = account.ReadSettings(ctx, a, t.id); err != nil {
			return err
		}
		if err := puntuale.CheckVersion(c.Version(), known); err != nil {
			return err
		}
		if err := account.StoreSettings(ctx, a, t.id, p); err != nil {
			return err
		}
		if c, err = account.ReadSettings(ctx, a, t.id); err != nil || p.FlattenValues == nil {
			return err
		}
		return account.Changed(ctx, a, t.id) // starts that are in memory must plan their values again
	})
	return c, err
}
