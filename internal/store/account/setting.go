package account

import (
	"context"
	"encoding/json"
	"fmt"

	"puntuale"
	"puntuale/internal/store/engine"
)

// storeSettings changes the given settings, and keeps the others. If the client has no row, the statement inserts one
// with the defaults. If a run starts while the setting remember is off, its recipient does not become a contact. The
// client cannot change this by turning the setting on later.
const storeSettings = `
insert into client_setting as s (client_id, remember, keep_replies, consent, opt_out_words, opt_out_answer, takeover_hours, automated_most, confirm_words, cancel_words, button_line,
 flatten_values, pause_costlier, track_links, keep_media)
values ($1, coalesce($2::smallint, 0), coalesce($3::text, 'known'), coalesce($4::text, 'free'), coalesce($5::text, ''), coalesce($6::text, ''), coalesce($7::integer, 12), coalesce($8::integer, 5),
 coalesce($9::text, ''), coalesce($10::text, ''), coalesce($11::text, ''), coalesce($12::smallint, 0), coalesce($13::smallint, 0), coalesce($14::smallint, 0), coalesce($15::smallint, 0))
on conflict (client_id) do update set remember = coalesce($2::smallint, s.remember), remembered_to = s.remembered_to * coalesce($2::smallint, s.remember), keep_replies = coalesce($3::text, s.keep_replies),
 consent = coalesce($4::text, s.consent), opt_out_words = coalesce($5::text, s.opt_out_words), opt_out_answer = coalesce($6::text, s.opt_out_answer),
 takeover_hours = coalesce($7::integer, s.takeover_hours), automated_most = coalesce($8::integer, s.automated_most),
 confirm_words = coalesce($9::text, s.confirm_words), cancel_words = coalesce($10::text, s.cancel_words), button_line = coalesce($11::text, s.button_line),
 flatten_values = coalesce($12::smallint, s.flatten_values), pause_costlier = coalesce($13::smallint, s.pause_costlier), track_links = coalesce($14::smallint, s.track_links),
 keep_media = coalesce($15::smallint, s.keep_media)`

// StoreSettings changes a client's settings in the caller's transaction.
func StoreSettings(ctx context.Context, a engine.Querier, client puntuale.ClientID, p puntuale.SettingsPatch) error {
	bit := func(b *bool) any {
		if b == nil {
			return nil
		}
		return engine.Bit(*b)
	}
	var words [3]any
	for i, all := range []*[]string{p.OptOutWords, p.ConfirmWords, p.CancelWords} {
		if all == nil {
			continue
		}
		if words[i] = ""; len(*all) > 0 {
			text, err := json.Marshal(*all)
			if err != nil {
				return fmt.Errorf("keep a client's words: %w", err)
			}
			words[i] = string(text)
		}
	}
	if _, err := a.Exec(ctx, storeSettings, client, bit(p.Remember), orNull((*string)(p.KeepReplies)), orNull((*string)(p.Consent)), words[0],
		orNull(p.OptOutAnswer), orNull(p.TakeoverHours), orNull(p.AutomatedMost), words[1], words[2], orNull(p.ButtonLine),
		bit(p.FlattenValues), bit(p.PauseCostlier), bit(p.TrackLinks), bit(p.KeepMedia)); err != nil {
		return fmt.Errorf("keep a client's settings: %w", err)
	}
	if p.KeepMedia != nil && !*p.KeepMedia {
		if _, err := a.Exec(ctx, `delete from incoming_file where client_id = $1 and next_at > 0`, client); err != nil {
			return fmt.Errorf("give up files that are not kept yet: %w", err)
		}
	}
	return nil
}

// orNull returns the value of a pointer, or nil (null in SQL) if the pointer is nil.
func orNull[T any](p *T) any {
	if p == nil {
		return nil
	}
	return *p
}

// SettingColumns lists the columns that [ScanSettings] scans.
const SettingColumns = `client_id, remember, keep_replies, consent, opt_out_words, opt_out_answer, takeover_hours, automated_most, confirm_words,
 cancel_words, button_line, flatten_values, pause_costlier, track_links, keep_media`

// ScanSettings scans a row of a client's settings.
func ScanSettings(r engine.Row, client *puntuale.ClientID, c *puntuale.ClientSettings) error {
	var words [3]string
	if err := r.Scan(client, engine.ScanBool(&c.Remember), &c.KeepReplies, &c.Consent, &words[0], &c.OptOutAnswer, &c.TakeoverHours, &c.AutomatedMost,
		&words[1], &words[2], &c.ButtonLine, engine.ScanBool(&c.FlattenValues), engine.ScanBool(&c.PauseCostlier), engine.ScanBool(&c.TrackLinks), engine.ScanBool(&c.KeepMedia)); err != nil {
		return err
	}
	for i, all := range []*[]string{&c.OptOutWords, &c.ConfirmWords, &c.CancelWords} {
		if words[i] == "" {
			continue
		}
		if err := json.Unmarshal([]byte(words[i]), all); err != nil {
			return fmt.Errorf("read a client's words: %w", err)
		}
	}
	return nil
}

// ReadSettings reads a client's settings.
func ReadSettings(ctx context.Context, a engine.Querier, client puntuale.ClientID) (puntuale.ClientSettings, error) {
	c := puntuale.DefaultSettings()
	if err := a.Query(ctx, `select `+SettingColumns+` from client_setting where client_id = $1`, []any{client}, func(r engine.Row) error {
		return ScanSettings(r, &client, &c)
	}); err != nil {
		return c, fmt.Errorf("read a client's settings: %w", err)
	}
	return c, nil
}
