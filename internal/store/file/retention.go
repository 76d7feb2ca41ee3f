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
	Phone  string    // of the run
	Until  time.Time // when the last message of the run is over
}

// UseOf returns the use of a message with this content. ok is false if the content has no uploaded file.
func UseOf(c puntuale.Content, due, validUntil time.Time) (u Use, ok bool) {
	id, _ := puntuale.UploadedFile(c.MediaURL)
	if validUntil.After(due) {
		due = validUntil
	}
	return Use{File: id, Until: due}, id != ""
}

const (
	useStep = 24 * time.Hour // to which times are rounded up
	several = -1             // instead of a run: several people have the file
)

// Needed stores that runs need files, in the transaction that stores the runs. It gives hidden files back. It writes only the
// rows that change.
func Needed(ctx context.Context, a engine.Querier, uses []Use) error {
	all := joined(uses)
	if len(all) == 0 {
		return nil
	}
	if _, err := a.Exec(ctx, `update file set needed_at = case when file.needed_at < u.t then u.t else file.needed_at end, hidden_at = 0,
 run_id = case when file.run_id in (0, u.r) then u.r
  when exists (select 1 from run x where x.client_id = u.c and x.id = file.run_id and x.phone = u.p and x.phone <> '') then u.r else -1 end
from $u(c bigint, f text, t bigint, r bigint, p text) where file.client_id = u.c and file.id = u.f and file.stored_at > 0
 and (file.needed_at < u.t or file.hidden_at > 0 or file.run_id <> u.r and file.run_id <> -1)`, engine.Columns{
		engine.Column(all, func(u *Use) int64 { return int64(u.Client) }), engine.Column(all, func(u *Use) string { return string(u.File) }),
		engine.Column(all, func(u *Use) int64 { return engine.Micros(u.Until) }), engine.Column(all, func(u *Use) int64 { return u.Run }),
		engine.Column(all, func(u *Use) string { return u.Phone }),
	}); err != nil {
		return fmt.Errorf("note who needs files: %w", err)
	}
	return nil
}

// joined returns one use of each file. Runs of several people become one use without a run.
func joined(uses []Use) (all []Use) {
	engine.SortStable(uses, func(x, y Use) int { return cmp.Or(cmp.Compare(x.Client, y.Client), cmp.Compare(x.File, y.File)) })
	for _, u := range uses {
		u.Until = u.Until.Truncate(useStep).Add(useStep)
		last := len(all) - 1
		if last < 0 || all[last].Client != u.Client || all[last].File != u.File {
			all = append(all, u)
			continue
		}
		if all[last].Phone != u.Phone {
			all[last].Run, all[last].Phone = several, ""
		}
		if u.Until.After(all[last].Until) {
			all[last].Until = u.Until
		}
	}
	return all
}

// Missing returns which of the uses have no file any more. It locks the files of the others, so that Needed finds them.
func Missing(ctx context.Context, a engine.Querier, uses []Use) (missing []int, err error) {
	if len(uses) == 0 {
		return nil, nil
	}
	all := joined(slices.Clone(uses))
	type key struct {
		client puntuale.ClientID
		id     puntuale.FileID
	}
	there := map[key]bool{}
	err = a.Query(ctx, `select f.client_id, f.id from $u(c bigint, f text) join file f on f.client_id = u.c and f.id = u.f
where f.stored_at > 0 order by f.client_id, f.id for key share of f`, []any{engine.Columns{
		engine.Column(all, func(u *Use) int64 { return int64(u.Client) }), engine.Column(all, func(u *Use) string { return string(u.File) }),
	}}, func(r engine.Row) error {
		var k key
		err := r.Scan(&k.client, &k.id)
		there[k] = true
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for files: %w", err)
	}
	for i, u := range uses {
		if !there[key{u.Client, u.File}] {
			missing = append(missing, i)
		}
	}
	return missing, nil
}

// Limits of one call of MaintainFiles.
const (
	maxRemoved = 100
	maxTurns   = 1000             // transactions that delete parts
	partsAtOne = 16               // parts that one of them deletes
	arrives    = time.Hour        // how long the parts of a file may arrive
	stays      = 10 * time.Minute // how long a hidden file can be given back
)

type reference struct {
	client puntuale.ClientID
	id     puntuale.FileID
	stored bool
}

// MaintainFiles hides files that nothing needs since the time before, and deletes hidden files, and those whose parts did not
// all arrive. It erases the files of replies that a server of the version before blanked or erased. If before is zero, contents are kept for good, and so are files.
func (s *Files) MaintainFiles(ctx context.Context, now, before time.Time) error {
	read := func(statement string, args ...any) ([]reference, error) {
		return engine.QueryAll(ctx, s.db.MaintenanceReads, statement, append(args, maxRemoved), func(r engine.Row, x *reference) error {
			return r.Scan(&x.client, &x.id, engine.ScanBool(&x.stored))
		})
	}
	var old []reference
	var failed error
	if !before.IsZero() {
		old, failed = read(`select f.client_id, f.id, 1 from file f where f.stored_at > 0 and f.hidden_at = 0 and f.needed_at < $1 order by f.needed_at limit $2`, engine.Micros(before))
	}
	hidden, err := read(`select f.client_id, f.id, case when f.stored_at > 0 then 1 else 0 end from file f where f.hidden_at > 0 and f.hidden_at < $1 and f.removed_at = 0 order by f.hidden_at limit $2`, engine.Micros(now.Add(-stays)))
	begun, late := read(`select f.client_id, f.id, 0 from file f where f.stored_at = 0 and f.hidden_at = 0 and f.created_at < $1 order by f.created_at limit $2`, engine.Micros(now.Add(-arrives)))
	if err := errors.Join(failed, err, late); err != nil {
		return engine.PublicError(fmt.Errorf("look for old files: %w", err))
	}
	for _, x := range old {
		if err := s.Sent(x.client).hideOld(ctx, x.id, now, before); err != nil {
			return err
		}
	}
	if err := s.dropAll(ctx, now, append(hidden, begun...)); err != nil {
		return err
	}
	return errors.Join(s.removeObjects(ctx, now), s.eraseLeft(ctx, now))
}

// dropAll deletes the parts of files, and the files whose bytes are in the database.
func (s *Files) dropAll(ctx context.Context, now time.Time, all []reference) error {
	turns := maxTurns
	for _, x := range all {
		value := false
		if x.stored {
			var err error
			if value, err = s.Sent(x.client).isValue(ctx, s.db.MaintenanceReads, x.id); err != nil {
				return err
			}
		}
		for more := true; more; turns-- {
			if turns == 0 {
				return nil
			}
			var err error
			if more, err = s.Sent(x.client).dropSome(ctx, x.id, now, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// hideOld hides a file, or stores that something still names it.
func (s ClientFiles) hideOld(ctx context.Context, id puntuale.FileID, now, before time.Time) error {
	value, err := s.isValue(ctx, s.parts, id)
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var n int64
		found, err := engine.QueryOne(ctx, a, `select f.size from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0 and f.hidden_at = 0 and f.needed_at < $3 for update`,
			[]any{s.client, id, engine.Micros(before)}, &n)
		if err != nil {
			return fmt.Errorf("lock a file: %w", err)
		}
		if !found { // another node hid it, or a new run needs it
			return nil
		}
		is, err := s.named(ctx, a, id, now)
		if err != nil {
			return err
		}
		column := "hidden_at"
		if is || value {
			column = "needed_at"
		}
		if _, err := a.Exec(ctx, `update file set `+column+` = $3 where client_id = $1 and id = $2`, s.client, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("hide a file: %w", err)
		}
		return nil
	})
}

// dropSome deletes some parts of a hidden or unfinished file, and in the end the file; more reports whether there are further
// parts. It gives the file back if something names it. value reports whether a value names it.
func (s ClientFiles) dropSome(ctx context.Context, id puntuale.FileID, now time.Time, value bool) (more bool, err error) {
	err = s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		more = false
		var stored, hidden, created int64
		var place string
		found, err := engine.QueryOne(ctx, a, `select f.stored_at, f.hidden_at, f.created_at, f.place from file f where f.client_id = $1 and f.id = $2 and f.removed_at = 0 for update`, []any{s.client, id}, &stored, &hidden, &created, &place)
		if err != nil {
			return fmt.Errorf("lock a file: %w", err)
		}
		switch {
		case !found, hidden > engine.Micros(now.Add(-stays)), hidden == 0 && (stored > 0 || created > engine.Micros(now.Add(-arrives))): // another node was faster, or it was given back
			return nil
		case stored > 0:
			is, err := s.named(ctx, a, id, now)
			if err != nil {
				return err
			}
			if is || value {
				_, err := a.Exec(ctx, `update file set hidden_at = 0, needed_at = case when needed_at < $3::bigint then $3::bigint else needed_at end where client_id = $1 and id = $2`, s.client, id, engine.Micros(now))
				return err
			}
		}
		return s.dropParts(ctx, a, id, now, place != "", &more)
	})
	return more, err
}

// dropParts deletes some parts of a file. With the last part goes the row of the file. If the bytes are outside of the
// database, the row stays until the objects are removed, because it names them; nobody finds it any more.
func (s ClientFiles) dropParts(ctx context.Context, a engine.Querier, id puntuale.FileID, now time.Time, outside bool, more *bool) error {
	n, err := a.Exec(ctx, `delete from file_part where client_id = $1 and file_id = $2 and n in (select p.n from file_part p where p.client_id = $1 and p.file_id = $2 order by p.n limit $3)`, s.client, id, partsAtOne)
	if err != nil {
		return fmt.Errorf("delete parts of a file: %w", err)
	}
	*more = n == partsAtOne
	switch {
	case *more:
		_, err = a.Exec(ctx, `update file set stored_at = 0 where client_id = $1 and id = $2`, s.client, id) // it cannot be given back any more
	case outside:
		_, err = a.Exec(ctx, `update file set stored_at = 0, removed_at = $3, hidden_at = case when hidden_at = 0 then $3::bigint else hidden_at end, name = '', small = $4, run_id = 0 where client_id = $1 and id = $2`,
			s.client, id, engine.Micros(now), []byte{})
	default:
		_, err = a.Exec(ctx, `delete from file where client_id = $1 and id = $2`, s.client, id)
	}
	if err != nil {
		return fmt.Errorf("delete a file: %w", err)
	}
	return nil
}
