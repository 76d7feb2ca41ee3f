package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

// AddBlacklisted adds an entry to the blacklist. It returns 0 if the blacklist already contained one of the person's
// names or the mark (keyed hash), and 1 otherwise.
func AddBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, e puntuale.BlacklistEntry) (int64, error) {
	return AddAllBlacklisted(ctx, a, client, []puntuale.BlacklistEntry{e})
}

// TakeOver makes the client's own what an opt-out added: entries that the client now adds itself, under any name of the
// person. Then the person cannot remove them any more. An erased person's entry keeps its empty reason.
func TakeOver(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) error {
	namesOf, err := namesOfEntries(ctx, a, client, all)
	if err != nil {
		return err
	}
	var names, reasons []string
	var erased []int64
	for i, own := range namesOf {
		for _, name := range append(own, all[i].Mark) {
			names, reasons, erased = append(names, name), append(reasons, all[i].Reason), append(erased, engine.Bit(name == all[i].Mark))
		}
	}
	if _, err := a.Exec(ctx, `update blacklist set origin = 0, reason = case when u.e = 0 then u.r else blacklist.reason end
 from $u(p text, r text, e bigint) where blacklist.client_id = $1 and blacklist.phone = u.p and (blacklist.origin = 1 or blacklist.reason like $2)`,
		client, puntuale.PreferenceReason+"%", engine.Columns{names, reasons, erased}); err != nil {
		return fmt.Errorf("take over entries of the blacklist: %w", err)
	}
	return nil
}

// AddAllBlacklisted does the same as [AddBlacklisted] for many entries of one client. If two entries name the same
// person, it adds the first. It returns how many entries it added.
func AddAllBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) (int64, error) {
	last, err := engine.NextNumbers(ctx, a, "blacklist", len(all))
	if err != nil {
		return 0, err
	}
	fresh, err := notBlacklisted(ctx, a, client, all)
	if err != nil || len(fresh) == 0 {
		return 0, err
	}
	ids := make([]int64, len(fresh))
	for i := range ids {
		ids[i] = last - int64(len(fresh)-1-i)
	}
	n, err := a.Exec(ctx, `insert into blacklist (client_id, phone, id, reason, added_at, origin)
 select $1::bigint, u.p, u.i, u.r, u.t, u.o from $u(p text, i bigint, r text, t bigint, o smallint) where true
 on conflict (client_id, phone) do nothing`, client, engine.Columns{
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) string { return e.Phone }),
		ids,
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) string { return e.Reason }),
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) int64 { return engine.Micros(e.Added) }),
		engine.Column(fresh, func(e *puntuale.BlacklistEntry) int64 { return engine.Bit(e.OptOut) }),
	})
	if err != nil {
		return 0, fmt.Errorf("add to the blacklist: %w", err)
	}
	return n, outbox.TellBlacklist(ctx, a, client, puntuale.EventBlacklistAdded, fresh[0].Added, fresh)
}

// notBlacklisted returns the entries of people who are not on the blacklist under any name or under the mark. The
// caller has locked the counter of entries, so no other transaction adds an entry before this transaction commits.
func notBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) ([]puntuale.BlacklistEntry, error) {
	namesOf, err := namesOfEntries(ctx, a, client, all)
	if err != nil {
		return nil, err
	}
	var places []int64
	var names []string
	for i, e := range all {
		for _, name := range append(namesOf[i], e.Mark) {
			places, names = append(places, int64(i)), append(names, name)
		}
	}
	there := map[int]bool{}
	if err := a.Query(ctx, `select u.i from $u(i bigint, p text) cross join blacklist b where b.client_id = $1 and b.phone = u.p`, []any{client, engine.Columns{places, names}}, func(r engine.Row) error {
		var i int
		err := r.Scan(&i)
		there[i] = true
		return err
	}); err != nil {
		return nil, fmt.Errorf("look into the blacklist: %w", err)
	}
	var fresh []puntuale.BlacklistEntry
	known := map[string]bool{}
	for i, e := range all {
		if !there[i] && !slices.ContainsFunc(namesOf[i], func(name string) bool { return known[name] }) {
			fresh = append(fresh, e)
		}
		for _, name := range namesOf[i] {
			known[name] = true
		}
	}
	return fresh, nil
}

// namesOfEntries returns for each entry all names of the person: the entry's own, and then the others.
func namesOfEntries(ctx context.Context, a engine.Querier, client puntuale.ClientID, all []puntuale.BlacklistEntry) ([][]string, error) {
	names := make([][]string, len(all))
	return names, alias.Each(ctx, a, slices.Repeat([]int64{int64(client)}, len(all)), engine.Column(all, func(e *puntuale.BlacklistEntry) string { return e.Phone }),
		func(i int, name string) { names[i] = append(names[i], name) })
}

// RemoveBlacklisted removes the entries that match a condition on the table blacklist. Its parameters follow $1, which
// is the client. It returns how many entries it removed.
func RemoveBlacklisted(ctx context.Context, a engine.Querier, client puntuale.ClientID, now time.Time, which string, args ...any) (int64, error) {
	all, err := engine.QueryAll(ctx, a, `delete from blacklist where client_id = $1 and `+which+` returning id, phone, reason, origin`, append([]any{client}, args...),
		func(r engine.Row, e *puntuale.BlacklistEntry) error {
			return r.Scan(&e.ID, &e.Phone, &e.Reason, engine.ScanBool(&e.OptOut))
		})
	if err != nil {
		return 0, fmt.Errorf("remove from the blacklist: %w", err)
	}
	told := slices.DeleteFunc(slices.Clone(all), func(e puntuale.BlacklistEntry) bool { return e.ID < 0 }) // marks of an erased person's other names
	return int64(len(all)), outbox.TellBlacklist(ctx, a, client, puntuale.EventBlacklistRemoved, now, told)
}
