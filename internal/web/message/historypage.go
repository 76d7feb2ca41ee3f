package message

import (
	"context"
	"puntuale/internal/web/view"
	"slices"
	"time"

	"puntuale"
)

// Chapter is one event in a message's history. The event happened, or will happen.
type Chapter struct {
	At   time.Time // zero: the chapter has no time
	Bare bool      // true: only sort by At and do not show it, because the exact time is not known
	Icon string
	Tone string // the look of the chapter: "ok", "bad", "wait" or "quiet"
	What string
	More string
	Link puntuale.MessageID // the id of another message; 0: none

	order time.Time // the time by which the chapter is sorted; zero: the chapter is sorted by At
}

// Chapters tells a message's history in plain words, oldest first. The chapters say when the message was received,
// planned and attempted, and whether a window changed its due time. They also say what the network reported.
func Chapters(ctx context.Context, s Story) []Chapter {
	all := begun(ctx, s)
	for _, e := range s.Events {
		if e.Kind != "refused" || s.State != puntuale.Failed { // leave out the refusal of a failed message, because the last chapter already says it
			all = append(all, eventChapter(ctx, e))
		}
	}
	all = append(all, ended(ctx, s)...)
	for _, r := range []struct {
		at              time.Time
		icon, tone, key string
	}{{s.Departed, "send", "ok", "story.departed"}, {s.Delivered, "checks", "ok", "story.delivered"}, {s.Read, "eye", "ok", "story.read"}, {s.GivenUp, "circle-x", "bad", "story.given_up"}} {
		if !r.at.IsZero() {
			all = append(all, Chapter{At: r.at, Icon: r.icon, Tone: r.tone, What: view.T(ctx, r.key), order: sortTime(r.at, s.IntentAt)})
		}
	}
	slices.SortStableFunc(all, func(a, b Chapter) int { return a.standsAt().Compare(b.standsAt()) })
	for _, id := range s.Resent {
		c := Chapter{Icon: "repeat", Tone: "quiet", What: view.T(ctx, "story.resent"), Link: id}
		if s.Later != nil && s.Later.ID == id {
			c.At, c.Icon, c.What = s.Done, "calendar-event", view.T(ctx, "story.moved_to", "To", view.Dated(ctx, s.Later.Due))
			if s.Later.Due.Equal(s.Planned()) {
				c.Icon, c.What = "repeat", view.T(ctx, "story.restored")
			}
		}
		all = append(all, c)
	}
	return append(all, futureChapters(ctx, s)...)
}

func (c Chapter) standsAt() time.Time {
	if !c.order.IsZero() {
		return c.order
	}
	return c.At
}

// sortTime returns the time by which to sort an event whose time comes from the network's clock. Networks often send
// whole seconds; such a time is treated as the end of its second. If the network's clock is a little behind, the result
// is the time of the attempt.
func sortTime(at, attempt time.Time) time.Time {
	if at.Equal(at.Truncate(time.Second)) {
		at = at.Add(time.Second - 1)
	}
	if at.Before(attempt) && attempt.Sub(at) < clocksDiffer {
		return attempt
	}
	return at
}

// clocksDiffer is how far the network's clock may be behind this server's clock.
const clocksDiffer = time.Minute

// begun returns the chapters about the creation of the message.
func begun(ctx context.Context, s Story) []Chapter {
	key := "story.received"
	if s.Origin == puntuale.OriginSequence {
		key = "story.received_sequence"
	}
	all := []Chapter{{At: s.Received, Icon: "inbox", Tone: "quiet", What: view.T(ctx, key, "Sequence", s.SequenceName)}}
	stages := append(slices.Clone(s.Earlier), s.MessageDetail)
	planned := Chapter{At: s.Received, Icon: "calendar-event", Tone: "quiet", What: view.T(ctx, "story.planned", "When", moment(ctx, stages[0].Due))}
	switch {
	case stages[0].ResentFrom != 0:
		planned.What, planned.Link, planned.Bare = view.T(ctx, "story.planned_again", "When", moment(ctx, stages[0].Due)), stages[0].ResentFrom, true
	case stages[0].Desired.IsZero():
		planned.What = view.T(ctx, "story.at_once")
	}
	all = append(all, planned)
	if !stages[0].Desired.IsZero() && !stages[0].Due.Equal(stages[0].Desired) {
		all = append(all, shifted(ctx, &stages[0], s.Received, planned.Bare))
	}
	for i := range s.Earlier {
		from, to := &stages[i], &stages[i+1]
		c := Chapter{At: from.Done, Icon: "calendar-event", Tone: "quiet", What: view.T(ctx, "story.moved", "From", view.Dated(ctx, from.Planned()), "To", view.Dated(ctx, to.Due))}
		if from.Planned().Equal(to.Due) {
			c.Icon, c.What = "repeat", view.T(ctx, "story.restored")
		}
		all = append(all, c)
		if !to.Desired.IsZero() && !to.Due.Equal(to.Desired) {
			all = append(all, shifted(ctx, to, from.Done, false))
		}
	}
	return all
}

func moment(ctx context.Context, t time.Time) string {
	return view.FrameOf(ctx).Language.Moment(t.In(view.FrameOf(ctx).Zone), view.FrameOf(ctx).Now)
}

// shifted returns the chapter which says that a window or jitter changed the message's due time.
func shifted(ctx context.Context, m *puntuale.MessageDetail, at time.Time, bare bool) Chapter {
	key := "story.jitter"
	if m.Window != nil {
		key = "story.window"
	}
	return Chapter{At: at, Bare: bare, Icon: "clock", Tone: "quiet", What: view.T(ctx, key, "From", moment(ctx, m.Desired), "To", moment(ctx, m.Due))}
}

func eventChapter(ctx context.Context, e puntuale.MessageEvent) Chapter {
	c := Chapter{At: e.At, Icon: "alert-circle", Tone: "quiet", More: view.Says(ctx, e.Detail)}
	switch e.Kind {
	case "retry":
		c.Icon, c.Tone, c.What = "refresh", "wait", view.T(ctx, "story.retry")
	case "refused":
		c.Icon, c.Tone, c.What = "circle-x", "bad", view.T(ctx, "story.refused")
	case "uncertain":
		c.Icon, c.Tone, c.What = "help", "wait", view.T(ctx, "story.uncertain")
	case "merge":
		c.Icon, c.Tone, c.What = "circle-check", "ok", view.T(ctx, "story.merge")
	case "clicked":
		c.Icon, c.Tone, c.What = "check", "ok", view.T(ctx, "story.clicked")
	case "late refused":
		c.Icon, c.Tone, c.What = "circle-x", "bad", view.T(ctx, "story.late_refused")
	case "late sent":
		c.Icon, c.Tone, c.What = "alert-circle", "wait", view.T(ctx, "story.late_sent")
	default:
		c.What = view.T(ctx, "story.note")
	}
	return c
}

// ended returns the chapters about the last attempt and the message's end.
func ended(ctx context.Context, s Story) []Chapter {
	var all []Chapter
	if s.Attempt > 0 && !s.IntentAt.IsZero() {
		all = append(all, Chapter{At: s.IntentAt, Icon: "send", Tone: "wait", What: view.T(ctx, "story.attempt", "N", s.Attempt)})
	}
	c := Chapter{At: s.Done, Icon: "circle-x", Tone: "bad", What: view.Reason(ctx, s.Response()), More: view.Says(ctx, s.Detail)}
	switch s.State {
	case puntuale.Pending:
		return all
	case puntuale.Completed:
		c.Icon, c.Tone, c.What, c.More = "check", "ok", view.T(ctx, "story.completed"), ""
	case puntuale.Cancelled:
		c.Icon, c.Tone = "ban", "quiet"
	case puntuale.Blacklisted:
		c.Icon = "ban"
	case puntuale.Rescheduled:
		if len(s.Resent) > 0 && !s.Ended {
			return all
		}
	}
	return append(all, c)
}

// futureChapters returns the chapters about events that will happen.
func futureChapters(ctx context.Context, s Story) []Chapter {
	switch {
	case s.State != puntuale.Pending:
		return nil
	case s.Uncertain():
		return []Chapter{{Icon: "help", Tone: "wait", What: view.T(ctx, "story.is_uncertain", "When", view.Dated(ctx, s.Next))}}
	case s.Intent > 0:
		return []Chapter{{Icon: "hourglass", Tone: "wait", What: view.T(ctx, "story.under_way")}}
	case s.Unwanted[s.ID] == puntuale.ReasonNoConsent:
		return []Chapter{{At: s.Next, Icon: "ban", Tone: "bad", What: view.T(ctx, "story.unconsented")}}
	case s.Unwanted[s.ID] != "":
		return []Chapter{{At: s.Next, Icon: "ban", Tone: "bad", What: view.T(ctx, "story.unwanted")}}
	case !s.Reason.IsZero():
		return []Chapter{{At: s.Next, Icon: "clock", Tone: "wait", What: view.T(ctx, "story.waits"), More: view.Reason(ctx, s.Reason)}}
	}
	return []Chapter{{At: s.Next, Icon: "clock", Tone: "wait", What: view.T(ctx, "story.leaves")}}
}
