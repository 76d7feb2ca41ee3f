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
 on conflict (client_id, session_id) do update set number = excluded.number, account = excluded.account, synced_at = 0, problem = '', reach_limit = 0, direct_send_at = 0, opted_out_at = 0`,
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
 (client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at, wanted)
 select $1::bigint, $2::text, u.n, u.l, u.i, u.s, u.c, u.q, u.r, u.d, u.p, $3::bigint, u.c
 from $u(n text, l text, i text, s text, c text, q text, r text, d bigint, p text) where true
 on conflict (client_id, account, name, language) do update set network_id = excluded.network_id, named = excluded.named, parts = excluded.parts,
 wanted = case when g.wanted = '' or g.status = 'DELETED' then excluded.wanted else g.wanted end,
 advice = case when excluded.status in ('REJECTED', 'PAUSED') then g.advice else '' end,
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
 (client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at, wanted, advice)
 select $1::bigint, $2::text, $3::text, $4::text, $5::text, case when $6::text = '' then $11::text else $6::text end, $7::text, $8::text, $9::text, 0, 'null', $10::bigint, $7::text, $12::text
 where exists (select 1 from official o where o.client_id = $1 and o.account = $2)
 on conflict (client_id, account, name, language) do update set
 status = case when $6::text = '' then g.status else excluded.status end,
 reason = case when $6::text = '' then g.reason else excluded.reason end,
 advice = case when $6::text = '' then g.advice else excluded.advice end,
 wanted = case when g.wanted = '' then excluded.wanted else g.wanted end,
 category = case when excluded.category = '' then g.category else excluded.category end,
 quality = case when excluded.quality = '' then g.quality else excluded.quality end,
 changed_at = excluded.changed_at
 where g.changed_at <= excluded.changed_at`,
			n.Client, n.Account, n.Name, n.Language, n.ID, string(n.Status), n.Category, n.Quality, n.Reason, engine.Micros(n.At), string(puntuale.TemplateUnknown), n.Advice); err != nil {
			return fmt.Errorf("keep news of a template: %w", err)
		}
		return before.writeEvents(ctx, a, n.At)
	}), false)
}

const networkTemplateColumns = `n.account, n.name, n.language, n.network_id, n.status, n.category, n.quality, n.reason, n.named, n.parts, n.changed_at, n.wanted,
 n.advice, n.locked_at, case when n.category = 'MARKETING' and n.wanted not in ('', 'MARKETING')
 and exists (select 1 from client_setting c where c.client_id = n.client_id and c.pause_costlier = 1) then 1 else 0 end`

func networkTemplateFields(t *puntuale.NetworkTemplate) []any {
	return []any{&t.Account, &t.Name, &t.Language, &t.ID, &t.Status, &t.Category, &t.Quality, &t.Reason, engine.ScanBool(&t.Named), engine.ScanJSON(&t.Parts), engine.ScanTime(&t.Changed),
		&t.Wanted, &t.Advice, engine.ScanTime(&t.LockedAt), engine.ScanBool(&t.Held)}
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

func (s *Store) TemplateLanguages(ctx context.Context, client puntuale.ClientID, account, name, phone string) (all []puntuale.NetworkTemplate, person string, err error) {
	if all, err = engine.QueryAll(ctx, s.CallReads, `select `+networkTemplateColumns+` from network_template n
 where n.client_id = $1 and n.account = $2 and n.name = $3 order by n.language`, []any{client, account, name}, scanNetworkTemplate); err == nil {
		_, err = engine.QueryOne(ctx, s.CallReads, `select p.language from person p where p.client_id = $1
 and (p.phone = $2 or p.phone in (select a.phone from alias a where a.client_id = $1 and a.alias = $2)) order by p.language desc limit 1`, []any{client, phone}, &person)
	}
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("read the languages of a template: %w", err))
	}
	return all, person, nil
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

// OfficialWays returns the settings of a session, and what Meta's answers say about the ways of its messages. Codes:
// not_found.
func (t tenant) OfficialWays(ctx context.Context, session puntuale.SessionID, now time.Time) (puntuale.OfficialWays, error) {
	return t.s.OfficialWays(ctx, t.id, session, now)
}

// NetworkTemplateWithID returns the template of the session's business with the network's id. Codes: not_found.
func (t tenant) NetworkTemplateWithID(ctx context.Context, id puntuale.SessionID, networkID string) (n puntuale.NetworkTemplate, err error) {
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+networkTemplateColumns+` from official o
 join network_template n on n.client_id = o.client_id and n.account = o.account
 where o.client_id = $1 and o.session_id = $2 and o.account <> '' and n.network_id = $3 and n.network_id <> '' order by n.changed_at desc limit 1`,
		[]any{t.id, id, networkID}, networkTemplateFields(&n)...)
	return n, engine.FoundOr(found, err, puntuale.NoTemplate)
}

// AcceptCategory stores that the client wants the category that the network gave to a template. Codes: not_found.
func (t tenant) AcceptCategory(ctx context.Context, id puntuale.SessionID, networkID string) error {
	n, err := t.NetworkTemplateWithID(ctx, id, networkID)
	if err != nil {
		return err
	}
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if _, err := a.Exec(ctx, `update network_template set wanted = category where client_id = $1 and account = $2 and name = $3 and language = $4`,
			t.id, n.Account, n.Name, n.Language); err != nil {
			return fmt.Errorf("accept a template's category: %w", err)
		}
		return nil
	})
}

const templateRequestColumns = `r.id, r.client_id, r.session_id, r.account, r.kind, r.name, r.language, r.network_id, r.draft, r.approved, r.upload, r.state, r.reason,
 r.made_at, r.called_at, r.due_at, r.ended_at`

func templateRequestFields(r *puntuale.TemplateRequest) []any {
	return []any{&r.ID, &r.Client, &r.Session, &r.Account, &r.Kind, &r.Name, &r.Language, &r.NetworkID, engine.ScanJSON(&r.Draft), engine.ScanBool(&r.WasApproved), &r.Upload,
		&r.State, engine.ScanReason(&r.Reason), engine.ScanTime(&r.Made), engine.ScanTime(&r.Called), engine.ScanTime(&r.Due), engine.ScanTime(&r.Ended)}
}

func scanTemplateRequest(row engine.Row, r *puntuale.TemplateRequest) error {
	return row.Scan(templateRequestFields(r)...)
}

// RequestTemplate stores a request about a template of the session's business. It first locks the rows of the business,
// so all nodes count the same requests. Codes: not_found, and those of decide.
func (t tenant) RequestTemplate(ctx context.Context, r puntuale.TemplateRequest, decide func(puntuale.TemplateUsage) error) (puntuale.TemplateRequestID, error) {
	draft, err := engine.ToJSON(r.Draft)
	if err != nil {
		return 0, err
	}
	var id int64
	err = t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		if err := t.sessionThere(ctx, a, r.Session); err != nil {
			return err
		}
		locked, err := engine.QueryAll(ctx, a, `select o.session_id from official o where o.client_id = $1 and o.account = $2 and o.account <> '' order by o.session_id for update`,
			[]any{t.id, r.Account}, func(row engine.Row, id *puntuale.SessionID) error { return row.Scan(id) })
		if err := engine.ThereOr(len(locked) > 0, err, puntuale.NoSession); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `delete from template_request where client_id = $1 and made_at < $2`, t.id, engine.Micros(r.Made.Add(-puntuale.KeepTemplateRequests))); err != nil {
			return fmt.Errorf("delete old requests about templates: %w", err)
		}
		use, err := t.templateUsage(ctx, a, &r)
		if err != nil {
			return err
		}
		if err := decide(use); err != nil {
			return err
		}
		if id, err = engine.NextNumber(ctx, a, "template_request"); err != nil {
			return err
		}
		if _, err = a.Exec(ctx, `insert into template_request (client_id, id, session_id, account, kind, name, language, network_id, draft, approved, made_at, due_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $11)`,
			t.id, id, r.Session, r.Account, r.Kind, r.Name, r.Language, r.NetworkID, draft, engine.Bit(r.WasApproved), engine.Micros(r.Made)); err != nil {
			return fmt.Errorf("store a request about a template: %w", err)
		}
		return nil
	})
	return puntuale.TemplateRequestID(id), err
}

// templateUsage counts what the client did before the request.
func (t tenant) templateUsage(ctx context.Context, a engine.Querier, r *puntuale.TemplateRequest) (u puntuale.TemplateUsage, err error) {
	u.Now = r.Made
	all, err := engine.QueryAll(ctx, a, `select `+templateRequestColumns+` from template_request r where r.client_id = $1 and r.account = $2 and r.made_at > $3 order by r.made_at, r.id`,
		[]any{t.id, r.Account, engine.Micros(r.Made.Add(-puntuale.KeepTemplateRequests))}, scanTemplateRequest)
	if err != nil {
		return u, fmt.Errorf("read requests about templates: %w", err)
	}
	for i := range all {
		o := &all[i]
		same := o.Name == r.Name && o.Language == r.Language
		age := r.Made.Sub(o.Made)
		u.Open = u.Open || same && o.State < puntuale.RequestDone && age < 2*puntuale.TemplateRequestLife // an older one belongs to a deleted session
		if o.Kind == puntuale.CreatesTemplate && age < time.Hour && (o.State != puntuale.RequestRefused || !o.Called.IsZero()) {
			if u.Creations++; u.Creations == 1 {
				u.OldestOf = o.Made
			}
		}
		if same && o.Kind == puntuale.CreatesTemplate {
			u.Created = o
		}
		if same && o.Kind == puntuale.EditsTemplate && o.WasApproved && o.State != puntuale.RequestRefused && age < 30*24*time.Hour {
			if u.EditsMonth++; u.EditsMonth == 1 {
				u.FirstEdit = o.Made
			}
			if age < 24*time.Hour {
				u.EditsDay++
			}
			u.LastEdit = o.Made
		}
	}
	var known puntuale.NetworkTemplate
	found, err := engine.QueryOne(ctx, a, `select `+networkTemplateColumns+` from network_template n
 where n.client_id = $1 and n.account = $2 and n.name = $3 and n.language = $4`, []any{t.id, r.Account, r.Name, r.Language}, networkTemplateFields(&known)...)
	if err != nil {
		return u, fmt.Errorf("read a template of the network: %w", err)
	}
	if found {
		u.Known = &known
	}
	return u, nil
}

// TemplateRequest returns a request. Codes: not_found.
func (t tenant) TemplateRequest(ctx context.Context, id puntuale.TemplateRequestID) (r puntuale.TemplateRequest, err error) {
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+templateRequestColumns+` from template_request r where r.client_id = $1 and r.id = $2`, []any{t.id, id}, templateRequestFields(&r)...)
	return r, engine.FoundOr(found, err, puntuale.NoTemplate)
}

func (t tenant) TemplateRequests(ctx context.Context, session puntuale.SessionID, limit int) ([]puntuale.TemplateRequest, error) {
	all, err := engine.QueryAll(ctx, t.lists(), `select `+templateRequestColumns+` from official o
 join template_request r on r.client_id = o.client_id and r.account = o.account
 where o.client_id = $1 and o.session_id = $2 and o.account <> '' order by r.made_at desc, r.id desc limit $3`, []any{t.id, session, limit}, scanTemplateRequest)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list requests about templates: %w", err))
	}
	return all, nil
}

func (s *Store) OpenTemplateRequests(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, limit int) ([]puntuale.TemplateRequest, error) {
	all, err := engine.QueryAll(ctx, s.CallReads, `select `+templateRequestColumns+` from template_request r
 where r.client_id = $1 and r.session_id = $2 and r.state < 2 order by r.id limit $3`, []any{client, session, limit}, scanTemplateRequest)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for requests about templates: %w", err))
	}
	return all, nil
}

// ProgressTemplateRequest stores the state, the upload, and the times of an open request. It returns false if the request
// is not open, or if its state is not the expected one.
func (s *Store) ProgressTemplateRequest(ctx context.Context, r puntuale.TemplateRequest, before puntuale.TemplateRequestState) (done bool, err error) {
	err = tenant{s: s, id: r.Client}.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update template_request set state = $3, upload = $4, called_at = $5, due_at = $6 where client_id = $1 and id = $2 and state = $7 and state < 2`,
			r.Client, r.ID, r.State, r.Upload, engine.Micros(r.Called), engine.Micros(r.Due), before)
		if done = n > 0; err != nil {
			return fmt.Errorf("store a request's progress: %w", err)
		}
		return nil
	})
	return done, err
}

// EndTemplateRequest stores the end of an open request, and the template as the network then has it.
func (s *Store) EndTemplateRequest(ctx context.Context, r puntuale.TemplateRequest, now *puntuale.NetworkTemplate) error {
	columns, err := templateColumnsOf([]puntuale.NetworkTemplate{templateOrNone(now)})
	if err != nil {
		return err
	}
	return tenant{s: s, id: r.Client}.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update template_request set state = $3, reason = $4, ended_at = $5, network_id = case when $6::text = '' then network_id else $6::text end
 where client_id = $1 and id = $2 and state < 2`, r.Client, r.ID, r.State, r.Reason.Stored(), engine.Micros(r.Ended), r.NetworkID)
		if err != nil {
			return fmt.Errorf("store a request's end: %w", err)
		}
		if n == 0 || now == nil {
			return nil
		}
		before, err := lockTemplates(ctx, a, r.Client, r.Account, r.Name, r.Language)
		if err != nil {
			return err
		}
		wanted, locked := "", int64(0)
		if r.Kind == puntuale.CreatesTemplate || r.Kind == puntuale.EditsTemplate {
			wanted = r.Draft.Category
		}
		if r.Kind == puntuale.DeletesTemplate {
			locked = engine.Micros(r.Ended)
		}
		if _, err := a.Exec(ctx, `insert into network_template as g
 (client_id, account, name, language, network_id, status, category, quality, reason, named, parts, changed_at, wanted, locked_at)
 select $1::bigint, $2::text, u.n, u.l, u.i, u.s, u.c, u.q, u.r, u.d, u.p, $3::bigint, $4::text, $5::bigint
 from $u(n text, l text, i text, s text, c text, q text, r text, d bigint, p text)
 where exists (select 1 from official o where o.client_id = $1 and o.account = $2)
 on conflict (client_id, account, name, language) do update set network_id = excluded.network_id, named = excluded.named, parts = excluded.parts,
 status = excluded.status, category = excluded.category, reason = excluded.reason, advice = '', locked_at = excluded.locked_at,
 wanted = case when excluded.wanted = '' then g.wanted else excluded.wanted end, changed_at = greatest(g.changed_at, excluded.changed_at)`,
			r.Client, r.Account, engine.Micros(r.Ended), wanted, locked, columns); err != nil {
			return fmt.Errorf("store a template of the network: %w", err)
		}
		return before.writeEvents(ctx, a, r.Ended)
	})
}

func templateOrNone(t *puntuale.NetworkTemplate) puntuale.NetworkTemplate {
	if t == nil {
		return puntuale.NetworkTemplate{}
	}
	return *t
}
