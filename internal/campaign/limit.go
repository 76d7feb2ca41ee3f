package campaign

import (
	"time"

	"puntuale"
	"puntuale/internal/plan"
)

// Limits are the limits of a campaign's session and of its network.
type Limits struct {
	Session  puntuale.Session
	Official bool                  // true: free text needs an open 24-hour window, and the network limits first contacts
	Load     puntuale.SessionUsage // the session's messages in the 24 hours before the check
}

// NewLimits returns the limits of a session, without its load.
func NewLimits(s puntuale.Session) Limits {
	return Limits{Session: s, Official: s.Type == puntuale.Official && !s.Sandbox}
}

// HasLimits reports whether a limit counts the messages in Load.
func (l *Limits) HasLimits() bool {
	return l.Official || l.Session.Pace.PerDay > 0 || l.pacesColdContacts()
}

// pacesColdContacts reports whether the session has a separate pace for cold contacts.
func (l *Limits) pacesColdContacts() bool {
	p := l.Session.Pace
	return l.Session.Type == puntuale.Socket && !l.Session.Sandbox && (p.ColdPerDay > 0 || p.ColdPerMinute > 0)
}

const day = 24 * time.Hour

// address counts a recipient for the limits on first contacts and on cold contacts.
func (c *Check) address(built plan.Plan, k puntuale.KnownPerson) {
	if c.Limits.Official && !firstOf(built).Due.Before(k.Window) {
		c.first++
	}
	if c.Limits.pacesColdContacts() && !k.Known {
		c.cold++
	}
}

// limit finds the limit that determines when the last message leaves. It stores nothing if the campaign's own pace
// determines this. Messages that left in the 24 hours before the check count for the first day. If the first message
// leaves a day or more after the check, they do not count.
func (c *Check) limit() {
	l, f := &c.Limits, &c.found
	pace, own := l.Session.Pace, c.Plan.campaign.Draft.PerMinute
	if maximum := pace.PerMinute; maximum > 0 && f.Messages > maximum {
		if own == 0 || own > maximum {
			f.Limit = &puntuale.CampaignLimit{Code: "session_per_minute", PerMinute: maximum}
		}
		c.minutely("session_per_minute", maximum, f.Messages)
	}
	c.daily("session_per_day", pace.PerDay, l.Load.Sent, f.Messages)
	if l.pacesColdContacts() {
		c.minutely("cold_per_minute", pace.ColdPerMinute, c.cold)
		c.daily("cold_per_day", pace.ColdPerDay, l.Load.Met, c.cold)
	}
	if l.Official {
		c.portfolio(l.Load.Portfolio)
	}
}

// portfolio counts the people of the last 24 hours, and those who have planned messages, for the first day.
func (c *Check) portfolio(p puntuale.Portfolio) {
	c.daily("portfolio", p.Limit, p.Limit-p.Room, c.first)
	if c.found.Limit != nil && c.found.Limit.Code == "portfolio" {
		c.found.Limit.Used, c.found.Limit.Reserved = p.Used, p.Reserved
	}
}

func (c *Check) minutely(code string, limit, n int) {
	if limit > 0 && n > limit {
		c.bound(time.Duration(n-1)*time.Minute/time.Duration(limit), puntuale.CampaignLimit{Code: code, PerMinute: limit})
	}
}

func (c *Check) daily(code string, limit, before, n int) {
	if limit == 0 || n == 0 {
		return
	}
	if c.found.First.Sub(c.Begun) >= day {
		before = 0
	}
	if days := (before + n + limit - 1) / limit; days > 1 {
		c.bound(time.Duration(days-1)*day, puntuale.CampaignLimit{Code: code, PerDay: limit, Days: days})
	}
}

// bound sets a later time of the last message, if the limit requires this. after is the least time that the limit
// requires between the first and the last message.
func (c *Check) bound(after time.Duration, l puntuale.CampaignLimit) {
	if last := c.found.First.Add(after); last.After(c.found.Last) {
		c.found.Last, c.found.Limit = last, &l
	}
}
