package reply

import (
	"context"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/store/alias"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/queue"
)

// partFormer finds messages from numbers that people left (package person). Whoever writes from such a number is
// somebody else, so the number is taken away from the person who left it. rows[i] was written under the name names[i],
// and others has the other names. partFormer returns the other names after that.
func (b *inboundBatch) partFormer(ctx context.Context, rows []*inbound, clients []int64, names []string, others map[int][]string) (map[int][]string, error) {
	var places []int
	for i := range others { // a former name leads to the person, so it has other names
		if !rows[i].Own {
			places = append(places, i)
		}
	}
	if len(places) == 0 {
		return others, nil
	}
	slices.Sort(places)
	former, err := alias.FormerAmong(ctx, b.a, engine.Column(places, func(i *int) int64 { return clients[*i] }), engine.Column(places, func(i *int) string { return names[*i] }))
	if err != nil {
		return nil, err
	}
	parted := map[int64]bool{}
	for k, i := range places {
		f, is := former[k]
		if !is || !strings.HasPrefix(f.Name, "+") || !rows[i].at.After(f.At) || parted[f.Change] {
			continue
		}
		parted[f.Change] = true
		if err := b.part(ctx, f, others[i]); err != nil {
			return nil, err
		}
	}
	if len(parted) == 0 {
		return others, nil
	}
	return alias.Others(ctx, b.a, clients, names)
}

// part takes a number away from the person who left it. A block that came under the number since the change was meant for
// the person, so it stays for the person's other names, too.
func (b *inboundBatch) part(ctx context.Context, f alias.FormerName, others []string) error {
	if err := alias.Cut(ctx, b.a, f.Client, f.Change); err != nil {
		return err
	}
	former, err := alias.FormerOf(ctx, b.a, f.Client, others)
	if err != nil {
		return err
	}
	theirs := slices.DeleteFunc(others, func(name string) bool {
		_, is := former[name]
		return is || name == puntuale.OtherForm(f.Name)
	})
	if len(theirs) == 0 {
		return nil
	}
	var e puntuale.BlacklistEntry
	found, err := engine.QueryOne(ctx, b.a, `select reason, added_at, origin from blacklist where client_id = $1 and phone = $2`, []any{f.Client, f.Name}, &e.Reason, engine.ScanTime(&e.Added), engine.ScanBool(&e.OptOut))
	if err != nil || !found {
		return err
	}
	e.Phone = puntuale.ShownName(theirs)
	_, err = queue.AddBlacklisted(ctx, b.a, f.Client, e)
	return err
}
