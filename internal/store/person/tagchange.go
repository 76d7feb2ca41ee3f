package person

import (
	"context"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Lock locks the client's count of contacts, in a transaction that changes contacts later. Codes: not_found.
func (s ContactStore) Lock(ctx context.Context, a engine.Querier) error {
	_, err := s.lockPeople(ctx, a)
	return err
}

// TagChange adds tags to a person, and removes others. The person becomes a contact if a tag is added.
type TagChange struct {
	Phone       string
	Add, Remove []string
}

// Tag changes tags in a transaction that called [ContactStore.Lock]. A contact that would get too many tags, and one beyond the most contacts, stay as they are.
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
		slices.SortFunc(fresh, func(x, y puntuale.Contact) int { return strings.Compare(x.Phone, y.Phone) })
		if _, err := s.mergeLocked(ctx, a, puntuale.ContactBatch{All: fresh, Now: now}, people); err != nil {
			return err
		}
	}
	return w.write(ctx, a)
}
