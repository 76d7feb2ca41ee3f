package notice

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// queuedAtOnce is how many notices one transaction puts into e-mails.
const queuedAtOnce = 100

// mailContent is the content of a queued e-mail. It contains no secret.
type mailContent struct {
	Notices []puntuale.NoticeID `json:"notices"`
	More    int                 `json:"more,omitempty"`
}

// Due locks the notices that were not added to e-mails yet. If two nodes run it, the second waits for the first. Then
// the second finds these notices already queued.
const Due = `select n.id, n.partner_id, n.client_id, n.login_id, n.kind, n.due_at from notice n where n.mailed = 0 and n.due_at <= $1 order by n.due_at, n.id limit $2 for update`

// dueNotice is a notice that must be added to e-mails.
type dueNotice struct {
	puntuale.Notice
	due time.Time
}

// readerChoice is a user together with the kinds of notices that the user wants by e-mail.
type readerChoice struct {
	puntuale.User
	mailed puntuale.NoticeSet
}

func (s *Notices) QueueNotices(ctx context.Context, now time.Time) (looked int, err error) {
	var one int
	if found, err := engine.QueryOne(ctx, s.db.MaintenanceReads, `select 1 from notice n where n.mailed = 0 and n.due_at <= $1 limit 1`, []any{engine.Micros(now)}, &one); err != nil || !found {
		return 0, engine.PublicError(err)
	}
	err = s.db.Write(ctx, 0, func(ctx context.Context, a engine.Querier) error {
		all, err := engine.QueryAll(ctx, a, Due, []any{engine.Micros(now), queuedAtOnce}, func(r engine.Row, n *dueNotice) error {
			return r.Scan(&n.ID, &n.Partner, &n.Client, &n.User, &n.Kind, engine.ScanTime(&n.due))
		})
		if err != nil {
			return fmt.Errorf("look for notices: %w", err)
		}
		looked = len(all)
		if looked == 0 {
			return nil
		}
		if _, err := a.Exec(ctx, `update notice set mailed = 1 where id in (select u.i from $u(i bigint))`,
			engine.Columns{engine.Column(all, func(n *dueNotice) int64 { return int64(n.ID) })}); err != nil {
			return fmt.Errorf("mark notices: %w", err)
		}
		wanted, err := wantedBy(ctx, a, slices.DeleteFunc(all, func(n dueNotice) bool { return !n.due.After(now.Add(-puntuale.GiveUpMailAfter)) }))
		if err != nil {
			return err
		}
		for _, id := range slices.Sorted(maps.Keys(wanted)) {
			if err := queue(ctx, a, id, wanted[id], now); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("queue e-mails about notices: %w", err)
	}
	return looked, nil
}

// wantedNotices contains the notices that one user gets by e-mail.
type wantedNotices struct {
	partner puntuale.PartnerID
	ids     []puntuale.NoticeID
}

// wantedBy returns which notices each user gets by e-mail.
func wantedBy(ctx context.Context, a engine.Querier, all []dueNotice) (map[puntuale.UserID]*wantedNotices, error) {
	type side struct {
		partner puntuale.PartnerID
		client  puntuale.ClientID
	}
	readers, wanted := map[side][]readerChoice{}, map[puntuale.UserID]*wantedNotices{}
	for _, n := range all {
		of := side{n.Partner, n.Client}
		if _, known := readers[of]; !known {
			var err error
			if readers[of], err = readersOf(ctx, a, n.Partner, n.Client); err != nil {
				return nil, err
			}
		}
		for _, u := range readers[of] {
			if n.User != 0 && n.User != u.ID || u.Created.After(n.due) || !u.mailed.Has(n.Kind) {
				continue
			}
			if wanted[u.ID] == nil {
				wanted[u.ID] = &wantedNotices{partner: n.Partner}
			}
			wanted[u.ID].ids = append(wanted[u.ID].ids, n.ID)
		}
	}
	return wanted, nil
}

// readersOf returns the users of a dashboard who can sign in.
func readersOf(ctx context.Context, a engine.Querier, partner puntuale.PartnerID, client puntuale.ClientID) ([]readerChoice, error) {
	all, err := engine.QueryAll(ctx, a, `select l.id, l.role, l.created_at, coalesce(c.on_kinds, 0), coalesce(c.off_kinds, 0) from login l left join notice_choice c on c.login_id = l.id
 where l.partner_id = $1 and l.client_id = $2 and l.password <> ''`, []any{partner, client}, func(r engine.Row, u *readerChoice) error {
		var c puntuale.NoticeChoice
		u.Partner, u.Client = partner, client
		err := r.Scan(&u.ID, &u.Role, engine.ScanTime(&u.Created), &c.On, &c.Off)
		u.mailed = c.Mailed(u.User)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("look for readers of notices: %w", err)
	}
	return all, nil
}

// queue adds notices to the user's waiting e-mail, or queues a new e-mail. It first locks the user's choice, so that
// two transactions do not queue two e-mails for the user.
func queue(ctx context.Context, a engine.Querier, user puntuale.UserID, w *wantedNotices, now time.Time) error {
	var sent int
	var from time.Time
	if _, err := engine.QueryOne(ctx, a, `insert into notice_choice (login_id) values ($1) on conflict (login_id) do update set mails = notice_choice.mails returning mails, mails_from`,
		[]any{user}, &sent, engine.ScanTime(&from)); err != nil {
		return fmt.Errorf("count a user's e-mails: %w", err)
	}
	var waiting int64
	var text []byte
	found, err := engine.QueryOne(ctx, a, `select m.id, m.sealed from mail m where m.login_id = $1 and m.kind = $2 and m.attempts = 0 for update`,
		[]any{user, int64(puntuale.MailNotices)}, &waiting, &text)
	if err != nil {
		return fmt.Errorf("look for a waiting e-mail: %w", err)
	}
	var content mailContent
	if found {
		_ = json.Unmarshal(text, &content) // an e-mail that cannot be decoded gets the new notices, so that it does not keep other users from theirs
	}
	content.add(w.ids)
	if text, err = json.Marshal(content); err != nil {
		return fmt.Errorf("write a waiting e-mail: %w", err)
	}
	if found {
		_, err := a.Exec(ctx, `update mail set sealed = $2 where id = $1`, waiting, text)
		return err
	}
	if now.Sub(from) >= puntuale.NoticeMailPeriod {
		sent, from = 0, now
	}
	next := now
	if sent >= puntuale.NoticeMails {
		next = from.Add(puntuale.NoticeMailPeriod)
	}
	if _, err := a.Exec(ctx, `update notice_choice set mails = $2, mails_from = $3 where login_id = $1`, user, sent+1, engine.Micros(from)); err != nil {
		return fmt.Errorf("count a user's e-mails: %w", err)
	}
	if _, err := a.Exec(ctx, `insert into mail (partner_id, login_id, kind, sealed, queued_at, next_at) values ($1, $2, $3, $4, $5, $5)`,
		w.partner, user, int64(puntuale.MailNotices), text, engine.Micros(next)); err != nil {
		return fmt.Errorf("queue an e-mail: %w", err)
	}
	return nil
}

// add adds notices. It keeps only the newest, and counts the others in More.
func (c *mailContent) add(ids []puntuale.NoticeID) {
	c.Notices = append(c.Notices, ids...)
	if excess := len(c.Notices) - puntuale.MailedNotices; excess > 0 {
		c.More += excess
		c.Notices = slices.Delete(c.Notices, 0, excess)
	}
}

// QueuedNotices reads the e-mail's notices again, and returns those that the user may see now. So the e-mail contains
// no notices that were deleted or read since it was queued.
func (s *Notices) QueuedNotices(ctx context.Context, u puntuale.User, m puntuale.Mail) ([]puntuale.Notice, int, error) {
	var content mailContent
	if err := json.Unmarshal(m.Sealed, &content); err != nil {
		return nil, 0, fmt.Errorf("read an e-mail about notices: %w", err)
	}
	choice, err := s.NoticeChoice(ctx, u)
	if err != nil {
		return nil, 0, err
	}
	mailed := choice.Mailed(u)
	all, err := engine.QueryAll(ctx, s.db.CallReads, `select `+columns+` from $u(i bigint) cross join notice n where n.id = u.i and`+seen+notRead,
		seenBy(u, engine.Instant(1<<62), engine.Columns{engine.Column(content.Notices, func(id *puntuale.NoticeID) int64 { return int64(*id) })}), scan)
	if err != nil {
		return nil, 0, engine.PublicError(fmt.Errorf("read the notices of an e-mail: %w", err))
	}
	all = slices.DeleteFunc(all, func(n puntuale.Notice) bool { return !mailed.Has(n.Kind) })
	engine.Sort(all, func(a, b puntuale.Notice) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return all, content.More, nil
}
