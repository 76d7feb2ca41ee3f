package store

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/account"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/notice"
	"puntuale/internal/store/outbox"
)

// templateEvent is the detail of the event that tells a client about a change of a network template.
type templateEvent struct {
	Name     string `json:"name"`
	Language string `json:"language"`
	Status   string `json:"status"`
	Before   string `json:"status_before,omitempty"` // the status before the change; "" if the template is new
	Category string `json:"category,omitempty"`
	Quality  string `json:"quality,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

// sameAs returns true if the change needs no event. A new status, category or quality needs an event. But the first
// category of a template needs none. The first quality needs an event only if it is bad: YELLOW or RED.
func (t *templateEvent) sameAs(before *templateEvent) bool {
	return t.Status == before.Status && (t.Category == before.Category || before.Category == "") &&
		(t.Quality == before.Quality || before.Quality == "" && t.Quality != "YELLOW" && t.Quality != "RED")
}

// templateList contains a business's templates as they were before a transaction changed some of them. The transaction
// has locked their rows.
type templateList struct {
	client                  puntuale.ClientID
	account, name, language string // an empty name means all templates of the business
	listed                  bool   // the network has already sent a list of the business's templates
	all                     []templateEvent
}

func lockTemplates(ctx context.Context, a engine.Querier, client puntuale.ClientID, account, name, language string) (*templateList, error) {
	b := &templateList{client: client, account: account, name: name, language: language}
	var since int64
	var err error
	if b.listed, err = engine.QueryOne(ctx, a, `select o.synced_at from official o where o.client_id = $1 and o.account = $2 and o.synced_at > 0 limit 1`,
		[]any{client, account}, &since); err != nil {
		return nil, fmt.Errorf("look for a list of templates: %w", err)
	}
	b.all, err = b.read(ctx, a, ` for update of n`)
	return b, err
}

func (b *templateList) read(ctx context.Context, a engine.Querier, lock string) ([]templateEvent, error) {
	all, err := engine.QueryAll(ctx, a, `select n.name, n.language, n.status, n.category, n.quality, n.reason from network_template n
 where n.client_id = $1 and n.account = $2 and (n.name = $3 and n.language = $4 or $3 = '') order by n.name, n.language`+lock,
		[]any{b.client, b.account, b.name, b.language}, func(r engine.Row, t *templateEvent) error {
			return r.Scan(&t.Name, &t.Language, &t.Status, &t.Category, &t.Quality, &t.Reason)
		})
	if err != nil {
		return nil, fmt.Errorf("read the templates of a business: %w", err)
	}
	return all, nil
}

// writeEvents writes an event for each changed template. It writes none for the new templates in the first list of a
// business.
func (b *templateList) writeEvents(ctx context.Context, a engine.Querier, at time.Time) error {
	after, err := b.read(ctx, a, "")
	if err != nil {
		return err
	}
	type key struct{ name, language string }
	before := make(map[key]templateEvent, len(b.all))
	for _, t := range b.all {
		before[key{t.Name, t.Language}] = t
	}
	var facts []outbox.Fact
	recategorised := false // starts must plan the purposes of messages again
	for _, t := range after {
		former, known := before[key{t.Name, t.Language}]
		recategorised = recategorised || former.Category != t.Category
		if known && t.Category == puntuale.CategoryMarketing && former.Category != t.Category {
			if err := b.noticeCostlier(ctx, a, t.Name, t.Language, at); err != nil {
				return err
			}
		}
		switch {
		case !known && !b.listed:
			continue
		case known:
			if t.sameAs(&former) {
				continue
			}
			t.Before = former.Status
		}
		detail, err := outbox.Detail(t)
		if err != nil {
			return err
		}
		facts = append(facts, outbox.Fact{Client: b.client, Type: puntuale.EventTemplateChanged, Detail: detail})
	}
	if err := outbox.Tell(ctx, a, at, facts...); err != nil || !recategorised {
		return err
	}
	return account.Changed(ctx, a, b.client)
}

// noticeCostlier tells people that the messages of a template wait, because the network made it marketing. It tells nothing
// if the messages leave.
func (b *templateList) noticeCostlier(ctx context.Context, a engine.Querier, name, language string, at time.Time) error {
	var session int64
	held, err := engine.QueryOne(ctx, a, `select o.session_id from network_template n join official o on o.client_id = n.client_id and o.account = n.account
 where n.client_id = $1 and n.account = $2 and n.name = $3 and n.language = $4 and n.category = 'MARKETING' and n.wanted not in ('', 'MARKETING')
 and exists (select 1 from client_setting c where c.client_id = n.client_id and c.pause_costlier = 1) order by o.session_id limit 1`, []any{b.client, b.account, name, language}, &session)
	if err != nil {
		return fmt.Errorf("look whether a template's messages wait: %w", err)
	}
	if !held {
		return nil
	}
	return notice.Add(ctx, a, puntuale.Notice{Client: b.client, Kind: puntuale.NoticeTemplate, Subject: session, At: at, Detail: puntuale.NoticeDetail{Reason: name}})
}

// tellTemplate writes the event that somebody made, changed or deleted one of the client's own templates.
func (t tenant) tellTemplate(ctx context.Context, a engine.Querier, id puntuale.TemplateID, name, change string, at time.Time) error {
	detail, err := outbox.Detail(struct {
		Name   string `json:"name"`
		Change string `json:"change"`
	}{name, change})
	if err != nil {
		return err
	}
	return outbox.Tell(ctx, a, at, outbox.Fact{Client: t.id, Type: puntuale.EventTemplateChanged, Subject: int64(id), Detail: detail})
}
