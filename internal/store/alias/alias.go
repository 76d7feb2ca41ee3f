// Package alias finds all names of a person: the other form of a number, and the names that networks reported. It is
// the only place that decides which names belong to one person.
package alias

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Limits of a search for a person's names. A person has few names. A few lookups lead from one name to all other names.
// For example, an id leads to a number, and the number leads to its form at the network.
const (
	maxNames   = 16
	namesSteps = 3
)

// Names returns all names of the people who have one of the given names, each name once. The given names come first.
func Names(ctx context.Context, a engine.Querier, client puntuale.ClientID, given ...string) ([]string, error) {
	others, err := Others(ctx, a, slices.Repeat([]int64{int64(client)}, len(given)), given)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(given)
	for i := range given {
		all = append(all, others[i]...)
	}
	known := make(map[string]bool, len(all))
	return slices.DeleteFunc(all, func(name string) bool {
		twice := known[name]
		known[name] = true
		return twice
	}), nil
}

// Each calls do with each name of each person: the given name, and then the other names. i is the person's index.
func Each(ctx context.Context, a engine.Querier, clients []int64, given []string, do func(i int, name string)) error {
	others, err := Others(ctx, a, clients, given)
	for i, name := range given {
		do(i, name)
		for _, other := range others[i] {
			do(i, other)
		}
	}
	return err
}

// OtherNames finds the aliases of names in both directions. Names to which nothing is sent any more come last.
const OtherNames = `
select x.i, x.n, case when exists (select 1 from former_name f where f.client_id = x.c and f.name = x.n) then 1 else 0 end as former from (
select u.i, u.c, a.phone as n from $u(i bigint, c bigint, n text) cross join alias a where a.client_id = u.c and a.alias = u.n
union
select u.i, u.c, a.alias as n from $u(i bigint, c bigint, n text) cross join alias a where a.client_id = u.c and a.phone = u.n) x
order by 1, 3, 2`

// Others returns the other names of people, within the limits above. Each person has a client and a given name. The key
// of the result is the person's index. Most people have no other name, so they cost one row of one statement.
func Others(ctx context.Context, a engine.Querier, clients []int64, given []string) (map[int][]string, error) {
	s := search{given: given, places: make([]int64, 0, len(given)), names: make([]string, 0, len(given))}
	for i, name := range given {
		s.ask(i, name)
	}
	for range namesSteps {
		if len(s.names) == 0 {
			break
		}
		columns := engine.Columns{s.places, engine.Column(s.places, func(i *int64) int64 { return clients[*i] }), s.names}
		s.places, s.names = nil, nil
		if err := a.Query(ctx, OtherNames, []any{columns}, func(r engine.Row) error {
			var i int
			var name string
			var former bool
			err := r.Scan(&i, &name, engine.ScanBool(&former))
			if err == nil {
				s.add(i, name, former)
			}
			return err
		}); err != nil {
			return nil, fmt.Errorf("look for a person's other names: %w", err)
		}
	}
	for i, former := range s.former {
		engine.SortStable(s.found[i], func(a, b string) int { return cmp.Compare(engine.Bit(former[a]), engine.Bit(former[b])) })
	}
	return s.found, nil
}

// search finds the other names of people.
type search struct {
	given  []string
	found  map[int][]string
	former map[int]map[string]bool // the names to which nothing is sent any more

	// the names whose aliases the next statement reads, each with the index of its person
	places []int64
	names  []string
}

// add adds a name of a person, unless it is known. Both forms of a number end together.
func (s *search) add(i int, name string, former bool) {
	if name == s.given[i] || slices.Contains(s.found[i], name) || len(s.found[i]) >= maxNames {
		return
	}
	if s.found == nil {
		s.found = map[int][]string{}
	}
	s.found[i] = append(s.found[i], name)
	if former {
		if s.former == nil {
			s.former = map[int]map[string]bool{}
		}
		if s.former[i] == nil {
			s.former[i] = map[string]bool{}
		}
		s.former[i][name] = true
	}
	s.ask(i, name)
}

// ask lets the next statement read the aliases of a name. It also adds the other form of the name.
func (s *search) ask(i int, name string) {
	s.places, s.names = append(s.places, int64(i)), append(s.names, name)
	if other := puntuale.OtherForm(name); other != "" {
		s.add(i, other, s.former[i][name])
	}
}
