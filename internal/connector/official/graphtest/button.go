package graphtest

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// InteractiveMessage is a text with reply buttons.
type InteractiveMessage struct {
	Type   string  `json:"type"`
	Header *Header `json:"header,omitempty"`
	Body   struct {
		Text string `json:"text"`
	} `json:"body"`
	Action struct {
		Buttons []ReplyButton `json:"buttons"`
	} `json:"action"`
}

// Header is a file above a text with buttons.
type Header struct {
	Type     string `json:"type"`
	Image    *Media `json:"image,omitempty"`
	Video    *Media `json:"video,omitempty"`
	Document *Media `json:"document,omitempty"`
}

// ReplyButton is a button under a text.
type ReplyButton struct {
	Type  string `json:"type"`
	Reply struct {
		ID    string `json:"id"`
		Title string `json:"title"`
	} `json:"reply"`
}

// check refuses what Meta refuses. (Meta, messages/interactive-reply-buttons-messages.)
func (i *InteractiveMessage) check() error {
	all := i.Action.Buttons
	switch length := len([]rune(i.Body.Text)); {
	case i.Type != "button":
		return fmt.Errorf("interactive type %q", i.Type)
	case length == 0 || length > 1024:
		return fmt.Errorf("a text of %d characters with buttons", length)
	case len(all) == 0 || len(all) > 3:
		return fmt.Errorf("%d buttons", len(all))
	}
	for n, b := range all {
		r := b.Reply
		if b.Type != "reply" || r.ID == "" || len(r.ID) > 256 || r.Title == "" || len([]rune(r.Title)) > 20 {
			return fmt.Errorf("button %+v", b)
		}
		if slices.ContainsFunc(all[:n], func(o ReplyButton) bool { return o.Reply.ID == r.ID || o.Reply.Title == r.Title }) {
			return fmt.Errorf("button %+v twice", b)
		}
	}
	return i.Header.check()
}

func (h *Header) check() error {
	if h == nil {
		return nil
	}
	present := 0
	for kind, file := range map[string]*Media{"image": h.Image, "video": h.Video, "document": h.Document} {
		if file == nil {
			continue
		}
		present++
		if kind != h.Type || file.ID == "" || file.Caption != "" || file.Voice || file.Filename != "" && kind != "document" {
			return fmt.Errorf("header %q with the %s %+v", h.Type, kind, *file)
		}
	}
	if present != 1 {
		return fmt.Errorf("header %q with %d files", h.Type, present)
	}
	return nil
}

// Tap returns the body of a delivery: the recipient of a message pressed one of its buttons. n is the position of the
// button among the reply buttons, or among the template's quick replies that got a payload. id is the id of the tap.
func (p *Peer) Tap(m Taken, n int, id string, at time.Time) []byte {
	p.t.Helper()
	phone := m.Message.Recipient()
	if i := m.Message.Interactive; i != nil {
		return p.Quoting(m.Number, phone, id, m.WAMID, at, "interactive", map[string]any{"type": "button_reply", "button_reply": i.Action.Buttons[n].Reply})
	}
	var replies []Component
	for _, c := range m.Message.Template.Components {
		if c.SubType == "quick_reply" {
			replies = append(replies, c)
		}
	}
	return p.Quoting(m.Number, phone, id, m.WAMID, at, "button", map[string]any{
		"payload": replies[n].Parameters[0].Payload, "text": p.label(m, replies[n].Index),
	})
}

// label returns the text of a button of the message's template.
func (p *Peer) label(m Taken, index string) any {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, _ := strconv.Atoi(index) // the peer accepted only numbers
	for _, t := range p.templates[p.numbers[m.Number].Account] {
		if t.Name != m.Message.Template.Name || t.Language != m.Message.Template.Language.Code {
			continue
		}
		for _, c := range t.Components {
			if all, ok := c["buttons"].([]any); ok && n < len(all) {
				if b, ok := all[n].(map[string]any); ok {
					return b["text"]
				}
			}
		}
	}
	return ""
}
