package store

import (
	"context"
	"encoding/json"
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

const settingColumns = `client_id, remember, keep_replies, consent, opt_out_words, opt_out_answer, takeover_hours, automated_most`

func scanSettings(r engine.Row, client *puntuale.ClientID, c *puntuale.ClientSettings) error {
	words := ""
	if err := r.Scan(client, engine.ScanBool(&c.Remember), &c.KeepReplies, &c.Consent, &words, &c.OptOutAnswer, &c.TakeoverHours, &c.AutomatedMost); err != nil || words == "" {
		return err
	}
	if err := json.Unmarshal([]byte(words), &c.OptOutWords); err != nil {
		return fmt.Errorf("read opt-out words: %w", err)
	}
	return nil
}

func readSettings(ctx context.Context, from engine.Querier, client puntuale.ClientID) (puntuale.ClientSettings, error) {
	c := puntuale.DefaultSettings()
	if err := from.Query(ctx, `select `+settingColumns+` from client_setting where client_id = $1`, []any{client}, func(r engine.Row) error {
		return scanSettings(r, &client, &c)
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
