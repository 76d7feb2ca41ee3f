package person

import (
	"context"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Lock locks the row with the number of the client's contacts. Call it in a transaction before the transaction changes
// contacts. Codes: not_found.
func (s ContactStore) Lock(ctx context.Context, a engine.Querier) error {
	_, err := s.lockPeople(ctx, a)
	return err
}

// TagChange adds tags to a person, and removes other tags. If a tag is added and the person is not a contact, the
// person becomes a contact.
type TagChange struct {
	Phone       string
	Add, Remove []string
}

// Tag changes tags, in a transaction that has called [ContactStore.Lock]. It skips a contact that would get too many
// tags. It also skips a new contact if the client already has as many contacts as allowed.
func (s ContactStore) Tag(ctx context.Context, a engine.Querier, all []TagChange, now time.Time) error {
	people, err := s.lockPeople(ctx, a)
	if err != nil {
		return err
	}
	stored, err := s.contactsOf(ctx, a, engine.Column(all, func(t *TagChange) string { return t.Phone }))
	if err != nil {
		return err
	}
	w := &writtenContacts{client: s.client}
	var fresh []puntuale.Contact
	for _, t := range all {
		old, known := stored[t.Phone]
		if !known {
			if len(t.Add) > 0 && people+int64(len(fresh)) < puntuale.MaxContacts {
				fresh = append(fresh, puntuale.Contact{Phone: t.Phone, Tags: t.Add, Created: now, Changed: now})
			}
			continue
		}
		if c, changed := old.Apply(puntuale.ContactPatch{AddTags: t.Add, RemoveTags: t.Remove}); changed && c.Refusal() == "" {
			c.Changed = now
			w.change(old, c)
		}
	}
	if len(fresh) > 0 {
		engine.Sort(fresh, func(x, y puntuale.Contact) int { return strings.Compare(x.Phone, y.Phone) })
		if _, err := s.mergeLocked(ctx, a, puntuale.ContactBatch{All: fresh, Now: now}, people); err != nil {
			return err
		}
	}
	return w.write(ctx, a)
}

// TagContacts adds tags to contacts, and removes other tags, all in one transaction. It counts no call, because only
// dashboards use it. It returns how many contacts it changed. It skips a contact that is gone, that would get too many tags,
// or that the change leaves as it is.
func (s ContactStore) TagContacts(ctx context.Context, ids []puntuale.ContactID, add, remove []string, now time.Time) (changed int, err error) {
	err = s.db.Write(ctx, int64(s.client), func(ctx context.Context, a engine.Querier) error {
		if _, err := s.lockPeople(ctx, a); err != nil {
			return err
		}
		stored, err := engine.QueryAll(ctx, a, `select `+personColumns+` from $u(i bigint) cross join person p where p.client_id = $1 and p.id = u.i order by p.id`,
			[]any{s.client, engine.Columns{engine.Column(ids, func(id *puntuale.ContactID) int64 { return int64(*id) })}}, scanPerson)
		if err != nil {
			return fmt.Errorf("read contacts to tag: %w", err)
		}
		w := &writtenContacts{client: s.client}
		for _, old := range stored {
			if c, differs := old.Apply(puntuale.ContactPatch{AddTags: add, RemoveTags: remove}); differs && c.Refusal() == "" {
				c.Changed = now
				w.change(old, c)
			}
		}
		changed = len(w.changed)
		return w.write(ctx, a)
	})
	return changed, err
}
