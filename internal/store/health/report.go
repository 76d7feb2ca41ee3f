package health

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/outbox"
)

// HealthReports returns what Meta said about the number and the business of a session.
func (s *Health) HealthReports(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID) ([]puntuale.HealthReport, error) {
	all, err := reports(ctx, s.db.CallReads, client, session, "")
	return all, engine.PublicError(err)
}

func reports(ctx context.Context, a engine.Querier, client puntuale.ClientID, session puntuale.SessionID, lock string) ([]puntuale.HealthReport, error) {
	all, err := engine.QueryAll(ctx, a, `select h.client_id, h.session_id, h.kind, h.subject, h.value, h.detail, h.at, h.until, h.confirmed_at
 from official_health h where h.client_id = $1 and h.session_id = $2 order by h.kind, h.subject`+lock, []any{client, session}, func(r engine.Row, h *puntuale.HealthReport) error {
		return r.Scan(&h.Client, &h.Session, &h.Kind, &h.Subject, &h.Value, &h.Detail, engine.ScanTime(&h.At), engine.ScanTime(&h.Until), engine.ScanTime(&h.Confirmed))
	})
	if err != nil {
		return nil, fmt.Errorf("read the health of a session: %w", err)
	}
	return all, nil
}

// SessionHealth summarises what Meta said about a session.
func (s *Health) SessionHealth(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, now time.Time) (puntuale.SessionHealth, error) {
	h, err := summary(ctx, s.db.CallReads, client, session, now)
	if err == nil {
		h.FreeService, err = freeService(ctx, s.db.CallReads, client, session, now)
	}
	return h, engine.PublicError(err)
}

// maxPaused is how many paused templates a summary names.
const maxPaused = 100

func pausedTemplates(ctx context.Context, a engine.Querier, client puntuale.ClientID, session puntuale.SessionID) ([]string, error) {
	all, err := engine.QueryAll(ctx, a, `select distinct n.name from official o join network_template n on n.client_id = o.client_id and n.account = o.account
 where o.client_id = $1 and o.session_id = $2 and o.account <> '' and n.status = 'PAUSED' order by n.name limit $3`, []any{client, session, maxPaused}, engine.ScanOne[string])
	if err != nil {
		return nil, fmt.Errorf("read paused templates: %w", err)
	}
	return all, nil
}

// KeepHealth stores reports of one client. A report that is older than what the store has about the same subject changes
// nothing. A new limit counts for all sessions of the portfolio. A change that people or programs should know is an event
// in the same transaction.
func (s *Health) KeepHealth(ctx context.Context, all []puntuale.HealthReport, now time.Time) error {
	if len(all) == 0 {
		return nil
	}
	client := all[0].Client
	return s.change(ctx, client, now, func(ctx context.Context, a engine.Querier) ([]puntuale.HealthReport, error) {
		for _, r := range all {
			if r.Kind != puntuale.HealthLimit {
				continue
			}
			siblings, err := engine.QueryAll(ctx, a, `select distinct o.session_id from official_health i join official_health o
 on o.client_id = i.client_id and o.kind = i.kind and o.value = i.value where i.client_id = $1 and i.session_id = $2 and i.kind = 'portfolio' and o.session_id <> $2`,
				[]any{client, r.Session}, engine.ScanOne[puntuale.SessionID])
			if err != nil {
				return nil, fmt.Errorf("look for the sessions of a portfolio: %w", err)
			}
			for _, r.Session = range siblings {
				all = append(all, r)
			}
		}
		return all, nil
	}, func(ctx context.Context, a engine.Querier, r puntuale.HealthReport) error {
		n, err := a.Exec(ctx, `insert into official_health as g (client_id, session_id, kind, subject, value, detail, at, until, confirmed_at)
 select s.client_id, s.id, $3::text, $4::text, $5::text, $6::text, $7::bigint, $8::bigint, $9::bigint from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0
 on conflict (client_id, session_id, kind, subject) do update
 set value = excluded.value, detail = excluded.detail, at = excluded.at, until = excluded.until,
 confirmed_at = case when g.value = excluded.value then greatest(g.confirmed_at, excluded.confirmed_at) else excluded.confirmed_at end
 where g.at <= excluded.at`,
			client, r.Session, string(r.Kind), r.Subject, r.Value, r.Detail, engine.Micros(r.At), engine.Micros(r.Until), engine.Micros(r.Confirmed))
		if err != nil {
			return fmt.Errorf("keep the health of a session: %w", err)
		}
		if n == 0 || r.Kind != puntuale.HealthLimit {
			return nil
		}
		limit, err := strconv.Atoi(r.Value)
		if err != nil {
			return nil //nolint:nilerr // the connector writes only numbers
		}
		if _, err := a.Exec(ctx, `update official set reach_limit = $3 where client_id = $1 and session_id = $2`, client, r.Session, limit); err != nil {
			return fmt.Errorf("note a business's limit: %w", err)
		}
		return nil
	})
}

// hintFor is how long a report that Meta's answer does not confirm is kept, because answers may be older than webhooks.
const hintFor = 24 * time.Hour

// ConfirmHealth stores which of the reports that stop messages of a session Meta's answer confirms. If Meta says that the
// number can send, it removes reports that are older than a day.
func (s *Health) ConfirmHealth(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, can string, now time.Time) error {
	refuted := func(r puntuale.HealthReport) bool {
		return r.Confirmed.IsZero() && can == puntuale.MetaAvailable && now.Sub(r.At) > hintFor
	}
	return s.change(ctx, client, now, func(ctx context.Context, a engine.Querier) ([]puntuale.HealthReport, error) {
		all, err := reports(ctx, a, client, session, "")
		return slices.DeleteFunc(all, func(r puntuale.HealthReport) bool {
			return !r.Stops() || r.ConfirmedBy(can) != r.Confirmed.IsZero() && !refuted(r)
		}), err
	}, func(ctx context.Context, a engine.Querier, r puntuale.HealthReport) error {
		if refuted(r) {
			if _, err := a.Exec(ctx, `delete from official_health where client_id = $1 and session_id = $2 and kind = $3 and subject = $4`, client, r.Session, string(r.Kind), r.Subject); err != nil {
				return fmt.Errorf("remove a report of a session: %w", err)
			}
			return nil
		}
		at := time.Time{}
		if r.ConfirmedBy(can) {
			at = now
		}
		if _, err := a.Exec(ctx, `update official_health set confirmed_at = $5 where client_id = $1 and session_id = $2 and kind = $3 and subject = $4`,
			client, r.Session, string(r.Kind), r.Subject, engine.Micros(at)); err != nil {
			return fmt.Errorf("confirm the health of a session: %w", err)
		}
		return nil
	})
}

// change changes reports, and writes an event and notices for each session whose summary changes. list returns the
// reports to change. Locks: the sessions, in the order of their ids.
func (s *Health) change(ctx context.Context, client puntuale.ClientID, now time.Time, list func(context.Context, engine.Querier) ([]puntuale.HealthReport, error), do func(context.Context, engine.Querier, puntuale.HealthReport) error) error {
	return s.db.TenantWriter(int64(client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
		all, err := list(ctx, a)
		if err != nil {
			return err
		}
		engine.SortStable(all, func(a, b puntuale.HealthReport) int { return cmp.Compare(a.Session, b.Session) })
		for len(all) > 0 {
			id := all[0].Session
			n := slices.IndexFunc(all, func(r puntuale.HealthReport) bool { return r.Session != id })
			if n < 0 {
				n = len(all)
			}
			if err := changeOne(ctx, a, client, id, now, func() error {
				for _, r := range all[:n] {
					if err := do(ctx, a, r); err != nil {
						return err
					}
				}
				return nil
			}); err != nil {
				return err
			}
			all = all[n:]
		}
		return nil
	}), false)
}

func changeOne(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.SessionID, now time.Time, do func() error) error {
	var name string
	found, err := engine.QueryOne(ctx, a, `select s.name from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0 for no key update of s`, []any{client, id}, &name)
	if err != nil || !found {
		return err
	}
	before, err := summary(ctx, a, client, id, now)
	if err != nil {
		return err
	}
	if err := do(); err != nil {
		return err
	}
	after, err := summary(ctx, a, client, id, now)
	if err != nil || same(before, after) || before.Checked.IsZero() && len(before.Advice)+len(after.Advice) == 0 { // the first healthy report is no change
		return err
	}
	detail, err := outbox.Detail(detailOf(name, after))
	if err != nil {
		return err
	}
	for _, reason := range after.Advice {
		if slices.ContainsFunc(before.Advice, reason.Equal) {
			continue
		}
		if err := notice.Add(ctx, a, puntuale.Notice{Client: client, Kind: puntuale.NoticeHealth, Subject: int64(id), At: now, Detail: puntuale.NoticeDetail{Reason: reason.Stored()}}); err != nil {
			return err
		}
	}
	return outbox.Tell(ctx, a, now, outbox.Fact{Client: client, Type: puntuale.EventSessionHealth, Subject: int64(id), Detail: detail})
}

func summary(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.SessionID, now time.Time) (puntuale.SessionHealth, error) {
	all, err := reports(ctx, a, client, id, "")
	if err != nil {
		return puntuale.SessionHealth{}, err
	}
	ways, err := readWays(ctx, a, client, id, now)
	if err != nil {
		return puntuale.SessionHealth{}, err
	}
	paused, err := pausedTemplates(ctx, a, client, id)
	return puntuale.HealthOf(all, ways, paused, now), err
}

// freeService returns how many messages of the present month, in the client's zone, Meta told to be free service messages.
func freeService(ctx context.Context, a engine.Querier, client puntuale.ClientID, id puntuale.SessionID, now time.Time) (n int64, err error) {
	var zone string
	var month int64
	if _, err := engine.QueryOne(ctx, a, `select f.month, f.messages, k.zone from free_service f join client k on k.id = f.client_id where f.client_id = $1 and f.session_id = $2 order by f.month desc limit 1`,
		[]any{client, id}, &month, &n, &zone); err != nil {
		return 0, fmt.Errorf("read how many service messages are free: %w", err)
	}
	if puntuale.Month(month) != puntuale.MonthIn(now, zone) {
		n = 0
	}
	return n, nil
}

// same reports whether two summaries need no event.
func same(a, b puntuale.SessionHealth) bool {
	return a.Quality == b.Quality && a.Limit == b.Limit && a.Restriction == b.Restriction && a.RestrictedUntil.Equal(b.RestrictedUntil) &&
		a.DisplayName == b.DisplayName && a.DirectSend == b.DirectSend && slices.EqualFunc(a.Advice, b.Advice, puntuale.Reason.Equal)
}

// eventDetail is the detail of the event about a session's health.
type eventDetail struct {
	Name        string   `json:"name"`
	Quality     *string  `json:"quality"`
	Limit       *int     `json:"limit"`
	Until       *string  `json:"restricted_until"`
	Restriction *string  `json:"restriction"`
	DisplayName *string  `json:"display_name"`
	Paused      []string `json:"paused_templates"`
	DirectSend  string   `json:"direct_send"`
	Checked     *string  `json:"checked_at"`
}

func detailOf(name string, h puntuale.SessionHealth) eventDetail {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	d := eventDetail{
		Name: name, Quality: text(h.Quality), Until: text(outbox.Moment(h.RestrictedUntil)), Restriction: text(h.Restriction),
		DisplayName: text(h.DisplayName), Paused: append([]string{}, h.PausedTemplates...), DirectSend: string(h.DirectSend), Checked: text(outbox.Moment(h.Checked)),
	}
	if h.Limit > 0 {
		d.Limit = &h.Limit
	}
	return d
}
