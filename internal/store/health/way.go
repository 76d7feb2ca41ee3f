package health

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// OfficialWays returns the settings of a session, and what Meta's answers say about the ways of its messages. Codes:
// not_found.
func (s *Health) OfficialWays(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, now time.Time) (puntuale.OfficialWays, error) {
	w, err := readWays(ctx, s.db.CallReads, client, session, now)
	return w, engine.PublicError(err)
}

func readWays(ctx context.Context, a engine.Querier, client puntuale.ClientID, session puntuale.SessionID, now time.Time) (w puntuale.OfficialWays, err error) {
	k := puntuale.PauseKey{Client: client, Session: session, Now: now}
	found, err := engine.QueryOne(ctx, a, `select s.direct_send, s.marketing_path, s.creative, coalesce(o.direct_send_at, 0), coalesce(o.opted_out_at, 0), coalesce(o.account, '')
 from session s left join official o on o.client_id = s.client_id and o.session_id = s.id where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{client, session},
		engine.ScanBool(&w.DirectSend), engine.ScanBool(&w.Marketing), engine.ScanBool(&w.Creative), engine.ScanTime(&w.Accepted), engine.ScanTime(&w.OptedOut), &k.Account)
	if err := engine.FoundOr(found, err, puntuale.NoSession); err != nil {
		return w, err
	}
	c := &pauseColumns{}
	c.add(k, puntuale.PauseDirectSend, "")
	c.add(k, puntuale.PauseMarketingPath, "")
	c.add(k, puntuale.PauseCategory, puntuale.CategoryMarketing)
	if w.Pauses, err = readPauses(ctx, a, k, c); err != nil {
		return w, err
	}
	w.Pauses, err = strikes(ctx, a, k, w.Pauses)
	return w, err
}

// strikes changes pauses by what Meta reported about Direct Send by webhook: it adds blocks and restrictions of the
// business, and removes pauses from before Meta lifted a block.
func strikes(ctx context.Context, a engine.Querier, k puntuale.PauseKey, all []puntuale.OfficialPause) ([]puntuale.OfficialPause, error) {
	rows, err := engine.QueryAll(ctx, a, `select h.value, h.detail, h.at, h.until from official_health h where h.client_id = $1 and h.session_id = $2
 and (h.kind = 'direct_send' or h.kind = 'restriction' and h.subject = 'RESTRICTED_DIRECT_SEND_UTILITY_TEMPLATES')`, []any{k.Client, k.Session},
		func(r engine.Row, p *puntuale.OfficialPause) error {
			return r.Scan(&p.Subject, &p.Detail, engine.ScanTime(&p.At), engine.ScanTime(&p.Until))
		})
	if err != nil {
		return nil, fmt.Errorf("read strikes: %w", err)
	}
	for _, p := range rows {
		switch p.Subject {
		case "on":
			all = slices.DeleteFunc(all, func(o puntuale.OfficialPause) bool {
				return o.Kind == puntuale.PauseDirectSend && o.Subject == "" && o.At.Before(p.At)
			})
		case "blocked", "RESTRICTED":
			if p.Kind, p.Subject = puntuale.PauseDirectSend, ""; k.Now.Before(p.Until) {
				all = append(all, p)
			}
		}
	}
	return all, nil
}

// NoteDirectSend stores that Meta took a message by Direct Send. If the store knows this already, it changes nothing.
func (s *Health) NoteDirectSend(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, at time.Time) error {
	return s.note(ctx, client, `update official set direct_send_at = $3 where client_id = $1 and session_id = $2 and direct_send_at = 0`, session, at)
}

// NoteOptOut stores that the session's business told Meta not to change how messages look. Zero: it may change them.
func (s *Health) NoteOptOut(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, at time.Time) error {
	return s.note(ctx, client, `update official set opted_out_at = $3 where client_id = $1 and session_id = $2`, session, at)
}

func (s *Health) note(ctx context.Context, client puntuale.ClientID, statement string, session puntuale.SessionID, at time.Time) error {
	return s.db.TenantWriter(int64(client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, statement, client, session, engine.Micros(at)); err != nil {
			return fmt.Errorf("note what Meta says about a way: %w", err)
		}
		return nil
	}), false)
}
