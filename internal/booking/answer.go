package booking

import (
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/keyword"
)

// FoundAnswer is what a reply answers.
type FoundAnswer struct {
	puntuale.Question
	Button  puntuale.StepButton // without an effect if the words fit none of the question's buttons
	Matched puntuale.AnswerMatch
	Several bool // several bookings wait for an answer, and nothing says which one is meant
}

// Match finds what a message of a person answers. A pressed button says it by its payload; else a quoted message says
// it; else the whole text must be an answer to the one open question. whole is the text as the package keyword compares
// it. Match returns false if the message is no answer, such as a press or a quote of another message.
func Match(whole string, m puntuale.InboundMessage, tap puntuale.Tap, a puntuale.AskedQuestions, now time.Time) (FoundAnswer, bool) {
	if a.InReplyTo != 0 {
		i := slices.IndexFunc(a.Questions, func(q puntuale.Question) bool { return q.Message == a.InReplyTo })
		if i < 0 {
			return FoundAnswer{}, false
		}
		q := a.Questions[i]
		if a.Matched == puntuale.MatchPayload {
			if tap.Button < 0 || tap.Button >= len(q.Buttons) {
				return FoundAnswer{}, false
			}
			return FoundAnswer{Question: q, Button: q.Buttons[tap.Button], Matched: puntuale.MatchPayload}, true
		}
		if button, _, ok := named(whole, q.Buttons, a.Settings); ok {
			return FoundAnswer{Question: q, Button: button, Matched: puntuale.MatchQuote}, true
		}
		return FoundAnswer{}, false
	}
	var found FoundAnswer
	if m.Kind != puntuale.ReplyText { // somebody else's button
		return found, false
	}
	open := puntuale.OpenQuestions(a.Questions, now, m.Session)
	for _, q := range open {
		if button, how, ok := named(whole, q.Buttons, a.Settings); ok && found.Booking == 0 {
			found = FoundAnswer{Question: q, Button: button, Matched: how}
		}
	}
	found.Several = found.Booking != 0 && (len(open) > 1 || m.Quoted != "") // nobody knows which message is quoted
	return found, found.Booking != 0
}

// named returns the button that a text names: by the number of its line, by its label, or by one of the client's words.
// The words of an effect that no button has give a button without an effect.
func named(whole string, buttons []puntuale.StepButton, set puntuale.ClientSettings) (b puntuale.StepButton, how puntuale.AnswerMatch, ok bool) {
	if whole == "" {
		return b, "", false
	}
	for i, b := range buttons {
		if whole == strconv.Itoa(i+1) || whole == keyword.Whole(b.Label) {
			return b, puntuale.MatchLatest, true
		}
	}
	_, confirm, cancel := set.Words()
	for _, some := range []struct {
		does  puntuale.ButtonEffect
		words []string
	}{{puntuale.ButtonConfirms, confirm}, {puntuale.ButtonCancels, cancel}} {
		if !keyword.In(whole, some.words) {
			continue
		}
		if i := slices.IndexFunc(buttons, func(b puntuale.StepButton) bool { return b.Does == some.does }); i >= 0 {
			return buttons[i], puntuale.MatchWord, true
		}
		return puntuale.StepButton{}, puntuale.MatchWord, true
	}
	return b, "", false
}

// Answered sets what a person's answer changes. asked is the main date that the question was about. An answer acts only
// while this is still the booking's date, and before that date. Else it is only recorded. Answered returns false if
// people must look at the answer, because it changes nothing.
func (p *Put) Answered(old puntuale.BookingState, given puntuale.GivenAnswer, asked time.Time) bool {
	given.Stale = !asked.Equal(old.Date)
	p.Answer, p.Status = &given, nil
	if a := old.Booking.Answer; a != nil && given.At.Before(a.At.Truncate(time.Second)) { // a network tells an older answer late, and in whole seconds
		p.Answer = nil
		return false
	}
	if given.Stale || !old.Date.After(p.Now) {
		return false
	}
	var want puntuale.BookingStatus
	switch given.Does {
	case puntuale.ButtonConfirms:
		want = puntuale.BookingConfirmed
	case puntuale.ButtonCancels:
		want = puntuale.BookingCancelled
	case puntuale.ButtonAnswers:
		return true
	default:
		return false
	}
	if old.Status == want {
		return true
	}
	own := old.Status == puntuale.BookingCancelled && old.StatusBy == puntuale.DoorPerson
	if old.Status != puntuale.BookingOpen && old.Status != puntuale.BookingConfirmed && !own {
		return false
	}
	p.Status = &want
	return true
}

// answer records the person's answer. The same answer to the same message counts once, and one about a former date does
// not replace one about the present date.
func (c *change) answer() {
	given, stored := c.Answer, c.old.Booking.Answer
	switch {
	case given == nil:
	case stored != nil && stored.Message == given.Message && stored.Label == given.Label && stored.Stale == given.Stale:
	case stored != nil && given.Stale && !stored.Stale:
	default:
		c.next.Booking.Answer = given
		c.note("answered", "", puntuale.EventBookingAnswered)
	}
}
