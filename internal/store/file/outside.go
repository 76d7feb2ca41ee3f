package file

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Codes of the faults of files whose bytes are outside of the database.
const (
	faultAway puntuale.ReasonCode = "file.storage_away"
	faultLost puntuale.ReasonCode = "file.storage_lost"
)

const awayRetry = 10 * time.Second

// away is the error while the storage outside of the database does not answer, or refuses.
func away(err error) error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(faultAway), RetryAfter: awayRetry, Err: err}
}

// lost is the error of bytes that are not there, or not as they were stored. Nobody ever gets other bytes.
func lost(what string) error {
	return &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(faultLost), Err: errors.New("the storage of files " + what)}
}

var errNoObjects = errors.New("the bytes are outside of the database, and this server has no setting files-to")

// newPlace returns the beginning of the names of a file's objects. It is empty if the bytes go into the database. Nothing goes
// to a storage before it is tied to the database.
func (s *Files) newPlace(ctx context.Context) (string, error) {
	if s.db.Config.Objects == nil {
		return "", nil
	}
	if err := s.Tie(ctx); err != nil {
		return "", err
	}
	return strings.ToLower(rand.Text()), nil
}

// Tie ties the database to the storage of files: from then on, every call of another place fails. At first use, it stores a
// marker in the storage and in the database. It returns an error if it could not look, or if the storage is another place.
func (s *Files) Tie(ctx context.Context) error {
	objects := s.db.Config.Objects
	if tied := s.tied.Load(); objects == nil || tied != nil && *tied == objects {
		return nil
	}
	if err := s.tie(ctx, objects); err != nil {
		return err
	}
	s.tied.Store(&objects)
	return nil
}

func (s *Files) tie(ctx context.Context, objects engine.Objects) error {
	marker, placed, err := s.marker(ctx)
	if err != nil {
		return err
	}
	if placed {
		objects.Expect(marker)
		if there, err := objects.Mark(ctx, ""); err != nil || there != marker {
			return away(cmp.Or(err, errElsewhere))
		}
		return nil
	}
	there, err := objects.Mark(ctx, "")
	if err != nil {
		return away(err)
	}
	if err := s.Sent(0).write(ctx, func(ctx context.Context, a engine.Querier) error { // whoever is first decides
		_, err := a.Exec(ctx, `insert into file_storage (one, marker) values (1, $1) on conflict (one) do nothing`, cmp.Or(there, rand.Text()))
		return err
	}); err != nil {
		return err
	}
	if marker, _, err = s.marker(ctx); err != nil {
		return err
	}
	there, err = objects.Mark(ctx, marker)
	if err != nil {
		return away(err)
	}
	objects.Expect(marker)
	if there != marker {
		return away(errElsewhere)
	}
	return s.Sent(0).write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update file_storage set placed_at = $1 where one = 1 and placed_at = 0`, engine.Micros(s.db.Config.Clock.Now()))
		return err
	})
}

// marker returns the marker that the database knows, and whether the storage has it.
func (s *Files) marker(ctx context.Context) (marker string, placed bool, err error) {
	var at int64
	_, err = engine.QueryOne(ctx, s.db.CallReads, `select f.marker, f.placed_at from file_storage f where f.one = 1`, nil, &marker, &at)
	return marker, at > 0, engine.PublicError(err)
}

// StorageMarker returns the marker that the storage of files has; "": nobody stored one yet.
func (s *Files) StorageMarker(ctx context.Context) (string, error) {
	marker, placed, err := s.marker(ctx)
	if !placed {
		marker = ""
	}
	return marker, err
}

var errElsewhere = errors.New("it is another place than the one that has the files of this database")

// storedBytes says where the bytes of a file are.
type storedBytes struct {
	client puntuale.ClientID
	place  string // "": in the database
	hash   []byte // of the whole file
	size   int64
}

// folder returns the name under which all objects of the file are. Even the same bytes of two clients, or of an imported
// copy of the installation, have other names.
func (o *storedBytes) folder() string { return fmt.Sprintf("%d-%s-%x", o.client, o.place, o.hash[:16]) }

func (o *storedBytes) parts() int {
	return int((o.size + puntuale.FilePartBytes - 1) / puntuale.FilePartBytes)
}

// read returns the bytes of part n, which have this SHA-256.
func (o *storedBytes) read(ctx context.Context, from engine.Objects, n int64, sum []byte) ([]byte, error) {
	if from == nil {
		return nil, away(errNoObjects)
	}
	most := min(puntuale.FilePartBytes, o.size-n*puntuale.FilePartBytes)
	content, err := from.Part(ctx, o.folder(), int(n), most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, lost("does not have them any more")
	case err != nil:
		return nil, away(err)
	}
	if got := sha256.Sum256(content); int64(len(content)) != most || !bytes.Equal(got[:], sum) {
		return nil, lost("returned other bytes than it got")
	}
	return content, nil
}

// put stores part n, and returns its SHA-256. The row that names the object comes later. If it never comes, the row of the
// file names the object until it is removed.
func (o *storedBytes) put(ctx context.Context, to engine.Objects, n int, content []byte) (sum []byte, err error) {
	if to == nil {
		return nil, away(errNoObjects)
	}
	if n < 0 || n >= o.parts() {
		return nil, fmt.Errorf("part %d of a file of %d bytes", n, o.size)
	}
	if err := to.PutPart(ctx, o.folder(), n, content); err != nil {
		return nil, away(err)
	}
	all := sha256.Sum256(content)
	return all[:], nil
}

// awayLasts is how long ReadParts asks again for a part that the storage does not return.
const awayLasts = 5 * time.Minute

// ReadParts calls take for each row of file_part in a snapshot of db, with the part's bytes wherever they are. It reads one
// part at a time. If a file was deleted since the snapshot, its objects may be gone. Then take gets no bytes, and nobody
// misses them: a file without its bytes is never sent.
func ReadParts(ctx context.Context, snapshot engine.Querier, db *engine.DB, take func(client int64, id string, n int64, content []byte) error) error {
	err := snapshot.Query(ctx, `select p.client_id, p.file_id, p.n, p.content, p.hash, coalesce(f.place, ''), f.hash, coalesce(f.size, 0)
 from file_part p left join file f on f.client_id = p.client_id and f.id = p.file_id`, nil, func(r engine.Row) error {
		var o storedBytes
		var id string
		var n int64
		var content, sum []byte
		err := r.Scan(&o.client, &id, &n, &content, &sum, &o.place, &o.hash, &o.size)
		if err == nil && len(sum) > 0 {
			if content, err = o.readPatiently(ctx, db, id, n, sum); err != nil { // without its chain, or it would look like an error of the database
				err = fmt.Errorf("the bytes of file %s of client %d cannot be read: %s", id, o.client, why(err).Error())
			}
		}
		if err != nil {
			return err
		}
		return take(int64(o.client), id, n, content)
	})
	if err != nil {
		return fmt.Errorf("read the parts of files: %w", err)
	}
	return nil
}

// why returns what the storage did, without the code of the fault.
func why(err error) error {
	if e, ok := errors.AsType[*puntuale.Error](err); ok && e.Err != nil {
		return e.Err
	}
	return err
}

// readPatiently does the same as read. It waits for a storage that does not answer, because a snapshot is read for long, and
// one slow request must not end a backup. It returns no bytes if they are gone together with the file.
func (o *storedBytes) readPatiently(ctx context.Context, db *engine.DB, id string, n int64, sum []byte) (content []byte, err error) {
	clock := db.Config.Clock
	for last := clock.Now().Add(awayLasts); ; {
		content, err = o.read(ctx, db.Config.Objects, n, sum)
		if puntuale.CodeOf(err) != puntuale.CodeUnavailable || db.Config.Objects == nil || !clock.Now().Before(last) {
			break
		}
		if clock.Sleep(ctx, awayRetry) != nil {
			return nil, err
		}
	}
	if puntuale.CodeOf(err) != puntuale.CodeGone {
		return content, err
	}
	var size int64
	stays, failed := engine.QueryOne(ctx, db.MaintenanceReads, `select f.size from file f where f.client_id = $1 and f.id = $2 and f.hidden_at = 0`, []any{o.client, id}, &size)
	if failed != nil || stays {
		return nil, errors.Join(err, failed)
	}
	return []byte{}, nil
}

// removeObjects removes the objects of files whose parts are deleted, and then the rows of these files. If the storage does
// not let it, the file's turn comes again after the others.
func (s *Files) removeObjects(ctx context.Context, now time.Time) error {
	if s.db.Config.Objects == nil {
		return nil
	}
	type removed struct {
		storedBytes
		id puntuale.FileID
	}
	all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select f.client_id, f.id, f.place, f.hash, f.size from file f where f.removed_at > 0 and f.removed_at < $1 order by f.removed_at limit $2`,
		[]any{engine.Micros(now.Add(-stays)), maxRemoved}, func(r engine.Row, x *removed) error {
			return r.Scan(&x.client, &x.id, &x.place, &x.hash, &x.size)
		})
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for removed files: %w", err))
	}
	objects := 0
	for i := range all {
		x := &all[i]
		if objects += x.parts(); objects > maxTurns && i > 0 {
			return nil
		}
		failed := s.db.Config.Objects.RemoveParts(ctx, x.folder(), x.parts())
		if err := s.Sent(x.client).write(ctx, func(ctx context.Context, a engine.Querier) error {
			statement, args := `delete from file where client_id = $1 and id = $2 and removed_at > 0`, []any{x.client, x.id}
			if failed != nil {
				statement, args = `update file set removed_at = $3 where client_id = $1 and id = $2 and removed_at > 0`, append(args, engine.Micros(now))
			}
			_, err := a.Exec(ctx, statement, args...)
			return err
		}); err != nil {
			return err
		}
		if failed != nil {
			return fmt.Errorf("remove the objects of a file: %w", away(failed))
		}
	}
	return nil
}

// MoveOut moves the bytes of all files out of the database, and returns how many files it moved. The bytes of a part are
// outside before they leave the database, so MoveOut may be interrupted, and called again.
func (s *Files) MoveOut(ctx context.Context) (files int, err error) {
	for {
		all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select f.client_id, f.id, 1 from file f where f.stored_at > 0 and exists (
 select 1 from file_part p where p.client_id = f.client_id and p.file_id = f.id and length(p.hash) = 0) limit $1`, []any{maxRemoved}, func(r engine.Row, x *reference) error {
			return r.Scan(&x.client, &x.id, engine.ScanBool(&x.stored))
		})
		if err != nil {
			return files, engine.PublicError(fmt.Errorf("look for files in the database: %w", err))
		}
		if len(all) == 0 {
			return files, nil
		}
		for _, x := range all {
			if err := s.Sent(x.client).moveOut(ctx, x.id); err != nil {
				return files, err
			}
			files++
		}
	}
}

func (s ClientFiles) moveOut(ctx context.Context, id puntuale.FileID) error {
	place, err := s.all.newPlace(ctx)
	if err != nil {
		return err
	}
	if err := s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `update file set place = $3 where client_id = $1 and id = $2 and place = ''`, s.client, id, place)
		return err
	}); err != nil {
		return err
	}
	to := storedBytes{client: s.client}
	found, err := engine.QueryOne(ctx, s.parts, `select f.place, f.hash, f.size from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0`, []any{s.client, id}, &to.place, &to.hash, &to.size)
	if err != nil || !found {
		return engine.PublicError(err)
	}
	for n := range to.parts() {
		var content, sum []byte
		found, err := engine.QueryOne(ctx, s.parts, `select p.content, p.hash from file_part p where p.client_id = $1 and p.file_id = $2 and p.n = $3`, []any{s.client, id, n}, &content, &sum)
		if err != nil {
			return engine.PublicError(fmt.Errorf("read a part of a file: %w", err))
		}
		if !found || len(sum) > 0 {
			continue
		}
		if sum, err = to.put(ctx, s.all.db.Config.Objects, n, content); err != nil {
			return err
		}
		if err := s.write(ctx, func(ctx context.Context, a engine.Querier) error {
			_, err := a.Exec(ctx, `update file_part set content = $4, hash = $5 where client_id = $1 and file_id = $2 and n = $3`, s.client, id, n, []byte{}, sum)
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
