package store

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
	"puntuale/internal/store/result"
)

// A person has one consent state for each purpose, under one name. An earlier entry may have stored it under another
// name, and an erasure under marks. dropConsent and moveConsent bring it to the name of the present entry ($2). The
// batch contains the other names and all marks. The latest state counts, as in changeConsent.
const (
	dropConsent = `
delete from consent_state where client_id = $1 and (phone = $2 or phone in (select u.p from $u(p text))) and exists (select 1 from consent_state o
 where o.client_id = $1 and o.purpose = consent_state.purpose and (o.phone = $2 or o.phone in (select u.p from $u(p text)))
 and (o.at + case when o.change = 2 and o.at % 1000000 = 0 then 999999 else 0 end, o.change, o.phone)
 > (consent_state.at + case when consent_state.change = 2 and consent_state.at % 1000000 = 0 then 999999 else 0 end, consent_state.change, consent_state.phone))`
	moveConsent = `
update consent_state set phone = $2 where client_id = $1 and phone in (select u.p from $u(p text))`
)

// changeConsent applies a change. It does nothing if the ledger already has a later change. An undo also does nothing
// if there is no withdrawal. A withdrawal stores whether the person had given consent before, so that an undo can
// restore it. Networks tell only the second of a reply, so a withdrawal of a whole second also wins over what changed in that
// second.
const changeConsent = `
insert into consent_state as s (client_id, phone, purpose, change, granted_before, at)
select $1::bigint, $2::text, $3::smallint, $4::smallint, 0, $5::bigint
where $4::smallint <> 3 or exists (select 1 from consent_state o where o.client_id = $1 and o.phone = $2 and o.purpose = $3)
on conflict (client_id, phone, purpose) do update set
 change = case when excluded.change = 3 and s.granted_before = 1 then 1 else excluded.change end,
 granted_before = case when excluded.change <> 2 then 0 when s.change = 2 then s.granted_before when s.change = 1 then 1 else 0 end,
 at = case when s.at > excluded.at then s.at else excluded.at end
where (s.at <= excluded.at or excluded.change = 2 and excluded.at % 1000000 = 0 and s.at < excluded.at + 1000000) and (excluded.change <> 3 or s.change = 2)
returning change`

// enterConsent adds a change to the ledger, in the caller's transaction. id is the id of the new row. If the ledger
// already has a change for the same message, enterConsent changes nothing and returns the earlier result. Locks: the
// consent state, the ledger, the blacklist.
func enterConsent(ctx context.Context, a engine.Querier, e puntuale.ConsentEntry, id int64) (r puntuale.ConsentResult, err error) {
	names, err := alias.Names(ctx, a, e.Client, e.Phone)
	if err != nil {
		return r, err
	}
	if len(names) > 1 { // of a person who left the number, it is entered under the present one
		former, err := alias.FormerOf(ctx, a, e.Client, names[:1])
		if err != nil {
			return r, err
		}
		if _, left := former[e.Phone]; left {
			names = append(names[1:], e.Phone)
			e.Phone = puntuale.ShownName(names)
			names = append([]string{e.Phone}, slices.DeleteFunc(names, func(name string) bool { return name == e.Phone })...)
		}
	}
	r.Consent = e.Consent
	marks := puntuale.Person{Mark: e.Mark}.Marks(names)
	all := engine.Columns{slices.Concat(names[1:], marks)}
	if e.ReplyMark != "" {
		found, err := engine.QueryOne(ctx, a, `select id, change, applied, changed from consent where client_id = $1 and (phone = $2 or phone in (select u.p from $u(p text))) and mark = $3`,
			[]any{e.Client, e.Phone, e.ReplyMark, all}, &r.ID, &r.Change, engine.ScanBool(&r.Applied), engine.ScanBool(&r.Changed))
		if err != nil || found {
			return r, err
		}
	}
	for _, statement := range []string{dropConsent, moveConsent} {
		if _, err := a.Exec(ctx, statement, e.Client, e.Phone, all); err != nil {
			return r, fmt.Errorf("bring what a person agreed to together: %w", err)
		}
	}
	var before puntuale.ConsentChange
	if _, err := engine.QueryOne(ctx, a, `select change from consent_state where client_id = $1 and phone = $2 and purpose = $3 for update`,
		[]any{e.Client, e.Phone, e.Purpose}, &before); err != nil {
		return r, fmt.Errorf("read what a person agreed to: %w", err)
	}
	if r.Applied, err = engine.QueryOne(ctx, a, changeConsent, []any{e.Client, e.Phone, e.Purpose, e.Change, engine.Micros(e.At)}, &r.Change); err != nil {
		return r, fmt.Errorf("change what a person agreed to: %w", err)
	}
	if !r.Applied && e.Change == puntuale.ConsentUndo && before != puntuale.ConsentWithdraw {
		return puntuale.ConsentResult{}, nil // there is no withdrawal, so there is nothing to undo
	}
	r.ID, r.Changed = id, r.Applied && r.Change != before
	if _, err := a.Exec(ctx, `insert into consent (client_id, id, phone, purpose, change, source, words, message, mark, by_whom, at, entered_at, applied, changed)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)`, e.Client, r.ID, e.Phone, e.Purpose, r.Change, e.Source, e.Words, e.Message,
		e.ReplyMark, e.EnteredBy, engine.Micros(e.At), engine.Micros(e.Entered), engine.Bit(r.Applied), engine.Bit(r.Changed)); err != nil {
		return r, fmt.Errorf("enter what a person agreed to: %w", err)
	}
	if r.Changed {
		if err := outbox.Emit(ctx, a, e.Entered, []outbox.Fact{{Client: e.Client, Type: puntuale.EventConsentChanged, Subject: r.ID}}); err != nil {
			return r, err
		}
	}
	if r.Changed && r.Change == puntuale.ConsentWithdraw && !strings.HasPrefix(e.ReplyMark, puntuale.ImportMark) {
		if err := result.KeepAnswers(ctx, a, e.Entered, []result.Answer{{Client: e.Client, Names: names, At: e.At, ID: r.ID, OptOut: true}}); err != nil {
			return r, err
		}
	}
	switch {
	case !r.Applied:
	case e.Change == puntuale.ConsentWithdraw && e.Blacklist != "":
		_, err = queue.AddBlacklisted(ctx, a, e.Client, puntuale.BlacklistEntry{Phone: e.Phone, Mark: strings.Join(marks[:min(1, len(marks))], ""), Reason: e.Blacklist, Added: e.Entered, OptOut: true})
	case e.Change == puntuale.ConsentUndo:
		_, err = queue.RemoveBlacklisted(ctx, a, e.Client, e.Entered, `(phone = $2 or phone in (select u.p from $u(p text))) and (origin = 1 or reason like $3)`,
			e.Phone, puntuale.PreferenceReason+"%", all)
	}
	return r, err
}

func (s *Store) EnterConsent(ctx context.Context, e puntuale.ConsentEntry) (r puntuale.ConsentResult, err error) {
	err = s.numbered(ctx, e.Client, nil, 1, func(ctx context.Context, a engine.Querier, first int64) (_ any, err error) {
		r, err = enterConsent(ctx, a, e, first)
		return nil, err
	})
	return r, err
}

// numbered runs a transaction that needs n identifiers of messages. o is the caller's idempotency key, or nil.
func (s *Store) numbered(ctx context.Context, client puntuale.ClientID, o *puntuale.Idempotency, n int,
	do func(ctx context.Context, a engine.Querier, first int64) (any, error)) error {
	e := &engine.Effect{Owner: int64(client), Key: o, At: engine.Micros(s.Config.Clock.Now()), IDsNeeded: n}
	return e.Do(ctx, s.TenantWriter(int64(client)), s.kinds.consent, func(ctx context.Context, a engine.Querier) (any, error) {
		return do(ctx, a, e.First)
	})
}

// CancelMarketing cancels the pending marketing messages to a phone, in several transactions.
func (s *Store) CancelMarketing(ctx context.Context, client puntuale.ClientID, phone string, now time.Time) (cancelled int, err error) {
	names, err := alias.Names(ctx, s.CallReads, client, phone)
	if err != nil {
		return 0, engine.PublicError(err)
	}
	refs, err := engine.QueryAll(ctx, s.CallReads, `select c.client_id, c.id from (`+queue.PhoneCandidates+`) c join message m on m.client_id = c.client_id and m.id = c.id
 where m.purpose = 1`, []any{client, engine.Columns{names}}, queue.ScanRef)
	if err != nil {
		return 0, engine.PublicError(fmt.Errorf("look for marketing to cancel: %w", err))
	}
	return s.cancelAll(ctx, refs, now)
}

// AddConsents adds many changes, 200 in a transaction, and counts no call. After a failure the caller may repeat
// the call. The ledger then contains two entries for a change that the first call stored, unless the change has a
// ReplyMark.
//
// AddConsents adds many changes of one client. Each change follows the rules of EnterConsent.
func (t tenant) AddConsents(ctx context.Context, all []puntuale.ConsentEntry) error {
	for len(all) > 0 {
		part := all[:min(maxConsents, len(all))]
		all = all[len(part):]
		if err := t.s.numbered(ctx, t.id, nil, len(part), func(ctx context.Context, a engine.Querier, first int64) (any, error) {
			for i, e := range part {
				e.Client = t.id
				if _, err := enterConsent(ctx, a, e, first+int64(i)); err != nil {
					return nil, err
				}
			}
			return nil, nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// maxConsents is how many changes one transaction adds at most.
const maxConsents = 200

// AddConsent adds a change to the ledger and counts one call. The cap never refuses this call. The argument o may
// be nil; its function Answer gets the Consent.
func (t tenant) AddConsent(ctx context.Context, e puntuale.ConsentEntry, day puntuale.Date, o *puntuale.Idempotency) (puntuale.Consent, error) {
	var r puntuale.ConsentResult
	e.Client = t.id
	err := t.s.numbered(ctx, t.id, o, 1, func(ctx context.Context, a engine.Querier, first int64) (_ any, err error) {
		if _, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: t.id, Day: day}, t.calls()); err != nil {
			return nil, err
		}
		r, err = enterConsent(ctx, a, e, first)
		return r.Consent, err
	})
	return r.Consent, err
}

// consentsOf finds the changes of one person, by names and keyed hashes. The inner select first finds the ids. Without
// it, SQLite would read all changes of the client.
const consentsOf = ` from (select x.id from $u(p text) cross join consent x where x.client_id = $1 and x.phone = u.p and x.id > $2) k
 cross join consent c where c.client_id = $1 and c.id = k.id`

// Consents lists the entries of all names of one person and of their marks, oldest first. Without names it lists the
// entries of all persons. Codes: invalid (the cursor).
func (t tenant) Consents(ctx context.Context, of puntuale.Person, p puntuale.Page) ([]puntuale.Consent, string, error) {
	last, limit, err := engine.ReadCursor(p, "consent")
	if err != nil {
		return nil, "", err
	}
	text, args := ` from consent c where c.client_id = $1 and c.id > $2`, []any{t.id, last, limit + 1}
	if len(of.Names) > 0 {
		names, err := t.names(ctx, of.Names...)
		if err != nil {
			return nil, "", err
		}
		text, args = consentsOf, append(args, engine.Columns{append(names, of.Marks(names)...)})
	}
	page, err := engine.ReadPageSpan(ctx, t.lists(), "consent", `select c.id, octet_length(c.words) + 600`+text+` order by c.id limit $3`, args, limit)
	if err != nil || page.Rows == 0 {
		return nil, "", engine.PublicError(err)
	}
	args[2] = page.Last
	all, err := engine.QueryAll(ctx, t.lists(), `select c.id, c.phone, c.purpose, c.change, c.source, c.words, c.message, c.by_whom, c.at, c.entered_at, c.applied`+text+`
 and c.id <= $3 order by c.id`, args, func(rows engine.Row, c *puntuale.Consent) error {
		err := rows.Scan(&c.ID, &c.Phone, &c.Purpose, &c.Change, &c.Source, &c.Words, &c.Message, &c.EnteredBy, engine.ScanTime(&c.At), engine.ScanTime(&c.Entered), engine.ScanBool(&c.Applied))
		c.Phone, c.Erased = shownPhone(c.Phone)
		return err
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list consent: %w", err))
	}
	return all, page.Next, nil
}

// ConsentStatuses returns a person's present consent for each purpose. The entries are found by all names and marks.
func (t tenant) ConsentStatuses(ctx context.Context, of puntuale.Person) (map[puntuale.Purpose]puntuale.ConsentStatus, error) {
	names, err := t.names(ctx, of.Names...)
	if err != nil {
		return nil, err
	}
	all := map[puntuale.Purpose]puntuale.ConsentStatus{}
	if err := t.s.CallReads.Query(ctx, `select s.purpose, s.change, s.at from $u(p text) cross join consent_state s
 where s.client_id = $1 and s.phone = u.p order by s.at, s.change`, []any{t.id, engine.Columns{append(names, of.Marks(names)...)}},
		func(rows engine.Row) error {
			var p puntuale.Purpose
			var st puntuale.ConsentStatus
			err := rows.Scan(&p, &st.Change, engine.ScanTime(&st.At))
			all[p] = st
			return err
		}); err != nil {
		return nil, engine.PublicError(fmt.Errorf("read what a person agreed to: %w", err))
	}
	return all, nil
}

// CancelMarketing cancels the pending marketing messages to all names of the person, in several transactions. It
// returns how many messages it cancelled.
func (t tenant) CancelMarketing(ctx context.Context, phone string, now time.Time) (int, error) {
	return t.s.CancelMarketing(ctx, t.id, phone, now)
}

// MarketingRefused returns which of the given phones belong to people who must get no marketing now.
func (t tenant) MarketingRefused(ctx context.Context, phones []string, mark func(string) string) (map[string]bool, error) {
	places, names, err := t.namesOfEach(ctx, phones, mark)
	if err != nil {
		return nil, err
	}
	refused := map[string]bool{}
	if err := t.s.CallReads.Query(ctx, queue.RefusedMarketing, []any{engine.Columns{slices.Repeat([]int64{int64(t.id)}, len(places)), places, names}}, func(rows engine.Row) error {
		var client, i int64
		err := rows.Scan(&client, &i)
		refused[phones[i]] = true
		return err
	}); err != nil {
		return nil, engine.PublicError(fmt.Errorf("look for consent: %w", err))
	}
	return refused, nil
}
