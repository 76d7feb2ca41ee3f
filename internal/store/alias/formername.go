package alias

import (
	"context"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// FormerName is a name that a person had before a change of the number or of the id. Until somebody writes from it, it
// leads to the person, but nothing is sent to it.
type FormerName struct {
	Client puntuale.ClientID
	Name   string
	Change int64     // the change that ended the name
	At     time.Time // when the person changed
}

// FormerNames finds those names of clients that are former names.
const FormerNames = `
select u.i, f.client_id, f.name, f.change_id, f.at from $u(i bigint, c bigint, n text) cross join former_name f where f.client_id = u.c and f.name = u.n`

// FormerAmong returns the former names among the given names. The key is the index of the name.
func FormerAmong(ctx context.Context, a engine.Querier, clients []int64, names []string) (map[int]FormerName, error) {
	found := map[int]FormerName{}
	if len(names) == 0 {
		return found, nil
	}
	places := make([]int64, len(names))
	for i := range names {
		places[i] = int64(i)
	}
	if err := a.Query(ctx, FormerNames, []any{engine.Columns{places, clients, names}}, func(r engine.Row) error {
		var i int
		var f FormerName
		err := r.Scan(&i, &f.Client, &f.Name, &f.Change, engine.ScanTime(&f.At))
		found[i] = f
		return err
	}); err != nil {
		return nil, fmt.Errorf("look for former names: %w", err)
	}
	return found, nil
}

// FormerOf does the same for the names of one client. The key is the name.
func FormerOf(ctx context.Context, a engine.Querier, client puntuale.ClientID, names []string) (map[string]FormerName, error) {
	all, err := FormerAmong(ctx, a, slices.Repeat([]int64{int64(client)}, len(names)), names)
	found := make(map[string]FormerName, len(all))
	for _, f := range all {
		found[f.Name] = f
	}
	return found, err
}

// Cut takes the numbers that a change ended away from the person, because they belong to somebody else now. Their names
// since then, such as the id of the person who wrote, stay with them.
func Cut(ctx context.Context, a engine.Querier, client puntuale.ClientID, change int64) error {
	for _, statement := range []string{
		`delete from alias where client_id = $1 and alias in (select f.name from former_name f where f.client_id = $1 and f.change_id = $2 and f.name like '+%')`,
		`delete from former_name where client_id = $1 and change_id = $2 and name like '+%'`,
	} {
		if _, err := a.Exec(ctx, statement, client, change); err != nil {
			return fmt.Errorf("take a number away from a person: %w", err)
		}
	}
	return nil
}
