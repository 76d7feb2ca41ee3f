package httpapi

import (
	"encoding/json"
	"maps"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/eventjson"
)

// The types below document the member data of events, which package eventjson writes. A test compares them.
type (
	// MessageEvent is exported, because huma leaves out embedded types that are not exported.
	MessageEvent struct {
		EventOwner
		Message   int64   `json:"message_id"`
		Session   *string `json:"id_sessione" doc:"null: the message is gone"`
		Phone     string  `json:"phone"`
		Sequence  *string `json:"sequence"`
		Campaign  *string `json:"campaign"`
		Origin    *string `json:"tipologia" doc:"SEQUENCE, SINGLE, MASSIVE …"`
		State     string  `json:"stato" enum:"PENDING,COMPLETED,FAILED,CANCELLED,RESCHEDULED,BLACKLISTED" doc:"The state that the event reports; the message may have a later one now"`
		Reason    *string `json:"reason" doc:"Why it did not arrive, for people"`
		Reference *string `json:"reference" doc:"Your own name of what the message is about"`
	}
	rescheduledEvent struct {
		MessageEvent
		New int64 `json:"new_message_id" doc:"The message that took its place"`
	}
	bookingEvent struct {
		EventOwner
		Reference string       `json:"reference" doc:"Your own name of the appointment; empty after an erasure"`
		Phone     string       `json:"phone"`
		Sequence  string       `json:"sequence"`
		Date      string       `json:"date" format:"date-time" doc:"Of the appointment"`
		Status    string       `json:"status" enum:"open,confirmed,cancelled,arrived,no_show"`
		Answer    *givenAnswer `json:"answer" doc:"What the person answered about this date; null: nothing"`
		By        string       `json:"by" doc:"Through what it changed: api, page, calendar, rule, stop, person"`
		Revision  int64        `json:"revision"`
	}
	replyEvent struct {
		EventOwner
		Reply    string    `json:"reply"`
		Session  *string   `json:"id_sessione"`
		Phone    string    `json:"phone"`
		Kind     *string   `json:"kind" doc:"text, image, audio …"`
		Text     string    `json:"text"`
		Media    eventFile `json:"media" doc:"The file that came with the reply"`
		Received *string   `json:"received_at" format:"date-time"`
		Run      *int64    `json:"run" doc:"The run that the reply belongs to: the id of its first message"`
		Effect   *string   `json:"effect" doc:"stopped, opt_out, opt_in, answered or unclear; null: none"`
		Payload  *string   `json:"payload" doc:"Of the pressed button, as the network tells it"`
		Button   *string   `json:"button" doc:"Label of the button that the person pressed or named"`
		InReply  *int64    `json:"in_reply_to" doc:"The message that it answers"`
		Kept     *string   `json:"file,omitempty" doc:"ID of the kept file; missing: it is not kept, or was not yet when the event was sent"`
	}
	keptEvent struct {
		EventOwner
		Reply   string  `json:"reply"`
		Session *string `json:"id_sessione"`
		Phone   string  `json:"phone"`
		InReply *int64  `json:"in_reply_to" doc:"The message that the reply answers"`
		File    *string `json:"file" doc:"ID of the kept file; null: it is not kept, or was deleted before the event was sent"`
		Name    *string `json:"name"`
		Type    *string `json:"type"`
		Bytes   *int64  `json:"bytes"`
		Reason  *string `json:"reason" doc:"Why there is no file, for people"`
	}
	consentEvent struct {
		EventOwner
		Phone   string  `json:"phone"`
		Purpose *string `json:"purpose"`
		Change  *string `json:"change" doc:"grant or withdraw"`
		Source  *string `json:"source"`
		Words   string  `json:"words" doc:"What the person read or wrote"`
		At      *string `json:"at" format:"date-time"`
		Applied *bool   `json:"applied" doc:"false: an older entry, which changed nothing"`
	}
	blacklistEvent struct {
		EventOwner
		Phone  string  `json:"phone"`
		Reason *string `json:"reason"`
		Origin *string `json:"origin" doc:"person: an opt-out by the person; client: everything else"`
	}
	healthEvent struct {
		EventOwner
		Session     string   `json:"id_sessione"`
		Name        string   `json:"name"`
		Quality     *string  `json:"quality" doc:"GREEN, YELLOW or RED; null: unknown"`
		Limit       *int     `json:"limit" doc:"How many people the portfolio may address in 24 hours; null: any number, or unknown"`
		Until       *string  `json:"restricted_until" format:"date-time"`
		Restriction *string  `json:"restriction" doc:"Meta's word; null: nothing restricts the number"`
		DisplayName *string  `json:"display_name" doc:"approved, pending or declined; null: unknown"`
		Paused      []string `json:"paused_templates"`
		DirectSend  string   `json:"direct_send" enum:"unknown,on,off,blocked"`
		Checked     *string  `json:"checked_at" format:"date-time"`
	}
	numberEvent struct {
		EventOwner
		Phone    string   `json:"phone" doc:"The number from now on, or the id of a person who hides it"`
		OldPhone string   `json:"old_phone"`
		Names    []string `json:"names" doc:"All names of the person from now on: phone, and the ids that networks told"`
	}
	sessionEvent struct {
		EventOwner
		Session string  `json:"id_sessione"`
		Name    string  `json:"name"`
		Type    string  `json:"connection_type"`
		Sandbox bool    `json:"sandbox"`
		State   string  `json:"state"`
		Limited string  `json:"limited_until,omitempty" format:"date-time"`
		Reason  *string `json:"reason,omitempty" doc:"For people"`
		Until   string  `json:"until,omitempty" format:"date-time" doc:"The end of a ban"`
	}
	budgetEvent struct {
		EventOwner
		Month    string `json:"month" doc:"In the client's zone"`
		Percent  int    `json:"percent" doc:"The part of the budget that is spent"`
		Amount   string `json:"amount,omitempty" doc:"The budget, an exact decimal number. Missing for the client whose partner has its own prices"`
		Spent    string `json:"spent,omitempty" doc:"What the month's messages cost so far, an exact decimal number. Missing like amount"`
		Currency string `json:"currency"`
		Ends     string `json:"ends_at" format:"date-time" doc:"When the next month begins"`
	}
	campaignEvent struct {
		EventOwner
		Campaign  string           `json:"campaign"`
		Name      string           `json:"name"`
		Reference string           `json:"reference,omitempty"`
		State     string           `json:"state" enum:"running,paused,done,cancelled,failed"`
		Resumed   bool             `json:"resumed,omitempty" doc:"It went on after a pause"`
		Reason    *string          `json:"reason,omitempty"`
		Counts    map[string]int64 `json:"counts,omitempty" doc:"After the end: messages by state"`
	}
	automationEvent struct {
		EventOwner
		Automation string   `json:"automation"`
		Messages   []string `json:"messages,omitempty" doc:"The first message of each start and send"`
	}
	capEvent struct {
		EventOwner
		Cap  int64 `json:"daily_api_cap"`
		Used int64 `json:"daily_api_used"`
	}
	creditEvent struct {
		EventOwner
		Credits int64 `json:"credits" doc:"How many are left"`
	}
	expiryEvent struct {
		EventOwner
		Date string `json:"expiration_date" format:"date"`
		Days *int64 `json:"days,omitempty" doc:"Until this date; only in account.expiring"`
	}
	templateEvent struct {
		EventOwner
		Template string  `json:"template,omitempty" doc:"A template of the client's own"`
		Name     string  `json:"name"`
		Change   string  `json:"change,omitempty" enum:"created,updated,deleted" doc:"A template of the client's own"`
		Language string  `json:"language,omitempty"`
		Status   string  `json:"status,omitempty" doc:"Meta's"`
		Before   string  `json:"status_before,omitempty"`
		Category string  `json:"category,omitempty"`
		Quality  string  `json:"quality,omitempty"`
		Reason   *string `json:"reason,omitempty"`
	}
	webhookEvent struct {
		EventOwner
		Webhook string  `json:"webhook"`
		Reason  *string `json:"reason,omitempty" doc:"Why it was disabled, for people"`
	}
)

// EventOwner is part of every event's data.
type EventOwner struct {
	Client    string `json:"id_client,omitempty" doc:"Only for a partner's webhook"`
	Seq       int64  `json:"seq,omitempty" doc:"The event's number, which grows; a test has none"`
	Truncated bool   `json:"text_truncated,omitempty" doc:"true: the longest texts were cut"`
}

// eventFile documents the file of a reply: an object, or null.
type eventFile struct{}

// Schema describes the file to huma.
func (eventFile) Schema(r huma.Registry) *huma.Schema {
	type members struct {
		Type  string  `json:"type"`
		Name  string  `json:"name"`
		Size  int64   `json:"size" doc:"In bytes"`
		Until *string `json:"until" format:"date-time" doc:"How long it can be downloaded"`
	}
	s := *r.Schema(reflect.TypeFor[members](), false, "")
	s.Nullable, s.AdditionalProperties = true, nil
	return &s
}

// documentedEvent says when an event happens, which data it has, and what an example has.
type documentedEvent struct {
	summary string
	data    any
	subject int64
	detail  string
}

const bookingDetail = `{"sequence":"12","date":"2027-01-20T14:30:00.000000Z","status":`

const blacklistDetail = `{"phone":"+393331234567","reason":"Ha telefonato","origin":"client"}`

const sessionDetail = `{"name":"Negozio","connection_type":"Socket","sandbox":false,"state":`

const budgetDetail = `{"month":"2026-11","amount":"50.00","currency":"EUR","ends_at":"2026-11-30T23:00:00.000000Z","spent":`

const healthDetail = `{"name":"Negozio","quality":"YELLOW","limit":2000,"restricted_until":"2026-12-01T09:00:00.000000Z","restriction":"RESTRICTED_BIZ_INITIATED_MESSAGING",` +
	`"display_name":"approved","paused_templates":["promo"],"direct_send":"unknown","checked_at":"2026-11-25T09:29:00.000000Z"}`

var documentedEvents = map[puntuale.EventType]documentedEvent{
	puntuale.EventMessageSent:        {"A message left", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageDelivered:   {"A message reached the person's phone", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageRead:        {"A person read a message", MessageEvent{}, 27933694591001, ""},
	puntuale.EventLinkClicked:        {"A person followed a tracked link of a message for the first time", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageFailed:      {"A message failed", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageUncertain:   {"Nobody knows whether a message left", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageCancelled:   {"A message was cancelled", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageBlacklisted: {"The blacklist kept a message back", MessageEvent{}, 27933694591001, ""},
	puntuale.EventMessageRescheduled: {"A booking changed, and another message took this one's place", rescheduledEvent{}, 27933694591001, `{"new_message_id":27933694591002}`},
	puntuale.EventBookingCreated:     {"A booking was made, or is open again", bookingEvent{}, 5, bookingDetail + `"open","answer":null,"by":"api","revision":1}`},
	puntuale.EventBookingMoved:       {"A booking has another date", bookingEvent{}, 5, bookingDetail + `"open","answer":null,"by":"api","revision":2}`},
	puntuale.EventBookingConfirmed:   {"A booking was confirmed", bookingEvent{}, 5, bookingDetail + `"confirmed","answer":null,"by":"api","revision":3}`},
	puntuale.EventBookingCancelled:   {"A booking was cancelled", bookingEvent{}, 5, bookingDetail + `"cancelled","answer":null,"by":"api","revision":4}`},
	puntuale.EventBookingArrived:     {"The person arrived", bookingEvent{}, 5, bookingDetail + `"arrived","answer":null,"by":"api","revision":4}`},
	puntuale.EventBookingNoShow:      {"The person did not come", bookingEvent{}, 5, bookingDetail + `"no_show","answer":null,"by":"api","revision":4}`},
	puntuale.EventBookingAnswered:    {"A person answered a question about a booking", bookingEvent{}, 5, bookingDetail + `"confirmed","answer":{"does":"confirm","label":"Confermo","step":"1","at":"2027-01-19T14:30:05.000000Z","matched":"payload","stale":false},"by":"person","revision":3}`},
	puntuale.EventReplyReceived:      {"A person wrote", replyEvent{}, 130, ""},
	puntuale.EventFileKept:           {"The file that a person sent is kept", keptEvent{}, 130, ""},
	puntuale.EventFileFailed:         {"The file that a person sent is not kept, and there is no further attempt", keptEvent{}, 130, ""},
	puntuale.EventConsentChanged:     {"A person's consent changed", consentEvent{}, 3, ""},
	puntuale.EventBlacklistAdded:     {"A number came on the blacklist", blacklistEvent{}, 1, blacklistDetail},
	puntuale.EventBlacklistRemoved:   {"A number left the blacklist", blacklistEvent{}, 1, blacklistDetail},
	puntuale.EventNumberChanged:      {"A person has another number", numberEvent{}, 1, `{"phone":"+393332220002","old_phone":"+393331110001","names":["+393332220002","IT.1502576394655843"]}`},
	puntuale.EventSessionOnline:      {"A session can send", sessionEvent{}, 4, sessionDetail + `"online"}`},
	puntuale.EventSessionOffline:     {"A session cannot send at present", sessionEvent{}, 4, sessionDetail + `"connecting"}`},
	puntuale.EventSessionUnlinked:    {"A session has no number, so a person must link it", sessionEvent{}, 4, sessionDetail + `"unlinked"}`},
	puntuale.EventSessionRestricted:  {"The network restricts a session", sessionEvent{}, 4, sessionDetail + `"banned","until":"2026-11-26T00:00:00.000000Z"}`},
	puntuale.EventSessionHealth:      {"What Meta says about an Official session's number or business changed", healthEvent{}, 4, healthDetail},
	puntuale.EventCampaignStarted:    {"A campaign started, or went on after a pause", campaignEvent{}, 9, `{"name":"Natale","state":"running","resumed":true}`},
	puntuale.EventCampaignPaused:     {"A campaign paused", campaignEvent{}, 9, `{"name":"Natale","state":"paused","reason":"no_credit"}`},
	puntuale.EventCampaignDone:       {"A campaign ended", campaignEvent{}, 9, `{"name":"Natale","state":"done","counts":{"pending":0,"completed":95,"failed":3,"cancelled":0,"blacklisted":2}}`},
	puntuale.EventAutomationFired:    {"A rule acted", automationEvent{}, 2, `{"messages":["27933694591001"]}`},
	puntuale.EventCap80:              {"80 percent of the daily cap is used", capEvent{}, 0, `{"daily_api_cap":1000,"daily_api_used":800}`},
	puntuale.EventCapReached:         {"The whole daily cap is used", capEvent{}, 0, `{"daily_api_cap":1000,"daily_api_used":1000}`},
	puntuale.EventCreditLow:          {"Few credits are left", creditEvent{}, 0, `{"credits":12}`},
	puntuale.EventCreditOut:          {"No credit is left", creditEvent{}, 0, `{"credits":0}`},
	puntuale.EventBudgetLow:          {"80 percent of the budget of the month is used", budgetEvent{}, 0, budgetDetail + `"40.12","percent":80}`},
	puntuale.EventBudgetOut:          {"The budget of the month is used up, and marketing waits", budgetEvent{}, 0, budgetDetail + `"50.03","percent":100}`},
	puntuale.EventAccountExpiring:    {"The last day of service is in 14, 3 or 0 days", expiryEvent{}, 0, `{"expiration_date":"2026-12-09","days":14}`},
	puntuale.EventAccountExpired:     {"The service has ended", expiryEvent{}, 0, `{"expiration_date":"2026-12-09"}`},
	puntuale.EventTemplateChanged:    {"Meta changed a template, or somebody changed one of the client's own", templateEvent{}, 0, `{"name":"promo","language":"it","status":"PAUSED","status_before":"APPROVED","category":"MARKETING","quality":"RED"}`},
	puntuale.EventWebhookDisabled:    {"The server disabled a webhook", webhookEvent{}, 6, `{"reason":"[\"webhook.timeout\"]"}`},
	puntuale.EventWebhookTest:        {"Somebody tests the webhook", webhookEvent{}, 6, ""},
}

// example returns an event of the type, as the store would return it.
func (d documentedEvent) example(t puntuale.EventType) puntuale.Event {
	at := time.Date(2026, 11, 25, 9, 30, 0, 123456000, time.UTC)
	e := puntuale.Event{Client: 7, Seq: 41, Type: t, At: at, Subject: d.subject, Detail: d.detail}
	switch d.data.(type) {
	case MessageEvent, rescheduledEvent:
		states := map[puntuale.EventType]puntuale.State{
			puntuale.EventMessageFailed: puntuale.Failed, puntuale.EventMessageUncertain: puntuale.Pending,
			puntuale.EventMessageCancelled: puntuale.Cancelled, puntuale.EventMessageBlacklisted: puntuale.Blacklisted, puntuale.EventMessageRescheduled: puntuale.Rescheduled,
		}
		m := puntuale.Message{ID: puntuale.MessageID(d.subject), Session: 4, Origin: puntuale.OriginSequence, Phone: "+393331234567", State: states[t]}
		switch {
		case t == puntuale.EventMessageFailed:
			m.Reason = puntuale.Because(puntuale.ReasonNotLinked)
		case states[t] == 0:
			m.State = puntuale.Completed
		}
		e.Message = &puntuale.MessageDetail{Message: m, Sequence: 12, Reference: "booking-4711"}
	case bookingEvent:
		e.Booking = &puntuale.Booking{ID: 5, Reference: "booking-4711", Phone: "+393331234567"}
	case replyEvent:
		e.Reply = &puntuale.Reply{ID: 130, Session: 4, Phone: "+393331234567", At: at, Kind: puntuale.ReplyText, Text: "Sì, confermo", Run: 27933694591001}
	case keptEvent:
		k := &puntuale.KeptFile{File: "0000000000000000000000bv6d.pdf", Name: "referto.pdf", Type: "application/pdf", Size: 48211}
		if t == puntuale.EventFileFailed {
			k = &puntuale.KeptFile{Code: "file.infected", Args: []string{"Eicar-Test-Signature"}}
		}
		e.Reply = &puntuale.Reply{ID: 130, Session: 4, Phone: "+393331234567", InReplyTo: 27933694591001, Kept: k}
	case consentEvent:
		e.Consent = &puntuale.Consent{ID: 3, Phone: "+393331234567", Purpose: puntuale.PurposeMarketing, Change: puntuale.ConsentWithdraw, Source: "reply", Words: "Basta", At: at, Applied: true}
	}
	return e
}

// documentEvents describes the body of each type of event that a webhook gets, and the entries of the feed.
func documentEvents(o *huma.OpenAPI) {
	o.Webhooks = map[string]*huma.PathItem{}
	schemas := o.Components.Schemas
	feed := &huma.Schema{Discriminator: &huma.Discriminator{PropertyName: "type", Mapping: map[string]string{}}}
	schemas.Map()["EventsAnswer"].Properties["events"].Items = feed
	for _, t := range append(puntuale.AllEvents.Types(), puntuale.EventWebhookTest) {
		d, ok := documentedEvents[t]
		if !ok {
			continue // a test says so
		}
		e := d.example(t)
		data := schemas.Schema(reflect.TypeOf(d.data), true, "")
		body := &huma.Schema{
			Type: "object", Required: []string{"type", "timestamp", "data"},
			Properties: map[string]*huma.Schema{
				"type":      {Type: "string", Enum: []any{t.String()}},
				"timestamp": {Type: "string", Format: "date-time", Description: "When it happened"},
				"data":      data,
			},
		}
		if t != puntuale.EventWebhookTest { // the feed never has it
			addToFeed(schemas, feed, t.String(), body)
		}
		header := func(name, description string) *huma.Param {
			return &huma.Param{Name: name, In: "header", Required: true, Description: description, Schema: &huma.Schema{Type: "string"}}
		}
		o.Webhooks[t.String()] = &huma.PathItem{Post: &huma.Operation{
			OperationID: "on" + strings.ReplaceAll(strings.ReplaceAll(t.String(), ".", "_"), "_", ""),
			Summary:     d.summary,
			Description: "The signature follows Standard Webhooks 1.0.0. An answer with 2xx within 15 seconds takes the event; else it comes again, for three days.",
			Tags:        []string{"Webhooks"},
			Security:    []map[string][]string{},
			Parameters: []*huma.Param{
				header("webhook-id", "The event's id: the same in every attempt"),
				header("webhook-timestamp", "When this attempt was signed, in seconds since 1970"),
				header("webhook-signature", "One signature or several, such as v1,…"),
			},
			RequestBody: &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
				"application/json": {Schema: body, Example: json.RawMessage(eventjson.Body(&e, false))},
			}},
			Responses: map[string]*huma.Response{
				"2XX": {Description: "Taken"},
				"410": {Description: http.StatusText(http.StatusGone) + ": the server disables the webhook"},
			},
		}}
	}
}

// addToFeed describes an event in the feed of events: the body that a webhook gets, with the event's number.
func addToFeed(schemas huma.Registry, feed *huma.Schema, name string, body *huma.Schema) {
	entry := &huma.Schema{Type: body.Type, Required: append([]string{"seq"}, body.Required...), Properties: maps.Clone(body.Properties)}
	entry.Properties["seq"] = &huma.Schema{Type: huma.TypeInteger, Format: "int64", Description: "The event's number"}
	title := "Feed"
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '_' }) {
		title += strings.ToUpper(word[:1]) + word[1:]
	}
	schemas.Map()[title] = entry
	ref := "#/components/schemas/" + title
	feed.OneOf = append(feed.OneOf, &huma.Schema{Ref: ref})
	feed.Discriminator.Mapping[name] = ref
}
