package file

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// named finds out whether something of a client names a file. A deleted sequence counts while its deletion can be undone.
const named = `select case when exists (select 1 from client k where k.id = $1 and k.deleted_at = 0) and (
 exists (select 1 from sequence q where q.client_id = $1 and q.steps like $2::text and (q.deleted_at = 0 or q.deleted_at >= $3::bigint))
 or exists (select 1 from template t where t.client_id = $1 and t.media like $2::text)
 or exists (select 1 from automation r where r.client_id = $1 and r.actions like $2::text)
 or exists (select 1 from campaign g where g.client_id = $1 and g.ended_at = 0 and (g.draft like $2::text or g.frozen like $2::text))
 or exists (select 1 from template_request x where x.client_id = $1 and x.state < 2 and x.draft like $2::text))
 then 1 else 0 end`

func (s ClientFiles) named(ctx context.Context, a engine.Querier, id puntuale.FileID, now time.Time) (is bool, err error) {
	if _, err := engine.QueryOne(ctx, a, named, []any{s.client, "%" + id.Address() + "%", engine.Micros(now.Add(-puntuale.RestorableFor))}, engine.ScanBool(&is)); err != nil {
		return false, fmt.Errorf("look who names a file: %w", err)
	}
	return is, nil
}

// isValue finds out whether a value of a booking, a contact or a recipient names a file. It reads all of the client's, so it
// is no part of a transaction: a value that is stored later gives the file back before its bytes are deleted.
func (s ClientFiles) isValue(ctx context.Context, a *engine.ReadPool, id puntuale.FileID) (is bool, err error) {
	_, err = engine.QueryOne(ctx, a, `select case when exists (select 1 from client k where k.id = $1 and k.deleted_at = 0) and (
 exists (select 1 from booking b where b.client_id = $1 and b.fields like $2::text)
 or exists (select 1 from person p where p.client_id = $1 and p.fields like $2::text)
 or exists (select 1 from campaign g join recipient r on r.client_id = g.client_id and r.list_id = g.list_id
  where g.client_id = $1 and g.ended_at = 0 and g.list_id <> 0 and r.cells like $2::text))
 then 1 else 0 end`, []any{s.client, "%" + id.Address() + "%"}, engine.ScanBool(&is))
	if err != nil {
		return false, engine.PublicError(fmt.Errorf("look whose value a file is: %w", err))
	}
	return is, nil
}

// FileUsers returns what names the client's files: sequences, templates, rules and open campaigns, in this order, at most 20
// for each file.
func (s ClientFiles) FileUsers(ctx context.Context) (map[puntuale.FileID][]puntuale.FileUser, error) {
	all := map[puntuale.FileID][]puntuale.FileUser{}
	err := s.parts.Query(ctx, `
select 1 as k, q.id, q.name, q.steps from sequence q where q.client_id = $1 and q.deleted_at = 0 and q.steps like '%file:%'
union all select 2 as k, t.id, t.name, t.media from template t where t.client_id = $1 and t.media like 'file:%'
union all select 3 as k, r.id, r.name, r.actions from automation r where r.client_id = $1 and r.actions like '%file:%'
union all select 4 as k, g.id, g.name, g.draft from campaign g where g.client_id = $1 and g.ended_at = 0 and g.draft like '%file:%'
order by k, id`, []any{s.client}, func(r engine.Row) error {
		var u puntuale.FileUser
		var text string
		if err := r.Scan(&u.Kind, &u.ID, &u.Name, &text); err != nil {
			return err
		}
		for id := range puntuale.FilesIn(text) {
			if users := all[id]; len(users) < maxUsers && (len(users) == 0 || users[len(users)-1] != u) {
				all[id] = append(users, u)
			}
		}
		return nil
	})
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("look who names files: %w", err))
	}
	return all, nil
}

// maxUsers is how many users of a file are listed.
const maxUsers = 20

// Erase hides the files that only erased runs had, so they are about the erased person. It leaves those that something else
// of the client names, and those that a reply has: EraseIncoming decides about them.
func Erase(ctx context.Context, a engine.Querier, runs engine.Columns, now time.Time) error {
	all, err := engine.QueryAll(ctx, a, `select f.client_id, f.id from $u(c bigint, i bigint) cross join file f where f.client_id = u.c and f.run_id = u.i`, []any{runs}, func(r engine.Row, x *reference) error {
		return r.Scan(&x.client, &x.id)
	})
	if err != nil {
		return fmt.Errorf("look for files of erased runs: %w", err)
	}
	for _, x := range all {
		is, err := ClientFiles{client: x.client}.named(ctx, a, x.id, now)
		if err != nil {
			return err
		}
		if is {
			continue
		}
		if _, err := a.Exec(ctx, `update file set run_id = 0, needed_at = 0, hidden_at = case when hidden_at = 0 then $3::bigint else hidden_at end
 where client_id = $1 and id = $2 and `+noReply, x.client, x.id, engine.Micros(now)); err != nil {
			return fmt.Errorf("erase a file: %w", err)
		}
	}
	return nil
}
