package file

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Files stores the uploaded files of all clients. Its methods are safe for concurrent use.
type Files struct {
	db   *engine.DB
	work *engine.Kind
}

// New returns the files of a database.
func New(db *engine.DB) *Files {
	s := &Files{db: db, work: engine.NewSingle("file", engine.PriorityFeed)}
	s.work.Check, s.work.Background = engine.RunAgain, true // may run twice: every statement stores the same again
	return s
}

// OfClient gives access to one client's files.
func (s *Files) OfClient(id puntuale.ClientID) ClientFiles { return ClientFiles{s, id} }

// ClientFiles gives access to one client's files.
type ClientFiles struct {
	all    *Files
	client puntuale.ClientID
}

const columns = `f.id, f.name, f.type, f.hash, f.size, f.width, f.height, f.created_at`

func fields(f *puntuale.File) []any {
	return []any{&f.ID, &f.Name, &f.Type, &f.Hash, &f.Size, &f.Width, &f.Height, engine.ScanTime(&f.Created)}
}

func scan(r engine.Row, f *puntuale.File) error { return r.Scan(fields(f)...) }

func (s ClientFiles) write(ctx context.Context, do func(ctx context.Context, a engine.Querier) error) error {
	return engine.PublicError(s.all.db.FeedWriter.Do(ctx, engine.Single(s.all.work, do).ForOwner(int64(s.client)), false))
}

// Codes of the faults that functions in this file return.
const (
	faultTooMany puntuale.ReasonCode = "file.too_many" // {1}: the most
	faultNoRoom  puntuale.ReasonCode = "file.no_room"  // {1}: the most, in MB
	faultInUse   puntuale.ReasonCode = "file.in_use"
)

// CreateFile begins a file. The bytes of files whose parts still arrive count, too. Codes: quota_reached.
func (s ClientFiles) CreateFile(ctx context.Context, f puntuale.File) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var n int64
		found, err := engine.QueryOne(ctx, a, `select k.id from client k where k.id = $1 and k.deleted_at = 0 for no key update of k`, []any{s.client}, &n)
		if err := engine.ThereOr(found, err, puntuale.NoClient); err != nil {
			return err
		}
		var count, bytes int64
		if _, err := engine.QueryOne(ctx, a, `select count(*), cast(coalesce(sum(f.size), 0) as bigint) from file f where f.client_id = $1 and f.id <> $2`, []any{s.client, f.ID}, &count, &bytes); err != nil {
			return fmt.Errorf("count files: %w", err)
		}
		switch {
		case count >= puntuale.MaxClientFiles:
			return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(faultTooMany, strconv.Itoa(puntuale.MaxClientFiles))}
		case bytes+f.Size > puntuale.MaxClientFileBytes:
			return &puntuale.Error{Code: puntuale.CodeQuotaReached, Reason: puntuale.Because(faultNoRoom, strconv.Itoa(puntuale.MaxClientFileBytes>>20))}
		}
		if _, err := a.Exec(ctx, `insert into file (client_id, id, name, type, hash, size, width, height, created_at, needed_at)
 values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $9) on conflict (client_id, id) do nothing`,
			s.client, f.ID, f.Name, f.Type, f.Hash, f.Size, f.Width, f.Height, engine.Micros(f.Created)); err != nil {
			return fmt.Errorf("insert a file: %w", err)
		}
		return nil
	})
}

// AddFilePart stores a part of a file that was begun. Codes: not_found.
func (s ClientFiles) AddFilePart(ctx context.Context, id puntuale.FileID, n int, content []byte) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		added, err := a.Exec(ctx, `insert into file_part as p (client_id, file_id, n, content)
 select f.client_id, f.id, $3::bigint, $4::bytea from file f where f.client_id = $1 and f.id = $2 and f.stored_at = 0
 on conflict (client_id, file_id, n) do update set content = excluded.content`, s.client, id, n, content)
		if err == nil && added == 0 {
			return puntuale.NotFound(puntuale.NoFile)
		}
		if err != nil {
			return fmt.Errorf("insert a part of a file: %w", err)
		}
		return nil
	})
}

// FinishFile makes a file usable. If the client has a file with the same bytes already, FinishFile drops the new one, and
// returns the older one. Codes: not_found.
func (s ClientFiles) FinishFile(ctx context.Context, id puntuale.FileID) (f puntuale.File, err error) {
	err = s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var n int64
		if _, err := engine.QueryOne(ctx, a, `select k.id from client k where k.id = $1 for no key update of k`, []any{s.client}, &n); err != nil {
			return fmt.Errorf("lock a client: %w", err)
		}
		found, err := engine.QueryOne(ctx, a, `select `+columns+` from file f where f.client_id = $1 and f.id = $2`, []any{s.client, id}, fields(&f)...)
		if err := engine.ThereOr(found, err, puntuale.NoFile); err != nil {
			return err
		}
		older := puntuale.File{}
		found, err = engine.QueryOne(ctx, a, `select `+columns+` from file f where f.client_id = $1 and f.hash = $2 and f.stored_at > 0`, []any{s.client, f.Hash}, fields(&older)...)
		if err != nil {
			return fmt.Errorf("look for the same file: %w", err)
		}
		if found && older.ID != id {
			f = older
			if _, err := a.Exec(ctx, `update file set needed_at = case when needed_at < $3::bigint then $3::bigint else needed_at end where client_id = $1 and id = $2`,
				s.client, older.ID, engine.Micros(s.all.db.Config.Clock.Now())); err != nil {
				return fmt.Errorf("use a file again: %w", err)
			}
			return s.drop(ctx, a, id)
		}
		if _, err := a.Exec(ctx, `update file set stored_at = $3 where client_id = $1 and id = $2`, s.client, id, engine.Micros(s.all.db.Config.Clock.Now())); err != nil {
			return fmt.Errorf("finish a file: %w", err)
		}
		return nil
	})
	return f, err
}

// DropFile removes a file that was begun and not finished. It does nothing to other files.
func (s ClientFiles) DropFile(ctx context.Context, id puntuale.FileID) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `delete from file where client_id = $1 and id = $2 and stored_at = 0`, s.client, id)
		if err != nil {
			return fmt.Errorf("drop a file: %w", err)
		}
		if n == 0 {
			return nil
		}
		return s.drop(ctx, a, id)
	})
}

// drop removes a file and its parts.
func (s ClientFiles) drop(ctx context.Context, a engine.Querier, id puntuale.FileID) error {
	for _, statement := range []string{`delete from file where client_id = $1 and id = $2`, `delete from file_part where client_id = $1 and file_id = $2`} {
		if _, err := a.Exec(ctx, statement, s.client, id); err != nil {
			return fmt.Errorf("delete a file: %w", err)
		}
	}
	return nil
}

// File reads about a file. Codes: not_found.
func (s ClientFiles) File(ctx context.Context, id puntuale.FileID) (f puntuale.File, err error) {
	found, err := engine.QueryOne(ctx, s.all.db.CallReads, `select `+columns+` from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0`, []any{s.client, id}, fields(&f)...)
	return f, engine.FoundOr(found, err, puntuale.NoFile)
}

// FilePart reads a part of a file. Codes: not_found.
func (s ClientFiles) FilePart(ctx context.Context, id puntuale.FileID, n int) (content []byte, err error) {
	found, err := engine.QueryOne(ctx, s.all.db.CallReads, `select p.content from file_part p where p.client_id = $1 and p.file_id = $2 and p.n = $3`, []any{s.client, id, n}, &content)
	return content, engine.FoundOr(found, err, puntuale.NoFile)
}

// Files lists the client's files, the newest first.
func (s ClientFiles) Files(ctx context.Context) ([]puntuale.File, error) {
	all, err := engine.QueryAll(ctx, s.all.db.CallReads, `select `+columns+` from file f where f.client_id = $1 and f.stored_at > 0 order by f.created_at desc, f.id limit $2`,
		[]any{s.client, puntuale.MaxClientFiles}, scan)
	if err != nil {
		return nil, engine.PublicError(fmt.Errorf("list files: %w", err))
	}
	return all, nil
}

// named finds out whether something of a client names a file.
const named = `select case when
 exists (select 1 from sequence q where q.client_id = $1 and q.steps like $2::text)
 or exists (select 1 from template t where t.client_id = $1 and t.media like $2::text)
 or exists (select 1 from automation r where r.client_id = $1 and r.actions like $2::text)
 or exists (select 1 from campaign g where g.client_id = $1 and g.ended_at = 0 and (g.draft like $2::text or g.frozen like $2::text))
 then 1 else 0 end`

func (s ClientFiles) named(ctx context.Context, a engine.Querier, id puntuale.FileID) (is bool, err error) {
	if _, err := engine.QueryOne(ctx, a, named, []any{s.client, "%" + id.Address() + "%"}, engine.ScanBool(&is)); err != nil {
		return false, fmt.Errorf("look who names a file: %w", err)
	}
	return is, nil
}

// DeleteFile deletes a file. Codes: not_found, conflict (something names it, or a message with it is not over).
func (s ClientFiles) DeleteFile(ctx context.Context, id puntuale.FileID, now time.Time) error {
	return s.write(ctx, func(ctx context.Context, a engine.Querier) error {
		var needed time.Time
		found, err := engine.QueryOne(ctx, a, `select f.needed_at from file f where f.client_id = $1 and f.id = $2 and f.stored_at > 0 for update`, []any{s.client, id}, engine.ScanTime(&needed))
		if err := engine.ThereOr(found, err, puntuale.NoFile); err != nil {
			return err
		}
		is, err := s.named(ctx, a, id)
		if err != nil {
			return err
		}
		if is || needed.After(now) {
			return puntuale.Conflict(faultInUse)
		}
		return s.drop(ctx, a, id)
	})
}
