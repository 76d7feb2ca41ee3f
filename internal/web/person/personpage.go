package person

import (
	"context"
	"net/url"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/view"
)

// PersonPage contains all data of a client about one person or group.
type PersonPage struct {
	Phone       string
	Name        string            // "": the name is not known
	Contact     *puntuale.Contact // nil: the person is not a contact
	Runs        []PersonRun
	Cursor      string
	Next        string
	Unwanted    map[puntuale.MessageID]puntuale.ReasonCode // pending messages that will not leave, each with the reason
	Listed      bool                                       // true: the phone number is in the blacklist
	Blacklisted *puntuale.BlacklistEntry                   // nil: the phone number is not in the blacklist, or its entry could not be read
	Block       *view.Form
	Changes     []puntuale.NotedChange // of the number, newest first
	now         time.Time

	Version   string                         // the version of the client's messages when the conversation was read
	Bookings  []puntuale.Booking             // the first ones from some days before today on
	Sequences map[puntuale.SequenceID]string // names of the bookings' sequences; without the deleted ones

	Conversation ConversationPart
	Older        bool // true: the shown part is not the newest part
	Answer       AnswerPage
	Consent      ConsentPage
}

// PersonRun is one run, with those of its messages that the page shows.
type PersonRun struct {
	ID       puntuale.RunID
	Name     string // the name of the sequence or the single send; "": no name
	Origin   puntuale.Origin
	Received time.Time
	Messages []puntuale.MessageDetail // in the order of their due times
}

// pending returns how many messages can still be stopped.
func (r PersonRun) pending() (n int) {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.State == puntuale.Pending && m.Intent == 0 {
			n++
		}
	}
	return n
}

// next returns the due time of the next message.
func (r PersonRun) next() time.Time {
	for i := range r.Messages {
		if m := &r.Messages[i]; m.State == puntuale.Pending {
			return m.Planned()
		}
	}
	return time.Time{}
}

// counts returns a text with the number of messages in each state.
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

// stoppable returns how many messages on the page can still be stopped.
func (p PersonPage) stoppable() (n int) {
	for _, r := range p.Runs {
		n += r.pending()
	}
	return n
}

// called returns the person's name, or the phone number if the name is not known.
func (p PersonPage) called(ctx context.Context) string {
	return view.Or(p.Name, view.ShownPhone(ctx, p.Phone))
}

// below returns the phone number if the heading shows a name, and otherwise "".
func (p PersonPage) below(ctx context.Context) string {
	if p.Name == "" {
		return ""
	}
	return view.ShownPhone(ctx, p.Phone)
}

// change returns the latest change of the number that was not undone, or nil.
func (p PersonPage) change() *puntuale.NotedChange {
	for i := range p.Changes {
		if p.Changes[i].Undone.IsZero() {
			return &p.Changes[i]
		}
	}
	return nil
}

// live returns the query of the stream that changes the open page. A later page of the runs does not change.
func (p PersonPage) live() string {
	query := url.Values{"phone": {p.Phone}, "version": {p.Version}}
	if p.Cursor == "" {
		query.Set("runs", "first")
	}
	return query.Encode()
}
