package page

import (
	"slices"

	"puntuale"
	"puntuale/internal/control/request"
)

// NamePeople reads by which names the client knows people, for all parts of the page.
func (v *Request) NamePeople(phones ...string) error {
	slices.Sort(phones)
	phones = slices.DeleteFunc(slices.Compact(phones), func(phone string) bool { return phone == "" })
	if len(phones) == 0 {
		return nil
	}
	names, err := v.Client.NamesOf(v.Ctx(), phones...)
	if err == nil {
		v.Frame.Names = names
	}
	return err
}

// Each returns what of returns for each row.
func Each[T, V any](rows []T, of func(T) V) []V {
	all := make([]V, len(rows))
	for i, row := range rows {
		all[i] = of(row)
	}
	return all
}

// NameRecipients is NamePeople for the recipients of messages.
func (v *Request) NameRecipients(lists ...[]puntuale.MessageDetail) error {
	var phones []string
	for _, rows := range lists {
		for i := range rows {
			phones = append(phones, rows[i].Phone)
		}
	}
	return v.NamePeople(phones...)
}

// BlacklistEntry returns the entry that keeps a number, as messages write it, from getting messages. nil: it is not in the
// blacklist.
func BlacklistEntry(v *Request, phone string) (*puntuale.BlacklistEntry, error) {
	if listed, err := v.Client.Blacklisted(v.Ctx(), phone); err != nil || !listed {
		return nil, err
	}
	found, _, err := v.Client.FindBlacklisted(v.Ctx(), phone, request.Page{Limit: "1"})
	for i := range found {
		if found[i].Phone == phone || found[i].Erased {
			return &found[i], err
		}
	}
	return nil, err
}
