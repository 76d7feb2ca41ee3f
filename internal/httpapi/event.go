package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/webhook"
	"puntuale/internal/eventjson"
)

func registerEvents(a *api) {
	client(a, operation{id: "listEvents", method: http.MethodGet, path: "/api/events", strict: true,
		summary: "Read events after a number, and wait for the first"}, a.listEvents)
}

type eventsInput struct {
	After string `query:"after" doc:"The next_after of the answer before; without it, from the first event that is kept"`
	Types string `query:"types" doc:"Such as message.sent,reply.received; without it all"`
	Limit string `query:"limit" doc:"At most so many events; 1 to 1,000, else 100"`
	Wait  string `query:"wait" doc:"Seconds to wait for the first event; 0 to 30, else 0"`
}

type eventsAnswer struct {
	Events []json.RawMessage `json:"events"`
	Next   int64             `json:"next_after"`
}

// maxFeed is the largest size of the events in one answer, in bytes.
const maxFeed = 4 << 20

// listEvents reads a client's feed of events. If there are no events, listEvents waits until an event comes, or until
// the time that the caller chose has passed. While it waits, the call has no seat.
func (a *api) listEvents(ctx context.Context, c *control.Client, in *call, p *eventsInput) (eventsAnswer, error) {
	feed, err := a.webhooks.Feed(c, webhook.FeedQuery{After: p.After, Types: p.Types, Limit: p.Limit, Wait: p.Wait, Unknown: in.unknown})
	if err != nil {
		return eventsAnswer{}, err
	}
	all, next, err := feed.Read(ctx)
	if err == nil && len(all) == 0 && feed.Wait > 0 {
		end, err := feed.Begin()
		if err != nil {
			return eventsAnswer{}, err
		}
		defer end()
	}
	for err == nil && len(all) == 0 && feed.Wait > 0 {
		in.pass.LeaveSeat()
		if !feed.Pause(ctx) {
			break
		}
		if ctx, err = in.pass.Return(ctx); err == nil {
			all, next, err = feed.Read(ctx)
		}
	}
	if err != nil {
		return eventsAnswer{}, err
	}
	return feedOf(all, next), nil
}

func feedOf(all []puntuale.Event, next int64) eventsAnswer {
	out := eventsAnswer{[]json.RawMessage{}, next}
	for i, bytes := 0, 0; i < len(all); i++ {
		entry := eventjson.Entry(&all[i])
		if bytes += len(entry); bytes > maxFeed && i > 0 {
			out.Next = all[i-1].Seq
			break
		}
		out.Events = append(out.Events, entry)
	}
	return out
}
