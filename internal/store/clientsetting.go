package store

import (
	"context"
	"fmt"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
)

func (t tenant) Settings(ctx context.Context) (puntuale.ClientSettings, error) {
	return t.s.SettingsOf(ctx, t.id)
}

func (s *Store) SettingsOf(ctx context.Context, client puntuale.ClientID) (puntuale.ClientSettings, error) {
	return readSettings(ctx, s.CallReads, client)
}

func readSettings(ctx context.Context, from engine.Querier, client puntuale.ClientID) (puntuale.ClientSettings, error) {
	c := puntuale.DefaultSettings()
	if err := from.Query(ctx, `select `+account.SettingColumns+` from client_setting where client_id = $1`, []any{client}, func(r engine.Row) error {
		return account.ScanSettings(r, &client, &c)
	}); err != nil {
		return c, engine.PublicError(fmt.Errorf("read a client's settings: %w", err))
	}
	return c, nil
}

func (t tenant) UpdateSettings(ctx context.Context, p puntuale.SettingsPatch) (c puntuale.ClientSettings, err error) {
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := account.StoreSettings(ctx, a, t.id, p); err != nil {
			return err
		}
		c, err = readSettings(ctx, a, t.id)
		return err
	})
	return c, err
}
