package lookahead

import (
	"time"

	"puntuale"
)

// backlog says whether the database has messages that are due soon and are not in memory.
type backlog struct {
	more      bool
	campaigns bool // the campaign queue in the database has more
	cut       bool // the last read returned as many rows as it may, so there may be more
}

// More reports whether the database has more messages that are due soon, not counting campaigns.
func (l *Lookahead) More() bool { return l.backlog.more }

// FoundMore notes that the database has more messages that are due soon, because a row found no room in memory.
func (l *Lookahead) FoundMore() { l.backlog.more = true }

// MoreOfCampaigns reports whether the database has more messages in the session's campaign queue.
func (l *Lookahead) MoreOfCampaigns() bool { return l.backlog.campaigns }

// SetMoreOfCampaigns notes whether the last read left messages in the campaign queue.
func (l *Lookahead) SetMoreOfCampaigns(more bool) { l.backlog.campaigns = more }

// Refill asks for an urgent read if few messages are in memory and the database has more. low says that the session
// queue has few, and campaignsLow that its campaign queue has few. If a read is already wanted, Refill asks for
// nothing.
func (l *Lookahead) Refill(low, campaignsLow bool, now time.Time) Action {
	low, campaignsLow = low && l.backlog.more, campaignsLow && l.backlog.campaigns
	if l.Wanted() || !low && !campaignsLow {
		return Action{}
	}
	l.backlog.more = l.backlog.more && !low
	l.backlog.campaigns = l.backlog.campaigns && !campaignsLow
	return l.Want(true, now)
}

// expiryEvery is how often the dispatcher reads a session that cannot send, to find messages that expire. If it knows
// the moment of an expiry, it reads at that moment.
const expiryEvery = 10 * time.Second

// A session that cannot send may have more messages than a read returns. A separate search finds messages behind
// these rows that expire. It reads all due messages, so it runs only at intervals from behindLeast to behindMost.
const (
	behindLeast = 10 * time.Second
	behindMost  = time.Minute
)

// expiry says when to read a session that cannot send, because its messages still expire.
type expiry struct {
	next   time.Time // when to read the session; zero: at the next poll
	behind time.Time // when to search for messages that expire behind the rows of a read
}

// ExpireBy sets an earlier moment for the next read of a session that cannot send. A later moment changes nothing.
func (l *Lookahead) ExpireBy(moment time.Time) {
	if moment.Before(l.expiry.next) {
		l.expiry.next = moment
	}
}

// ExpireNow makes the next poll read a session that cannot send.
func (l *Lookahead) ExpireNow() { l.expiry.next = time.Time{} }

// ExpiryDue reports whether a session that cannot send must be read now. If so, it sets the moment of the next read.
func (l *Lookahead) ExpiryDue(now time.Time) bool {
	if now.Before(l.expiry.next) {
		return false
	}
	l.expiry.next = now.Add(expiryEvery)
	return true
}

// BehindDue reports whether it is time for a search behind the rows of a read.
func (l *Lookahead) BehindDue(now time.Time) bool {
	return (l.backlog.cut || l.backlog.campaigns) && !now.Before(l.expiry.behind)
}

// BehindUntil returns the end of the time for which a search behind the rows of a read must find expiring messages. The
// next search comes before this end.
func BehindUntil(now time.Time) time.Time { return now.Add(behindMost) }

// GotBehind plans the next search behind the rows of a read. found has the messages that expire soon. cut says that
// there may be more of them; then the next search comes after the time poll.
func (l *Lookahead) GotBehind(found []puntuale.DueMessage, cut bool, poll time.Duration, now time.Time) {
	l.expiry.behind = now.Add(behindMost)
	if cut {
		l.expiry.behind = now.Add(poll)
	}
	for i := range found {
		if end := found[i].ValidUntil; end.After(now) && end.Before(l.expiry.behind) {
			l.expiry.behind = latest(end, now.Add(behindLeast))
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

// takeover says whether the dispatcher knows the messages that were in retry under the session's former owner.
type takeover struct {
	known   bool // the messages in retry are known, and hold back later messages to their recipients
	crowded bool // there are too many for a read together with other sessions, so this session is read alone
}

// TakeoverKnown reports whether the messages in retry under the former owner are known.
func (l *Lookahead) TakeoverKnown() bool { return l.takeover.known }

// Crowded reports whether the session must be read alone, because it has too many messages in retry.
func (l *Lookahead) Crowded() bool { return l.takeover.crowded }
