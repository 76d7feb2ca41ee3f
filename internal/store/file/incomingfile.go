package file

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
)

const faultDeleted puntuale.ReasonCode = "file.deleted"

// KeptColumn reads what became of the file of a reply y: a [puntuale.KeptFile] as JSON, or ” if the file was not to be kept.
const KeptColumn = `case when y.media = '' then '' else coalesce((select case when k.next_at > 0 then '{"waiting":true}' when k.file_id = '' then k.outcome
 when exists (select 1 from file f where f.client_id = k.client_id and f.id = k.file_id and f.stored_at > 0 and f.hidden_at = 0) then k.outcome
 else '{"code":"` + string(faultDeleted) + `"}' end from incoming_file k where k.client_id = y.client_id and k.reply_id = y.id), '') end`

// NoteIncoming notes that the files of replies are to be kept, in the transaction that stores the replies. Its columns are
// clients, replies, and when the first attempt may begin.
func NoteIncoming(ctx context.Context, a engine.Querier, replies engine.Columns) error {
	if err := a.Queue(ctx, `insert into incoming_file (client_id, reply_id, next_at) select u.c, u.i, u.t from $u(c bigint, i bigint, t bigint)`, []any{replies}, nil); err != nil {
		return fmt.Errorf("note files to keep: %w", err)
	}
	return nil
}

// incomingKey names a row of incoming_file.
type incomingKey struct {
	client puntuale.ClientID
	reply  puntuale.ReplyID
}

const checkedReplies = 1000 // rows that one call of eraseLeft reads

// eraseLeft erases the files of replies that were blanked or deleted without them: servers of the version before do not know
// them. Each call reads the next rows, and the one after the last row begins again.
func (s *Files) eraseLeft(ctx context.Context, now time.Time) error {
	var after incomingKey
	if last := s.checked.Load(); last != nil {
		after = *last
	}
	type row struct {
		incomingKey
		left bool
	}
	all, err := engine.QueryAll(ctx, s.db.MaintenanceReads, `select k.client_id, k.reply_id, case when exists (select 1 from reply y where y.client_id = k.client_id and y.id = k.reply_id and y.blanked_at = 0) then 0 else 1 end
from incoming_file k where (k.client_id, k.reply_id) > ($1, $2) order by k.client_id, k.reply_id limit $3`, []any{after.client, after.reply, checkedReplies}, func(r engine.Row, x *row) error {
		return r.Scan(&x.client, &x.reply, engine.ScanBool(&x.left))
	})
	if err != nil {
		return engine.PublicError(fmt.Errorf("look for files of blanked replies: %w", err))
	}
	for _, x := range all {
		if !x.left {
			continue
		}
		if err := s.Sent(x.client).write(ctx, func(ctx context.Context, a engine.Querier) error {
			return EraseIncoming(ctx, a, x.client, engine.Columns{[]int64{int64(x.client)}, []int64{int64(x.reply)}}, now)
		}); err != nil {
			return err
		}
	}
	if len(all) < checkedReplies {
		s.checked.Store(nil)
	} else {
		s.checked.Store(&all[len(all)-1].incomingKey)
	}
	return nil
}

// Limits of DueIncoming.
const (
	maxDue          = 100
	maxDueOfClients = 2 // of one client
)

// dueIncoming reads one entry of the index for each client with waiting files, so the files of one client do not delay those
// of others.
const dueIncoming = `with recursive c (id) as (
 select min(k.client_id) from incoming_file k where k.next_at > 0 and k.client_id > $1
 union all select (select min(k.client_id) from incoming_file k where k.next_at > 0 and k.client_id > c.id) from c where c.id is not null)
select k.client_id, t.partner_id, k.reply_id, k.next_at, k.tries from c cross join client t cross join incoming_file k
where t.id = c.id and k.client_id = c.id and k.reply_id in
 (select x.reply_id from incoming_file x where x.client_id = c.id and x.next_at > 0 and x.next_at <= $2 order by x.next_at limit $3) limit $4`

// DueIncoming lists files of replies whose next attempt is due, or whose attempt took too long. It lists at most two of each
// client, and the clients by their ids, from the one after the given one. more reports whether there may be others.
func (s *Files) DueIncoming(ctx context.Context, now time.Time, after puntuale.ClientID) (all []puntuale.IncomingFile, more bool, err error) {
	all, err = engine.QueryAll(ctx, s.db.MaintenanceReads, dueIncoming, []any{after, engine.Micros(now), maxDueOfClients, maxDue}, func(r engine.Row, x *puntuale.IncomingFile) error {
		return r.Scan(&x.Client, &x.Partner, &x.Reply, engine.ScanTime(&x.Due), &x.Tries)
	})
	if err != nil {
		return nil, false, engine.PublicError(fmt.Errorf("look for files to keep: %w", err))
	}
	return all, len(all) == maxDue, nil
}

// ClaimIncoming begins an attempt that ends at the time until. It returns false if another attempt was faster, or if the file
// is not to be kept any more.
func (s *Files) ClaimIncoming(ctx context.Context, x puntuale.IncomingFile, until time.Time) (claimed puntuale.IncomingFile, ok bool, err error) {
	err = s.OfClient(x.Client).write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update incoming_file set next_at = $4, tries = tries + 1 where client_id = $1 and reply_id = $2 and next_at = $3`,
			x.Client, x.Reply, engine.Micros(x.Due), engine.Micros(until))
		ok = n > 0
		return err
	})
	x.Due, x.Tries = until, x.Tries+1
	return x, ok, err
}

// SettleIncoming ends an attempt that kept no file. next is when the next attempt may begin; zero: never. It does nothing if
// the attempt took too long, or if the reply was blanked or erased meanwhile.
func (s *Files) SettleIncoming(ctx context.Context, x puntuale.IncomingFile, next time.Time, k puntuale.KeptFile) error {
	outcome, err := engine.ToJSON(k)
	if err != nil {
		return err
	}
	c := s.OfClient(x.Client)
	return c.write(ctx, func(ctx context.Context, a engine.Querier) error {
		n, err := a.Exec(ctx, `update incoming_file set next_at = $4, outcome = $5 where client_id = $1 and reply_id = $2 and next_at = $3`,
			x.Client, x.Reply, engine.Micros(x.Due), engine.Micros(next), outcome)
		if err != nil || n == 0 || !next.IsZero() {
			return err
		}
		return c.tell(ctx, a, puntuale.EventFileFailed, x.Reply)
	})
}

// keep notes that a reply has a file, in the transaction that makes the file usable. name is the name of the reply's
// file, and small whether the file has a small picture.
// Codes: not_found, if the attempt took too long, or if the reply was blanked or erased meanwhile.
func (s ClientFiles) keep(ctx context.Context, a engine.Querier, x *puntuale.IncomingFile, f puntuale.File, name string, small bool) error {
	outcome, err := engine.ToJSON(puntuale.KeptFile{File: f.ID, Name: name, Type: f.Type, Size: f.Size, Small: small})
	if err != nil {
		return err
	}
	n, err := a.Exec(ctx, `update incoming_file set next_at = 0, file_id = $4, outcome = $5 where client_id = $1 and reply_id = $2 and next_at = $3
 and exists (select 1 from reply y where y.client_id = $1 and y.id = $2 and y.blanked_at = 0)`, s.client, x.Reply, engine.Micros(x.Due), f.ID, outcome)
	if err != nil {
		return fmt.Errorf("note the file of a reply: %w", err)
	}
	if n > 0 {
		return s.tell(ctx, a, puntuale.EventFileKept, x.Reply)
	}
	var one int // this transaction may run again after it noted the file, and told it
	again, err := engine.QueryOne(ctx, a, `select 1 from incoming_file k where k.client_id = $1 and k.reply_id = $2 and k.next_at = 0 and k.file_id = $3 for update of k`,
		[]any{s.client, x.Reply, f.ID}, &one)
	return engine.ThereOr(again, err, puntuale.NoReply)
}

// tell writes what became of the file of a reply.
func (s ClientFiles) tell(ctx context.Context, a engine.Querier, t puntuale.EventType, reply puntuale.ReplyID) error {
	return outbox.Emit(ctx, a, s.all.db.Config.Clock.Now(), []outbox.Fact{{Client: s.client, Type: t, Subject: int64(reply)}})
}

const forgetIncoming = `delete from incoming_file where (client_id, reply_id) in (select u.c, u.i from $u(c bigint, i bigint))`

// ForgetIncoming forgets the files of replies whose texts are removed because of their age. The files go at the same age. A file
// that somebody else sent later stays, under that person's name for it.
func ForgetIncoming(ctx context.Context, a engine.Querier, replies engine.Columns) error {
	all, err := engine.QueryAll(ctx, a, forgetIncoming+` returning client_id, file_id`, []any{replies}, func(r engine.Row, x *reference) error { return r.Scan(&x.client, &x.id) })
	if err != nil {
		return fmt.Errorf("forget the files of replies: %w", err)
	}
	slices.SortFunc(all, func(x, y reference) int { return cmp.Or(cmp.Compare(x.client, y.client), cmp.Compare(x.id, y.id)) })
	for _, x := range slices.Compact(all) {
		if x.id == "" {
			continue
		}
		if err := (ClientFiles{client: x.client}).rename(ctx, a, x.id); err != nil {
			return err
		}
	}
	return nil
}

// EraseIncoming forgets the files of an erased person's replies, and hides those that only this person had: nobody else sent
// them, and if the client uploaded them, only this person got them. It leaves those that something of the client names.
func EraseIncoming(ctx context.Context, a engine.Querier, client puntuale.ClientID, replies engine.Columns, now time.Time) error {
	all, err := engine.QueryAll(ctx, a, forgetIncoming+` returning file_id`, []any{replies}, engine.ScanOne[puntuale.FileID]) // one statement, so it waits for an attempt that is being stored, and sees its file
	if err != nil {
		return fmt.Errorf("forget the files of erased replies: %w", err)
	}
	slices.Sort(all)
	s := ClientFiles{client: client}
	for _, id := range slices.Compact(all) {
		if id == "" {
			continue
		}
		if err := s.rename(ctx, a, id); err != nil {
			return err
		}
		is, err := s.named(ctx, a, id, now)
		if err != nil {
			return err
		}
		if is {
			continue
		}
		if _, err := a.Exec(ctx, `update file set run_id = 0, needed_at = 0, hidden_at = case when hidden_at = 0 then $3::bigint else hidden_at end
 where client_id = $1 and id = $2
 and (incoming = 1 or exists (select 1 from run x where x.client_id = file.client_id and x.id = file.run_id and x.phone = '')) and `+onlyOf, client, id, engine.Micros(now)); err != nil {
			return fmt.Errorf("erase a file of a reply: %w", err)
		}
	}
	return nil
}

// rename gives a file that only people sent the name that it has in the first reply with it, so that the name of an erased
// reply does not stay. It locks the file, so that the next statement sees who else has it.
func (s ClientFiles) rename(ctx context.Context, a engine.Querier, id puntuale.FileID) error {
	var name string
	found, err := engine.QueryOne(ctx, a, `select f.name from file f where f.client_id = $1 and f.id = $2 for update`, []any{s.client, id}, &name)
	if err != nil || !found {
		return err
	}
	left := puntuale.KeptFile{Name: "file" + path.Ext(string(id))}
	if _, err := engine.QueryOne(ctx, a, `select k.outcome from incoming_file k where k.client_id = $1 and k.file_id = $2 and k.file_id <> '' order by k.reply_id limit 1`, []any{s.client, id}, engine.ScanJSON(&left)); err != nil {
		return fmt.Errorf("look who else sent a file: %w", err)
	}
	if _, err := a.Exec(ctx, `update file set name = $3 where client_id = $1 and id = $2 and incoming = 1 and name <> $3`, s.client, id, left.Name); err != nil {
		return fmt.Errorf("rename a file of a reply: %w", err)
	}
	return nil
}

// noReply is the condition that no reply has a file. onlyOf is the condition that neither a reply has it, nor a run of a
// person who was not erased.
const (
	noReply = `not exists (select 1 from incoming_file k where k.client_id = file.client_id and k.file_id = file.id and k.file_id <> '')` // the last part lets the database use the index
	onlyOf  = noReply + `
 and run_id >= 0 and not exists (select 1 from run x where x.client_id = file.client_id and x.id = file.run_id and x.phone <> '')`
)
