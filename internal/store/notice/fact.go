package notice

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Fact is something that a transaction makes true. It has the same fields as outbox.Fact.
type Fact struct {
	Client  puntuale.ClientID
	Type    puntuale.EventType
	Subject int64
	Detail  string
}

// ofEvents maps events to the kinds of notices that their facts write. Other facts write no notice.
var ofEvents = map[puntuale.EventType]puntuale.NoticeKind{
	puntuale.EventSessionOffline:    puntuale.NoticeDisconnected,
	puntuale.EventSessionUnlinked:   puntuale.NoticeDisconnected,
	puntuale.EventSessionRestricted: puntuale.NoticeDisconnected,
	puntuale.EventSessionOnline:     puntuale.NoticeReconnected,
	puntuale.EventCreditLow:         puntuale.NoticeCreditLow,
	puntuale.EventCreditOut:         puntuale.NoticeCreditOut,
	puntuale.EventCapReached:        puntuale.NoticeCapReached,
	puntuale.EventAccountExpiring:   puntuale.NoticeExpiring,
	puntuale.EventAccountExpired:    puntuale.NoticeExpiring,
	puntuale.EventCampaignDone:      puntuale.NoticeCampaignDone,
	puntuale.EventCampaignPaused:    puntuale.NoticeCampaignPaused,
	puntuale.EventWebhookDisabled:   puntuale.NoticeWebhookDisabled,
	puntuale.EventBudgetLow:         puntuale.NoticeBudget,
	puntuale.EventBudgetOut:         puntuale.NoticeBudget,
}

// Tell writes the notices of a fact, in the transaction that makes the fact true. A fact without a client is about a
// webhook of a partner. Locks: the open notice of the session. Only transactions about this session lock that notice.
func Tell(ctx context.Context, a engine.Querier, at time.Time, f Fact) error {
	kind, ok := ofEvents[f.Type]
	if !ok {
		return nil
	}
	n := puntuale.Notice{Client: f.Client, Kind: kind, Subject: f.Subject, At: at}
	if f.Detail != "" {
		if err := json.Unmarshal([]byte(f.Detail), &n.Detail); err != nil {
			return fmt.Errorf("read the detail of a fact: %w", err)
		}
	}
	state := n.Detail.State
	switch {
	case kind == puntuale.NoticeDisconnected && state == puntuale.LinkOnline.String(): // no notice: the session still sends, except to cold contacts
		return nil
	case kind == puntuale.NoticeDisconnected:
		n.Detail = puntuale.NoticeDetail{Event: f.Type}
		return disconnected(ctx, a, n)
	case kind == puntuale.NoticeReconnected:
		n.Detail = puntuale.NoticeDetail{}
		return reconnected(ctx, a, n)
	case kind == puntuale.NoticeCampaignDone && state == puntuale.CampaignCancelled.String(): // no notice: a person cancelled the campaign
		return nil
	case kind == puntuale.NoticeCampaignPaused && n.Detail.Reason == "": // no notice: a person paused the campaign
		return nil
	case kind == puntuale.NoticeExpiring:
		n.Detail.Event = f.Type
		return toBoth(ctx, a, n, gathered)
	case kind == puntuale.NoticeBudget:
		n.Detail = puntuale.NoticeDetail{Event: f.Type}
		return toBoth(ctx, a, n, insertOfPartner)
	case f.Client == 0:
		return ofPartnersWebhook(ctx, a, n)
	}
	return insert(ctx, a, n, 0)
}

// Add writes a notice that is due immediately. If the notice has a client, the notice's partner is the client's partner.
func Add(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	if n.Client == 0 {
		return insertOfPartner(ctx, a, n)
	}
	return insert(ctx, a, n, 0)
}

// insert writes a notice for a client's users. The notice is due after wait. If wait is not 0, the notice is open.
func insert(ctx context.Context, a engine.Querier, n puntuale.Notice, wait time.Duration) error {
	detail, err := engine.ToJSON(n.Detail)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `insert into notice (partner_id, client_id, login_id, kind, subject, detail, at, due_at, open)
 select k.partner_id, k.id, $2::bigint, $3::smallint, $4::bigint, $5::text, $6::bigint, $7::bigint, $8::smallint from client k where k.id = $1 and k.deleted_at = 0`,
		n.Client, n.User, int64(n.Kind), n.Subject, detail, engine.Micros(n.At), engine.Micros(n.At.Add(wait)), engine.Bit(wait > 0)); err != nil {
		return fmt.Errorf("write a notice: %w", err)
	}
	return nil
}

func insertOfPartner(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	detail, err := engine.ToJSON(n.Detail)
	if err != nil {
		return err
	}
	if _, err := a.Exec(ctx, `insert into notice (partner_id, client_id, login_id, kind, subject, detail, at, due_at) values ($1, 0, $2, $3, $4, $5, $6, $6)`,
		n.Partner, n.User, int64(n.Kind), n.Subject, detail, engine.Micros(n.At)); err != nil {
		return fmt.Errorf("write a notice: %w", err)
	}
	return nil
}

// disconnected writes the open notice of an incident, or updates the session's open notice.
func disconnected(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	detail, err := engine.ToJSON(n.Detail)
	if err != nil {
		return err
	}
	changed, err := a.Exec(ctx, `update notice set detail = $3 where client_id = $1 and subject = $2 and open = 1`, n.Client, n.Subject, detail)
	if err != nil {
		return fmt.Errorf("change a notice: %w", err)
	}
	if changed > 0 {
		return nil
	}
	return insert(ctx, a, n, puntuale.NoticeWait)
}

// reconnected ends the session's incident, if there is one.
func reconnected(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	if _, err := a.Exec(ctx, `delete from notice where client_id = $1 and subject = $2 and open = 1 and due_at > $3 and mailed = 0`, n.Client, n.Subject, engine.Micros(n.At)); err != nil {
		return fmt.Errorf("delete a notice: %w", err)
	}
	closed, err := a.Exec(ctx, `update notice set open = 0 where client_id = $1 and subject = $2 and open = 1`, n.Client, n.Subject)
	if err != nil {
		return fmt.Errorf("close a notice: %w", err)
	}
	if closed == 0 {
		return nil
	}
	return insert(ctx, a, n, 0)
}

// toBoth writes a notice for the client's users, and another for the partner's users.
func toBoth(ctx context.Context, a engine.Querier, n puntuale.Notice, toPartner func(context.Context, engine.Querier, puntuale.Notice) error) error {
	if err := insert(ctx, a, n, 0); err != nil {
		return err
	}
	found, err := engine.QueryOne(ctx, a, `select k.partner_id from client k where k.id = $1 and k.deleted_at = 0`, []any{n.Client}, &n.Partner)
	if err != nil || !found {
		return err
	}
	kind := puntuale.NoticeClientBudget
	if n.Kind == puntuale.NoticeExpiring {
		kind = puntuale.NoticeClientExpiring
	}
	n.Kind, n.Subject, n.Client = kind, int64(n.Client), 0
	return toPartner(ctx, a, n)
}

// gathered writes a notice about a client that expires. The notice joins the one about other clients of the partner that
// was written at the same time for the same reason, so that many trials of one day are one notice.
func gathered(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	type written struct {
		id     int64
		detail puntuale.NoticeDetail
		fault  error // why the detail cannot be decoded; the notice then stays as it is
	}
	all, err := engine.QueryAll(ctx, a, `select x.id, x.detail from notice x where x.client_id = 0 and x.partner_id = $1 and x.kind = $2 and x.due_at = $3`,
		[]any{n.Partner, int64(n.Kind), engine.Micros(n.At)}, func(r engine.Row, w *written) error {
			return r.Scan(engine.ScanFaulty(&w.fault, &w.id, engine.ScanJSON(&w.detail))...)
		})
	if err != nil {
		return fmt.Errorf("look for notices of the same time: %w", err)
	}
	for _, w := range all {
		if w.fault != nil || w.detail.Event != n.Detail.Event || w.detail.Days != n.Detail.Days {
			continue
		}
		w.detail.Clients = max(w.detail.Clients, 1) + 1
		detail, err := engine.ToJSON(w.detail)
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `update notice set detail = $2, subject = 0 where id = $1`, w.id, detail); err != nil {
			return fmt.Errorf("join a notice: %w", err)
		}
		return nil
	}
	return insertOfPartner(ctx, a, n)
}

func ofPartnersWebhook(ctx context.Context, a engine.Querier, n puntuale.Notice) error {
	found, err := engine.QueryOne(ctx, a, `select w.partner_id from webhook w where w.id = $1`, []any{n.Subject}, &n.Partner)
	if err != nil || !found {
		return err
	}
	return insertOfPartner(ctx, a, n)
}
