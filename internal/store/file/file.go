package file

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Files stores the uploaded files of all clients. Its methods are safe for concurrent use.
type Files struct {
	db   *engine.DB
	work *engine.Kind

	tied    atomic.Pointer[engine.Objects] // the storage with which Tie succeeded
	checked atomic.Pointer[incomingKey]    // the row that eraseLeft read last; nil: it begins with the first row
}

// New returns the files of a database.
func New(db *engine.DB) *Files {
	s := &Files{db: db, work: engine.NewSingle("file", engine.PriorityFeed)}
	s.work.Check, s.work.Background = engine.RunAgain, true // may run twice: every statement stores the same again
	return s
}

// OfClient gives access to one client's files.
func (s *Files) OfClient(id puntuale.ClientID) ClientFiles {
	return ClientFiles{s, id, s.db.CallReads, s.db.ListReads}
}

// Sent gives access to one client's files for connectors, whose reads do not delay calls.
func (s *Files) Sent(id puntuale.ClientID) ClientFiles {
	return ClientFiles{s, id, s.db.DispatchReads, s.db.MaintenanceReads}
}

// ClientFiles gives access to one client's files.
type ClientFiles struct {
	all    *Files
	client puntuale.ClientID

	rows, parts *engine.ReadPool
}

const columns = `f.id, f.name, f.type, f.hash, f.size, f.width, f.height, f.created_at, f.needed_at, f.incoming`

func fields(f *puntuale.File) []any {
	return []any{&f.ID, &f.Name, &f.Type, &f.Hash, &f.Size, &f.Width, &f.Height, engine.ScanTime(&f.Created), engine.ScanTime(&f.Needed), engine.ScanBool(&f.Received)}
}

func scan(r engine.Row, f *puntuale.File) error { return r.Scan(fields(f)...) }

func (s ClientFiles) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return engine.PublicError(s.all.db.FeedWriter.Do(ctx, engine.Single(s.all.work, do).ForOwner(int64(s.client)), false))
}

func (s ClientFiles) now() int64 { return engine.Micros(s.all.db.Config.Clock.Now()) }

// Codes of the faults that functions in this file return.
const (
	faultTooMany puntuale.ReasonCode = "file.too_many" // {1}: the most
	faultNoRoom  puntuale.ReasonCode = "file.no_room"  // {1}: the most, in MB
	faultInUse   puntuale.ReasonCode = "file.in_use"
)

// CreateFile begins a file, and returns it. If the client has a file with the same bytes already, CreateFile returns that
// one; see useAgain. The bytes of files whose parts still arrive count, too. If a file is stored for a reply, CreateFile and
// FinishFile note it there when it is usable. Codes: quota_reached; not_found, if the reply is not to keep it any more.
func (s ClientFiles) CreateFile(ctx context.Context, f puntuale.File) (begun puntuale.File, err error) {
	place, away := s.all.newPlace(ctx)
	err = s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		begun = f
		var n int64
		found, err := engine.QueryOne(ctx, a, `select k.id from client k where k.id = $1 and k.deleted_at = 0 for no key update of k`, []any{s.client}, &n)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		if same, found, err := s.useAgain(ctx, a, f); found || err != nil {
			begun = same
			return err
		}
		if away != nil {
			return away
		}
		if err := s.hasRoom(ctx, a, f, false); err != nil {
			return err
		}
		if f.For != nil {
			if err := s.hasRoom(ctx, a, f, true); err != nil {
				return err
			}
		}
		if _, err := a.Exec(ctx, `insert into file (client_id, id, name, type, hash, size, width, height, small, created_at, needed_at, incoming, place)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) on conflict (client_id, id) do nothing`,
			s.client, f.ID, f.Name, f.Type, f.Hash, f.Size, f.Width, f.Height, append([]byte{}, f.Small...), engine.Micros(f.Created), engine.Micros(cmp.Or(f.Needed, f.Created)), engine.Bit(f.For != nil), place); err != nil {
			return fmt.Errorf("insert a file: %w", err)
		}
		return nil
	})
	return begun, err
}

// hasRoom refuses a file if the client has too many files or bytes. With received, it counts the files that only people sent:
// they take at most half of the room, so that no stranger can keep the client from uploading. Codes: quota_reached.
func (s ClientFiles) hasRoom(ctx context.Context, a engine.Querier, f puntuale.File, received bool) error {
	most, room, only := int64(puntuale.MaxClientFiles), int64(puntuale.MaxClientFileBytes), ``
	if received {
		most, room, only = most/2, room/2, ` and f.incoming = 1`
	}
	var count, bytes int64
	if _, err := engine.QueryOne(ctx, a, `select count(*), cast(coalesce(sum(f.size), 0) as bigint) from file f where f.client_id = $1 and f.id <> $2 and f.hidden_at = 0`+only, []any{s.client, f.ID}, &count, &bytes); err != nil {
		return fmt.Errorf("count files: %w", err)
	}
	switch {
	case count >= most:
		return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(faultTooMany, strconv.FormatInt(most, 10))}
	case bytes+f.Size > room:
		return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(faultNoRoom, strconv.FormatInt(room>>20, 10))}
	}
	return nil
}

// useAgain looks for a finished file with the same bytes. It gives the file back if it is hidden. A file that is uploaded
// again gets the name of the new upload, so that nobody's old name appears in another use. So does a hidden file, because its
// name may be of an erased person. Its small picture is the new one, if it had none. Else a person's name for a file of the client changes nothing: recipients of messages
// would see it.
func (s ClientFiles) useAgain(ctx context.Context, a engine.Querier, f puntuale.File) (same puntuale.File, found bool, err error) {
	found, err = engine.QueryOne(ctx, a, `select `+columns+` from file f where f.client_id = $1 and f.hash = $2 and f.stored_at > 0`, []any{s.client, f.Hash}, fields(&same)...)
	if err != nil {
		return f, false, fmt.Errorf("look for the same file: %w", err)
	}
	if !found || same.ID == f.ID {
		return f, false, nil
	}
	needed := s.now()
	if f.For != nil {
		needed = engine.Micros(f.Needed)
	}
	var small bool
	again, err := engine.QueryOne(ctx, a, `update file set name = case when $5::smallint = 0 or hidden_at > 0 then $3::text else name end, hidden_at = 0,
 needed_at = case when needed_at < $4::bigint then $4::bigint else needed_at end, incoming = case when $5::smallint = 0 then 0 else incoming end,
 small = case when length(small) = 0 then $6 else small end
where client_id = $1 and id = $2 and stored_at > 0 returning name, case when length(small) > 0 then 1 else 0 end`, []any{s.client, same.ID, f.Name, needed, engine.Bit(f.For != nil), append([]byte{}, f.Small...)}, &same.Name, engine.ScanBool(&small))
	if err == nil && !again {
		err = engine.ErrAgain // it was removed meanwhile
	}
	if err != nil {
		return f, false, fmt.Errorf("use a file again: %w", err)
	}
	if f.For != nil {
		return same, true, s.keep(ctx, a, f.For, same, f.Name, small)
	}
	return same, true, nil
}

// AddFilePart stores a part of a file that was begun. If the bytes go outside of the database, they are there before the
// transaction begins. A part of a finished file outside of the database may be stored again, if its bytes are the same: so an
// upload of the same file repairs what the storage lost. Codes: not_found, unavailable.
func (s ClientFiles) AddFilePart(ctx context.Context, id puntuale.FileID, n int, content []byte) error {
	to, sum := storedBytes{client: s.client}, []byte{}
	if s.all.db.Config.Objects != nil {
		found, err := engine.QueryOne(ctx, s.rows, `select f.place, f.hash, f.size from file f where f.client_id = $1 and f.id = $2 and f.stored_at = 0 and f.hidden_at = 0`, []any{s.client, id}, &to.place, &to.hash, &to.size)
		if err == nil && !found {
			return s.repair(ctx, id, n, content)
		}
		if err := engine.FoundOr(found, err, puntuale.NoFile); err != nil {
			return err
		}
		if to.place != "" {
			if sum, err = to.put(ctx, s.all.db.Config.Objects, n, content); err != nil {
				return err
			}
			content = []byte{}
		}
	}
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var size int64 // the lock keeps whoever drops the file from leaving this part behind
		found, err := engine.QueryOne(ctx, a, `select f.size from file f where f.client_id = $1 and f.id = $2 and f.place = $3 and f.stored_at = 0 and f.hidden_at = 0 for share`, []any{s.client, id, to.place}, &size)
		if err := engine.ThereOr(found, err, puntuale.NoFile); err != nil {
			return err
		}
		if _, err := a.Exec(ctx, `insert into file_part as p (client_id, file_id, n, content, hash) values ($1, $2, $3, $4, $5)
 on conflict (client_id, file_id, n) do update set content = excluded.content, hash = excluded.hash`, s.client, id, n, content, sum); err != nil {
			return fmt.Errorf("insert a part of a file: %w", err)
		}
		return nil
	})
}

// repair stores a part of a finished file again. Codes: not_found (also for other bytes), unavailable.
func (s ClientFiles) repair(ctx context.Context, id puntuale.FileID, n int, content []byte) error {
	to, sum, got := storedBytes{client: s.client}, []byte{}, sha256.Sum256(content)
	found, err := engine.QueryOne(ctx, s.rows, `select f.place, f.hash, f.size, p.hash from file f join file_part p on p.client_id = f.client_id and p.file_id = f.id and p.n = $3
 where f.client_id = $1 and f.id = $2`+usable, []any{s.client, id, n}, &to.place, &to.hash, &to.size, &sum)
	if err := engine.FoundOr(found && bytes.Equal(sum, got[:]), err, puntuale.NoFile); err != nil {
		return err
	}
	_, err = to.put(ctx, s.all.db.Config.Objects, n, content)
	return err
}

// FinishFile makes a file usable. If the client got a file with the same bytes meanwhile, FinishFile drops the new one, and
// returns the older one. Codes: not_found.
func (s ClientFiles) FinishFile(ctx context.Context, f puntuale.File) (stored puntuale.File, err error) {
	err = s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var n int64
		if _, err := engine.QueryOne(ctx, a, `select k.id from client k where k.id = $1 for no key update of k`, []any{s.client}, &n); err != nil {
			return fmt.Errorf("lock a client: %w", err)
		}
		same, found, err := s.useAgain(ctx, a, f)
		if err != nil {
			return err
		}
		if found {
			stored = same
			return s.hide(ctx, a, f.ID, `stored_at = 0`)
		}
		changed, err := a.Exec(ctx, `update file set stored_at = $3 where client_id = $1 and id = $2 and hidden_at = 0`, s.client, f.ID, s.now())
		if err != nil {
			return fmt.Errorf("finish a file: %w", err)
		}
		if changed == 0 { // it took so long that maintenance dropped it
			return puntuale.NotFound(puntuale.NoFile)
		}
		if f.For != nil {
			if err := s.keep(ctx, a, f.For, f, f.Name, len(f.Small) > 0); err != nil {
				return err
			}
		}
		_, err = engine.QueryOne(ctx, a, `select `+columns+` from file f where f.client_id = $1 and f.id = $2`, []any{s.client, f.ID}, fields(&stored)...)
		return err
	})
	return stored, err
}

// DropFile removes a file that was begun and not finished. It does nothing to other files.
func (s ClientFiles) DropFile(ctx context.Context, id puntuale.FileID) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error { return s.hide(ctx, a, id, `stored_at = 0`) })
}

// hide hides a file if a condition holds. Maintenance deletes it later.
func (s ClientFiles) hide(ctx context.Context, a engine.Querier, id puntuale.FileID, condition string) error {
	if _, err := a.Exec(ctx, `update file set hidden_at = $3 where client_id = $1 and id = $2 and hidden_at = 0 and `+condition, s.client, id, s.now()); err != nil {
		return fmt.Errorf("hide a file: %w", err)
	}
	return nil
}

// usable is the condition of files that can be used.
const usable = ` and f.stored_at > 0 and f.hidden_at = 0`

// File reads about a file. Codes: not_found.
func (s ClientFiles) File(ctx context.Context, id puntuale.FileID) (f puntuale.File, err error) {
	found, err := engine.QueryOne(ctx, s.rows, `select `+columns+` from file f where f.client_id = $1 and f.id = $2`+usable, []any{s.client, id}, fields(&f)...)
	return f, engine.FoundOr(found, err, puntuale.NoFile)
}

// FilePart reads a part of a file, also of one that was hidden meanwhile. Codes: not_found; unavailable and gone, if the bytes
// are outside of the database, and the storage does not answer, or does not have them as they were stored.
func (s ClientFiles) FilePart(ctx context.Context, id puntuale.FileID, n int) (content []byte, err error) {
	from := storedBytes{client: s.client}
	var sum []byte
	found, err := engine.QueryOne(ctx, s.parts, `select p.content, p.hash, f.place, f.hash, f.size from file_part p join file f on f.client_id = p.client_id and f.id = p.file_id
 where p.client_id = $1 and p.file_id = $2 and p.n = $3`, []any{s.client, id, n}, &content, &sum, &from.place, &from.hash, &from.size)
	if err := engine.FoundOr(found, err, puntuale.NoFile); err != nil {
		return nil, err
	}
	if len(sum) == 0 {
		if len(content) == 0 { // the file was deleted while the backup was made from which this database comes
			return nil, lost("had them no more when the backup was made")
		}
		return content, nil
	}
	return from.read(ctx, s.all.db.Config.Objects, int64(n), sum)
}

// SmallPicture reads the small picture of an image. Codes: not_found (also if the file has none).
func (s ClientFiles) SmallPicture(ctx context.Context, id puntuale.FileID) (content []byte, err error) {
	found, err := engine.QueryOne(ctx, s.rows, `select f.small from file f where f.client_id = $1 and f.id = $2`+usable, []any{s.client, id}, &content)
	return content, engine.FoundOr(found && len(content) > 0, err, puntuale.NoFile)
}

// Files lists the client's files, the newest first.
func (s ClientFiles) Files(ctx context.Context) ([]puntuale.File, error) {
	all, err := engine.QueryAll(ctx, s.rows, `select `+columns+` from file f where f.client_id = $1`+usable+` order by f.created_at desc, f.id limit $2`,
		[]any{s.client, puntuale.MaxClientFiles}, scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list files: %w", err))
	}
	return all, nil
}

// DeleteFile deletes a file. Codes: not_found, conflict (something names it, or a message with it is not over).
func (s ClientFiles) DeleteFile(ctx context.Context, id puntuale.FileID, now time.Time) error {
	value, err := s.isValue(ctx, s.parts, id)
	if err != nil {
		return err
	}
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var needed, hidden time.Time
		found, err := engine.QueryOne(ctx, a, `select f.needed_at, f.hidden_at from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0 and f.hidden_at in (0, $3) for update`,
			[]any{s.client, id, engine.Micros(now)}, engine.ScanTime(&needed), engine.ScanTime(&hidden))
		if err := engine.ThereOr(found, err, puntuale.NoFile); err != nil {
			return err
		}
		if engine.Micros(hidden) == engine.Micros(now) { // this transaction runs again, because nobody knew whether it was committed
			return nil
		}
		is, err := s.named(ctx, a, id, now)
		if err != nil {
			return err
		}
		if is || value || needed.After(now) {
			return puntuale.Conflict(faultInUse)
		}
		if _, err := a.Exec(ctx, `update file set hidden_at = $3 where client_id = $1 and id = $2`, s.client, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("hide a file: %w", err)
		}
		return nil
	})
}
