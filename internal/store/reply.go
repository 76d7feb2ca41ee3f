package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
	"puntuale/internal/store/outbox"
	"puntuale/internal/store/queue"
)

const replyColumns = `y.id, y.session_id, y.phone, y.at, y.own, y.kind, y.text, y.media, y.network_id, y.run_id, y.effect, y.read_at,
 case when y.blanked_at > 0 then 1 else 0 end`

// replyBytes is the approximate memory of a reply, in bytes.
const replyBytes = `octet_length(y.text) + octet_length(y.media) + 200`

func replyFields(y *puntuale.Reply) []any {
	return []any{&y.ID, &y.Session, &y.Phone, engine.ScanTime(&y.At), engine.ScanBool(&y.Own), &y.Kind, &y.Text, engine.ScanOptionalJSON(&y.Media), &y.NetworkID,
		&y.Run, &y.Effect, engine.ScanTime(&y.Read), engine.ScanBool(&y.Blanked)}
}

func scanReply(rows engine.Row, y *puntuale.Reply) error { return rows.Scan(replyFields(y)...) }

// repliesOf finds the replies of one phone. The inner select finds their ids first. Otherwise SQLite would read all
// replies of the client.
const repliesOf = ` from (select x.id from reply x where x.client_id = $1 and x.phone = $4 and x.id < $2) k cross join reply y
where y.client_id = $1 and y.id = k.id`

func (t tenant) Replies(ctx context.Context, f puntuale.ReplyFilter, p puntuale.Page) ([]puntuale.Reply, string, error) {
	last, limit, err := engine.ReadCursor(p, "reply")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	text, from, args := ` from reply y where y.client_id = $1 and y.id < $2`, ` and y.id >= $3`, []any{t.id, last, limit + 1}
	if f.Phone != "" {
		text, from, args = repliesOf, ` and y.id + 0 >= $3`, append(args, f.Phone) // "+ 0" prevents SQLite from beginning with all replies of the client
	}
	switch {
	case f.Unread:
		text += ` and y.read_at = 0 and y.own = 0`
	case !f.Own:
		text += ` and y.own = 0`
	}
	page, err := engine.ReadPageSpan(ctx, t.lists(), "reply", `select y.id, `+replyBytes+text+` order by y.id desc limit $3`, args, limit)
	if err != nil || page.Rows == 0 {
		return nil, "", engine.PublicError(err)
	}
	args[2] = page.Last
	all, err := engine.QueryAll(ctx, t.lists(), `select `+replyColumns+text+from+` order by y.id desc`, args, scanReply)
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list replies: %w", err))
	}
	return all, page.Next, nil
}

func (t tenant) Reply(ctx context.Context, id puntuale.ReplyID) (puntuale.Reply, error) {
	var y puntuale.Reply
	found, err := engine.QueryOne(ctx, t.s.CallReads, `select `+replyColumns+` from reply y where y.client_id = $1 and y.id = $2`, []any{t.id, id}, replyFields(&y)...)
	return y, engine.FoundOr(found, err, puntuale.NoReply)
}

func (t tenant) Conversations(ctx context.Context, unread bool, p puntuale.Page) ([]puntuale.Conversation, string, error) {
	last, limit, err := engine.ReadCursor(p, "conversation")
	if err != nil {
		return nil, "", err
	}
	if last == 0 {
		last = puntuale.MaxID + 1
	}
	some := `g.last_id > 0`
	if unread {
		some = `g.unread > 0`
	}
	text := ` from (select * from conversation g where g.client_id = $1 and g.last_id < $2 and ` + some
	page, err := engine.ReadPageSpan(ctx, t.lists(), "conversation", `select g.last_id, `+replyBytes+text+` order by g.last_id desc limit $3) g
 join reply y on y.client_id = g.client_id and y.id = g.last_id order by g.last_id desc`, []any{t.id, last, limit + 1}, limit)
	if err != nil || page.Rows == 0 {
		return nil, "", engine.PublicError(err)
	}
	all, err := engine.QueryAll(ctx, t.lists(), `select g.phone, g.unread, g.answered_at, `+replyColumns+text+` and g.last_id >= $3 order by g.last_id desc limit $4) g
 join reply y on y.client_id = g.client_id and y.id = g.last_id order by g.last_id desc`, []any{t.id, last, page.Last, page.Rows}, func(rows engine.Row, c *puntuale.Conversation) error {
		return rows.Scan(append([]any{&c.Phone, &c.Unread, engine.ScanTime(&c.Answered)}, replyFields(&c.Last)...)...)
	})
	if err != nil {
		return nil, "", engine.PublicError(fmt.Errorf("list conversations: %w", err))
	}
	return all, page.Next, nil
}

func (t tenant) Conversation(ctx context.Context, phone string) (c puntuale.Conversation, err error) {
	c.Phone = phone
	if _, err = engine.QueryOne(ctx, t.s.CallReads, `select unread, answered_at from conversation where client_id = $1 and phone = $2`, []any{t.id, phone},
		&c.Unread, engine.ScanTime(&c.Answered)); err != nil {
		return c, engine.PublicError(fmt.Errorf("read a conversation: %w", err))
	}
	if _, err = engine.QueryOne(ctx, t.s.CallReads, `select `+replyColumns+` from conversation g join reply y on y.client_id = g.client_id and y.id = g.last_id
 where g.client_id = $1 and g.phone = $2`, []any{t.id, phone}, replyFields(&c.Last)...); err != nil {
		return c, engine.PublicError(fmt.Errorf("read the latest reply: %w", err))
	}
	return c, nil
}

func (t tenant) Unread(ctx context.Context, limit int) (n int, err error) {
	if _, err := engine.QueryOne(ctx, t.s.CallReads, `select count(*) from (select 1 from conversation g where g.client_id = $1 and g.unread > 0 limit $2) x`,
		[]any{t.id, limit}, &n); err != nil {
		return 0, engine.PublicError(fmt.Errorf("count unread replies: %w", err))
	}
	return n, nil
}

// mostRead is how many replies one transaction marks as read.
const mostRead = 1000

func (t tenant) MarkRead(ctx context.Context, phone string, last puntuale.ReplyID, now time.Time) (all int, err error) {
	if last == 0 {
		last = puntuale.MaxID
	}
	for {
		var n int64
		if err := t.write(ctx, func(ctx context.Context, a engine.Querier) error {
			ids, err := engine.QueryAll(ctx, a, `select y.id from reply y where y.client_id = $1 and y.phone = $2 and y.id <= $3 and y.read_at = 0 and y.own = 0
 order by y.client_id, y.id limit $4 for update of y`, []any{t.id, phone, last, mostRead}, engine.ScanOne[int64])
			if err != nil || len(ids) == 0 {
				n = 0
				return err
			}
			if n, err = a.Exec(ctx, `update reply set read_at = $2::bigint from $u(i bigint) where reply.client_id = $1 and reply.id = u.i`,
				t.id, engine.Micros(now), engine.Columns{ids}); err != nil {
				return err
			}
			_, err = a.Exec(ctx, `update conversation set unread = greatest(0, unread - $3::bigint) where client_id = $1 and phone = $2`, t.id, phone, n)
			return err
		}); err != nil {
			return all, fmt.Errorf("mark replies as read: %w", err)
		}
		if all += int(n); n < mostRead {
			return all, nil
		}
	}
}

func (t tenant) Answered(ctx context.Context, phone string, at time.Time) error {
	return t.write(ctx, func(ctx context.Context, a engine.Querier) error {
		_, err := a.Exec(ctx, `insert into conversation as g (client_id, phone, answered_at) values ($1, $2, $3)
 on conflict (client_id, phone) do update set answered_at = greatest(g.answered_at, excluded.answered_at)`, t.id, phone, engine.Micros(at))
		return err
	})
}

// keepSeen is how long a repeat of a message by a network is recognised.
const keepSeen = 30 * 24 * time.Hour

// seenKey is the key of a message that a network reported.
type seenKey struct {
	client int64
	mark   string
}

func (k seenKey) compare(other seenKey) int {
	return cmp.Or(cmp.Compare(k.client, other.client), cmp.Compare(k.mark, other.mark))
}

func (s *Store) purgeSeen(ctx context.Context, now time.Time) error {
	before := engine.Micros(now.Add(-keepSeen))
	return engine.Purge(ctx, s.DB, "what networks told", `select client_id, mark from inbound_seen where at < $1 order by at limit $2`, before,
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

// blankReplies removes the texts of replies from before a moment. Zero removes nothing.
func (s *Store) blankReplies(ctx context.Context, now, before time.Time) error {
	if before.IsZero() {
		return nil
	}
	return engine.Purge(ctx, s.DB, "texts of replies", `select client_id, id from reply where at < $1 and blanked_at = 0 order by at limit $2`, engine.Micros(before),
		queue.ScanRef, queue.CompareRefs, func(ctx context.Context, a engine.Querier, part []puntuale.MessageRef) error {
			if _, err := a.Exec(ctx, `update reply set text = '', media = '', network_id = '', blanked_at = $1::bigint from $u(c bigint, i bigint)
 where reply.client_id = u.c and reply.id = u.i and reply.blanked_at = 0`, engine.Micros(now), queue.RefColumns(part)); err != nil {
				return err
			}
			return outbox.ForgetAnswers(ctx, a, outbox.MessageSubjects(part))
		})
}
