package person

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// Contact reads a contact. Codes: not_found.
func (s ContactStore) Contact(ctx context.Context, id puntuale.ContactID) (c puntuale.Contact, err error) {
	found, err := engine.QueryOne(ctx, s.db.CallReads, `select `+personColumns+` from person p where p.client_id = $1 and p.id = $2`, []any{s.client, id}, personFields(&c)...)
	return c, engine.FoundOr(found, err, puntuale.NoContact)
}

// ContactOf finds a contact by its number.
func (s ContactStore) ContactOf(ctx context.Context, phone string) (c puntuale.Contact, found bool, err error) {
	stored, err := s.ContactsOf(ctx, []string{phone})
	c, found = stored[phone]
	return c, found, err
}

// ContactsOf returns the existing contacts of at most 1,000 phones, by phone.
func (s ContactStore) ContactsOf(ctx context.Context, phones []string) (map[string]puntuale.Contact, error) {
	stored, err := s.contactsOf(ctx, s.db.CallReads, phones)
	return stored, engine.PublicError(err)
}

// contactsOf reads contacts by their phones. If there is no contact with a phone, it takes the contact with another name
// of the person. The keys of the result are the given phones.
func (s ContactStore) contactsOf(ctx context.Context, a engine.Querier, phones []string) (map[string]puntuale.Contact, error) {
	stored := map[string]puntuale.Contact{}
	if len(phones) == 0 {
		return stored, nil
	}
	var names, given []string
	if err := alias.Each(ctx, a, slices.Repeat([]int64{int64(s.client)}, len(phones)), phones, func(i int, name string) {
		names, given = append(names, name), append(given, phones[i])
	}); err != nil {
		return nil, err
	}
	if err := a.Query(ctx, `select u.g, `+personColumns+` from $u(p text, g text) cross join person p where p.client_id = $1 and p.phone = u.p order by p.id`,
		[]any{s.client, engine.Columns{names, given}}, func(r engine.Row) error {
			var phone string
			var c puntuale.Contact
			err := r.Scan(append([]any{&phone}, personFields(&c)...)...)
			if _, twice := stored[phone]; !twice || c.Phone == phone {
				stored[phone] = c
			}
			return err
		}); err != nil {
		return nil, fmt.Errorf("read contacts: %w", err)
	}
	return stored, nil
}

// Contacts lists contacts by id. If the filter has words of a name, or the beginning of a number, the order may
// be by name or number. A page may be shorter than asked, even empty: it has at most 4 MiB, and Contacts reads at
// most 3,000 contacts for it. Contacts uses only the ten longest words of a name. Codes: invalid (the cursor).
func (s ContactStore) Contacts(ctx context.Context, f puntuale.ContactFilter, p puntuale.Page) ([]puntuale.Contact, string, error) {
	x, err := s.search(ctx, f, p.Cursor)
	if err != nil {
		return nil, "", err
	}
	limit := p.Limit
	if limit <= 0 {
		limit = engine.DefaultLimit
	}
	var found []foundContact
	for maximum := limit + 1; len(found) <= limit && !x.ended && x.scanned < scanBound; maximum *= 2 {
		part, err := x.next(ctx, min(maximum, scanBound-x.scanned), true)
		if err != nil {
			return nil, "", err
		}
		found = append(found, part...)
	}
	shown, bytes := 0, 0
	for shown < min(limit, len(found)) && (shown == 0 || bytes+found[shown].Bytes <= engine.PageBytes) {
		bytes += found[shown].Bytes
		shown++
	}
	if err := engine.TakeMemory(ctx, 0, bytes); err != nil {
		return nil, "", err
	}
	next := ""
	switch {
	case shown < len(found):
		x.at.Text, x.at.ID = found[shown-1].text, puntuale.ContactID(found[shown-1].Id)
		next = x.at.String()
	case !x.ended:
		next = x.at.String()
	}
	all, err := s.read(ctx, engine.Column(found[:shown], func(k *foundContact) int64 { return k.Id }))
	return all, next, err
}

// read reads contacts in the order of ids. It leaves out contacts that were deleted since their ids were read.
func (s ContactStore) read(ctx context.Context, ids []int64) ([]puntuale.Contact, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := engine.QueryAll(ctx, s.lists(), `select `+personColumns+` from $u(i bigint) cross join person p where p.client_id = $1 and p.id = u.i`,
		[]any{s.client, engine.Columns{ids}}, scanPerson)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read contacts: %w", err))
	}
	place := make(map[puntuale.ContactID]int, len(ids))
	for i, id := range ids {
		place[puntuale.ContactID(id)] = i
	}
	engine.Sort(all, func(a, b puntuale.Contact) int { return place[a.ID] - place[b.ID] })
	return all, nil
}

// CountContacts counts contacts, up to limit. all reports whether n is the complete count. One condition is counted in its
// index. With more conditions, each contact of the rarest one is checked, so CountContacts ends after checkedBound of them.
func (s ContactStore) CountContacts(ctx context.Context, f puntuale.ContactFilter, limit int) (n int, all bool, err error) {
	if f.Tag == "" && f.Phone == "" && f.Name == "" && f.Filled == "" && len(f.Any) == 0 {
		_, err := engine.QueryOne(ctx, s.db.CallReads, `select n.people from person_count n where n.client_id = $1`, []any{s.client}, &n)
		return min(n, limit), n <= limit, engine.PublicError(err)
	}
	x, err := s.search(ctx, f, "")
	if err != nil {
		return 0, false, err
	}
	if x.single() {
		return x.countIndex(ctx, limit)
	}
	where, _ := x.conditions()
	for n <= limit && !x.ended && (where == "" || x.scanned < checkedBound) {
		part, err := x.next(ctx, min(checkedBound, limit-n+1), false)
		if err != nil {
			return 0, false, err
		}
		n += len(part)
	}
	return min(n, limit), x.ended && n <= limit, nil
}

// single reports whether the filter has one condition only, which is no list of tags.
func (x *search) single() bool {
	conditions := len(x.words)
	for _, set := range []bool{x.f.Tag != "", x.f.Phone != "" || x.prefix != "", x.f.Filled != ""} {
		if set {
			conditions++
		}
	}
	return conditions == 1 && x.f.Filled == "" && len(x.f.Any) == 0
}

// countIndex counts the contacts of the only condition. A contact may have several words that match, so it reads more rows
// than it counts, but not many more.
func (x *search) countIndex(ctx context.Context, limit int) (n int, all bool, err error) {
	text, args := x.statement(x.at, x.f.Tag)
	counted, rows, most := "count(*)", 0, limit+1
	if x.at.By == byWord {
		counted, most = "count(distinct k.person_id)", 2*limit+manyRows
	}
	if _, err := engine.QueryOne(ctx, x.lists(), `select `+counted+`, count(*) from (`+text+`) as k`, append(args, most), &n, &rows); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count contacts: %w", err))
	}
	return min(n, limit), n <= limit && rows < most, nil
}

// maxTags is how many tags one answer may contain.
const maxTags = 1000

// ContactTags returns how many contacts have each tag. It returns at most 1,000 tags.
func (s ContactStore) ContactTags(ctx context.Context) (map[string]int, error) {
	tags := map[string]int{}
	err := s.lists().Query(ctx, `select t.term, count(*) from person_term t where t.client_id = $1 and t.kind = 2 group by t.term order by t.term limit $2`,
		[]any{s.client, maxTags}, func(r engine.Row) error {
			var tag string
			var n int
			err := r.Scan(&tag, &n)
			tags[tag] = n
			return err
		})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list tags: %w", err))
	}
	return tags, nil
}
