package automation

import (
	"context"
	"time"

	"puntuale"
)

// Queue has the methods of the store that a runner calls: it gives triggers, timers and dates, and executes acts. Any
// number of nodes may call its methods at the same time.
type Queue interface {
	// TakeTriggers takes at most limit due triggers for a node, and returns them oldest first. It leaves out the triggers of
	// busy clients, and those of changed contacts, which TakeContacts takes.
	TakeTriggers(ctx context.Context, node puntuale.NodeID, now time.Time, limit int, busy []puntuale.ClientID) ([]puntuale.TakenTrigger, error)
	// AutomatedClients returns those of the given clients that have active rules, with their rules.
	AutomatedClients(ctx context.Context, ids []puntuale.ClientID) (map[puntuale.ClientID]*puntuale.AutomatedClient, error)
	// PersonFacts returns the facts that decisions need, by phone.
	PersonFacts(ctx context.Context, client puntuale.ClientID, phones []string, wanted puntuale.WantedFacts, now time.Time) (map[string]*puntuale.AutomationFacts, error)
	// Act executes the acts in one transaction, and sets Outcome in each act. Codes: not_found (the client was
	// deleted).
	Act(ctx context.Context, b *puntuale.ActBatch) error
	// SetTimers stores timers and removes the triggers. If the rule and the run already have a timer, the later times
	// are stored. No timer is stored if the rule already acted for the run, or if the person was erased.
	SetTimers(ctx context.Context, all []puntuale.AutomationTimer, triggers []puntuale.TakenTrigger) error
	// DropTimers removes timers. It keeps a timer if the stored due time is no longer the given Due.
	DropTimers(ctx context.Context, all []puntuale.AutomationTimer) error
	// DueTimers returns at most limit due timers, and sets Answered in each. It leaves out the timers of busy clients.
	DueTimers(ctx context.Context, now time.Time, limit int, busy []puntuale.ClientID) ([]puntuale.AutomationTimer, error)

	// FailTriggers counts a failed attempt of each trigger. After MaxTriggerAttempts, it sets the trigger aside.
	FailTriggers(ctx context.Context, all []puntuale.TakenTrigger) error

	// DateRules lists the active rules whose trigger is a date, for all clients.
	DateRules(ctx context.Context) ([]puntuale.DateRule, error)
	// TakeContacts takes at most limit due triggers of changed contacts for a node, and returns them oldest first.
	TakeContacts(ctx context.Context, node puntuale.NodeID, now time.Time, limit int) ([]puntuale.TakenTrigger, error)
	// ScanDates reads the dates of the next contacts for a rule, at most limit. It reports whether more contacts are
	// left to read. If the day of a date passed while the rule was inactive, ScanDates skips this day, and the date
	// gets its next day. The pure function next returns the first day on which the date in value recurs. This day is
	// not before the day of the argument from. The result is zero if there is no such day.
	ScanDates(ctx context.Context, r puntuale.DateRule, limit int, now time.Time, next func(value string, from time.Time) puntuale.Date) (more bool, err error)
	// FollowContacts updates the stored dates of changed contacts for the client's active rules, and removes the
	// triggers. If a date changed, it cancels the messages that were planned for the old date. A new value counts as
	// known from the time at which the contact changed. The pure function next does the same as the argument next of
	// ScanDates, but also gets the rule.
	FollowContacts(ctx context.Context, client puntuale.ClientID, triggers []puntuale.TakenTrigger, now time.Time, next func(rule puntuale.ActiveAutomation, value string, from time.Time) puntuale.Date) error
	// DueDates returns at most limit dates that come on or before lastDay, earliest first.
	DueDates(ctx context.Context, r puntuale.DateRule, lastDay puntuale.Date, limit int) ([]puntuale.AutomationDate, error)
}
