package automation

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/keyword"
	"puntuale/internal/plan"
)

// Occasion is a trigger as one rule sees it.
type Occasion struct {
	Kind    puntuale.TriggerKind
	Session puntuale.SessionID // 0: the trigger has no session
	Depth   int
	Fields  map[string]string // the values of a hook's payload or of a booking, or the date of a date rule, by field name
	Whole   string            // for a reply: what [keyword.Whole] returns for the reply's text
	Since   time.Time         // for a no_reply timer: when the run's last message was completed
	Silent  bool              // for a no_reply timer: the person did not answer
}

// Client is the data of a client that a decision needs.
type Client struct {
	Settings puntuale.ClientSettings
	Zone     *time.Location
	Closed   []puntuale.Date
}

// WantedFacts returns which facts a decision about a rule needs on an occasion.
func WantedFacts(a *puntuale.Automation, o Occasion) puntuale.WantedFacts {
	w := a.WantedFacts()
	if len(a.Conditions.BookingStatus) > 0 {
		w.Booking = bookingOf(o)
	}
	return w
}

// HeldCondition is one condition of a decision, with its result.
type HeldCondition struct {
	Reason puntuale.ReasonCode // why the rule does not act if the condition is false
	Value  string              // a detail of the condition, such as the tag or the field's name
	Held   bool
}

// Fits reports whether d is an event for which a rule with the setting t must decide. If it is not, the rule's log gets no line about d.
func Fits(t puntuale.Trigger, d *puntuale.TakenTrigger) bool {
	switch t.Kind {
	case puntuale.TriggerReply:
		return d.Fact == puntuale.FactReply && (len(t.Words) == 0 || keyword.In(keyword.Whole(d.Text), t.Words))
	case puntuale.TriggerReplyTo:
		return d.Fact == puntuale.FactReply && d.Sequence != 0 && d.Sequence == t.Sequence.ID()
	case puntuale.TriggerOutcome:
		return d.Fact == outcomeFacts[t.Is] && d.Sequence != 0 && d.Sequence == t.Sequence.ID()
	case puntuale.TriggerBooking:
		return d.Fact == puntuale.TriggerFact(t.Is.BookingEvent()) && (t.Sequence == "" || d.Sequence == t.Sequence.ID())
	default:
		return false
	}
}

var outcomeFacts = map[puntuale.OutcomeStatus]puntuale.TriggerFact{
	puntuale.OutcomeCompleted: puntuale.FactSent, puntuale.OutcomeFailed: puntuale.FactFailed, puntuale.OutcomeRead: puntuale.FactRead,
	puntuale.OutcomeClicked: puntuale.FactClicked,
}

// Decide returns why a rule does not act, or "" if the rule acts. It is pure.
func Decide(a *puntuale.Automation, o Occasion, f puntuale.AutomationFacts, c Client, now time.Time) puntuale.ReasonCode {
	for _, h := range Explain(a, o, f, c, now) {
		if !h.Held {
			return h.Reason
		}
	}
	return ""
}

// Explain returns all conditions of a decision, in order. The first condition that is false is the reason why the rule does not act.
func Explain(a *puntuale.Automation, o Occasion, f puntuale.AutomationFacts, c Client, now time.Time) (all []HeldCondition) {
	say := func(reason puntuale.ReasonCode, value string, held bool) {
		all = append(all, HeldCondition{reason, value, held})
	}
	say(puntuale.FiringDepth, strconv.Itoa(o.Depth), o.Depth < puntuale.MaxAutomationDepth)
	if o.Kind == puntuale.TriggerNoReply {
		say(puntuale.FiringNoReplies, string(c.Settings.KeepReplies), c.Settings.KeepReplies != puntuale.KeepNoReplies)
		say(puntuale.FiringAnswered, "", o.Silent)
	}
	if o.Kind.Personal() {
		until := f.Answered.Add(time.Duration(c.Settings.TakeoverHours) * time.Hour)
		say(puntuale.FiringTakeover, "", !f.Assigned && (f.Answered.IsZero() || !now.Before(until)))
	}
	k := &a.Conditions
	for _, tag := range k.Tags {
		say(puntuale.FiringTags, tag, f.Contact != nil && slices.Contains(f.Contact.Tags, tag))
	}
	for _, cond := range k.Fields {
		value, kind := fieldOf(cond.Name, o, f.Contact)
		say(puntuale.FiringField, cond.Name, compare(cond, value, kind))
	}
	if k.Session != "" {
		say(puntuale.FiringSession, k.Session, o.Session.String() == k.Session)
	}
	if k.Window != nil {
		w := *k.Window
		w.Closed = c.Closed
		say(puntuale.FiringWindow, "", w.Contains(now, c.Zone))
	}
	if id := k.NotIn.ID(); id != 0 {
		say(puntuale.FiringNotIn, id.String(), !f.Running[id])
	}
	if len(k.BookingStatus) > 0 {
		say(puntuale.FiringStatus, f.Status, slices.Contains(k.BookingStatus, f.Status))
	}
	if k.CooldownHours > 0 {
		last := f.Acted[a.ID]
		say(puntuale.FiringCooldown, "", last.IsZero() || !now.Before(last.Add(time.Duration(k.CooldownHours)*time.Hour)))
	}
	reaches := 0
	for _, x := range a.Actions {
		if x.CountsForLimit() {
			reaches++
		}
	}
	if reaches > 0 {
		say(puntuale.FiringMost, strconv.Itoa(f.Reached), f.Reached+reaches <= c.Settings.AutomatedMost)
	}
	return all
}

// nameField is the name of the field whose value is the contact's name, unless the contact has its own field with this name.
const nameField = "nome"

// fieldOf returns the value of a field from o. If o lacks the field, fieldOf returns the contact's value.
func fieldOf(name string, o Occasion, c *puntuale.Contact) (string, puntuale.FieldKind) {
	if v, ok := o.Fields[name]; ok {
		return v, puntuale.FieldText
	}
	if c == nil {
		return "", puntuale.FieldText
	}
	if f, ok := c.Fields[name]; ok {
		return f.Value, f.Kind
	}
	if name == nameField {
		return c.Name, puntuale.FieldText
	}
	return "", puntuale.FieldText
}

// compare reports whether a value satisfies a condition. It compares two numbers as numbers and two dates as dates. It compares other values
// as text, without case and accents.
func compare(c puntuale.FieldCondition, value string, _ puntuale.FieldKind) bool {
	value = strings.TrimSpace(value)
	switch c.Op {
	case puntuale.FieldFilled:
		return value != ""
	case puntuale.FieldEmpty:
		return value == ""
	case puntuale.FieldContains:
		return value != "" && strings.Contains(keyword.Fold(value), keyword.Fold(c.Value))
	case puntuale.FieldNotEqual:
		return order(value, c.Value) != 0
	}
	if value == "" {
		return false
	}
	n := order(value, c.Value)
	switch c.Op {
	case puntuale.FieldEqual:
		return n == 0
	case puntuale.FieldLess:
		return n == -1
	case puntuale.FieldMore:
		return n == 1
	}
	return false
}

// different is what order returns for two unequal texts.
const different = 2

// order compares two values. It returns -1, 0, 1 or different.
func order(x, y string) int {
	x, y = strings.TrimSpace(x), strings.TrimSpace(y)
	if n, err := strconv.ParseFloat(strings.Replace(x, ",", ".", 1), 64); err == nil {
		if m, err := strconv.ParseFloat(strings.Replace(y, ",", ".", 1), 64); err == nil {
			switch {
			case n < m:
				return -1
			case n > m:
				return 1
			}
			return 0
		}
	}
	if d, err := plan.ParseMoment(x); err == nil {
		if e, err := plan.ParseMoment(y); err == nil {
			return cmp.Compare(d.Date.Int(), e.Date.Int())
		}
	}
	if keyword.Fold(x) == keyword.Fold(y) && (keyword.Fold(x) != "" || x == y) {
		return 0
	}
	return different
}
