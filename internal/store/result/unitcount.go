package result

import (
	"slices"
	"strings"
	"time"

	"puntuale"
)

// unitRow is what is stored about one unit: the messages of one step of a run.
type unitRow struct {
	run     runRow
	members []member // sorted by id
	answers []answer
	booking *bookingRow // the unit is a booking

	tracked bool // one of its addresses at least became a tracked link
	clicked bool // the person followed one
}

// bookingRow is the part of a booking that counts.
type bookingRow struct {
	sequence puntuale.SequenceID
	date     time.Time
	status   puntuale.BookingStatus
}

// stepOfBookings is the step in the keys of bookings.
const stepOfBookings = -1

// countOfBooking decides how a booking is counted: with its status, on the day of its date. A booking's first five marks
// are the statuses.
func countOfBooking(b bookingRow, zone *time.Location) unitCount {
	return unitCount{key: Key{Sequence: b.sequence, Step: stepOfBookings}, day: puntuale.DateOf(b.date.In(zone)).Int(), marks: 1 << b.status, hour: -1}
}

// runRow is the part of a run that counts.
type runRow struct {
	sequence puntuale.SequenceID
	rule     puntuale.AutomationID
	campaign puntuale.CampaignID
	zone     *time.Location
	step     int    // id of the step
	template string // "": none
	variant  int    // of the step, from 1; 0: it has none
}

// member is one message of a unit.
type member struct {
	id              puntuale.MessageID
	session         puntuale.SessionID
	due             time.Time
	state           puntuale.State
	outcome         int // 1 sent, 2 failed; it survives a re-send
	reason          puntuale.Reason
	delivered, read time.Time // zero: not reported
}

// answer is what a person did after a message.
type answer struct {
	optOut bool
	button string
}

// Key is what a unit belongs to.
type Key struct {
	Sequence puntuale.SequenceID
	Step     int
	Campaign puntuale.CampaignID
	Rule     puntuale.AutomationID
	Session  puntuale.SessionID
	Template string
	Variant  int // of the step, from 1; 0: it has none
}

// unitCount is how a unit is counted. The zero value is not counted.
type unitCount struct {
	key   Key
	day   int // YYYYMMDD; 0: it does not count
	marks puntuale.ResultMarks
	hour  int    // when it was read, in hours since Monday began; -1: not read
	words string // reason and buttons: kind and word, each on a line
}

// Kinds of words, the first character of their line.
const (
	wordReason = "r"
	wordButton = "b"
)

// countOf decides how a unit is counted. A unit whose messages all only waited until another one replaced them
// does not count: the booking's change that replaced the last one made a unit of its own.
func countOf(c unitRow) unitCount {
	live := slices.DeleteFunc(slices.Clone(c.members), func(m member) bool { return m.state == puntuale.Rescheduled && m.outcome == 0 })
	if len(live) == 0 {
		return unitCount{}
	}
	first, last := live[0], live[len(live)-1]
	x := unitCount{
		key:   Key{c.run.sequence, c.run.step, c.run.campaign, c.run.rule, last.session, c.run.template, c.run.variant},
		day:   puntuale.DateOf(first.due.In(c.run.zone)).Int(),
		marks: puntuale.ResultPlanned, hour: -1,
	}
	var read time.Time
	for _, m := range live {
		if m.outcome != 1 {
			continue
		}
		x.marks |= puntuale.ResultSent
		if !m.delivered.IsZero() || !m.read.IsZero() {
			x.marks |= puntuale.ResultDelivered
		}
		if !m.read.IsZero() && (read.IsZero() || m.read.Before(read)) {
			read = m.read
		}
	}
	if x.marks&puntuale.ResultSent == 0 {
		mark, reason := ending(last)
		x.marks |= mark
		if reason != "" {
			x.words = wordReason + reason
		}
		return x
	}
	if !read.IsZero() {
		at := read.In(c.run.zone)
		x.marks |= puntuale.ResultRead
		x.hour = (int(at.Weekday())+6)%7*24 + at.Hour()
	}
	if c.clicked {
		x.marks |= puntuale.ResultClicked
	}
	x.answered(c.answers)
	return x
}

// answered adds what people did. Each button counts once, however often it was pressed.
func (x *unitCount) answered(all []answer) {
	var buttons []string
	for _, a := range all {
		if a.optOut {
			x.marks |= puntuale.ResultOptedOut
			continue
		}
		x.marks |= puntuale.ResultAnswered
		if label := strings.Join(strings.Fields(a.button), " "); label != "" {
			buttons = append(buttons, wordButton+label)
		}
	}
	slices.Sort(buttons)
	x.words = strings.Join(slices.Compact(buttons), "\n")
}

// ending returns how a message ended that did not leave, and why.
func ending(m member) (puntuale.ResultMarks, string) {
	switch {
	case m.state == puntuale.Cancelled:
		return puntuale.ResultCancelled, ""
	case m.state == puntuale.Blacklisted || m.outcome == 2 && (m.reason.Code == puntuale.ReasonBlacklisted || m.reason.Code == puntuale.ReasonNoConsent):
		return puntuale.ResultSkipped, codeOf(m.reason, puntuale.ReasonBlacklisted)
	case m.outcome == 2:
		return puntuale.ResultFailed, codeOf(m.reason, puntuale.ReasonFailed)
	}
	return 0, ""
}

// codeOf returns the code of a reason without its arguments, which may name a person.
func codeOf(r puntuale.Reason, otherwise puntuale.ReasonCode) string {
	for r.Code == puntuale.ReasonColon || r.Code == puntuale.ReasonBrackets {
		if len(r.Args) == 0 {
			return string(otherwise)
		}
		r = puntuale.ParseReason(r.Args[0])
	}
	switch {
	case r.IsZero():
		return string(otherwise)
	case r.Code == "":
		return string(puntuale.ReasonNetwork) // words of the network only
	}
	return string(r.Code)
}
