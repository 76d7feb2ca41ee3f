package lookahead

import (
	"time"

	"puntuale"
)

// backlog is what is known about messages in the database that are due soon and are not in memory.
type backlog struct {
	more      bool
	campaigns bool // true: the campaign queue in the database has such messages
	cut       bool // true: the last read returned as many rows as it may, so there may be more
}

// More reports whether the database has more messages that are due soon, not counting campaigns.
func (l *Lookahead) More() bool { return l.backlog.more }

// FoundMore records that memory had no room for a row that was read. Therefore, the database has more messages that are
// due soon.
func (l *Lookahead) FoundMore() { l.backlog.more = true }

// MoreOfCampaigns reports whether the database has more messages in the session's campaign queue.
func (l *Lookahead) MoreOfCampaigns() bool { return l.backlog.campaigns }

// SetMoreOfCampaigns records whether the last read left messages in the campaign queue.
func (l *Lookahead) SetMoreOfCampaigns(more bool) { l.backlog.campaigns = more }

// Refill requests an urgent read if few messages are in memory and the database has more. low is true if few messages
// of the session queue are in memory. campaignsLow is the same for the campaign queue. If a read is already wanted,
// Refill returns Nothing.
func (l *Lookahead) Refill(low, campaignsLow bool, now time.Time) Action {
	low, campaignsLow = low && l.backlog.more, campaignsLow && l.backlog.campaigns
	if l.Wanted() || !low && !campaignsLow {
		return Action{}
	}
	l.backlog.more = l.backlog.more && !low
	l.backlog.campaigns = l.backlog.campaigns && !campaignsLow
	return l.Want(true, now)
}

// expiryEvery is how often the dispatcher reads a session that cannot send, to find messages that expire. If the time
// of an expiry is known, the dispatcher also reads at this time.
const expiryEvery = 10 * time.Second

// A session that cannot send may have more messages than a read returns. The messages that the read does not return may
// expire, too. A separate search "behind" the read finds these messages. The search reads all due messages, so it is
// slow. Therefore, the interval between two searches is at least minBehind and at most maxBehind.
const (
	minBehind = 10 * time.Second
	maxBehind = time.Minute
)

// expiry contains when to read a session that cannot send. Its messages must still expire on time.
type expiry struct {
	next   time.Time // when to read the session; zero: at the next poll
	behind time.Time // when to search for expiring messages behind the rows of a read
}

// ExpireBy sets an earlier time for the next read of a session that cannot send. A later time changes nothing.
func (l *Lookahead) ExpireBy(moment time.Time) {
	if moment.Before(l.expiry.next) {
		l.expiry.next = moment
	}
}

// ExpireNow makes the next poll read the session, even if it cannot send.
func (l *Lookahead) ExpireNow() { l.expiry.next = time.Time{} }

// ExpiryDue reports whether a session that cannot send must be read now. If so, it sets the time of the next read.
func (l *Lookahead) ExpiryDue(now time.Time) bool {
	if now.Before(l.expiry.next) {
		return false
	}
	l.expiry.next = now.Add(expiryEvery)
	return true
}

// BehindDue reports whether a search behind the rows of a read is due.
func (l *Lookahead) BehindDue(now time.Time) bool {
	return (l.backlog.cut || l.backlog.campaigns) && !now.Before(l.expiry.behind)
}

// BehindUntil returns the end of the period for which a search behind the rows of a read must find expiring messages.
// The next search begins before this end.
func BehindUntil(now time.Time) time.Time { return now.Add(maxBehind) }

// GotBehind sets the time of the next search behind the rows of a read. found contains the messages that expire soon.
// cut is true if there may be more of them. In this case, the next search begins after one interval of the poll, which
// the argument poll contains.
func (l *Lookahead) GotBehind(found []puntuale.DueMessage, cut bool, poll time.Duration, now time.Time) {
	l.expiry.behind = now.Add(maxBehind)
	if cut {
		l.expiry.behind = now.Add(poll)
	}
	for i := range found {
		if end := found[i].ValidUntil; end.After(now) && end.Before(l.expiry.behind) {
			l.expiry.behind = latest(end, now.Add(minBehind))
		}
	}
	l.ExpireBy(l.expiry.behind)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// takeover is what is known about the messages that were in retry under the session's former owner.
type takeover struct {
	known   bool // true: these messages are known, and hold back later messages to their recipients
	crowded bool // true: there are too many of these messages for a read together with other sessions, so this session is read alone
}

// TakeoverKnown reports whether the messages in retry under the former owner are known.
func (l *Lookahead) TakeoverKnown() bool { return l.takeover.known }

// Crowded reports whether the session must be read alone, because it has too many messages in retry.
func (l *Lookahead) Crowded() bool { return l.takeover.crowded }
