package official

import (
	"cmp"
	"slices"
	"unicode/utf8"

	"puntuale"
)

// interactivePart is a text with reply buttons, a list, a link, or a request for the person's position or number. (Meta,
// messages/interactive-reply-buttons-messages, interactive-list-messages, interactive-cta-url-messages,
// location-request-messages; changelog of 28 May 2026 for the request for the number.)
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
	Buttons  []replyButton `json:"buttons,omitempty"`
	Button   string        `json:"button,omitempty"` // opens the list
	Sections []sectionPart `json:"sections,omitempty"`
	Name     string        `json:"name,omitempty"`
	Link     *linkPart     `json:"parameters,omitempty"`
}

type sectionPart struct {
	Title string    `json:"title,omitempty"`
	Rows  []rowPart `json:"rows"`
}

type rowPart struct {
	ID    string `json:"id"` // see [replyPart]
	Title string `json:"title"`
	Text  string `json:"description,omitempty"`
}

type linkPart struct {
	Label string `json:"display_text"`
	URL   string `json:"url"`
}

type replyButton struct {
	Type  string    `json:"type"`
	Reply replyPart `json:"reply"`
}

type replyPart struct {
	ID    string `json:"id"` // Meta repeats this text when a person presses the button
	Title string `json:"title"`
}

// tapPayloads returns the payload of each button or row of a message. The quick replies of a template do not stand for
// the rows of a list.
func (c *Connector) tapPayloads(e puntuale.Envelope) []string {
	var all []string
	if e.Content.Official != nil && e.Content.Asks == nil {
		return nil
	}
	for i, b := range e.Content.Choices() {
		payload := b.Label
		if c.cfg.TapPayload != nil {
			t := puntuale.Tap{Message: e.Message, Button: i, Payload: b.Payload}
			payload = c.cfg.TapPayload(e.Client, t)
			if t.Payload = ""; e.Content.Official != nil && utf8.RuneCountInString(payload) > puntuale.MaxPayload { // a template's quick reply takes no longer one
				payload = c.cfg.TapPayload(e.Client, t)
			}
		}
		all = append(all, payload)
	}
	return all
}

// setReplyButtons sets a text with buttons as the message's content. payloads has one text for each button. media is the
// id of the file above the text, or "" if there is none.
func (m *outgoing) setReplyButtons(c puntuale.Content, payloads []string, k mediaKind, media string) {
	part := &interactivePart{Type: "button", Header: header(c, k, media), Body: bodyPart{c.Text}}
	for i, b := range c.Buttons() {
		part.Action.Buttons = append(part.Action.Buttons, replyButton{Type: "reply", Reply: replyPart{ID: payloads[i], Title: b.Label}})
	}
	m.Type, m.Interactive = "interactive", part
}

// header returns the file above a text. media is its id; "": there is none.
func header(c puntuale.Content, k mediaKind, media string) *headerPart {
	if media == "" {
		return nil
	}
	h, file := &headerPart{Type: k.kind}, &mediaPart{ID: media}
	switch k.kind {
	case "image":
		h.Image = file
	case "video":
		h.Video = file
	default:
		file.Name = fileName(c)
		h.Document = file
	}
	return h
}

// setInteractive sets a text with a list, a link or a request as the message's content. payloads has one text for each
// row of the list. media is the id of the file above the text, which only a link may have; "": there is none.
func (m *outgoing) setInteractive(c puntuale.Content, payloads []string, k mediaKind, media string) {
	part := &interactivePart{Header: header(c, k, media), Body: bodyPart{c.Text}}
	switch x := c.Interactive; {
	case x.List != nil:
		part.Type, part.Action.Button = "list", x.List.Button
		for _, s := range x.List.Sections {
			section := sectionPart{Title: s.Title}
			for _, r := range s.Rows {
				section.Rows = append(section.Rows, rowPart{ID: payloads[0], Title: r.Title, Text: r.Text})
				payloads = payloads[1:]
			}
			part.Action.Sections = append(part.Action.Sections, section)
		}
	case x.Link != nil:
		part.Type, part.Action.Name, part.Action.Link = "cta_url", "cta_url", &linkPart{x.Link.Label, x.Link.URL}
	case x.Ask == puntuale.AskPhone:
		part.Type, part.Action.Name = "request_contact_info", "request_contact_info"
	default:
		part.Type, part.Action.Name = "location_request_message", "send_location"
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
