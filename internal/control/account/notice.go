package account

import (
	"context"
	"fmt"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// Notices returns the person's latest notices, newest first, at most [puntuale.ListedNotices].
func (p *Person) Notices(ctx context.Context) ([]puntuale.Notice, error) {
	return p.accounts.signIns.LatestNotices(ctx, p.user, p.accounts.clock.Now())
}

// UnreadNotices counts the person's unread notices, up to limit.
func (p *Person) UnreadNotices(ctx context.Context, limit int) (int, error) {
	return p.accounts.signIns.UnreadNotices(ctx, p.user, p.accounts.clock.Now(), limit)
}

// ReadNotice marks a notice as read. If the id is not one of the person's notices, nothing changes.
func (p *Person) ReadNotice(ctx context.Context, id string) error {
	n, err := puntuale.ParseID[puntuale.NoticeID](id)
	if err != nil || n <= 0 {
		return nil //nolint:nilerr // a text that is not an id is treated like the id of a deleted notice
	}
	return p.accounts.signIns.ReadNotices(ctx, p.user, n, p.accounts.clock.Now())
}

// ReadNotices marks as read the person's notices that are not later than readAt. readAt is, for example, when a page
// showed the notices.
func (p *Person) ReadNotices(ctx context.Context, readAt time.Time) error {
	if now := p.accounts.clock.Now(); readAt.After(now) {
		readAt = now
	}
	return p.accounts.signIns.ReadNotices(ctx, p.user, 0, readAt)
}

// MailedNotices returns which kinds of notices the person gets by e-mail, and all kinds of notices that the person may
// get.
func (p *Person) MailedNotices(ctx context.Context) (mailed, all puntuale.NoticeSet, err error) {
	c, err := p.accounts.signIns.NoticeChoice(ctx, p.user)
	return c.Mailed(p.user), p.user.Notices(), err
}

// ChooseNotices sets which kinds of notices the person gets by e-mail. names are the names of these kinds. Codes:
// invalid.
func (p *Person) ChooseNotices(ctx context.Context, names []string) error {
	var f request.Faults
	var chosen puntuale.NoticeSet
	all := p.user.Notices()
	for _, name := range names {
		kind, err := puntuale.ParseNoticeKind(name)
		if err != nil || !all.Has(kind) {
			f.Add("body.mailed", puntuale.FaultNotOneOf, name, "disconnected, …")
			break
		}
		chosen |= puntuale.NoticesOf(kind)
	}
	if err := f.Err(); err != nil {
		return err
	}
	return p.accounts.signIns.ChooseNotices(ctx, p.user, puntuale.NoticeChoice{On: chosen, Off: all &^ chosen})
}

// NoticePath returns the path of the page on which the user can act on a notice.
func NoticePath(n puntuale.Notice) string {
	base := "/partner"
	if n.Client != 0 {
		base = "/c/" + n.Client.String()
	}
	subject := idText(n.Subject)
	switch n.Kind {
	case puntuale.NoticeDisconnected, puntuale.NoticeReconnected, puntuale.NoticeHealth:
		return base + "/sessions/" + subject
	case puntuale.NoticeCampaignDone, puntuale.NoticeCampaignPaused:
		return base + "/campaigns/" + subject
	case puntuale.NoticeCreditLow, puntuale.NoticeCreditOut, puntuale.NoticeCapReached, puntuale.NoticeExpiring:
		return base + "/usage"
	case puntuale.NoticeAnswer:
		return base + "/conversations"
	case puntuale.NoticeCalendar:
		return base + "/calendars/" + subject
	case puntuale.NoticeTemplate:
		return base + "/sessions/" + subject + "/templates"
	case puntuale.NoticeKeyCreated:
		return base + "/keys"
	case puntuale.NoticeWebhookDisabled:
		return base + "/webhooks/" + subject
	case puntuale.NoticeBudget:
		return base + "/usage"
	case puntuale.NoticeClientBudget:
		return "/partner/clients/" + subject
	case puntuale.NoticeClientExpiring:
		if n.Detail.Clients > 0 {
			return "/partner/expiries"
		}
		return "/partner/clients/" + subject
	}
	return "/me"
}

// QueueNotices queues e-mails about notices, if the service sends e-mails.
func (c *Accounts) QueueNotices(ctx context.Context) error {
	if !c.Mails() {
		return nil
	}
	for ctx.Err() == nil {
		n, err := c.signIns.QueueNotices(ctx, c.clock.Now())
		if err != nil || n == 0 {
			return err
		}
	}
	return nil
}

func (c *Accounts) noticeLetter(ctx context.Context, m puntuale.Mail) (puntuale.Letter, error) {
	letter, u, err := c.letterTo(ctx, m, "")
	if err != nil {
		return letter, err
	}
	all, more, err := c.signIns.QueuedNotices(ctx, u, m)
	if err != nil {
		return letter, fmt.Errorf("read notices: %w", err)
	}
	if len(all) == 0 {
		return letter, errNoLetter
	}
	zone, err := c.zoneOf(ctx, u)
	if err != nil {
		return letter, err
	}
	site := c.site(letter.Host)
	letter.Link, letter.More = site+"/me#notices", more
	for _, n := range all {
		letter.Notices = append(letter.Notices, puntuale.LetterNotice{Title: n.Title(), Text: n.Text(), Link: site + NoticePath(n), At: n.At.In(zone)})
	}
	return letter, nil
}

// partnersZone is the time zone of pages that do not belong to a client.
const partnersZone = "Europe/Rome"

// zoneOf returns the time zone of a user's pages.
func (c *Accounts) zoneOf(ctx context.Context, u puntuale.User) (*time.Location, error) {
	name := partnersZone
	if u.Client != 0 {
		account, err := c.tenants.Partner(u.Partner).Client(ctx, u.Client)
		switch {
		case puntuale.CodeOf(err) == puntuale.CodeNotFound:
			return nil, errNoLetter
		case err != nil:
			return nil, fmt.Errorf("read an account: %w", err)
		}
		name = account.Zone
	}
	return c.zones.Load(name)
}
