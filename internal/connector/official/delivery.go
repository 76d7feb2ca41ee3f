package official

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// delivery is what Meta posts to a webhook, as far as it matters here.
type delivery struct {
	Object string `json:"object"`
	Entry  []struct {
		Changes []struct {
			Field string          `json:"field"`
			Value json.RawMessage `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

// change is the value of one change. Its parts are read one by one: an odd one costs no other.
type change struct {
	Metadata struct {
		PhoneNumberID string `json:"phone_number_id"`
	} `json:"metadata"`
	Statuses    []json.RawMessage `json:"statuses"`
	Messages    []json.RawMessage `json:"messages"`
	Calls       []json.RawMessage `json:"calls"`
	Preferences []json.RawMessage `json:"user_preferences"`
}

type status struct {
	ID       string       `json:"id"`
	Status   string       `json:"status"`
	At       seconds      `json:"timestamp"`
	Callback string       `json:"biz_opaque_callback_data"`
	Errors   []graphError `json:"errors"`
}

type heard struct {
	From      string  `json:"from"`
	At        seconds `json:"timestamp"`
	Type      string  `json:"type"`
	Group     string  `json:"group_id"`
	Direction string  `json:"direction"` // of a call
}

type preference struct {
	Person   string  `json:"wa_id"`
	Category string  `json:"category"`
	Value    string  `json:"value"`
	At       seconds `json:"timestamp"`
}

// seconds is a moment that Meta writes as a text or a number.
type seconds struct{ time.Time }

func (s *seconds) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err == nil && n > 0 && n < 1<<40 {
		s.Time = time.Unix(n, 0).UTC()
	}
	return nil
}

// reader gathers what one delivery tells.
type reader struct {
	c      *Connector
	at     origin
	number string // the session's phone_number_id
	now    time.Time
	told   puntuale.Incoming
	odd    int
}

// read makes of a delivery what is to be kept; odd counts what is not understood, or not about the session's number.
func (c *Connector) read(body []byte, at origin, number string) (told puntuale.Incoming, odd int) {
	r := &reader{c: c, at: at, number: number, now: c.cfg.Clock.Now()}
	var d delivery
	if json.Unmarshal(body, &d) != nil || d.Object != "whatsapp_business_account" {
		return told, 1
	}
	for _, entry := range d.Entry {
		for _, part := range entry.Changes {
			switch part.Field {
			case "messages", "calls", "user_preferences":
				r.change(part.Value)
			}
		}
	}
	return r.told, r.odd
}

func (r *reader) change(value json.RawMessage) {
	var v change
	if json.Unmarshal(value, &v) != nil || v.Metadata.PhoneNumberID != r.number {
		r.odd++ // an app's webhook may bring what concerns its other numbers, which have their own
		return
	}
	for _, text := range v.Statuses {
		each(r, text, r.status)
	}
	for _, text := range v.Messages {
		each(r, text, r.message)
	}
	for _, text := range v.Calls {
		each(r, text, r.call)
	}
	for _, text := range v.Preferences {
		each(r, text, r.preference)
	}
}

// each decodes one part and hands it on; one that cannot be read is odd.
func each[T any](r *reader, text json.RawMessage, take func(*T) bool) {
	var part T
	if json.Unmarshal(text, &part) != nil || !take(&part) {
		r.odd++
	}
}

var evidenceOf = map[string]puntuale.EvidenceKind{
	"sent": puntuale.EvidenceSent, "delivered": puntuale.EvidenceDelivered, "read": puntuale.EvidenceRead,
	"played": puntuale.EvidenceRead, "failed": puntuale.EvidenceFailed,
}

func (r *reader) status(s *status) bool {
	kind, known := evidenceOf[s.Status]
	id, token, ours := readCallback(s.Callback)
	if !known || !ours {
		return !known // a kind of a later version is no fault; a message that another program sent, is odd here
	}
	e := puntuale.Evidence{
		MessageRef: puntuale.MessageRef{Client: r.at.client, ID: id}, Session: r.at.session, Token: token, Kind: kind,
		At: r.moment(s.At), Detail: storable(clip(s.ID, 300)),
	}
	if kind == puntuale.EvidenceFailed {
		r.failed(&e, s)
	}
	r.told.Evidence = append(r.told.Evidence, e)
	return true
}

// failed says why, and does to the number what the reason asks for, if it is open here.
func (r *reader) failed(e *puntuale.Evidence, s *status) {
	e.Reason = saysInvalid
	if len(s.Errors) == 0 {
		return
	}
	refusal := &s.Errors[0]
	row, _ := ruleOf(refusal.Code)
	e.Reason, e.Detail = row.says, refusal.detail()+" "+e.Detail
	a := r.c.account(r.at.session)
	switch {
	case row.action == optedOut:
		e.Block = optOutReason(refusal.Code, e.At)
	case a == nil || r.now.Sub(e.At) > holdFor: // an old story
	case row.action == holdNumber:
		a.hold(puntuale.LinkLinked, row.says, refusal, holdFor)
	case row.action == noAccess:
		a.hold(puntuale.LinkUnlinked, row.says, refusal, noAccessFor)
	}
}

func (r *reader) message(m *heard) bool {
	if m.Type == "system" || m.Group != "" { // not what a person wrote to the number
		return true
	}
	return r.heard(m)
}

func (r *reader) call(m *heard) bool {
	return m.Direction != "USER_INITIATED" || r.heard(m)
}

func (r *reader) heard(m *heard) bool {
	phone, ok := phoneOf(m.From)
	if !ok {
		return false
	}
	r.told.Heard = append(r.told.Heard, puntuale.Heard{Client: r.at.client, Session: r.at.session, Phone: phone, At: r.moment(m.At)})
	return true
}

func (r *reader) preference(p *preference) bool {
	phone, ok := phoneOf(p.Person)
	if !ok || p.Value != "stop" && p.Value != "resume" {
		return false
	}
	at := r.moment(p.At)
	r.told.Preferences = append(r.told.Preferences, puntuale.Preference{
		Client: r.at.client, Session: r.at.session, Phone: phone, Stop: p.Value == "stop", At: at,
		Reason: "non vuole messaggi di marketing (preferenza WhatsApp, " + at.Format(time.RFC3339) + ")",
	})
	return true
}

// moment is when something happened: never later than now.
func (r *reader) moment(at seconds) time.Time {
	if at.IsZero() || at.After(r.now) {
		return r.now
	}
	return at.Time
}

// phoneOf makes a wa_id a phone number: digits, without +.
func phoneOf(waID string) (string, bool) {
	waID = strings.TrimPrefix(waID, "+")
	if len(waID) < 5 || len(waID) > 20 || strings.Trim(waID, "0123456789") != "" {
		return "", false
	}
	return "+" + waID, true
}
