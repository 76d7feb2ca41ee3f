// Package alias finds all names of a person: the other form of a number, and the names that networks reported. It is
// the only place that decides which names belong to one person.
package alias

import (
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

// Person is a person whose names are searched. At the beginning, Names contains the given names.
type Person struct {
	Client puntuale.ClientID
	Names  []string
	asked  int // number of names whose aliases were already searched
}

// add adds a name and its other form, unless the person already has them.
func (p *Person) add(name string) {
	if !slices.Contains(p.Names, name) {
		p.Names = append(p.Names, name)
	}
	if other := puntuale.OtherForm(name); other != "" && !slices.Contains(p.Names, other) {
		p.Names = append(p.Names, other)
	}
}

// Names returns all names of the people who have one of the given names, each name once.
func Names(ctx context.Context, a engine.Querier, client puntuale.ClientID, given ...string) ([]string, error) {
	people := make([]*Person, len(given))
	for i, name := range given {
		people[i] = &Person{Client: client, Names: []string{name}}
	}
	if err := Find(ctx, a, people); err != nil {
		return nil, err
	}
	var all []string
	known := map[string]bool{}
	for _, p := range people {
		for _, name := range p.Names {
			if !known[name] {
				known[name] = true
				all = append(all, name)
			}
		}
	}
	return all, nil
}

// OtherNames finds the aliases of names in both directions.
const OtherNames = `
select u.i, a.phone from $u(i bigint, c bigint, n text) cross join alias a where a.client_id = u.c and a.alias = u.n
union
select u.i, a.alias from $u(i bigint, c bigint, n text) cross join alias a where a.client_id = u.c and a.phone = u.n
order by 1, 2`

// Find finds the names of the given people, within the limits above, and adds them to the field Names.
func Find(ctx context.Context, a engine.Querier, all []*Person) error {
	for _, p := range all {
		for _, name := range slices.Clone(p.Names) {
			p.add(name)
		}
	}
	for range namesSteps {
		type asked struct {
			i    int
			name string
		}
		var fresh []asked
		for i, p := range all {
			if len(p.Names) < maxNames || p.asked == 0 {
				for _, name := range p.Names[p.asked:] {
					fresh = append(fresh, asked{i, name})
				}
			}
			p.asked = len(p.Names)
		}
		if len(fresh) == 0 {
			break
		}
		if err := a.Query(ctx, OtherNames, []any{engine.Columns{
			engine.Column(fresh, func(x *asked) int64 { return int64(x.i) }),
			engine.Column(fresh, func(x *asked) int64 { return int64(all[x.i].Client) }),
			engine.Column(fresh, func(x *asked) string { return x.name }),
		}}, func(r engine.Row) error {
			var i int
			var name string
			err := r.Scan(&i, &name)
			if err == nil {
				all[i].add(name)
			}
			return err
		}); err != nil {
			return fmt.Errorf("look for a person's other names: %w", err)
		}
	}
	return nil
}
