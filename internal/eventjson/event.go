// Package eventjson writes the JSON of events for webhooks, the event feed and the page of deliveries. Its functions are
// pure.
package eventjson

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/catalogue"
)

// layout is the API's format of times: UTC, with microseconds.
const layout = "2006-01-02T15:04:05.000000Z"

// ID returns an event's id, which is the same in every attempt to deliver the event. A test's event has no number, so
// its id contains the event's time.
func ID(e *puntuale.Event) string {
	if e.Type == puntuale.EventWebhookTest {
		return fmt.Sprintf("evt_%d_test_%d", e.Client, e.At.UnixMicro())
	}
	return fmt.Sprintf("evt_%d_%d", e.Client, e.Seq)
}

// Body returns the body that a webhook's receiver gets: type, timestamp and data. data contains the event's number. If
// wide is true, data also contains the client, for a webhook of a partner. If the body would be longer than
// [puntuale.MaxEvent], Body cuts the longest texts and sets text_truncated in data.
func Body(e *puntuale.Event, wide bool) []byte {
	data := dataOf(e, wide)
	if e.Type != puntuale.EventWebhookTest {
		data = append(data, pair{"seq", e.Seq})
	}
	return bounded(data, func(data object) object {
		return object{{"type", e.Type.String()}, {"timestamp", stamp(e.At)}, {"data", data}}
	})
}

// Entry returns the event in the form of the event feed. There the number is next to data instead of inside it.
func Entry(e *puntuale.Event) []byte {
	return bounded(dataOf(e, false), func(data object) object {
		return object{{"seq", e.Seq}, {"type", e.Type.String()}, {"timestamp", stamp(e.At)}, {"data", data}}
	})
}

func dataOf(e *puntuale.Event, wide bool) (data object) {
	if wide {
		data = append(data, pair{"id_client", e.Client.String()})
	}
	switch {
	case messageStates[e.Type] != nil:
		data = append(data, messageOf(e)...)
		return append(data, detailOf(e, data)...)
	case e.Type == puntuale.EventReplyReceived:
		return append(data, replyOf(e)...)
	case e.Type == puntuale.EventFileKept || e.Type == puntuale.EventFileFailed:
		return append(data, fileOf(e)...)
	case e.Type == puntuale.EventConsentChanged:
		return append(data, consentOf(e)...)
	case e.Type.OfBooking():
		data = append(data, bookingOf(e)...)
	case e.Type == puntuale.EventNumberChanged && e.Detail == "": // the person was erased
		return append(data, pair{"phone", ""}, pair{"old_phone", ""}, pair{"names", []string{}})
	case (e.Type == puntuale.EventBlacklistAdded || e.Type == puntuale.EventBlacklistRemoved) && e.Detail == "": // the person was erased
		return append(data, pair{"phone", ""}, pair{"reason", nil}, pair{"origin", nil})
	}
	if name := subjectNames[e.Type]; name != "" && e.Subject != 0 {
		data = append(data, pair{name, strconv.FormatInt(e.Subject, 10)})
	}
	detail := detailOf(e, data)
	if e.Type == puntuale.EventBudgetLow || e.Type == puntuale.EventBudgetOut {
		detail = budgetOf(detail, wide)
	}
	return append(data, detail...)
}

// budgetOf removes the amounts of a budget that only the partner may know, and the mark that says so.
func budgetOf(detail object, wide bool) object {
	named := func(names ...string) func(pair) bool {
		return func(p pair) bool { return slices.Contains(names, p.name) }
	}
	if slices.ContainsFunc(detail, named("hidden")) && !wide {
		detail = slices.DeleteFunc(detail, named("amount", "spent"))
	}
	return slices.DeleteFunc(detail, named("hidden"))
}

// messageStates maps each type of event to the message state that the event reports. The message itself may be in a
// later state now.
var messageStates = map[puntuale.EventType]*puntuale.State{
	puntuale.EventMessageSent:        new(puntuale.Completed),
	puntuale.EventMessageDelivered:   new(puntuale.Completed),
	puntuale.EventMessageRead:        new(puntuale.Completed),
	puntuale.EventLinkClicked:        new(puntuale.Completed),
	puntuale.EventMessageFailed:      new(puntuale.Failed),
	puntuale.EventMessageUncertain:   new(puntuale.Pending),
	puntuale.EventMessageCancelled:   new(puntuale.Cancelled),
	puntuale.EventMessageBlacklisted: new(puntuale.Blacklisted),
	puntuale.EventMessageRescheduled: new(puntuale.Rescheduled),
}

// subjectNames maps each type of event about something other than a message to the name of a member. This member
// contains the subject's id.
var subjectNames = map[puntuale.EventType]string{
	puntuale.EventSessionOnline:     "id_sessione",
	puntuale.EventSessionOffline:    "id_sessione",
	puntuale.EventSessionUnlinked:   "id_sessione",
	puntuale.EventSessionRestricted: "id_sessione",
	puntuale.EventSessionHealth:     "id_sessione",
	puntuale.EventCampaignStarted:   "campaign",
	puntuale.EventCampaignPaused:    "campaign",
	puntuale.EventCampaignDone:      "campaign",
	puntuale.EventAutomationFired:   "automation",
	puntuale.EventTemplateChanged:   "template",
	puntuale.EventWebhookDisabled:   "webhook",
	puntuale.EventWebhookTest:       "webhook",
}

// messageOf returns the members about a message. The object always contains all members. If the message no longer
// exists, only its id has a value.
func messageOf(e *puntuale.Event) object {
	state := *messageStates[e.Type]
	m := e.Message
	if m == nil {
		m = &puntuale.MessageDetail{Message: puntuale.Message{State: state}}
	}
	if e.Type == puntuale.EventMessageRescheduled { // its appointment may have taken it back instead
		state = m.State
	}
	return object{
		{"message_id", e.Subject},
		{"id_sessione", idOrNull(m.Session)},
		{"phone", m.Phone},
		{"sequence", idOrNull(m.Sequence)},
		{"campaign", idOrNull(m.Campaign)},
		{"tipologia", textOrNull(string(m.Origin))},
		{"stato", state.String()},
		{"reason", textOrNull(messageReason(e.Type, m))},
		{"reference", textOrNull(m.Reference)},
	}
}

// bookingOf returns the person of a booking. The state is in the event's detail.
func bookingOf(e *puntuale.Event) object {
	b := e.Booking
	if b == nil {
		b = &puntuale.Booking{}
	}
	return object{{"reference", b.Reference}, {"phone", b.Phone}}
}

// messageReason returns why a message did not arrive. It returns "" if the message's state is no longer the state that
// the event reports.
func messageReason(t puntuale.EventType, m *puntuale.MessageDetail) string {
	switch state := *messageStates[t]; {
	case m.ID == 0 || state == puntuale.Completed || state != m.State:
		return ""
	case t != puntuale.EventMessageUncertain:
		return catalogue.Italian.Sentence(m.Response())
	case m.Detail.IsZero():
		return catalogue.Italian.Sentence(puntuale.Because(puntuale.ReasonUncertain))
	}
	return catalogue.Italian.Sentence(m.Detail)
}

func replyOf(e *puntuale.Event) object {
	y := e.Reply
	if y == nil {
		y = &puntuale.Reply{}
	}
	var file any
	if m := y.Media; m != nil {
		file = object{{"type", m.Type}, {"name", m.Name}, {"size", m.Size}, {"until", stampOrNull(m.Until)}}
	}
	all := object{
		{"reply", strconv.FormatInt(e.Subject, 10)},
		{"id_sessione", idOrNull(y.Session)},
		{"phone", y.Phone},
		{"kind", textOrNull(string(y.Kind))},
		{"text", y.Text},
		{"media", file},
		{"received_at", stampOrNull(y.At)},
		{"run", numberOrNull(y.Run)},
		{"effect", textOrNull(y.Effect.String())},
		{"payload", textOrNull(y.Payload)},
		{"button", textOrNull(y.Button)},
		{"in_reply_to", numberOrNull(y.InReplyTo)},
	}
	if id := y.FileOf(); id != "" {
		all = append(all, object{{"file", string(id)}}...)
	}
	return all
}

// fileOf returns what became of the file of a reply. A file that was deleted meanwhile has only a reason.
func fileOf(e *puntuale.Event) object {
	y := e.Reply
	if y == nil {
		y = &puntuale.Reply{}
	}
	k := y.Kept
	if k == nil { // the reply was blanked or erased
		k = &puntuale.KeptFile{}
	}
	return object{
		{"reply", strconv.FormatInt(e.Subject, 10)},
		{"id_sessione", idOrNull(y.Session)},
		{"phone", y.Phone},
		{"in_reply_to", numberOrNull(y.InReplyTo)},
		{"file", textOrNull(string(k.File))},
		{"name", textOrNull(k.Name)},
		{"type", textOrNull(k.Type)},
		{"bytes", numberOrNull(k.Size)},
		{"reason", textOrNull(catalogue.Italian.Sentence(k.Reason()))},
	}
}

func consentOf(e *puntuale.Event) object {
	c := e.Consent
	if c == nil {
		return object{{"phone", ""}, {"purpose", nil}, {"change", nil}, {"source", nil}, {"words", ""}, {"at", nil}, {"applied", nil}}
	}
	return object{
		{"phone", c.Phone},
		{"purpose", c.Purpose.String()},
		{"change", textOrNull(c.Change.String())},
		{"source", textOrNull(c.Source)},
		{"words", c.Words},
		{"at", stampOrNull(c.At)},
		{"applied", c.Applied},
	}
}

// detailOf returns the members of the event's Detail, except those that are already in known. So no member is replaced.
func detailOf(e *puntuale.Event, known object) (all object) {
	for _, m := range parse(e.Detail) {
		if m.name == "seq" || m.name == truncated || slices.ContainsFunc(known, func(other pair) bool { return other.name == m.name }) {
			continue
		}
		if text, ok := m.value.(string); ok && m.name == "reason" {
			m.value = textOrNull(catalogue.Italian.Sentence(puntuale.ParseReason(text)))
		}
		all = append(all, m)
	}
	return all
}

func stamp(t time.Time) string { return t.UTC().Format(layout) }

func stampOrNull(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return stamp(t)
}

func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func idOrNull[T ~int64](id T) any {
	if id == 0 {
		return nil
	}
	return strconv.FormatInt(int64(id), 10)
}

func numberOrNull[T ~int64](n T) any {
	if n == 0 {
		return nil
	}
	return int64(n)
}
