// Package person stores clients' contacts, and the terms by which users find them.
package person

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

// Persons stores the contacts of all clients.
type Persons struct {
	db      *engine.DB
	merges  *engine.Kind // task kind of merges of many contacts
	changes *engine.Kind // task kind of changes of numbers
}

// New returns the Persons of a database.
func New(db *engine.DB) *Persons {
	p := &Persons{db: db, merges: engine.NewSingle("contacts", engine.PriorityFeed), changes: engine.NewSingle("numbers", engine.PriorityPrevent)}
	p.merges.Check, p.merges.Background = engine.RunAgain, true // a second run changes nothing
	p.changes.Check, p.changes.Background = engine.RunAgain, true
	return p
}

// ForClient gives access to one client's contacts. calls is how many calls one change counts as: 1, or 0 for users in
// dashboards.
func (p *Persons) ForClient(client puntuale.ClientID, calls int64) ContactStore {
	return ContactStore{p, client, calls}
}

// ContactStore gives access to the contacts of one client. Its methods are safe for concurrent use.
type ContactStore struct {
	*Persons
	client puntuale.ClientID
	calls  int64
}

const personColumns = `p.id, p.phone, p.name, p.language, p.source, p.fields, p.tags, p.created_at, p.changed_at`

func personFields(c *puntuale.Contact) []any {
	return []any{&c.ID, &c.Phone, &c.Name, &c.Language, &c.Source, engine.ScanJSON(&c.Fields), engine.ScanJSON(&c.Tags), engine.ScanTime(&c.Created), engine.ScanTime(&c.Changed)}
}

func scanPerson(rows engine.Row, c *puntuale.Contact) error { return rows.Scan(personFields(c)...) }

// lockPeople locks the row with the number of the client's contacts, before it locks any contact. So only one
// transaction at a time changes the client's contacts.
func (s ContactStore) lockPeople(ctx context.Context, a engine.Querier) (people int64, err error) {
	for range 2 {
		found, err := engine.QueryOne(ctx, a, `select n.people from person_count n where n.client_id = $1 for update`, []any{s.client}, &people)
		if err != nil || found {
			return people, err
		}
		if _, err := a.Exec(ctx, `insert into person_count (client_id, people) select c.id, 0 from client c where c.id = $1 and c.deleted_at = 0
 on conflict (client_id) do nothing`, s.client); err != nil {
			return 0, fmt.Errorf("begin to count contacts: %w", err)
		}
	}
	return 0, puntuale.NotFound(puntuale.NoClient)
}

func (s ContactStore) count(ctx context.Context, a engine.Querier, n int64) error {
	if n == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update person_count set people = people + $2::bigint where client_id = $1`, s.client, n); err != nil {
		return fmt.Errorf("count contacts: %w", err)
	}
	return nil
}

func (s ContactStore) countCall(ctx context.Context, a engine.Querier, day puntuale.Date) error {
	_, err := queue.CountAlways(ctx, a, queue.UsageDay{Client: s.client, Day: day}, s.calls)
	return err
}

// CountCall counts one call for an import, because an import takes several transactions. The cap never refuses
// it.
func (s ContactStore) CountCall(ctx context.Context, day puntuale.Date) error {
	return s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error { return s.countCall(ctx, a, day) })
}

// MergeContacts adds contacts. If the list already has a contact with the same phone, it merges the two contacts
// with [puntuale.Contact.Merge]. A merge that changes nothing writes nothing. A contact is refused if the list is full
// ([puntuale.MaxContacts], exact under any concurrency), or if the contact would exceed a limit. Codes if m.Day is set:
// quota_reached; invalid (too many fields or tags).
//
// MergeContacts uses the client's writer if m.Day is set, because then an API call waits for the result. Otherwise it
// uses the writer that feeds campaigns, so that calls run first.
func (s ContactStore) MergeContacts(ctx context.Context, m puntuale.ContactBatch) (merged puntuale.MergedContacts, err error) {
	if m.Day == (puntuale.Date{}) {
		err = s.db.FeedWriter.Do(ctx, engine.Single(s.merges, func(ctx context.Context, a engine.Querier) (err error) {
			merged, err = s.merge(ctx, a, m)
			return err
		}).ForOwner(int64(s.client)), false)
		return merged, err
	}
	err = s.db.Once(ctx, int64(s.client), m.Key, func(ctx context.Context, a engine.Querier) (any, error) {
		if err := s.countCall(ctx, a, m.Day); err != nil {
			return nil, err
		}
		if merged, err = s.merge(ctx, a, m); err != nil {
			return nil, err
		}
		for _, code := range merged.Refused {
			return nil, refusal(code)
		}
		return merged, nil
	})
	return merged, err
}

// merge adds contacts. If there is already a contact with the same phone, the new contact is merged into it.
func (s ContactStore) merge(ctx context.Context, a engine.Querier, m puntuale.ContactBatch) (merged puntuale.MergedContacts, err error) {
	people, err := s.lockPeople(ctx, a)
	if err != nil {
		return merged, err
	}
	return s.mergeLocked(ctx, a, m, people)
}

// mergeLocked does the work of merge. The caller has locked the row with the number of the client's contacts.
func (s ContactStore) mergeLocked(ctx context.Context, a engine.Querier, m puntuale.ContactBatch, people int64) (merged puntuale.MergedContacts, err error) {
	stored, err := s.contactsOf(ctx, a, engine.Column(m.All, func(c *puntuale.Contact) string { return c.Phone }))
	if err != nil {
		return merged, err
	}
	w := &writtenContacts{client: s.client}
	merged = puntuale.MergedContacts{All: make([]puntuale.Contact, len(m.All)), Refused: map[int]puntuale.ReasonCode{}}
	var fresh []int
	twins := map[int]int{} // contacts of people who are also in an earlier row, as which they are new
	added := map[string]int{}
	for i, given := range m.All {
		old, known := stored[given.Phone]
		if k, twin := added[puntuale.FormKey(given.Phone)]; twin && !known {
			if now, _ := merged.All[k].Merge(given); now.Refusal() == "" {
				merged.All[k], twins[i] = now, k
				continue
			}
		}
		if !known {
			old = puntuale.Contact{Phone: given.Phone, Created: m.Now}
		}
		now, changed := old.Merge(given)
		code := now.Refusal()
		if !known && code == "" && people+int64(len(fresh)) >= puntuale.MaxContacts {
			code = puntuale.FaultContactQuota
		}
		switch {
		case code != "":
			merged.Refused[i] = code
			continue
		case !known:
			now.Changed = m.Now
			fresh = append(fresh, i)
			added[puntuale.FormKey(now.Phone)] = i
		case changed:
			now.Changed = m.Now
			w.change(old, now)
		}
		merged.All[i] = now
	}
	if len(fresh) > 0 {
		last, err := engine.NextNumbers(ctx, a, "person", len(fresh))
		if err != nil {
			return merged, err
		}
		for k, i := range fresh {
			merged.All[i].ID = puntuale.ContactID(last - int64(len(fresh)-1-k))
			w.add(merged.All[i])
		}
	}
	for i, k := range twins {
		merged.All[i] = merged.All[k]
	}
	merged.Added, merged.Changed = len(fresh), len(w.changed)
	if err := w.write(ctx, a); err != nil {
		return merged, err
	}
	return merged, s.count(ctx, a, int64(len(fresh)))
}

// refusal returns the error for a contact that was refused with this code.
func refusal(code puntuale.ReasonCode) error {
	switch code {
	case puntuale.FaultContactQuota:
		return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(code, fmt.Sprint(puntuale.MaxContacts))}
	case puntuale.FaultContactTooManyTags:
		return puntuale.Invalid(puntuale.Because(code, fmt.Sprint(puntuale.MaxContactTags)).At("body.tags", nil))
	}
	return puntuale.Invalid(puntuale.Because(code, fmt.Sprint(puntuale.MaxContactFields)).At("body.fields", nil))
}

// UpdateContact changes a contact and counts one call. The cap never refuses the call. Codes: not_found; invalid
// (too many fields or tags).
func (s ContactStore) UpdateContact(ctx context.Context, id puntuale.ContactID, p puntuale.ContactPatch, day puntuale.Date, now time.Time) (c puntuale.Contact, err error) {
	err = s.change(ctx, id, day, func(ctx context.Context, a engine.Querier, old puntuale.Contact) error {
		patched, changed := old.Apply(p)
		if c = patched; !changed {
			return nil
		}
		if code := c.Refusal(); code != "" {
			return refusal(code)
		}
		c.Changed = now
		w := &writtenContacts{client: s.client}
		w.change(old, c)
		return w.write(ctx, a)
	})
	return c, err
}

// DeleteContact deletes a contact and counts one call. The cap never refuses the call. Codes: not_found.
func (s ContactStore) DeleteContact(ctx context.Context, id puntuale.ContactID, day puntuale.Date) error {
	return s.change(ctx, id, day, func(ctx context.Context, a engine.Querier, old puntuale.Contact) error {
		_, err := remove(ctx, a, s.client, []puntuale.ContactID{id})
		return err
	})
}

// change counts one call, locks the contact, and calls do.
func (s ContactStore) change(ctx context.Context, id puntuale.ContactID, day puntuale.Date, do func(context.Context, engine.Querier, puntuale.Contact) error) error {
	return s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if err := s.countCall(ctx, a, day); err != nil {
			return err
		}
		if _, err := s.lockPeople(ctx, a); err != nil {
			return err
		}
		var old puntuale.Contact
		found, err := engine.QueryOne(ctx, a, `select `+personColumns+` from person p where p.client_id = $1 and p.id = $2`, []any{s.client, id}, personFields(&old)...)
		if err := engine.ThereOr(found, err, puntuale.NoContact); err != nil {
			return err
		}
		return do(ctx, a, old)
	})
}

// remove deletes contacts with their terms. The caller has locked the row with the number of the client's contacts.
func remove(ctx context.Context, a engine.Querier, client puntuale.ClientID, ids []puntuale.ContactID) (int64, error) {
	columns := engine.Columns{engine.Column(ids, func(id *puntuale.ContactID) int64 { return int64(*id) })}
	words, err := engine.QueryAll(ctx, a, `select distinct t.term from $u(i bigint) cross join person_term t where t.client_id = $1 and t.person_id = u.i and t.kind + 0 = 1`,
		[]any{client, columns}, engine.ScanOne[string])
	if err != nil {
		return 0, fmt.Errorf("read the words of contacts: %w", err)
	}
	if _, err := a.Exec(ctx, `delete from person_term where client_id = $1 and person_id in (select u.i from $u(i bigint))`, client, columns); err != nil {
		return 0, fmt.Errorf("delete terms of contacts: %w", err)
	}
	if err := forgetWords(ctx, a, client, words); err != nil {
		return 0, err
	}
	n, err := a.Exec(ctx, `delete from person where client_id = $1 and id in (select u.i from $u(i bigint))`, client, columns)
	if err != nil {
		return 0, fmt.Errorf("delete contacts: %w", err)
	}
	if _, err := a.Exec(ctx, `update person_count set people = people - $2::bigint where client_id = $1`, client, n); err != nil {
		return 0, fmt.Errorf("count contacts: %w", err)
	}
	return n, outbox.TouchContacts(ctx, a, client, time.Time{}, ids)
}

// Erase deletes the contacts with one of the person's names, in the transaction of an erasure. It returns the deleted
// contacts.
func Erase(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string) ([]puntuale.ContactID, error) {
	var people int64
	if found, err := engine.QueryOne(ctx, a, `select n.people from person_count n where n.client_id = $1 for update`, []any{client}, &people); err != nil || !found {
		return nil, err
	}
	ids, err := engine.QueryAll(ctx, a, `select p.id from $u(p text) cross join person p where p.client_id = $1 and p.phone = u.p`, []any{client, engine.Columns{names}}, engine.ScanOne[puntuale.ContactID])
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	_, err = remove(ctx, a, client, ids)
	return ids, err
}

// forgetAtOnce is how many contacts of deleted clients one transaction deletes.
const forgetAtOnce = 1000

// ForgetContacts deletes the contacts of deleted clients, in several transactions.
func (p *Persons) ForgetContacts(ctx context.Context) error {
	clients, err := engine.QueryAll(ctx, p.db.MaintenanceReads, `select n.client_id from person_count n join client c on c.id = n.client_id where c.deleted_at <> 0`, nil, engine.ScanOne[puntuale.ClientID])
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for contacts of deleted clients: %w", err))
	}
	for _, client := range clients {
		for more := true; more; {
			if err := p.db.FeedWriter.Do(ctx, engine.Single(p.merges, func(ctx context.Context, a engine.Querier) error {
				var people int64
				if _, err := engine.QueryOne(ctx, a, `select n.people from person_count n where n.client_id = $1 for update`, []any{client}, &people); err != nil {
					return err
				}
				ids, err := engine.QueryAll(ctx, a, `select p.id from person p where p.client_id = $1 order by p.id limit $2`, []any{client, forgetAtOnce}, engine.ScanOne[puntuale.ContactID])
				if err != nil {
					return fmt.Errorf("look for contacts of a deleted client: %w", err)
				}
				if more = len(ids) > 0; more {
					_, err = remove(ctx, a, client, ids)
					return err
				}
				_, err = a.Exec(ctx, `delete from person_count where client_id = $1`, client)
				return err
			}).ForOwner(int64(client)), false); err != nil {
				return err
			}
		}
	}
	return nil
}

// writtenContacts contains the contacts that one transaction writes.
type writtenContacts struct {
	client         puntuale.ClientID
	added, changed []puntuale.Contact
	removed, fresh []term
	dated          []puntuale.ContactID // contacts whose dates changed
}

func (w *writtenContacts) add(c puntuale.Contact) {
	w.added = append(w.added, c)
	w.date(puntuale.Contact{}, c)
	w.fresh = append(w.fresh, termsOf(c)...)
}

func (w *writtenContacts) change(old, c puntuale.Contact) {
	w.changed = append(w.changed, c)
	w.date(old, c)
	before, after := termsOf(old), termsOf(c)
	w.removed = append(w.removed, slices.DeleteFunc(slices.Clone(before), func(t term) bool { return slices.Contains(after, t) })...)
	w.fresh = append(w.fresh, slices.DeleteFunc(slices.Clone(after), func(t term) bool { return slices.Contains(before, t) })...)
}

// date adds the contact to the field dated if one of the contact's dates was added, changed or removed.
func (w *writtenContacts) date(old, c puntuale.Contact) {
	for _, pair := range [][2]puntuale.Contact{{old, c}, {c, old}} {
		for name, field := range pair[0].Fields {
			if field.Kind == puntuale.FieldDate && pair[1].Fields[name] != field {
				w.dated = append(w.dated, c.ID)
				return
			}
		}
	}
}

// Statements for a batch of contacts. The method columns makes the batch.
const (
	insertPeople = `insert into person (client_id, id, phone, name, language, source, fields, tags, created_at, changed_at)
 select $1::bigint, u.i, u.p, u.n, u.l, u.s, u.f, u.t, u.m, u.c from $u(i bigint, p text, n text, l text, s text, f text, t text, m bigint, c bigint)`
	updatePeople = `update person set name = u.n, language = u.l, source = u.s, fields = u.f, tags = u.t, changed_at = u.c
 from $u(i bigint, p text, n text, l text, s text, f text, t text, m bigint, c bigint) where person.client_id = $1 and person.id = u.i`
)

func columns(all []puntuale.Contact) (engine.Columns, error) {
	fields, tags := make([]string, len(all)), make([]string, len(all))
	for i := range all {
		given := all[i]
		if given.Fields == nil {
			given.Fields = map[string]puntuale.ContactField{}
		}
		if given.Tags == nil {
			given.Tags = []string{}
		}
		var err error
		if fields[i], err = engine.ToJSON(given.Fields); err != nil {
			return nil, err
		}
		if tags[i], err = engine.ToJSON(given.Tags); err != nil {
			return nil, err
		}
	}
	return engine.Columns{
		engine.Column(all, func(c *puntuale.Contact) int64 { return int64(c.ID) }),
		engine.Column(all, func(c *puntuale.Contact) string { return c.Phone }),
		engine.Column(all, func(c *puntuale.Contact) string { return c.Name }),
		engine.Column(all, func(c *puntuale.Contact) string { return c.Language }),
		engine.Column(all, func(c *puntuale.Contact) string { return c.Source }),
		fields, tags,
		engine.Column(all, func(c *puntuale.Contact) int64 { return engine.Micros(c.Created) }),
		engine.Column(all, func(c *puntuale.Contact) int64 { return engine.Micros(c.Changed) }),
	}, nil
}

func (w *writtenContacts) write(ctx context.Context, a engine.Querier) error {
	for _, part := range []struct {
		all  []puntuale.Contact
		text string
	}{{w.added, insertPeople}, {w.changed, updatePeople}} {
		if len(part.all) == 0 {
			continue
		}
		rows, err := columns(part.all)
		if err != nil {
			return err
		}
		if _, err := a.Exec(ctx, part.text, w.client, rows); err != nil {
			return fmt.Errorf("write contacts: %w", err)
		}
	}
	for _, part := range []struct {
		all  []term
		text string
	}{
		{w.removed, `delete from person_term where client_id = $1 and (kind, term, person_id) in (select u.k, u.t, u.i from $u(k smallint, t text, i bigint))`},
		{w.fresh, `insert into person_term (client_id, kind, term, person_id) select $1::bigint, u.k, u.t, u.i from $u(k smallint, t text, i bigint) where true
 on conflict (client_id, kind, term, person_id) do nothing`},
	} {
		if len(part.all) == 0 {
			continue
		}
		engine.Sort(part.all, term.compare) // sorted, so that neighbours in the index are written together
		if _, err := a.Exec(ctx, part.text, w.client, engine.Columns{
			engine.Column(part.all, func(t *term) int64 { return int64(t.kind) }),
			engine.Column(part.all, func(t *term) string { return t.text }),
			engine.Column(part.all, func(t *term) int64 { return int64(t.person) }),
		}); err != nil {
			return fmt.Errorf("write terms of contacts: %w", err)
		}
	}
	if err := forgetWords(ctx, a, w.client, wordsIn(w.removed)); err != nil {
		return err
	}
	if err := keepWords(ctx, a, w.client, wordsIn(w.fresh)); err != nil {
		return err
	}
	if len(w.dated) == 0 {
		return nil
	}
	return outbox.TouchContacts(ctx, a, w.client, time.Time{}, w.dated)
}
