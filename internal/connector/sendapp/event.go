package sendapp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// report is the body that a gateway posts to a webhook. The two generations of gateways nest its members differently.
type report struct {
	Instance string          `json:"instance_id"`
	Event    string          `json:"event"`
	Data     json.RawMessage `json:"data"`
}

// readReport decodes a webhook's body. It returns false if the body is not a report.
func readReport(body []byte) (report, bool) {
	var r report
	if json.Unmarshal(body, &r) != nil {
		return report{}, false
	}
	if r.Event == "" { // the older form: {"instance_id", "data": {"event", "data"}}
		var inner report
		if json.Unmarshal(r.Data, &inner) != nil {
			return report{}, false
		}
		r.Event, r.Data = inner.Event, inner.Data
	}
	return r, r.Instance != "" && r.Event != ""
}

// messageKey identifies a message and its chat.
type messageKey struct {
	ID      string `json:"id"`
	Chat    string `json:"remoteJid"`
	ChatAlt string `json:"remoteJidAlt"` // the number, if Chat does not contain it
	Sender  string `json:"senderPn"`     // in older gateways the number, if Chat does not contain it
	FromMe  bool   `json:"fromMe"`
}

// phone returns the number of a chat with one person. It returns "" for a group, and if the person hides the number.
func (k messageKey) phone() string {
	for _, id := range []string{k.Chat, k.ChatAlt, k.Sender} {
		if n := numberOf(id); n != "" {
			return n
		}
	}
	return ""
}

// person returns the name of the person in a chat with one person: the number, or the LID if the person hides the
// number. It returns "" for groups, broadcasts and other chats.
func (k messageKey) person() string {
	_, server, _ := strings.Cut(k.Chat, "@")
	switch server {
	case "s.whatsapp.net", "c.us":
		return numberOf(k.Chat)
	case "lid":
		if n := k.phone(); n != "" {
			return n
		}
		return k.hidden()
	}
	return ""
}

// hidden returns the LID of the person in a chat with one person, or "" if the chat has none.
func (k messageKey) hidden() string {
	digits, server, _ := strings.Cut(k.Chat, "@")
	if digits, _, _ = strings.Cut(digits, ":"); server != "lid" || digits == "" || len(digits) > 20 || strings.Trim(digits, "0123456789") != "" {
		return ""
	}
	return digits + "@lid"
}

// recipient returns the chat as the recipient of a message: a number or a group's id. It returns "" for other chats.
func (k messageKey) recipient() string {
	if strings.HasSuffix(k.Chat, "@g.us") {
		return k.Chat
	}
	return k.phone()
}

// message is a message that a person or this connector wrote.
type message struct {
	Key     messageKey                 `json:"key"`
	At      seconds                    `json:"messageTimestamp"`
	Content map[string]json.RawMessage `json:"message"`
}

// arrivals is the payload of the event messages.upsert.
type arrivals struct {
	Messages []message `json:"messages"`
	Type     string    `json:"type"` // "append" for an echo of a message from the gateway, and for a message that came while the gateway was offline
}

// update is one entry in the payload of the event messages.update.
type update struct {
	Key    messageKey `json:"key"`
	Update struct {
		Status *int     `json:"status"`
		Codes  []string `json:"messageStubParameters"`
	} `json:"update"`
}

// arrivals decodes the payload of messages.upsert. For another payload it returns no messages.
func (r report) arrivals() (all arrivals) {
	if json.Unmarshal(r.Data, &all) != nil {
		return arrivals{}
	}
	return all
}

// updates decodes the payload of messages.update. For another payload it returns no updates.
func (r report) updates() (all []update) {
	if json.Unmarshal(r.Data, &all) != nil {
		return nil
	}
	return all
}

// seconds is a time that gateways write in seconds.
type seconds struct{ time.Time }

func (s *seconds) UnmarshalJSON(text []byte) error {
	if n, ok := wholeNumber(text); ok && n < 1<<40 {
		s.Time = time.Unix(n, 0).UTC()
	}
	return nil
}

// wholeNumber decodes a number above zero. Gateways write it as a number, as a text, or as the two halves of a long
// integer.
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
