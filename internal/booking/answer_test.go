package booking_test

import (
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/keyword"
)

var now = time.Date(2027, 1, 10, 9, 0, 0, 0, time.UTC)

// asked returns a question of a booking that was sent an hour ago, about a date in five days.
func asked(booking, message int64) puntuale.Question {
	return puntuale.Question{
		Booking: puntuale.BookingID(booking), Message: puntuale.MessageID(message), Session: 1, Asked: now.Add(-time.Hour), Date: now.AddDate(0, 0, 5), Now: now.AddDate(0, 0, 5),
		Buttons: []puntuale.StepButton{{Label: "Ci sarò!", Does: puntuale.ButtonConfirms}, {Label: "Non posso", Does: puntuale.ButtonCancels}, {Label: "Chiamatemi", Does: puntuale.ButtonAnswers}},
	}
}

// TestMatch finds what a message answers.
func TestMatch(t *testing.T) {
	t.Parallel()
	one, two := asked(1, 10), asked(2, 20)
	with := func(change func(*puntuale.Question)) []puntuale.Question {
		q := one
		change(&q)
		return []puntuale.Question{q}
	}
	later := one
	later.Message, later.Asked, later.Buttons = 11, now.Add(-time.Minute), []puntuale.StepButton{{Label: "Va bene così", Does: puntuale.ButtonConfirms}}
	own := puntuale.ClientSettings{ConfirmWords: []string{"ci vediamo"}}
	for name, c := range map[string]struct {
		text    string
		tap     int // position of the pressed button, from 1
		to      int64
		how     puntuale.AnswerMatch
		asked   []puntuale.Question
		set     puntuale.ClientSettings
		want    string // the button's label; "-": no answer; "?": an answer without a button
		matched puntuale.AnswerMatch
		message int64
		several bool
		quoted  bool // the person quotes a message that nobody knows
		pressed bool // the person pressed a button
	}{
		"a tap":                            {tap: 2, to: 10, how: puntuale.MatchPayload, asked: []puntuale.Question{one, two}, want: "Non posso", matched: puntuale.MatchPayload, message: 10},
		"a tap of an answered question":    {tap: 1, to: 10, how: puntuale.MatchPayload, asked: with(func(q *puntuale.Question) { q.Answered = true }), want: "Ci sarò!", matched: puntuale.MatchPayload, message: 10},
		"a tap of no button":               {tap: 9, to: 10, how: puntuale.MatchPayload, asked: []puntuale.Question{one}, want: "-"},
		"a quote":                          {text: "ci saro", to: 20, how: puntuale.MatchQuote, asked: []puntuale.Question{one, two}, want: "Ci sarò!", matched: puntuale.MatchQuote, message: 20},
		"a quote with other words":         {text: "che bello", to: 20, how: puntuale.MatchQuote, asked: []puntuale.Question{two}, want: "-"},
		"a quote of another message":       {text: "1", to: 99, how: puntuale.MatchQuote, asked: []puntuale.Question{one}, want: "-"},
		"a quote that nobody knows":        {text: "1", quoted: true, asked: []puntuale.Question{one}, want: "Ci sarò!", matched: puntuale.MatchLatest, message: 10, several: true},
		"somebody else's button":           {text: "annulla", pressed: true, asked: []puntuale.Question{one}, want: "-"},
		"a number":                         {text: "2.", asked: []puntuale.Question{one}, want: "Non posso", matched: puntuale.MatchLatest, message: 10},
		"a number that no line has":        {text: "4", asked: []puntuale.Question{one}, want: "-"},
		"a label":                          {text: "CHIAMATEMI", asked: []puntuale.Question{one}, want: "Chiamatemi", matched: puntuale.MatchLatest, message: 10},
		"a usual word":                     {text: "Sì!", asked: []puntuale.Question{one}, want: "Ci sarò!", matched: puntuale.MatchWord, message: 10},
		"a usual word that cancels":        {text: "disdico", asked: []puntuale.Question{one}, want: "Non posso", matched: puntuale.MatchWord, message: 10},
		"the client's word":                {text: "ci vediamo", asked: []puntuale.Question{one}, set: own, want: "Ci sarò!", matched: puntuale.MatchWord, message: 10},
		"the client's words replace these": {text: "ok", asked: []puntuale.Question{one}, set: own, want: "-"},
		"a word in a longer text":          {text: "ok, ma alle 11", asked: []puntuale.Question{one}, want: "-"},
		"an effect that no button has":     {text: "annullo", asked: []puntuale.Question{later}, want: "?", matched: puntuale.MatchWord, message: 11},
		"two questions of one booking":     {text: "va bene cosi", asked: []puntuale.Question{one, later}, want: "Va bene così", matched: puntuale.MatchLatest, message: 11},
		"the former one of two":            {text: "non posso", asked: []puntuale.Question{one, later}, want: "-"},
		"two bookings":                     {text: "sì", asked: []puntuale.Question{one, two}, want: "Ci sarò!", matched: puntuale.MatchWord, message: 10, several: true},
		"two bookings, another text":       {text: "grazie", asked: []puntuale.Question{one, two}, want: "-"},
		"answered":                         {text: "sì", asked: with(func(q *puntuale.Question) { q.Answered = true }), want: "-"},
		"another session":                  {text: "sì", asked: with(func(q *puntuale.Question) { q.Session = 2 }), want: "-"},
		"a past date":                      {text: "sì", asked: with(func(q *puntuale.Question) { q.Date = now }), want: "-"},
		"two weeks ago":                    {text: "sì", asked: with(func(q *puntuale.Question) { q.Asked = now.Add(-puntuale.AnswerTime) }), want: "Ci sarò!", matched: puntuale.MatchWord, message: 10},
		"longer ago":                       {text: "sì", asked: with(func(q *puntuale.Question) { q.Asked = now.Add(-puntuale.AnswerTime - time.Second) }), want: "-"},
		"a picture without words":          {asked: []puntuale.Question{one}, want: "-"},
	} {
		m := puntuale.InboundMessage{Kind: puntuale.ReplyText, Session: 1}
		if c.quoted {
			m.Quoted = "wamid.1"
		}
		if c.pressed {
			m.Kind = puntuale.ReplyButton
		}
		f, ok := booking.Match(keyword.Whole(c.text), m, puntuale.Tap{Message: puntuale.MessageID(c.to), Button: c.tap - 1},
			puntuale.AskedQuestions{Questions: c.asked, InReplyTo: puntuale.MessageID(c.to), Matched: c.how, Settings: c.set}, now)
		got := f.Button.Label
		switch {
		case !ok:
			got = "-"
		case got == "":
			got = "?"
		}
		if got != c.want || f.Matched != c.matched || int64(f.Message) != c.message || f.Several != c.several {
			t.Errorf("%s: %q by %s of message %d, several %t", name, got, f.Matched, f.Message, f.Several)
		}
	}
}

// TestAnswered: an answer acts only while its question's date is the booking's date, and before that date.
func TestAnswered(t *testing.T) {
	t.Parallel()
	date := now.AddDate(0, 0, 5)
	for name, c := range map[string]struct {
		does   puntuale.ButtonEffect
		status puntuale.BookingStatus
		by     puntuale.BookingDoor
		asked  time.Time
		date   time.Time
		want   string // the status that the answer sets; "": none
		clear  bool
		stale  bool
		before time.Duration // how long before the stored answer the person gave this one
	}{
		"confirm":                    {does: puntuale.ButtonConfirms, want: "confirmed", clear: true},
		"cancel":                     {does: puntuale.ButtonCancels, status: puntuale.BookingConfirmed, want: "cancelled", clear: true},
		"only an answer":             {does: puntuale.ButtonAnswers, clear: true},
		"confirmed already":          {does: puntuale.ButtonConfirms, status: puntuale.BookingConfirmed, clear: true},
		"words without a button":     {},
		"of another date":            {does: puntuale.ButtonConfirms, asked: date.Add(-time.Hour), stale: true},
		"after the date":             {does: puntuale.ButtonConfirms, asked: now, date: now},
		"cancelled by somebody else": {does: puntuale.ButtonConfirms, status: puntuale.BookingCancelled, by: puntuale.DoorPage},
		"cancelled by the person, then confirmed": {does: puntuale.ButtonConfirms, status: puntuale.BookingCancelled, by: puntuale.DoorPerson, want: "confirmed", clear: true},
		"older than the stored answer":            {does: puntuale.ButtonConfirms, status: puntuale.BookingCancelled, by: puntuale.DoorPerson, before: time.Second + time.Millisecond},
		"in the same second as the stored answer": {does: puntuale.ButtonConfirms, status: puntuale.BookingCancelled, by: puntuale.DoorPerson, before: time.Millisecond, want: "confirmed", clear: true},
		"arrived before the date":                 {does: puntuale.ButtonCancels, status: puntuale.BookingArrived},
	} {
		if c.asked.IsZero() {
			c.asked = date
		}
		if c.date.IsZero() {
			c.date = date
		}
		p := booking.Put{Now: now, Door: puntuale.DoorPerson}
		old := puntuale.BookingState{Booking: puntuale.Booking{Revision: 1, Date: c.date, Status: c.status, StatusBy: c.by}}
		at := now.Add(500 * time.Millisecond)
		if c.before > 0 {
			old.Booking.Answer = &puntuale.GivenAnswer{Does: puntuale.ButtonCancels, Label: "y", At: at}
		}
		clear := p.Answered(old, puntuale.GivenAnswer{Does: c.does, Label: "x", At: at.Add(-c.before)}, c.asked)
		got := ""
		if p.Status != nil {
			got = p.Status.String()
		}
		if clear != c.clear || got != c.want || (p.Answer != nil && p.Answer.Stale) != c.stale {
			t.Errorf("%s: clear %t, status %q, stale %t", name, clear, got, p.Answer != nil && p.Answer.Stale)
		}
	}
}
