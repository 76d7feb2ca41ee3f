package person

import (
	"context"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/view"
)

// PersonPage is all that a client knows of one person, or of a group.
type PersonPage struct {
	Phone       string
	Name        string            // "" nobody said it
	Contact     *puntuale.Contact // nil: not in the list
	Runs        []PersonRun
	Cursor      string
	Next        string
	Unwanted    map[puntuale.MessageID]puntuale.ReasonCode // pending ones that will not leave, and why
	Listed      bool                                       // the number is in the blacklist
	Blacklisted *puntuale.BlacklistEntry                   // nil: the number is not, or its entry was not found
	Block       *view.Form

	Version      string // as the conversation was read
	Conversation ConversationPart
	Older        bool // the part is not the newest
	Answer       AnswerPage
	Consent      ConsentPage
}

// PersonRun is one run with its messages of the page.
type PersonRun struct {
	ID       puntuale.RunID
	Name     string // of the sequence, or of the send; "" it has none
	Origin   puntuale.Origin
	Received time.Time
	Messages []puntuale.MessageDetail // soonest first
}

// pending is how many messages can still be stopped.
func (r PersonRun) pending() (n int) {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.State == puntuale.Pending && m.Intent == 0 {
			n++
		}
	}
	return n
}

// next is when the next message leaves.
func (r PersonRun) next() time.Time {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.State == puntuale.Pending {
			return m.Planned()
		}
	}
	return time.Time{}
}

// counts says how many messages are in which state.
func (r PersonRun) counts(ctx context.Context) string {
	var words []string
	for _, s := range []puntuale.State{puntuale.Completed, puntuale.Pending, puntuale.Failed, puntuale.Cancelled, puntuale.Blacklisted} {
		n := 0
		for i := range r.Messages {
			if r.Messages[i].State == s {
				n++
			}
		}
		if n > 0 {
			words = append(words, view.T(ctx, "person.count."+strings.ToLower(s.String()), "N", n))
		}
	}
	return strings.Join(words, " · ")
}

// stoppable is how many messages of the page can still be stopped.
func (p PersonPage) stoppable() (n int) {
	for _, r := range p.Runs {
		n += r.pending()
	}
	return n
}

// called is the person's name, else the number.
func (p PersonPage) called(ctx context.Context) string {
	return view.Or(p.Name, view.ShownPhone(ctx, p.Phone))
}

// below is the number, if the heading is a name.
func (p PersonPage) below(ctx context.Context) string {
	if p.Name == "" {
		return ""
	}
	return view.ShownPhone(ctx, p.Phone)
}
