// Package reply stores what people write to clients. It stores the messages that networks report as replies, and opens
// the 24-hour windows. It also stores by which names a network knows a person, and which people a session knows.
package reply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/file"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

// Replies stores what people wrote to all clients. It is safe for concurrent use.
type Replies struct {
	db             *engine.DB
	heard, inbound *engine.Kind
	cancel         func(ctx context.Context, refs []puntuale.MessageRef, now time.Time) (int, error)

	lastContact atomic.Pointer[contactKey] // the row of the table contact that Maintain read last; nil: Maintain begins with the first row
	lastAlias   atomic.Pointer[aliasKey]   // the alias that Maintain read last; nil: Maintain begins with the first alias
}

// New returns the Replies of a database. heard is the kind of the tasks that store what networks report. cancel gets
// messages, and cancels the open ones that are not in flight, one chunk in each transaction.
func New(db *engine.DB, heard *engine.Kind, cancel func(ctx context.Context, refs []puntuale.MessageRef, now time.Time) (int, error)) *Replies {
	return &Replies{db: db, heard: heard, inbound: newInboundKind(), cancel: cancel}
}

// ForClient gives access to what people wrote to one client.
func (s *Replies) ForClient(client puntuale.ClientID) ClientReplies { return ClientReplies{s, client} }

// ClientReplies gives access to the replies of one client. Its methods are safe for concurrent use.
type ClientReplies struct {
	all    *Replies
	client puntuale.ClientID
}

// Maintain deletes rows that nobody needs any more. It also removes the texts of replies that are older than the time in
// blank. If blank is zero, all texts stay.
func (s *Replies) Maintain(ctx context.Context, now, blank time.Time) error {
	return errors.Join(s.purgeContacts(ctx, now), s.purgeAliases(ctx), s.blankReplies(ctx, now, blank), s.purgeSeen(ctx, now))
}

const replyColumns = `y.id, y.session_id, y.phone, y.at, y.own, y.kind, y.text, y.media, y.network_id, y.run_id, case when y.answer > 0 then y.answer + 3 else y.effect end, y.read_at,
 case when y.blanked_at > 0 then 1 else 0 end, y.payload, y.button, y.in_reply_to, y.matched, ` + file.KeptColumn

// ReplyBytes is the approximate size of a reply in memory, in bytes.
const ReplyBytes = `octet_length(y.text) + octet_length(y.media) + 200`

func replyFields(y *puntuale.Reply) []any {
	return []any{&y.ID, &y.Session, &y.Phone, engine.ScanTime(&y.At), engine.ScanBool(&y.Own), &y.Kind, &y.Text, engine.ScanOptionalJSON(&y.Media), &y.NetworkID,
		&y.Run, &y.Effect, engine.ScanTime(&y.Read), engine.ScanBool(&y.Blanked), &y.Payload, &y.Button, &y.InReplyTo, &y.Matched, engine.ScanOptionalJSON(&y.Kept)}
}

func scanReply(rows engine.Row, y *puntuale.Reply) error { return rows.Scan(replyFields(y)...) }

// RepliesOf finds the replies of all names of a person. The inner select first finds the ids. Without it, SQLite would read all
// replies of the client.
const RepliesOf = ` from (select x.id from $u(p text) cross join reply x where x.client_id = $1 and x.phone = u.p and x.id < $2) k cross join reply y
where y.client_id = $1 and y.id = k.id`

// Replies lists replies, newest first. Codes: invalid (the cursor).
func (t ClientReplies) Replies(ctx context.Context, f puntuale.ReplyFilter, p puntuale.Page) ([]puntuale.Reply, string, error) {
	last, limit, err := engine.ReadCursor(p, "reply")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	text, from, args := ` from reply y where y.client_id = $1 and y.id < $2`, ` and y.id >= $3`, []any{t.client, last, limit + 1}
	if f.Phone != "" {
		names, err := t.names(ctx, f.Phone)
		if err != nil {
			return nil, "", err
		}
		text, from, args = RepliesOf, ` and y.id + 0 >= $3`, append(args, engine.Columns{names}) // "+ 0" prevents SQLite from reading all replies of the client first
	}
	switch {
	case f.Unread:
		text += ` and y.read_at = 0 and y.own = 0`
	case !f.Own:
		text += ` and y.own = 0`
	}
	page, err := engine.ReadPageSpan(ctx, t.all.db.Lists(int64(t.client)), "reply", `select y.id, `+ReplyBytes+text+` order by y.id desc limit $3`, args, limit)
	if err != nil || page.Rows == 0 {
		return nil, "", engine.PublicError(err)
	}
	args[2] = page.Last
	all, err := engine.QueryAll(ctx, t.all.db.Lists(int64(t.client)), `select `+replyColumns+text+from+` order by y.id desc`, args, scanReply)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list replies: %w", err))
	}
	return all, page.Next, nil
}

func (t ClientReplies) names(ctx context.Context, phone string) ([]string, error) {
	return t.all.Recipients(ctx, t.client, phone)
}

// Reply reads a reply. Codes: not_found.
func (t ClientReplies) Reply(ctx context.Context, id puntuale.ReplyID) (puntuale.Reply, error) {
	var y puntuale.Reply
	found, err := engine.QueryOne(ctx, t.all.db.CallReads, `select `+replyColumns+` from reply y where y.client_id = $1 and y.id = $2`, []any{t.client, id}, replyFields(&y)...)
	return y, engine.FoundOr(found, err, puntuale.NoReply)
}

// Conversations lists one row for each person, sorted by the latest reply. With unread, it lists only
// conversations with unread replies.
// code invalid: the cursor is wrong
func (t ClientReplies) Conversations(ctx context.Context, unread bool, p puntuale.Page) ([]puntuale.Conversation, string, error) {
	last, limit, err := engine.ReadCursor(p, "conversation")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	text := ` from (select * from conversation g where g.client_id = $1 and g.last_id < $2 and ` + listedConversation(unread)
	page, err := engine.ReadPageSpan(ctx, t.all.db.Lists(int64(t.client)), "conversation", `select g.last_id, `+ReplyBytes+text+` order by g.last_id desc limit $3) g
 join reply y on y.client_id = g.client_id and y.id = g.last_id order by g.last_id desc`, []any{t.client, last, limit + 1}, limit)
	if err != nil || page.Rows == 0 {
		return nil, "", engine.PublicError(err)
	}
	all, err := engine.QueryAll(ctx, t.all.db.Lists(int64(t.client)), `select g.phone, g.unread, g.answered_at, `+replyColumns+text+` and g.last_id >= $3 order by g.last_id desc limit $4) g
 join reply y on y.client_id = g.client_id and y.id = g.last_id order by g.last_id desc`, []any{t.client, last, page.Last, page.Rows}, func(rows engine.Row, c *puntuale.Conversation) error {
		return rows.Scan(append([]any{&c.Phone, &c.Unread, engine.ScanTime(&c.Answered)}, replyFields(&c.Last)...)...)
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list conversations: %w", err))
	}
	return all, page.Next, nil
}

// CountConversations counts the conversations that Conversations lists, up to limit. all reports whether n is the complete
// count.
func (t ClientReplies) CountConversations(ctx context.Context, unread bool, limit int) (n int, all bool, err error) {
	if _, err := engine.QueryOne(ctx, t.all.db.Lists(int64(t.client)), `select count(*) from (select 1 from conversation g where g.client_id = $1 and `+listedConversation(unread)+` limit $2) x`,
		[]any{t.client, limit + 1}, &n); err != nil {
		return 0, false, engine.PublicError(fmt.Errorf("count conversations: %w", err))
	}
	return min(n, limit), n <= limit, nil
}

// listedConversation returns the condition of the conversations that a list has.
func listedConversation(unread bool) string {
	if unread {
		return `g.unread > 0`
	}
	return `g.last_id > 0`
}

// Conversation returns the conversation with the phone, or the zero value if the person never wrote.
//
// Conversation joins the conversations of all names of the person.
func (t ClientReplies) Conversation(ctx context.Context, phone string) (c puntuale.Conversation, err error) {
	c.Phone = phone
	names, err := t.names(ctx, phone)
	if err != nil {
		return c, err
	}
	if _, err = engine.QueryOne(ctx, t.all.db.CallReads, `select coalesce(sum(g.unread), 0), coalesce(max(g.answered_at), 0) from $u(p text) cross join conversation g
 where g.client_id = $1 and g.phone = u.p`, []any{t.client, engine.Columns{names}}, &c.Unread, engine.ScanTime(&c.Answered)); err != nil {
		return c, engine.PublicError(fmt.Errorf("read a conversation: %w", err))
	}
	if _, err = engine.QueryOne(ctx, t.all.db.CallReads, `select `+replyColumns+` from $u(p text) cross join conversation g join reply y on y.client_id = g.client_id and y.id = g.last_id
 where g.client_id = $1 and g.phone = u.p order by g.last_id desc limit 1`, []any{t.client, engine.Columns{names}}, replyFields(&c.Last)...); err != nil {
		return c, engine.PublicError(fmt.Errorf("read the latest reply: %w", err))
	}
	return c, nil
}

// Unread counts the people with unread replies. It stops counting at limit.
func (t ClientReplies) Unread(ctx context.Context, limit int) (n int, err error) {
	if _, err := engine.QueryOne(ctx, t.all.db.CallReads, `select count(*) from (select 1 from conversation g where g.client_id = $1 and g.unread > 0 limit $2) x`,
		[]any{t.client, limit}, &n); err != nil {
		return 0, engine.PublicError(fmt.Errorf("count unread replies: %w", err))
	}
	return n, nil
}

// maxRead is how many replies one transaction marks as read.
const maxRead = 1000

// MarkRead marks the phone's replies as read, up to and including the reply last. If last is 0, it marks all. It
// returns how many of them were unread.
func (t ClientReplies) MarkRead(ctx context.Context, phone string, last puntuale.ReplyID, now time.Time) (all int, err error) {
	if last == 0 {
		last = puntuale.MaxID
	}
	names, err := t.names(ctx, phone)
	for _, name := range names {
		n, err := t.markRead(ctx, name, last, now)
		if all += n; err != nil {
			return all, err
		}
	}
	return all, err
}

// markRead marks the replies that are stored under one name.
func (t ClientReplies) markRead(ctx context.Context, phone string, last puntuale.ReplyID, now time.Time) (all int, err error) {
	for {
		var n int64
		if err := t.all.db.Write(ctx, int64(t.client), func(ctx context.Context, a engine.Querier) error {
			ids, err := engine.QueryAll(ctx, a, `select y.id from reply y where y.client_id = $1 and y.phone = $2 and y.id <= $3 and y.read_at = 0 and y.own = 0
 order by y.client_id, y.id limit $4 for update of y`, []any{t.client, phone, last, maxRead}, engine.ScanOne[int64])
			if err != nil || len(ids) == 0 {
				n = 0
				return err
			}
			if n, err = a.Exec(ctx, `update reply set read_at = $2::bigint from $u(i bigint) where reply.client_id = $1 and reply.id = u.i`,
				t.client, engine.Micros(now), engine.Columns{ids}); err != nil {
				return err
			}
			_, err = a.Exec(ctx, `update conversation set unread = greatest(0, unread - $3::bigint) where client_id = $1 and phone = $2`, t.client, phone, n)
			return err
		}); err != nil {
			return all, fmt.Errorf("mark replies as read: %w", err)
		}
		if all += int(n); n < maxRead {
			return all, nil
		}
	}
}

// Answered notes when the client's people wrote to the phone. Automations then leave the person alone for
// [puntuale.ClientSettings].TakeoverHours.
func (t ClientReplies) Answered(ctx context.Context, phone string, at time.Time) error {
	return t.all.db.Write(ctx, int64(t.client), func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into conversation as g (client_id, phone, answered_at) values ($1, $2, $3)
 on conflict (client_id, phone) do update set answered_at = greatest(g.answered_at, excluded.answered_at)`, t.client, phone, engine.Micros(at))
		return err
	})
}

// keepSeen is how long the store recognises a message that the network reports again.
const keepSeen = 30 * 24 * time.Hour

func (s *Replies) Seen(ctx context.Context, client puntuale.ClientID, mark string) (bool, error) {
	var n int
	seen, err := engine.QueryOne(ctx, s.db.CallReads, `select 1 from inbound_seen where client_id = $1 and mark = $2`, []any{client, mark}, &n)
	if err != nil {
		return false, engine.PublicError(fmt.Errorf("look whether the network told it before: %w", err))
	}
	return seen, nil
}

// seenKey is the primary key of a message that a network reported.
type seenKey struct {
	client int64
	mark   string
}

func (k seenKey) compare(other seenKey) int {
	return cmp.Or(cmp.Compare(k.client, other.client), cmp.Compare(k.mark, other.mark))
}

func (s *Replies) purgeSeen(ctx context.Context, now time.Time) error {
	before := engine.Micros(now.Add(-keepSeen))
	return engine.Purge(ctx, s.db, "what networks told", `select client_id, mark from inbound_seen where at < $1 order by at limit $2`, before,
		func(rows engine.Row, k *seenKey) error { return rows.Scan(&k.client, &k.mark) },
		seenKey.compare,
		func(ctx context.Context, a engine.Querier, part []seenKey) error {
			_, err := a.Exec(ctx, `delete from inbound_seen where at < $1 and (client_id, mark) in (select u.c, u.m from $u(c bigint, m text))`, before, engine.Columns{
				engine.Column(part, func(k *seenKey) int64 { return k.client }),
				engine.Column(part, func(k *seenKey) string { return k.mark }),
			})
			return err
		})
}

// blankReplies removes the texts of replies that are older than the argument before. If before is zero, it removes
// nothing.
func (s *Replies) blankReplies(ctx context.Context, now, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	return engine.Purge(ctx, s.db, "texts of replies", `select client_id, id from reply where at < $1 and blanked_at = 0 order by at limit $2`, engine.Micros(before),
		queue.ScanRef, queue.CompareRefs, func(ctx context.Context, a engine.Querier, part []puntuale.MessageRef) error {
			if _, err := a.Exec(ctx, `update reply set text = '', media = '', network_id = '', payload = '', button = '', blanked_at = $1::bigint from $u(c bigint, i bigint)
 where reply.client_id = u.c and reply.id = u.i and reply.blanked_at = 0`, engine.Micros(now), queue.RefColumns(part)); err != nil {
				return err
			}
			if err := file.ForgetIncoming(ctx, a, queue.RefColumns(part)); err != nil {
				return err
			}
			return outbox.ForgetAnswers(ctx, a, outbox.MessageSubjects(part))
		})
}
