package gatewaytest

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"io"
	"net/http"
	"strconv"
	"time"

	"puntuale/internal/clock"
)

// blank is a picture without a code.
var blank = func() []byte {
	var b bytes.Buffer
	_ = png.Encode(&b, image.NewGray(image.Rect(0, 0, 64, 64)))
	return b.Bytes()
}()

// Report posts an event to an address, as the gateway does. It returns the HTTP status of the answer.
func (p *Peer) Report(address, instance, event string, payload any) int {
	p.t.Helper()
	p.mu.Lock()
	newer := p.newer
	p.mu.Unlock()
	body := object{"instance_id": instance, "data": object{"event": event, "data": payload}}
	if newer {
		body = object{"instance_id": instance, "event": event, "data": payload, "timestamp": clock.System().Now().UnixMilli()}
	}
	text, err := json.Marshal(body)
	if err != nil {
		p.t.Fatal(err)
	}
	return p.Post(address, text)
}

// Post posts any bytes to an address. It returns the HTTP status of the answer.
func (p *Peer) Post(address string, body []byte) int {
	p.t.Helper()
	response, err := p.client.Post(address, "application/json", bytes.NewReader(body)) //nolint:noctx // a gateway never gives up a request
	if err != nil {
		p.t.Errorf("post to the webhook: %v", err)
		return 0
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	return response.StatusCode
}

// Echo returns the payload of messages.upsert for a message that the gateway sent.
func Echo(s Sent, at time.Time) any {
	content := object{"extendedTextMessage": object{"text": s.Text}}
	if s.Media != "" {
		content = object{"imageMessage": object{"caption": s.Text, "url": "https://mmg.whatsapp.net/x"}}
	}
	return object{"type": "append", "messages": []any{object{
		"key":              object{"remoteJid": chatOf(s.To), "fromMe": true, "id": s.ID},
		"messageTimestamp": strconv.FormatInt(at.Unix(), 10), "message": content,
	}}}
}

// Wrote returns the payload of messages.upsert for a text from a person. If hidden is true, the chat does not contain
// the person's number.
func Wrote(id, number, text string, hidden bool, at time.Time) any {
	key := object{"remoteJid": chatOf(number), "fromMe": false, "id": id}
	if hidden {
		key["remoteJid"], key["remoteJidAlt"] = "177000"+number+"@lid", chatOf(number)
	}
	return object{"type": "notify", "messages": []any{object{
		"key": key, "pushName": "Ada", "messageTimestamp": at.Unix(), "message": object{"conversation": text},
	}}}
}

// Message returns the payload of messages.upsert for a message with any content. If fromMe is true, the phone's owner
// wrote the message; otherwise another person did. kind is notify or append.
func Message(id, chat string, fromMe bool, kind string, content any, at time.Time) any {
	return object{"type": kind, "messages": []any{object{
		"key": object{"remoteJid": chat, "fromMe": fromMe, "id": id}, "messageTimestamp": at.Unix(), "message": content,
	}}}
}

// Ack returns the payload of messages.update. The statuses are those of Baileys: 0 error, 2 server, 3 delivered, 4
// read.
func Ack(s Sent, status int, codes ...string) any {
	update := object{"status": status}
	if len(codes) > 0 {
		update["messageStubParameters"] = codes
	}
	return []any{object{"key": object{"id": s.ID, "remoteJid": chatOf(s.To), "fromMe": true}, "update": update}}
}

var _ http.Handler = (*Peer)(nil)
