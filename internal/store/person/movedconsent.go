package person

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// consentRow is a row of consent_state before a change of number, and what the target had from then on.
type consentRow struct {
	Phone   string
	Purpose int64
	Change  int64
	Granted int64
	At      int64
}

func scanConsentRow(r engine.Row, s *consentRow) error {
	return r.Scan(&s.Phone, &s.Purpose, &s.Change, &s.Granted, &s.At)
}

const withdrawn = int64(puntuale.ConsentWithdraw)

// moveConsents moves what the person agreed to. The latest change of each purpose counts. A withdrawal stays at the old
// number, too. A grant does not: whoever gets the number gave none.
func (x *numberChange) moveConsents(ctx context.Context) error {
	names := append(slices.Clone(x.ended), x.target)
	all, err := engine.QueryAll(ctx, x.a, `select s.phone, s.purpose, s.change, s.granted_before, s.at from $u(p text) cross join consent_state s where s.client_id = $1 and s.phone = u.p`,
		[]any{x.Client, engine.Columns{names}}, scanConsentRow)
	if err != nil {
		return fmt.Errorf("read what a person agreed to: %w", err)
	}
	engine.Sort(all, func(a, b consentRow) int {
		return cmp.Or(cmp.Compare(a.Purpose, b.Purpose), cmp.Compare(a.At, b.At), cmp.Compare(a.Change, b.Change), cmp.Compare(a.Phone, b.Phone))
	})
	x.undo.Consents = all
	for i, s := range all {
		if s.Phone != x.target && s.Change != withdrawn {
			if _, err := x.a.Exec(ctx, `delete from consent_state where client_id = $1 and phone = $2 and purpose = $3`, x.Client, s.Phone, s.Purpose); err != nil {
				return fmt.Errorf("move what a person agreed to: %w", err)
			}
		}
		if i+1 == len(all) || all[i+1].Purpose != s.Purpose { // the latest
			s.Phone = x.target
			if err := putConsent(ctx, x.a, x.Client, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func putConsent(ctx context.Context, a engine.Querier, client puntuale.ClientID, s consentRow) error {
	if _, err := a.Exec(ctx, `insert into consent_state (client_id, phone, purpose, change, granted_before, at) values ($1, $2, $3, $4, $5, $6)
 on conflict (client_id, phone, purpose) do update set change = excluded.change, granted_before = excluded.granted_before, at = excluded.at`,
		client, s.Phone, s.Purpose, s.Change, s.Granted, s.At); err != nil {
		return fmt.Errorf("move what a person agreed to: %w", err)
	}
	return nil
}

// moveContact moves the contact. If the new number is another contact, the two are merged: what the new number's contact
// has counts, and the rest is added.
func (x *numberChange) moveContact(ctx context.Context) error {
	find := func(names []string) ([]puntuale.Contact, error) {
		return engine.QueryAll(ctx, x.a, `select `+personColumns+` from $u(p text) cross join person p where p.client_id = $1 and p.phone = u.p order by p.id`,
			[]any{x.Client, engine.Columns{names}}, scanPerson)
	}
	there, err := find(append([]string{x.target}, x.joined...))
	if err != nil {
		return fmt.Errorf("read contacts: %w", err)
	}
	for _, name := range x.ended {
		all, err := find([]string{name})
		if err != nil {
			return fmt.Errorf("read contacts: %w", err)
		}
		for _, old := range all {
			if len(there) > 0 {
				if err := x.mergeContact(ctx, old, there[0]); err != nil {
					return err
				}
				continue
			}
			if _, err := x.a.Exec(ctx, `update person set phone = $3, changed_at = $4 where client_id = $1 and id = $2`, x.Client, old.ID, x.target, engine.Micros(x.now)); err != nil {
				return fmt.Errorf("move a contact: %w", err)
			}
			x.undo.Moved[name].Contact = old.ID
			old.Phone, old.Changed = x.target, x.now
			there = append(there, old)
		}
	}
	return nil
}

// mergeContact merges the old number's contact into the new number's. Beyond the limits of a contact, nothing is added.
func (x *numberChange) mergeContact(ctx context.Context, old, kept puntuale.Contact) error {
	merged, _ := old.Merge(kept) // the values of kept replace those of old
	merged.ID, merged.Phone, merged.Created, merged.Changed = kept.ID, kept.Phone, kept.Created, x.now
	_, changed := kept.Merge(merged)
	if merged.Refusal() != "" {
		merged, changed = kept, false
	}
	if changed {
		w := &writtenContacts{client: x.Client}
		w.change(kept, merged)
		if err := w.write(ctx, x.a); err != nil {
			return err
		}
	}
	if x.undo.Merged == nil {
		x.undo.Merged, x.undo.Removed, x.undo.Result = &kept, &old, &merged
	}
	_, err := remove(ctx, x.a, x.Client, []puntuale.ContactID{old.ID})
	return err
}
