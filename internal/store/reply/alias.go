package reply

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
)

// KeepAliases leaves out former names (package person): what networks tell late of a message to an old number must not join
// the number with the person again.
func (s *Replies) KeepAliases(ctx context.Context, all []puntuale.Alias) error {
	all = slices.DeleteFunc(slices.Clone(all), func(x puntuale.Alias) bool { return x.Name == x.Phone || x.Name == "" || x.Phone == "" })
	engine.Sort(all, func(x, y puntuale.Alias) int {
		return cmp.Or(cmp.Compare(x.Client, y.Client), cmp.Compare(x.Session, y.Session), cmp.Compare(x.Name, y.Name), cmp.Compare(x.Phone, y.Phone))
	})
	for len(all) > 0 {
		n := 1
		for n < min(len(all), engine.Chunk) && all[n].Client == all[0].Client {
			n++
		}
		part := all[:n]
		all = all[n:]
		if err := s.db.TenantWriter(int64(part[0].Client)).Do(ctx, engine.Single(s.heard, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `insert into alias (client_id, session_id, alias, phone)
 select s.client_id, s.id, u.a, u.p from $u(s bigint, a text, p text) join session s on s.client_id = $1 and s.id = u.s and s.deleted_at = 0
 where not exists (select 1 from former_name f where f.client_id = $1 and f.name = u.a)
 on conflict (client_id, session_id, alias, phone) do nothing`, part[0].Client, engine.Columns{
				engine.Column(part, func(x *puntuale.Alias) int64 { return int64(x.Session) }),
				engine.Column(part, func(x *puntuale.Alias) string { return x.Name }),
				engine.Column(part, func(x *puntuale.Alias) string { return x.Phone }),
			})
			return err
		}), false); err != nil {
			return fmt.Errorf("note other names of people: %w", err)
		}
	}
	return nil
}

func (s *Replies) Recipients(ctx context.Context, client puntuale.ClientID, name string) ([]string, error) {
	names, err := alias.Names(ctx, s.db.CallReads, client, name)
	return names, engine.PublicError(err)
}

// aliasKey is the primary key of an alias.
type aliasKey struct {
	client, session int64
	alias, phone    string
}

const aliasesLooked = 500 // largest number of aliases that one call of Maintain reads; the next call continues after them

const aliasesNext = `
select a.client_id, a.session_id, a.alias, a.phone,
 not exists (select 1 from run r where r.client_id = a.client_id and r.phone in (a.phone, a.alias))
 and not exists (select 1 from contact g where g.client_id = a.client_id and g.phone in (a.phone, a.alias))
 and not exists (select 1 from blacklist b where b.client_id = a.client_id and b.phone in (a.phone, a.alias))
 and not exists (select 1 from consent_state s where s.client_id = a.client_id and s.phone in (a.phone, a.alias))
 and not exists (select 1 from former_name f where f.client_id = a.client_id and f.name = a.alias)
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
