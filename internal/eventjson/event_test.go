package eventjson_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/eventjson"
)

var at = time.Date(2026, 11, 25, 9, 30, 0, 123456000, time.UTC)

func message(state puntuale.State, reason puntuale.Reason) *puntuale.MessageDetail {
	return &puntuale.MessageDetail{
		Message:  puntuale.Message{Client: 7, ID: 123, Session: 4, Run: 123, Origin: puntuale.OriginSequence, Phone: "+393331234567", State: state, Reason: reason},
		Sequence: 12, Reference: "pren-77/ò",
	}
}

// one returns an event of a type, with the members that the store would set.
func one(t puntuale.EventType) puntuale.Event {
	e := puntuale.Event{Client: 7, Seq: 41, Type: t, At: at}
	switch t {
	case puntuale.EventMessageSent, puntuale.EventMessageDelivered, puntuale.EventMessageRead:
		e.Subject, e.Message = 123, message(puntuale.Completed, puntuale.Reason{})
	case puntuale.EventMessageFailed:
		e.Subject, e.Message = 123, message(puntuale.Failed, puntuale.Because(puntuale.ReasonNotLinked))
		e.Message.Sequence, e.Message.Campaign, e.Message.Origin, e.Message.Reference = 0, 9, puntuale.OriginMassive, ""
	case puntuale.EventMessageUncertain:
		e.Subject, e.Message = 123, message(puntuale.Pending, puntuale.Reason{})
		e.Message.Intent = 5
	case puntuale.EventMessageCancelled:
		e.Subject, e.Message = 123, message(puntuale.Cancelled, puntuale.Reason{})
	case puntuale.EventMessageBlacklisted:
		e.Subject, e.Message = 123, message(puntuale.Blacklisted, puntuale.Reason{})
	case puntuale.EventReplyReceived:
		e.Subject, e.Reply = 130, &puntuale.Reply{ID: 130, Session: 4, Phone: "+393331234567", At: at, Kind: puntuale.ReplyImage, Text: "Sì, <grazie> & \"a domani\"",
			Media: &puntuale.ReplyMedia{Type: "image/jpeg", Name: "foto.jpg", Size: 4711, Until: at, Ref: []byte("not for anybody")}, Run: 123, Effect: puntuale.ReplyStopped}
	case puntuale.EventFileKept:
		e.Subject, e.Reply = 130, &puntuale.Reply{ID: 130, Session: 4, Phone: "+393331234567", At: at, Text: "not in this event", InReplyTo: 123,
			Kept: &puntuale.KeptFile{File: "00000000000000000000000001.jpg", Name: "foto.jpg", Type: "image/jpeg", Size: 4711, Small: true}}
	case puntuale.EventFileFailed:
		e.Subject, e.Reply = 130, &puntuale.Reply{ID: 130, Session: 4, Phone: "+393331234567", At: at, Kept: &puntuale.KeptFile{Code: "file.infected", Args: []string{"Eicar"}}}
	case puntuale.EventConsentChanged:
		e.Subject, e.Consent = 3, &puntuale.Consent{ID: 3, Phone: "+393331234567", Purpose: puntuale.PurposeMarketing, Change: puntuale.ConsentWithdraw, Source: "reply", Words: "Basta!", At: at, Applied: true}
	case puntuale.EventBlacklistAdded, puntuale.EventBlacklistRemoved:
		e.Subject, e.Detail = 1, `{"phone":"+393331234567","reason":"Ha telefonato","origin":"client"}`
	case puntuale.EventNumberChanged:
		e.Subject, e.Detail = 1, `{"phone":"+393332220002","old_phone":"+393331110001","names":["+393332220002","IT.NEW0002"]}`
	case puntuale.EventSessionOnline, puntuale.EventSessionOffline, puntuale.EventSessionUnlinked, puntuale.EventSessionRestricted:
		e.Subject, e.Detail = 4, `{"name":"negozio","connection_type":"Socket","sandbox":false,"state":"banned","until":"2026-11-26T00:00:00.000000Z","reason":"[\"socket.ban_strangers\"]","id_sessione":"99","seq":1}`
	case puntuale.EventSessionHealth:
		e.Subject, e.Detail = 4, `{"name":"negozio","quality":"RED","limit":2000,"restricted_until":null,"restriction":null,"display_name":"approved","paused_templates":["promo"],"direct_send":"unknown","checked_at":"2026-11-25T09:29:00.000000Z"}`
	case puntuale.EventCampaignStarted:
		e.Subject, e.Detail = 9, `{"name":"Natale","reference":"saldi","state":"running","resumed":true}`
	case puntuale.EventCampaignDone:
		e.Subject, e.Detail = 9, `{"name":"Natale","state":"done","counts":{"pending":0,"completed":95,"failed":3,"cancelled":0,"blacklisted":2}}`
	case puntuale.EventCampaignPaused:
		e.Subject, e.Detail = 9, `{"name":"Natale","state":"paused","reason":"no_credit"}`
	case puntuale.EventAutomationFired:
		e.Subject, e.Detail = 2, `{"messages":["140"]}`
	case puntuale.EventCap80, puntuale.EventCapReached:
		e.Detail = `{"daily_api_cap":1000,"daily_api_used":800}`
	case puntuale.EventCreditLow, puntuale.EventCreditOut:
		e.Detail = `{"credits":12}`
	case puntuale.EventBudgetLow:
		e.Detail = `{"month":"2026-11","percent":80,"amount":"50.00","spent":"40.12","currency":"EUR","ends_at":"2026-11-30T23:00:00.000000Z"}`
	case puntuale.EventBudgetOut: // the client may not know the amounts
		e.Detail = `{"month":"2026-11","percent":100,"amount":"50.00","spent":"50.12","currency":"EUR","ends_at":"2026-11-30T23:00:00.000000Z","hidden":true}`
	case puntuale.EventAccountExpiring, puntuale.EventAccountExpired:
		e.Detail = `{"expiration_date":"2026-12-09","days":14}`
	case puntuale.EventTemplateChanged:
		e.Detail = `{"name":"promo","language":"it","status":"PAUSED","status_before":"APPROVED","category":"MARKETING","quality":"RED","reason":"FIRST_PAUSE"}`
	case puntuale.EventWebhookDisabled:
		e.Subject, e.Detail = 6, `{"reason":"[\"webhook.timeout\"]"}`
	case puntuale.EventMessageRescheduled:
		e.Subject, e.Message, e.Detail = 123, message(puntuale.Cancelled, puntuale.Because(puntuale.ReasonBookingMoved)), `{"new_message_id":124}`
	case puntuale.EventBookingCreated, puntuale.EventBookingMoved, puntuale.EventBookingConfirmed, puntuale.EventBookingCancelled, puntuale.EventBookingArrived, puntuale.EventBookingNoShow:
		e.Subject, e.Booking = 5, &puntuale.Booking{ID: 5, Reference: "pren-77/ò", Phone: "+393331234567"}
		e.Detail = `{"sequence":"12","date":"2027-01-20T14:30:00.000000Z","status":"open","answer":null,"by":"api","revision":2}`
	case puntuale.EventBookingAnswered:
		e.Subject, e.Booking = 5, &puntuale.Booking{ID: 5, Reference: "pren-77/ò", Phone: "+393331234567"}
		e.Detail = `{"sequence":"12","date":"2027-01-20T14:30:00.000000Z","status":"confirmed","answer":{"does":"confirm","label":"Confermo","step":"2","at":"2027-01-19T09:00:00.000000Z","matched":"payload","stale":false},"by":"person","revision":3}`
	case puntuale.EventWebhookTest:
		e.Subject, e.Seq = 6, 0
	}
	return e
}

// TestBodies compares every type of event with a golden file. The file contains each event in three forms: for a
// client's webhook, for a partner's webhook, and for the event feed.
func TestBodies(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, kind := range append(puntuale.AllEvents.Types(), puntuale.EventWebhookTest) {
		e := one(kind)
		for _, text := range [][]byte{eventjson.Body(&e, false), eventjson.Body(&e, true), eventjson.Entry(&e)} {
			if !json.Valid(text) {
				t.Errorf("%s: %s is no JSON", kind, text)
			}
		}
		all.WriteString(eventjson.ID(&e) + "\n")
		all.Write(eventjson.Body(&e, false))
		all.WriteString("\n")
		if kind == puntuale.EventMessageSent || kind == puntuale.EventCap80 {
			all.Write(eventjson.Body(&e, true))
			all.WriteString("\n")
			all.Write(eventjson.Entry(&e))
			all.WriteString("\n")
		}
	}
	for _, kind := range []puntuale.EventType{puntuale.EventMessageFailed, puntuale.EventReplyReceived, puntuale.EventFileKept, puntuale.EventConsentChanged, puntuale.EventMessageRescheduled, puntuale.EventBookingMoved, puntuale.EventBlacklistRemoved, puntuale.EventNumberChanged} {
		e := one(kind) // an event whose subject no longer exists
		e.Message, e.Reply, e.Consent, e.Booking = nil, nil, nil, nil
		if kind == puntuale.EventBlacklistRemoved || kind == puntuale.EventNumberChanged {
			e.Subject, e.Detail = 0, ""
		}
		all.Write(eventjson.Body(&e, false))
		all.WriteString("\n")
	}
	moved := one(puntuale.EventMessageFailed) // an event whose message was later sent again
	moved.Message.State, moved.Message.Reason = puntuale.Rescheduled, puntuale.Reason{}
	all.Write(eventjson.Body(&moved, false))
	all.WriteString("\n")
	golden(t, "bodies.golden", all.String())
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (UPDATE=1 writes it):\n%s", file, got)
	}
}

// TestLongTexts checks that long texts never make a body longer than its limit. A cut text is not empty, and the body
// says that a text was cut.
func TestLongTexts(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"ascii": strings.Repeat("a", 100_000), "accents": strings.Repeat("òà", 50_000), "emoji": strings.Repeat("🎄", 20_000),
		"control": strings.Repeat("\x01", 10_000), "quotes": strings.Repeat(`"\`, 20_000), "broken": strings.Repeat("\xff", 30_000),
	} {
		reply, consent, other, kept := one(puntuale.EventReplyReceived), one(puntuale.EventConsentChanged), one(puntuale.EventCampaignDone), one(puntuale.EventMessageFailed)
		reply.Reply.Text, reply.Reply.Media.Name = text, text
		consent.Consent.Words, consent.Consent.Source = text, text
		detail, err := json.Marshal(map[string]any{"name": text, "more": []string{text}})
		if err != nil {
			t.Fatal(err)
		}
		other.Detail = string(detail)
		kept.Message.Reason, kept.Message.Reference = puntuale.Quoted(text), text
		for _, e := range []puntuale.Event{reply, consent, other, kept} {
			for _, body := range [][]byte{eventjson.Body(&e, true), eventjson.Entry(&e)} {
				var read struct {
					Data map[string]any
				}
				if err := json.Unmarshal(body, &read); err != nil {
					t.Fatalf("%s, %s: %v", name, e.Type, err)
				}
				if len(body) > puntuale.MaxEvent || !utf8.Valid(body) {
					t.Errorf("%s, %s: %d bytes", name, e.Type, len(body))
				}
				if read.Data["text_truncated"] != true || len(body) < puntuale.MaxEvent/4 {
					t.Errorf("%s, %s: cut to %d bytes: %.200s", name, e.Type, len(body), body)
				}
			}
		}
	}
	short := one(puntuale.EventReplyReceived)
	short.Reply.Text = strings.Repeat("è", puntuale.MaxReply) // the longest text that stores accept
	if body := eventjson.Body(&short, true); strings.Contains(string(body), "text_truncated") {
		t.Errorf("a reply of %d bytes was cut", len(body))
	}
}

// FuzzDetail checks that the body is JSON and contains the event's own number, for any Detail.
func FuzzDetail(f *testing.F) {
	f.Add(`{"name":"Natale","seq":1}`)
	f.Add(`[1]`)
	f.Add(`{"reason":"[\"no_credit\"]"}`)
	f.Fuzz(func(t *testing.T, detail string) {
		e := puntuale.Event{Client: 1, Seq: 8, Type: puntuale.EventCampaignDone, Subject: 3, At: at, Detail: detail}
		body := eventjson.Body(&e, false)
		var read struct {
			Data struct {
				Seq      int64  `json:"seq"`
				Campaign string `json:"campaign"`
			}
		}
		if err := json.Unmarshal(body, &read); err != nil || len(body) > puntuale.MaxEvent {
			t.Fatalf("%s: %v", body, err)
		}
		if read.Data.Seq != 8 || read.Data.Campaign != "3" {
			t.Errorf("%s", body)
		}
	})
}
