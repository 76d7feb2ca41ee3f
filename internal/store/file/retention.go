package file

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Use is one run that needs a file.
type Use struct {
	Client puntuale.ClientID
	File   puntuale.FileID
	Run    int64
	Until  time.Time // when the last message of the run is over
}

// useStep is the length to which times are rounded up.
const useStep = 24 * time.Hour

// Needed stores that runs need files, in the transaction that stores the runs. It writes only the rows that change.
func Needed(ctx context.Context, a engine.Querier, uses []Use) error {
	slices.SortStableFunc(uses, func(x, y Use) int { return cmp.Or(cmp.Compare(x.Client, y.Client), cmp.Compare(x.File, y.File)) })
	var all []Use
	for _, u := range uses {
		u.Until = u.Until.Truncate(useStep).Add(useStep)
		last := len(all) - 1
		if last < 0 || all[last].Client != u.Client || all[last].File != u.File {
			all = append(all, u)
			continue
		}
		if all[last].Run != u.Run {
			all[last].Run = -1
		}
		if u.Until.After(all[last].Until) {
			all[last].Until = u.Until
		}
	}
	if len(all) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update file set needed_at = case when file.needed_at < u.t then u.t else file.needed_at end,
 run_id = case when file.run_id in (0, u.r) then u.r else -1 end
from $u(c bigint, f text, t bigint, r bigint) where file.client_id = u.c and file.id = u.f
 and (file.needed_at < u.t or file.run_id <> u.r and file.run_id <> -1)`, engine.Columns{
		engine.Column(all, func(u *Use) int64 { return int64(u.Client) }), engine.Column(all, func(u *Use) string { return string(u.File) }),
		engine.Column(all, func(u *Use) int64 { return engine.Micros(u.Until) }), engine.Column(all, func(u *Use) int64 { return u.Run }),
	}); err != nil {
		return fmt.Errorf("note who needs files: %w", err)
	}
	return nil
}

// Limits of one call of MaintainFiles.
const (
	maxRemoved = 100
	arrives    = time.Hour // how long the parts of a file may arrive
)

type reference struct {
	client puntuale.ClientID
	id     puntuale.FileID
	begun  bool
}

// MaintainFiles removes files that nothing needs since the time before, and files whose parts did not all arrive. If before
// is zero, contents are kept for good, and so are files, except those of an erased run.
func (s *Files) MaintainFiles(ctx context.Context, now, before time.Time) error {
	limit := int64(1) // only files with needed_at 0
	if !before.IsZero() {
		limit = max(limit, engine.Micros(before))
	}
	read := func(statement string, at int64, begun bool) ([]reference, error) {
		return engine.QueryAll(ctx, s.db.MaintenanceReads, statement, []any{at, maxRemoved}, func(r engine.Row, x *reference) error {
			x.begun = begun
			return r.Scan(&x.client, &x.id)
		})
	}
	old, err := read(`select f.client_id, f.id from file f where f.stored_at > 0 and f.needed_at < $1 order by f.needed_at limit $2`, limit, false)
	begun, failed := read(`select f.client_id, f.id from file f where f.stored_at = 0 and f.created_at < $1 order by f.created_at limit $2`, engine.Micros(now.Add(-arrives)), true)
	if err := errors.Join(err, failed); err != nil {
		return engine.PublicError(fmt.Errorf("look for old files: %w", err))
	}
	for _, x := range append(old, begun...) {
		files := s.OfClient(x.client)
		if x.begun {
			err = files.DropFile(ctx, x.id)
		} else {
			err = files.removeOld(ctx, x.id, now, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// removeOld removes a file, or stores that something still names it.
func (s ClientFiles) removeOld(ctx context.Context, id puntuale.FileID, now time.Time, limit int64) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var n int64
		found, err := engine.QueryOne(ctx, a, `select f.size from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0 and f.needed_at < $3 for update`, []any{s.client, id, limit}, &n)
		if err != nil {
			return fmt.Errorf("lock a file: %w", err)
		}
		if !found { // another node removed it, or a new run needs it
			return nil
		}
		is, err := s.named(ctx, a, id)
		if err != nil {
			return err
		}
		if !is {
			return s.drop(ctx, a, id)
		}
		if _, err := a.Exec(ctx, `update file set needed_at = $3 where client_id = $1 and id = $2`, s.client, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("keep a file: %w", err)
		}
		return nil
	})
}
