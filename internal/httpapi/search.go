package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/control/search"
)

func registerSearch(a *api) {
	register(a, eitherSide, operation{id: "search", method: http.MethodGet, path: "/api/search", strict: true,
		summary: "Find people, messages, bookings, sequences, campaigns and templates by one text",
		description: "By name, with typing errors forgiven; by number in any way of writing it; by reference; by ID; and by words. Each list has at most 8 entries, the best first. " +
			"A partner's key finds the partner's clients, and nothing inside of them."}, find)
}

// searchInput documents the query of a search.
type searchInput struct {
	Text string `query:"text" required:"true" maxLength:"200" doc:"Words, a number, a reference, or an ID"`
}

// searchAnswer is what was found.
type searchAnswer struct {
	People    []foundPerson  `json:"people"`
	Messages  []foundMessage `json:"messages" doc:"Of the people found, and those with the words. First those with the ID or the reference, then the newest"`
	Bookings  []foundBooking `json:"bookings" doc:"Of the people found, and coming ones with the words"`
	Sequences []foundName    `json:"sequences"`
	Campaigns []foundName    `json:"campaigns"`
	Templates []foundName    `json:"templates"`
	Clients   []foundName    `json:"clients" doc:"With a partner's key"`
	More      []string       `json:"more" doc:"The lists of which there are, or may be, further entries"`
	Complete  bool           `json:"complete" doc:"false: only the newest messages, or only the next bookings, were compared with the words. more names the lists that go on: GET /api/messages?text= and GET /api/bookings?text="`
}

type foundPerson struct {
	Phone   string  `json:"phone"`
	Name    *string `json:"name"`
	Contact *string `json:"contact" doc:"ID of the contact; null: the person is none"`
}

type foundMessage struct {
	ID        string  `json:"id"`
	State     string  `json:"stato" enum:"PENDING,COMPLETED,FAILED,CANCELLED,RESCHEDULED,BLACKLISTED"`
	Phone     string  `json:"phone"`
	Name      *string `json:"name" doc:"The recipient's name in the call"`
	Text      string  `json:"text" doc:"At most the first 200 characters"`
	Reference *string `json:"reference"`
	Planned   string  `json:"invio_previsto" format:"date-time"`
}

type foundBooking struct {
	ID        string `json:"id"`
	Reference string `json:"reference"`
	Phone     string `json:"phone"`
	Date      string `json:"date" format:"date-time"`
	Status    string `json:"status" enum:"open,confirmed,cancelled,arrived,no_show"`
}

type foundName struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func find(ctx context.Context, in *call, p *searchInput) (searchAnswer, error) {
	if in.partner != nil {
		found, err := search.OfPartner(ctx, in.partner, p.Text, in.unknown...)
		return searchAnswerOf(found), err
	}
	found, err := search.OfClient(ctx, in.client, p.Text, in.unknown...)
	return searchAnswerOf(found), err
}

func searchAnswerOf(f search.Result) searchAnswer {
	more := []string{}
	for _, g := range search.Groups {
		if f.More[g] {
			more = append(more, string(g))
		}
	}
	return searchAnswer{
		People: each(f.People, func(p search.Person) foundPerson {
			found := foundPerson{Phone: p.Phone, Name: textOrNull(p.Name)}
			if p.Contact != 0 {
				found.Contact = new(p.Contact.String())
			}
			return found
		}),
		Messages: each(f.Messages, func(m puntuale.MessageDetail) foundMessage {
			return foundMessage{m.ID.String(), m.State.String(), m.Phone, textOrNull(puntuale.RecipientName(m.Origin, m.Request)), beginning(m.Content.Text), textOrNull(m.Reference), stamp(m.Planned())}
		}),
		Bookings: each(f.Bookings, func(b puntuale.Booking) foundBooking {
			return foundBooking{b.ID.String(), b.Reference, b.Phone, stamp(b.Date), b.Status.String()}
		}),
		Sequences: each(f.Sequences, foundNameOf), Campaigns: each(f.Campaigns, foundNameOf), Templates: each(f.Templates, foundNameOf), Clients: each(f.Clients, foundNameOf),
		More: more, Complete: len(f.Partial) == 0,
	}
}

func foundNameOf(n puntuale.NamedItem) foundName {
	return foundName{strconv.FormatInt(n.ID, 10), n.Name}
}

// beginning returns the first 200 characters of a text.
func beginning(text string) string {
	const shown = 200
	if letters := []rune(text); len(letters) > shown {
		return string(letters[:shown])
	}
	return text
}
