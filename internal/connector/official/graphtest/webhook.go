package graphtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Status returns the body of a delivery with one status of a message. codes are the error codes of a failure.
func (p *Peer) Status(m Taken, status string, at time.Time, codes ...int) []byte {
	return p.status(m, status, at, nil, "per prova", codes...)
}

// Failed returns the body of a delivery: a message failed with a code and its details.
func (p *Peer) Failed(m Taken, at time.Time, code int, details string) []byte {
	return p.status(m, "failed", at, nil, details, code)
}

func (p *Peer) status(m Taken, status string, at time.Time, pricing map[string]any, details string, codes ...int) []byte {
	s := map[string]any{
		"id": m.WAMID, "status": status, "timestamp": fmt.Sprint(at.Unix()),
		"biz_opaque_callback_data": m.Message.Token,
	}
	n := p.nameOf(m.Message.Recipient())
	if n.Number != "" {
		s["recipient_id"] = n.Number
	}
	if n.ID != "" {
		s["recipient_user_id"] = n.ID
	}
	if pricing != nil {
		s["pricing"] = pricing
	}
	var errs []any
	for _, code := range codes {
		errs = append(errs, map[string]any{"code": code, "title": "refused", "message": "refused", "error_data": map[string]any{"details": details}})
	}
	if errs != nil {
		s["errors"] = errs
	}
	return p.Event(m.Number, "messages", "statuses", s)
}

// Priced is like Status. The status also contains what Meta bills for the message.
func (p *Peer) Priced(m Taken, status string, at time.Time, category string, billable bool) []byte {
	kind := "regular"
	if !billable {
		kind = "free_entry_point"
	}
	return p.status(m, status, at, map[string]any{"billable": billable, "pricing_model": "PMP", "type": kind, "category": category}, "")
}

// Wrote returns the body of a delivery: a person wrote a text.
func (p *Peer) Wrote(number, phone string, at time.Time) []byte {
	return p.Inbound(number, phone, "wamid.in."+fmt.Sprint(at.UnixNano()), at, "text", map[string]any{"body": "sì, è così 👍"})
}

// Inbound returns the body of a delivery: a person wrote a message. kind is the message's type, such as "image". content
// is the value of the message's member with this name; nil: the message has no such member.
func (p *Peer) Inbound(number, phone, id string, at time.Time, kind string, content any) []byte {
	return p.Event(number, "messages", "messages", p.written(phone, "from", id, at, kind, content))
}

// Quoting is like Inbound. The message quotes the message with the id wamid, or is a tap of one of its buttons.
func (p *Peer) Quoting(number, phone, id, wamid string, at time.Time, kind string, content any) []byte {
	m := p.written(phone, "from", id, at, kind, content)
	m["context"] = map[string]any{"from": "390212345", "id": wamid}
	return p.Event(number, "messages", "messages", m)
}

// Echo returns the body of a delivery: the business wrote a message to a person in the WhatsApp Business app.
func (p *Peer) Echo(number, phone, id string, at time.Time, kind string, content any) []byte {
	m := p.written(phone, "to", id, at, kind, content)
	m["from"] = "390212345"
	return p.Event(number, "smb_message_echoes", "message_echoes", m)
}

// written returns a message from or to a person. The argument sender, "from" or "to", names the member that contains
// the person's number. The person's id is in the member from_user_id or to_user_id.
func (p *Peer) written(phone, sender, id string, at time.Time, kind string, content any) map[string]any {
	m := map[string]any{"id": id, "timestamp": fmt.Sprint(at.Unix()), "type": kind}
	if content != nil {
		m[kind] = content
	}
	n := p.nameOf(phone)
	if n.Number != "" {
		m[sender] = n.Number
	}
	if n.ID != "" {
		m[sender+"_user_id"] = n.ID
	}
	return m
}

// Prefers returns the body of a delivery: a person set the preference stop or resume.
func (p *Peer) Prefers(number, phone, value string, at time.Time) []byte {
	wish := map[string]any{
		"detail": "User requested to " + value + " marketing messages", "category": "marketing_messages", "value": value, "timestamp": fmt.Sprint(at.Unix()),
	}
	n := p.nameOf(phone)
	if n.Number != "" {
		wish["wa_id"] = n.Number
	}
	if n.ID != "" {
		wish["user_id"] = n.ID
	}
	return p.Event(number, "user_preferences", "user_preferences", wish)
}

// Event returns the body of a delivery with one part. As in Meta's deliveries, characters outside ASCII are escaped.
func (p *Peer) Event(number, field, list string, part any) []byte {
	p.mu.Lock()
	account := p.numbers[number].Account
	p.mu.Unlock()
	return p.escaped(map[string]any{"object": "whatsapp_business_account", "entry": []any{map[string]any{
		"id": account, "changes": []any{map[string]any{"field": field, "value": map[string]any{
			"messaging_product": "whatsapp", "metadata": map[string]any{"display_phone_number": "390212345", "phone_number_id": number},
			list: []any{part},
		}}},
	}}})
}

// escaped returns JSON in which characters outside ASCII are escaped.
func (p *Peer) escaped(delivery map[string]any) []byte {
	body, err := json.Marshal(delivery)
	if err != nil {
		p.t.Fatal(err)
	}
	var escaped bytes.Buffer
	for _, r := range string(body) {
		switch {
		case r < 0x80:
			escaped.WriteRune(r)
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&escaped, `\u%04x\u%04x`, 0xd800+(r>>10), 0xdc00+(r&0x3ff))
		default:
			fmt.Fprintf(&escaped, `\u%04x`, r)
		}
	}
	return escaped.Bytes()
}

// Subscribe sets a webhook's address, as a person does on Meta's pages. word is the verify token, which Meta then sends
// to the address. Subscribe reports whether Meta would accept the address.
func (p *Peer) Subscribe(webhook, word string) bool {
	const challenge = "1158201444"
	query := url.Values{"hub.mode": {"subscribe"}, "hub.verify_token": {word}, "hub.challenge": {challenge}}
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, webhook+"?"+query.Encode(), nil)
	if err != nil {
		p.t.Error(err)
		return false
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Error(err)
		return false
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(io.LimitReader(answer.Body, 1<<10))
	return err == nil && answer.StatusCode == http.StatusOK && string(said) == challenge
}

// Signature returns the signature of a body with an app's secret.
func Signature(secret string, body []byte) string { return "sha256=" + hmacOf(secret, string(body)) }

// Deliver posts a body to a webhook, signed with the number's secret. It returns the HTTP status of the answer.
func (p *Peer) Deliver(webhook, number string, body []byte) int {
	p.mu.Lock()
	secret := p.numbers[number].Secret
	p.mu.Unlock()
	return p.DeliverAs(webhook, Signature(secret, body), body)
}

// DeliverAs posts a body with the given signature. It returns the HTTP status of the answer.
func (p *Peer) DeliverAs(webhook, signature string, body []byte) int {
	r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, webhook, bytes.NewReader(body))
	if err != nil {
		p.t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	if signature != "" {
		r.Header.Set("X-Hub-Signature-256", signature)
	}
	answer, err := p.client.Do(r)
	if err != nil {
		p.t.Error(err)
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// PricedAs is like Status. The status also contains Meta's pricing of the message, member by member.
func (p *Peer) PricedAs(m Taken, status string, at time.Time, pricing map[string]any) []byte {
	return p.status(m, status, at, pricing, "")
}
