package sendapp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// report is what a gateway posts to a webhook. The two generations of gateways nest it differently.
type report struct {
	Instance string          `json:"instance_id"`
	Event    string          `json:"event"`
	Data     json.RawMessage `json:"data"`
}

// readReport reads a webhook's body. It returns false if the body is no report.
func readReport(body []byte) (report, bool) {
	var r report
	if json.Unmarshal(body, &r) != nil {
		return report{}, false
	}
	if r.Event == "" { // the older shape: {"instance_id", "data": {"event", "data"}}
		var inner report
		if json.Unmarshal(r.Data, &inner) != nil {
			return report{}, false
		}
		r.Event, r.Data = inner.Event, inner.Data
	}
	return r, r.Instance != "" && r.Event != ""
}

// messageKey names a message and its chat.
type messageKey struct {
	ID      string `json:"id"`
	Chat    string `json:"remoteJid"`
	ChatAlt string `json:"remoteJidAlt"` // the number, if Chat does not show it
	Sender  string `json:"senderPn"`     // the number in older gateways, if Chat does not show it
	Mine    bool   `json:"fromMe"`
}

// phone returns the number of a chat with one person. It returns "" for a group, and for a person who hides the number.
func (k messageKey) phone() string {
	for _, id := range []string{k.Chat, k.ChatAlt, k.Sender} {
		if n := numberOf(id); n != "" {
			return n
		}
	}
	return ""
}

// person returns the name of the other side of a chat with one person, as messages name it. The name is a LID if the
// person hides the number. It is "" for groups, broadcasts and others.
func (k messageKey) person() string {
	digits, server, _ := strings.Cut(k.Chat, "@")
	switch server {
	case "s.whatsapp.net", "c.us":
		return numberOf(k.Chat)
	case "lid":
		if n := k.phone(); n != "" {
			return n
		}
		if digits, _, _ = strings.Cut(digits, ":"); digits != "" && len(digits) <= 20 && strings.Trim(digits, "0123456789") == "" {
			return digits + "@lid"
		}
	}
	return ""
}

// recipient returns the name of the chat as messages name it: a number or a group's id. It returns "" for any other
// chat.
func (k messageKey) recipient() string {
	if strings.HasSuffix(k.Chat, "@g.us") {
		return k.Chat
	}
	return k.phone()
}

// message is a message that a person, or this connector, wrote.
type message struct {
	Key     messageKey                 `json:"key"`
	At      seconds                    `json:"messageTimestamp"`
	Content map[string]json.RawMessage `json:"message"`
}

// arrivals is the payload of messages.upsert.
type arrivals struct {
	Messages []message `json:"messages"`
	Type     string    `json:"type"` // "append" marks an echo of what the gateway sent, and a message that came while the gateway was offline
}

// update is one part of the payload of messages.update.
type update struct {
	Key    messageKey `json:"key"`
	Update struct {
		Status *int     `json:"status"`
		Codes  []string `json:"messageStubParameters"`
	} `json:"update"`
}

// arrivals reads the payload of messages.upsert. It returns none if the payload is something else.
func (r report) arrivals() (all arrivals) {
	if json.Unmarshal(r.Data, &all) != nil {
		return arrivals{}
	}
	return all
}

// updates reads the payload of messages.update. It returns none if the payload is something else.
func (r report) updates() (all []update) {
	if json.Unmarshal(r.Data, &all) != nil {
		return nil
	}
	return all
}

// seconds is a moment.
type seconds struct{ time.Time }

func (s *seconds) UnmarshalJSON(text []byte) error {
	if n, ok := wholeNumber(text); ok && n < 1<<40 {
		s.Time = time.Unix(n, 0).UTC()
	}
	return nil
}

// wholeNumber reads a number above zero. Gateways write it as a number, as a text, or as the two halves of a long integer.
func wholeNumber(text []byte) (int64, bool) {
	var long struct {
		Low int64 `json:"low"`
	}
	if json.Unmarshal(text, &long) == nil && long.Low > 0 {
		return long.Low, true
	}
	n, err := strconv.ParseInt(string(bytes.Trim(text, `"`)), 10, 64)
	return n, err == nil && n > 0
}
