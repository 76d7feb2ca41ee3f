package store

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

func (s *Store) NoteOfficial(ctx context.Context, id puntuale.SessionID, number, account string) error {
	client, _, err := s.SealedKeys(ctx, id)
	if err != nil {
		return err
	}
	t := tenant{s: s, id: client}
	var sameNumber, sameAccount string
	if _, err := engine.QueryOne(ctx, s.CallReads, `select number, account from official where client_id = $1 and session_id = $2`, []any{client, id}, &sameNumber, &sameAccount); err != nil {
		return engine.PublicError(fmt.Errorf("read how a session is known: %w", err))
	}
	if sameNumber == number && sameAccount == account {
		return nil
	}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `insert into official (client_id, session_id, number, account)
 select s.client_id, s.id, $3::text, $4::text from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0
 on conflict (client_id, session_id) do update set number = excluded.number, account = excluded.account, synced_at = 0, problem = '', reach_limit = 0`,
			client, id, number, account); err != nil {
			return fmt.Errorf("note how a session is known: %w", err)
		}
		// What was reported about another number, or about another business, says nothing about this one.
		for _, statement := range []string{
			`delete from official_pause where client_id = $1 and session_id = $2`,
			`delete from official_health where client_id = $1 and session_id = $2`,
		} {
			if _, err := a.Exec(ctx, statement, client, id); err != nil {
				return fmt.Errorf("forget the health of another number: %w", err)
			}
		}
		return forgetTemplates(ctx, a, client)
	})
}

// forgetTemplates deletes the templates of a business if the client has no session left that belongs to the business.
func forgetTemplates(ctx context.Context, a engine.Querier, client puntuale.ClientID) error {
	if _, err := a.Exec(ctx, `delete from network_template where client_id = $1
 and not exists (select 1 from official o where o.client_id = $1 and o.account = network_template.account)`, client); err != nil {
		return fmt.Errorf("forget the templates of a business: %w", err)
	}
	return nil
}

func (s *Store) OfficialSessions(ctx context.Context, number, account string) ([]puntuale.SessionID, error) {
	where, values := `o.number = $1`, []any{number}
	switch {
	case number == "":
		where, values = `o.account = $1 and o.account <> ''`, []any{account}
	case strings.HasPrefix(number, "+"):
		where, values = `o.account = $1 and o.account <> '' and exists (select 1 from session s where s.client_id = o.client_id and s.id = o.session_id and s.number = $2)`, []any{account, number}
	}
	all, err := engine.QueryAll(ctx, s.CallReads, `select o.session_id from official o where `+where+` order by o.session_id`, values,
		func(rows engine.Row, id *puntuale.SessionID) error { return rows.Scan(id) })
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for the sessions of a number: %w", err))
	}
	return all, nil
}

func (s *Store) KeepNetworkTemplates(ctx context.Context, id puntuale.SessionID, account string, at time.Time, all []puntuale.NetworkTemplate, problem puntuale.Reason) error {
	client, _, err := s.SealedKeys(ctx, id)
	if err != nil {
		return err
	}
	columns, err := templateColumnsOf(all)
	if err != nil {
		return err
	}
	return tenant{s: s, id: client}.write(ctx, func(ctx context.Context, a engine.Querier) error {
		before, err := lockTemplates(ctx, a, client, account, "", "")
		if err != nil {
			return err
		}
		text, args := `update official set problem = $4 where client_id = $1 and session_id = $2 and account = $3`, []any{client, id, account, problem.Stored()}
		if problem.IsZero() {
			text, args = `update official set synced_at = $4, problem = '' where client_id = $1 and session_id = $2 and account = $3`, []any{client, id, account, engine.Micros(at)}
		}
		n, err := a.Exec(ctx, text, args...)
		if err != nil {
			return fmt.Errorf("note when templates were read: %w", err)
		}
		if n == 0 || !problem.IsZero() {
			return nil
		}
		if _, err := a.Exec(ctx, `update network_template set status = 'DELETED', reason = '', changed_at = $3
 where client_id = $1 and account = $2 and changed_at < $3 and status <> 'DELETED'`, client, account, engine.Micros(at)); err != nil {
			return fmt.Errorf("note which templates are gone: %w", err)
		}
		if len(all) == 0 {
			return before.writeEvents(ctx, a, at)
		}
		// The list does not change a template if an event about the template came after the list was read.
		_, err = a.Exec(ctx, `insert into network_template as g
 (client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at)
 select $1::bigint, $2::text, u.n, u.l, u.i, u.s, u.c, u.q, u.r, u.d, u.p, $3::bigint
 from $u(n text, l text, i text, s text, c text, q text, r text, d bigint, p text) where true
 on conflict (client_id, account, name, language) do update set network_id = excluded.network_id, named = excluded.named, parts = excluded.parts,
 status = case when g.changed_at > excluded.changed_at then g.status else excluded.status end,
 category = case when g.changed_at > excluded.changed_at then g.category else excluded.category end,
 quality = case when g.changed_at > excluded.changed_at then g.quality else excluded.quality end,
 reason = case when g.changed_at > excluded.changed_at then g.reason else excluded.reason end,
 changed_at = greatest(g.changed_at, excluded.changed_at)`, client, account, engine.Micros(at), columns)
		if err != nil {
			return fmt.Errorf("keep the templates of a business: %w", err)
		}
		return before.writeEvents(ctx, a, at)
	})
}

func templateColumnsOf(all []puntuale.NetworkTemplate) (engine.Columns, error) {
	var parts []string
	for i := range all {
		text, err := engine.ToJSON(all[i].Parts)
		if err != nil {
			return nil, err
		}
		parts = append(parts, text)
	}
	text := func(field func(*puntuale.NetworkTemplate) string) []string { return engine.Column(all, field) }
	return engine.Columns{
		text(func(t *puntuale.NetworkTemplate) string { return t.Name }), text(func(t *puntuale.NetworkTemplate) string { return t.Language }),
		text(func(t *puntuale.NetworkTemplate) string { return t.ID }), text(func(t *puntuale.NetworkTemplate) string { return string(t.Status) }),
		text(func(t *puntuale.NetworkTemplate) string { return t.Category }), text(func(t *puntuale.NetworkTemplate) string { return t.Quality }),
		text(func(t *puntuale.NetworkTemplate) string { return t.Reason }),
		engine.Column(all, func(t *puntuale.NetworkTemplate) int64 { return engine.Bit(t.Named) }), parts,
	}, nil
}

func (s *Store) TellNetworkTemplate(ctx context.Context, n puntuale.TemplateEvent) error {
	return s.TenantWriter(int64(n.Client)).Do(ctx, engine.Single(s.kinds.heard, func(ctx context.Context, a engine.Querier) error {
		before, err := lockTemplates(ctx, a, n.Client, n.Account, n.Name, n.Language)
		if err != nil {
			return err
		}
		// The template may be new, and an event about its quality does not contain its status. In this case the status
		// stays unknown until the network reports it.
		if _, err := a.Exec(ctx, `insert into network_template as g
 (client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at)
 select $1::bigint, $2::text, $3::text, $4::text, $5::text, case when $6::text = '' then $11::text else $6::text end, $7::text, $8::text, $9::text, 0, 'null', $10::bigint
 where exists (select 1 from official o where o.client_id = $1 and o.account = $2)
 on conflict (client_id, account, name, language) do update set
 status = case when $6::text = '' then g.status else excluded.status end,
 reason = case when $6::text = '' then g.reason else excluded.reason end,
 category = case when excluded.category = '' then g.category else excluded.category end,
 quality = case when excluded.quality = '' then g.quality else excluded.quality end,
 changed_at = excluded.changed_at
 where g.changed_at <= excluded.changed_at`,
			n.Client, n.Account, n.Name, n.Language, n.ID, string(n.Status), n.Category, n.Quality, n.Reason, engine.Micros(n.At), string(puntuale.TemplateUnknown)); err != nil {
			return fmt.Errorf("keep news of a template: %w", err)
		}
		return before.writeEvents(ctx, a, n.At)
	}), false)
}

const networkTemplateColumns = `n.account, n.name, n.language, n.network_id, n.status, n.category, n.quality, n.reason, n.named, n.parts, n.changed_at`

func networkTemplateFields(t *puntuale.NetworkTemplate) []any {
	return []any{&t.Account, &t.Name, &t.Language, &t.ID, &t.Status, &t.Category, &t.Quality, &t.Reason, engine.ScanBool(&t.Named), engine.ScanJSON(&t.Parts), engine.ScanTime(&t.Changed)}
}

func scanNetworkTemplate(rows engine.Row, t *puntuale.NetworkTemplate) error {
	return rows.Scan(networkTemplateFields(t)...)
}

func (s *Store) NetworkTemplate(ctx context.Context, client puntuale.ClientID, account, name, language string) (t puntuale.NetworkTemplate, known bool, err error) {
	known, err = engine.QueryOne(ctx, s.CallReads, `select `+networkTemplateColumns+` from network_template n
 where n.client_id = $1 and n.account = $2 and n.name = $3 and n.language = $4`, []any{client, account, name, language}, networkTemplateFields(&t)...)
	if err != nil {
		return t, false, engine.PublicError(fmt.Errorf("read a template of the network: %w", err))
	}
	return t, known, nil
}

// NetworkTemplates lists the templates of a session's business, by name and language. Codes: not_found, invalid
// (the cursor).
func (t tenant) NetworkTemplates(ctx context.Context, id puntuale.SessionID, p puntuale.Page) (about puntuale.NetworkTemplates, all []puntuale.NetworkTemplate, next string, err error) {
	name, language, err := afterTemplate(p)
	if err != nil {
		return about, nil, "", err
	}
	limit := p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	found, err := engine.QueryOne(ctx, t.lists(), `select coalesce(o.number, ''), coalesce(o.account, ''), coalesce(o.synced_at, 0), coalesce(o.problem, '')
 from session s left join official o on o.client_id = s.client_id and o.session_id = s.id
 where s.client_id = $1 and s.id = $2 and s.deleted_at = 0`, []any{t.id, id}, &about.Number, &about.Account, engine.ScanTime(&about.Synced), engine.ScanReason(&about.Problem))
	if err := engine.FoundOr(found, err, puntuale.NoSession); err != nil {
		return about, nil, "", err
	}
	all, err = engine.QueryAll(ctx, t.lists(), `select `+networkTemplateColumns+` from network_template n
 where n.client_id = $1 and n.account = $2 and n.account <> '' and (n.name > $3 or n.name = $3 and n.language > $4)
 order by n.name, n.language limit $5`, []any{t.id, about.Account, name, language, limit + 1}, scanNetworkTemplate)
	if err != nil {
		return about, nil, "", engine.PublicError(fmt.Errorf("list the templates of the network: %w", err))
	}
	if len(all) > limit {
		all = all[:limit]
		last := &all[limit-1]
		next = base64.RawURLEncoding.EncodeToString([]byte(networkTemplateNoun + last.Name + ":" + last.Language))
	}
	return about, all, next, nil
}

const networkTemplateNoun = "network template:"

// afterTemplate reads a cursor: name and language of the previous page's last row.
func afterTemplate(p puntuale.Page) (name, language string, err error) {
	if p.Cursor == "" {
		return "", "", nil
	}
	text, err := base64.RawURLEncoding.DecodeString(p.Cursor)
	rest, own := strings.CutPrefix(string(text), networkTemplateNoun)
	name, language, whole := strings.Cut(rest, ":")
	if err != nil || !own || !whole {
		return "", "", engine.BadCursor(p)
	}
	return name, language, nil
}

// NetworkTemplatesNamed returns the templates of the session's business that have one of the names.
func (t tenant) NetworkTemplatesNamed(ctx context.Context, id puntuale.SessionID, names []string) ([]puntuale.NetworkTemplate, error) {
	all, err := engine.QueryAll(ctx, t.s.CallReads, `select `+networkTemplateColumns+` from official o
 join network_template n on n.client_id = o.client_id and n.account = o.account
 where o.client_id = $1 and o.session_id = $2 and o.account <> '' and n.name in (select u.n from $u(n text)) order by n.name, n.language`,
		[]any{t.id, id, engine.Columns{names}}, scanNetworkTemplate)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read templates of the network: %w", err))
	}
	return all, nil
}
