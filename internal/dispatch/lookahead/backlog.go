package lookahead

import (
	"time"

	"puntuale"
)

// backlog says whether the database has messages that are due soon and not in memory.
type backlog struct {
	more      bool
	campaigns bool // the database holds more in the campaign queue
	cut       bool // the last read brought all rows that it could
}

// More reports whether the database holds more that is due soon, apart from campaigns.
func (l *Lookahead) More() bool { return l.backlog.more }

// FoundMore notes that the database holds more that is due soon: there was no room in memory for a row.
func (l *Lookahead) FoundMore() { l.backlog.more = true }

// MoreOfCampaigns reports whether the database holds more in the session's campaign queue.
func (l *Lookahead) MoreOfCampaigns() bool { return l.backlog.campaigns }

// SetMoreOfCampaigns notes whether the last read left something in the campaign queue.
func (l *Lookahead) SetMoreOfCampaigns(more bool) { l.backlog.campaigns = more }

// Refill asks for an urgent read if memory runs low while the database holds more. low says that the session queue runs
// low, campaignsLow that its campaign queue does. Refill asks for nothing while a read is wanted.
func (l *Lookahead) Refill(low, campaignsLow bool, now time.Time) Action {
	low, campaignsLow = low && l.backlog.more, campaignsLow && l.backlog.campaigns
	if l.Wanted() || !low && !campaignsLow {
		return Action{}
	}
	l.backlog.more = l.backlog.more && !low
	l.backlog.campaigns = l.backlog.campaigns && !campaignsLow
	return l.Want(true, now)
}

// expiryEvery is how often a session that cannot send is read for what expires. If the moment of an expiry is known, the read is on time.
const expiryEvery = 10 * time.Second

// A session that cannot send may hold more than is read of it. A separate search finds messages that expire behind that. It reads all due
// messages, so it runs at intervals between behindLeast and behindMost.
const (
	behindLeast = 10 * time.Second
	behindMost  = time.Minute
)

// expiry says when a session that cannot send is read, because its messages still expire.
type expiry struct {
	next   time.Time // zero: at once
	behind time.Time // when to look for messages that expire behind the rows of a read
}

// ExpireBy moves the next read of a session that cannot send to a moment, if it is planned later.
func (l *Lookahead) ExpireBy(moment time.Time) {
	if moment.Before(l.expiry.next) {
		l.expiry.next = moment
	}
}

// ExpireNow makes the next poll read a session that cannot send.
func (l *Lookahead) ExpireNow() { l.expiry.next = time.Time{} }

// ExpiryDue reports whether a session that cannot send must be read now. If so, it plans the next time.
func (l *Lookahead) ExpiryDue(now time.Time) bool {
	if now.Before(l.expiry.next) {
		return false
	}
	l.expiry.next = now.Add(expiryEvery)
	return true
}

// BehindDue reports whether it is time to search for messages that expire behind the rows of a read.
func (l *Lookahead) BehindDue(now time.Time) bool {
	return (l.backlog.cut || l.backlog.campaigns) && !now.Before(l.expiry.behind)
}

// BehindUntil is the moment until which a look behind the rows of a read searches. The next one is in time for the rest.
func BehindUntil(now time.Time) time.Time { return now.Add(behindMost) }

// GotBehind plans the next look behind the rows of a read. found are the messages that expire soon. cut says that there
// may be more: then the next look comes after the poll's interval.
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

// takeover says what is known of messages that were in retry under the session's former owner.
type takeover struct {
	known   bool // they hold back later ones to their recipients
	crowded bool // there are too many for a read of several sessions: this one is read alone
}

// TakeoverKnown reports whether the messages in retry under the former owner are known.
func (l *Lookahead) TakeoverKnown() bool { return l.takeover.known }

// Crowded reports whether so many of the session's messages are in retry that it must be read alone.
func (l *Lookahead) Crowded() bool { return l.takeover.crowded }
