package official

import (
	"cmp"
	"slices"

	"puntuale"
)

// interactivePart is a text with reply buttons. (Meta, messages/interactive-reply-buttons-messages.)
type interactivePart struct {
	Type   string      `json:"type"`
	Header *headerPart `json:"header,omitempty"`
	Body   bodyPart    `json:"body"`
	Action actionPart  `json:"action"`
}

// headerPart is a file above the text.
type headerPart struct {
	Type     string     `json:"type"`
	Image    *mediaPart `json:"image,omitempty"`
	Video    *mediaPart `json:"video,omitempty"`
	Document *mediaPart `json:"document,omitempty"`
}

type bodyPart struct {
	Text string `json:"text"`
}

type actionPart struct {
	Buttons []replyButton `json:"buttons"`
}

type replyButton struct {
	Type  string    `json:"type"`
	Reply replyPart `json:"reply"`
}

type replyPart struct {
	ID    string `json:"id"` // Meta repeats this text when a person presses the button
	Title string `json:"title"`
}

// tapPayloads returns the payload of each button of a message.
func (c *Connector) tapPayloads(e puntuale.Envelope) []string {
	var all []string
	for i, b := range e.Content.Buttons() {
		payload := b.Label
		if c.cfg.TapPayload != nil {
			payload = c.cfg.TapPayload(e.Client, puntuale.Tap{Message: e.Message, Button: i})
		}
		all = append(all, payload)
	}
	return all
}

// setReplyButtons sets a text with buttons as the message's content. payloads has one text for each button. media is the
// id of the file above the text, or "" if there is none.
func (m *outgoing) setReplyButtons(c puntuale.Content, payloads []string, k mediaKind, media string) {
	part := &interactivePart{Type: "button", Body: bodyPart{c.Text}}
	if media != "" {
		file := &mediaPart{ID: media}
		part.Header = &headerPart{Type: k.kind}
		switch k.kind {
		case "image":
			part.Header.Image = file
		case "video":
			part.Header.Video = file
		default:
			file.Name = fileName(c)
			part.Header.Document = file
		}
	}
	for i, b := range c.Buttons() {
		part.Action.Buttons = append(part.Action.Buttons, replyButton{Type: "reply", Reply: replyPart{ID: payloads[i], Title: b.Label}})
	}
	m.Type, m.Interactive = "interactive", part
}

// quickReplies returns the positions of a template's quick replies among all its buttons.
func quickReplies(t puntuale.NetworkTemplate) (all []int) {
	for i, b := range t.Part("BUTTONS").Buttons {
		if b.Kind == "QUICK_REPLY" {
			all = append(all, i)
		}
	}
	return all
}

// withTaps returns a template whose quick replies have the payloads of the message's buttons: the first quick reply has
// the first payload, and so on. The positions of the quick replies are in replies. A payload without a quick reply is
// left out, because the message is worth more than its buttons.
func withTaps(t puntuale.Approved, replies []int, payloads []string) *puntuale.Approved {
	t.Buttons = slices.Clone(t.Buttons)
	for i, payload := range payloads[:min(len(payloads), len(replies))] {
		t.Buttons = slices.DeleteFunc(t.Buttons, func(b puntuale.Button) bool { return b.Index == replies[i] })
		t.Buttons = append(t.Buttons, puntuale.Button{Index: replies[i], Kind: puntuale.ButtonReply, Text: payload})
	}
	slices.SortStableFunc(t.Buttons, func(a, b puntuale.Button) int { return cmp.Compare(a.Index, b.Index) })
	return &t
}
