package reply

import (
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/engine"
)

func (s *Replies) KeepAliases(ctx context.Context, all []puntuale.Alias) error {
	for _, x := range all {
		if x.Name == x.Phone || x.Name == "" || x.Phone == "" {
			continue
		}
		if err := s.db.TenantWriter(int64(x.Client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `insert into alias (client_id, session_id, alias, phone)
 select s.client_id, s.id, $3::text, $4::text from session s where s.client_id = $1 and s.id = $2 and s.deleted_at = 0
 on conflict (client_id, session_id, alias, phone) do nothing`, x.Client, x.Session, x.Name, x.Phone)
			return err
		}), false); err != nil {
			return fmt.Errorf("note another name of a person: %w", err)
		}
	}
	return nil
}

// Limits of a search for a person's names. A person has few names. A few lookups lead from one name to all other names.
// For example, an id leads to a number, and the number leads to its form at the network.
const (
	maxNames   = 16
	namesSteps = 3
)

func (s *Replies) Recipients(ctx context.Context, client puntuale.ClientID, session puntuale.SessionID, name string) ([]string, error) {
	p := &namedPerson{client: int64(client), session: int64(session), names: []string{name}}
	if err := findNames(ctx, s.db.CallReads, []*namedPerson{p}); err != nil {
		return nil, engine.PublicError(err)
	}
	return p.names, nil
}

// namedPerson is a person whose names are searched. At the beginning, names contains one name.
type namedPerson struct {
	client, session int64
	names           []string
	asked           int // number of names whose aliases were already searched
}

const otherNames = `
select u.i, a.phone from $u(i bigint, c bigint, s bigint, n text) cross join alias a where a.client_id = u.c and a.session_id = u.s and a.alias = u.n
union
select u.i, a.alias from $u(i bigint, c bigint, s bigint, n text) cross join alias a where a.client_id = u.c and a.phone = u.n and a.session_id = u.s
order by 1, 2`

// findNames finds the names of the given people, within the limits above, and adds them to the field names.
func findNames(ctx context.Context, a engine.Querier, all []*namedPerson) error {
	for range namesSteps {
		type asked struct {
			i      int
			person *namedPerson
			name   string
		}
		var fresh []asked
		for i, p := range all {
			if len(p.names) < maxNames {
				for _, name := range p.names[p.asked:] {
					fresh = append(fresh, asked{i, p, name})
				}
			}
			p.asked = len(p.names)
		}
		if len(fresh) == 0 {
			break
		}
		if err := a.Query(ctx, otherNames, []any{engine.Columns{
			engine.Column(fresh, func(x *asked) int64 { return int64(x.i) }),
			engine.Column(fresh, func(x *asked) int64 { return x.person.client }),
			engine.Column(fresh, func(x *asked) int64 { return x.person.session }),
			engine.Column(fresh, func(x *asked) string { return x.name }),
		}}, func(r engine.Row) error {
			var i int
			var name string
			err := r.Scan(&i, &name)
			if err == nil && !slices.Contains(all[i].names, name) {
				all[i].names = append(all[i].names, name)
			}
			return err
		}); err != nil {
			return fmt.Errorf("read for whom a name stands: %w", err)
		}
	}
	return nil
}

// aliasKey is the primary key of an alias.
type aliasKey struct {
	client, session int64
	alias, phone    string
}

const aliasesLooked = 500 // largest number of aliases that one call of Maintain reads; the next call continues after them

const aliasesNext = `
select a.client_id, a.session_id, a.alias, a.phone,
 not exists (select 1 from run r where r.client_id = a.client_id and r.phone = a.phone)
 and not exists (select 1 from contact g where g.client_id = a.client_id and g.phone in (a.phone, a.alias))
from alias a where (a.client_id, a.session_id, a.alias, a.phone) > ($1, $2, $3, $4)
order by a.client_id, a.session_id, a.alias, a.phone limit $5`

// purgeAliases deletes the aliases of a person if the store knows nothing else about the person. Like purgeContacts, it
// reads in the order of the primary key.
func (s *Replies) purgeAliases(ctx context.Context) error {
	var last aliasKey
	if p := s.lastAlias.Load(); p != nil {
		last = *p
	}
	var outdated []aliasKey
	n := 0
	if err := s.db.MaintenanceReads.Query(ctx, aliasesNext, []any{last.client, last.session, last.alias, last.phone, aliasesLooked}, func(rows engine.Row) error {
		var lone bool
		if err := rows.Scan(&last.client, &last.session, &last.alias, &last.phone, &lone); err != nil {
			return err
		}
		if n++; lone {
			outdated = append(outdated, last)
		}
		return nil
	}); err != nil {
		return engine.PublicError(fmt.Errorf("look for names of nobody: %w", err))
	}
	if len(outdated) > 0 {
		if err := s.db.TenantWriters[0].Do(ctx, engine.Single(s.db.Writes, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `delete from alias where (client_id, session_id, alias, phone) in
 (select u.c, u.s, u.a, u.p from $u(c bigint, s bigint, a text, p text))`, engine.Columns{
				engine.Column(outdated, func(k *aliasKey) int64 { return k.client }), engine.Column(outdated, func(k *aliasKey) int64 { return k.session }),
				engine.Column(outdated, func(k *aliasKey) string { return k.alias }), engine.Column(outdated, func(k *aliasKey) string { return k.phone }),
			})
			return err
		}), false); err != nil {
			return fmt.Errorf("remove names of nobody: %w", err)
		}
	}
	if n < aliasesLooked {
		last = aliasKey{}
	}
	s.lastAlias.Store(&last)
	return nil
}
