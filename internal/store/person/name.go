package person

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// NamesOfRuns selects the latest runs to each name of a person, the newest first. A long call is not read, because
// [puntuale.RecipientName] finds no name in it. It sorts by a sum, so that SQLite does not read all runs of the client in
// their order.
const NamesOfRuns = `
select f.g, r.origin, r.request from (
 select x.g, x.i from (
  select u.g, r.id as i, row_number() over (partition by u.g order by r.id desc) as n
  from $u(p text, g text) cross join run r where r.client_id = $1 and r.phone = u.p) as x
 where x.n <= 10) as f
 cross join run r
where r.client_id = $1 and r.id = f.i and octet_length(r.request) between 3 and 16384
order by r.id + 0 desc`

// NamesOf returns the names of at most 1,000 people, by phone: the contact's name, or the name in the latest call that
// named the person.
func (s ContactStore) NamesOf(ctx context.Context, phones []string) (map[string]string, error) {
	called := map[string]string{}
	listed, err := s.ContactsOf(ctx, phones)
	if err != nil {
		return nil, err
	}
	for phone, c := range listed {
		if c.Name != "" {
			called[phone] = c.Name
		}
	}
	var names, given []string
	rest := slices.DeleteFunc(slices.Clone(phones), func(phone string) bool { return called[phone] != "" })
	if len(rest) == 0 {
		return called, nil
	}
	if err := alias.Each(ctx, s.db.CallReads, slices.Repeat([]int64{int64(s.client)}, len(rest)), rest, func(i int, name string) {
		names, given = append(names, name), append(given, rest[i])
	}); err != nil {
		return nil, engine.PublicError(err)
	}
	err = s.db.CallReads.Query(ctx, NamesOfRuns, []any{s.client, engine.Columns{names, given}}, func(r engine.Row) error {
		var phone string
		var origin puntuale.Origin
		var request []byte
		err := r.Scan(&phone, queue.ScanOrigin(&origin), &request)
		if err == nil && called[phone] == "" {
			if name := puntuale.RecipientName(origin, request); name != "" {
				called[phone] = name
			}
		}
		return err
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("read the names of people: %w", err))
	}
	return called, nil
}
