package graphtest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// InteractiveMessage is a text with reply buttons, a list, a link, or a request for the person's position or number.
type InteractiveMessage struct {
	Type   string  `json:"type"`
	Header *Header `json:"header,omitempty"`
	Body   struct {
		Text string `json:"text"`
	} `json:"body"`
	Action InteractiveAction `json:"action"`
}

// InteractiveAction is what the person can do.
type InteractiveAction struct {
	Buttons  []ReplyButton `json:"buttons,omitempty"`
	Button   string        `json:"button,omitempty"`
	Sections []Section     `json:"sections,omitempty"`
	Name     string        `json:"name,omitempty"`
	Link     *Link         `json:"parameters,omitempty"`
}

// Section is a section of a list.
type Section struct {
	Title string `json:"title,omitempty"`
	Rows  []Row  `json:"rows"`
}

// Row is a row of a list.
type Row struct {
	ID          string `json:"id"`
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
}

// Link is what the button of a link opens.
type Link struct {
	Label string `json:"display_text"`
	URL   string `json:"url"`
}

// Rows returns the rows of all sections.
func (a InteractiveAction) Rows() (all []Row) {
	for _, s := range a.Sections {
		all = append(all, s.Rows...)
	}
	return all
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

// check refuses what Meta refuses. (Meta, messages/interactive-reply-buttons-messages, interactive-list-messages,
// interactive-cta-url-messages and location-request-messages.)
func (i *InteractiveMessage) check() error {
	most, withHeader := 1024, false
	var err error
	a := i.Action
	switch i.Type {
	case "button":
		withHeader, err = true, checkButtons(a.Buttons)
		a.Buttons = nil
	case "list":
		most, err = 4096, checkList(a)
		a.Button, a.Sections = "", nil
	case "cta_url":
		withHeader = true
		if l := a.Link; l == nil || a.Name != "cta_url" || !sized(l.Label, 1, 20) || !linkShape.MatchString(l.URL) || len(l.URL) > 2000 {
			err = fmt.Errorf("link %+v", l)
		}
		a.Name, a.Link = "", nil
	case "location_request_message", "request_contact_info":
		name := map[string]string{"location_request_message": "send_location", "request_contact_info": "request_contact_info"}[i.Type]
		if a.Name != name {
			err = fmt.Errorf("%s with the action %q", i.Type, a.Name)
		}
		a.Name = ""
	default: // such as contact_request, which Meta renamed
		return fmt.Errorf("interactive type %q", i.Type)
	}
	switch {
	case err != nil:
		return err
	case !sized(i.Body.Text, 1, most):
		return fmt.Errorf("a %s with a text of %d characters", i.Type, len([]rune(i.Body.Text)))
	case a.Buttons != nil || a.Sections != nil || a.Link != nil || a.Button+a.Name != "":
		return fmt.Errorf("a %s with %+v", i.Type, a)
	case i.Header != nil && !withHeader:
		return fmt.Errorf("a %s with a header", i.Type)
	}
	return i.Header.check()
}

// linkShape matches the addresses that Meta accepts, which are encoded.
var linkShape = regexp.MustCompile(`^https://[^\s|<>"{}\\^\x60]+$`)

// sized reports whether a text has from least to most characters, on one line.
func sized(text string, least, most int) bool {
	n := len([]rune(text))
	return n >= least && n <= most && strings.TrimSpace(text) != ""
}

func checkButtons(all []ReplyButton) error {
	if len(all) == 0 || len(all) > 3 {
		return fmt.Errorf("%d buttons", len(all))
	}
	for n, b := range all {
		r := b.Reply
		if b.Type != "reply" || !sized(r.ID, 1, 256) || !sized(r.Title, 1, 20) {
			return fmt.Errorf("button %+v", b)
		}
		if slices.ContainsFunc(all[:n], func(o ReplyButton) bool { return o.Reply.ID == r.ID || o.Reply.Title == r.Title }) {
			return fmt.Errorf("button %+v twice", b)
		}
	}
	return nil
}

func checkList(a InteractiveAction) error {
	rows := a.Rows()
	if !sized(a.Button, 1, 20) || len(a.Sections) == 0 || len(a.Sections) > 10 || len(rows) > 10 {
		return fmt.Errorf("a list %q with %d sections and %d rows", a.Button, len(a.Sections), len(rows))
	}
	for _, s := range a.Sections {
		if len(s.Rows) == 0 || !sized(s.Title, 1, 24) && (s.Title != "" || len(a.Sections) > 1) {
			return fmt.Errorf("section %+v", s)
		}
	}
	for n, r := range rows {
		if !sized(r.ID, 1, 200) || !sized(r.Title, 1, 24) || r.Description != "" && !sized(r.Description, 1, 72) {
			return fmt.Errorf("row %+v", r)
		}
		if slices.ContainsFunc(rows[:n], func(o Row) bool { return o.ID == r.ID }) {
			return fmt.Errorf("row %+v twice", r)
		}
	}
	return nil
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

// Tap returns the body of a delivery: the recipient of a message pressed one of its buttons, or chose a row of its list. n
// is the position of the button or row, or of the button among the template's quick replies that got a payload. id is the
// id of the tap.
func (p *Peer) Tap(m Taken, n int, id string, at time.Time) []byte {
	p.t.Helper()
	kind, content := p.tap(m, n)
	return p.Quoting(m.Number, m.Message.Recipient(), id, m.WAMID, at, kind, content)
}

// TapAlone is like Tap. The delivery does not name the message that the recipient answers.
func (p *Peer) TapAlone(m Taken, n int, id string, at time.Time) []byte {
	p.t.Helper()
	kind, content := p.tap(m, n)
	return p.Inbound(m.Number, m.Message.Recipient(), id, at, kind, content)
}

// Located returns the body of a delivery: the recipient of a request for the position sent it.
func (p *Peer) Located(m Taken, latitude, longitude float64, id string, at time.Time) []byte {
	return p.Quoting(m.Number, m.Message.Recipient(), id, m.WAMID, at, "location", map[string]any{"latitude": latitude, "longitude": longitude})
}

// Shared returns the body of a delivery: the recipient of a message sent a contact card with a number, which is digits.
// origin is contact_request for the own number of a person who was asked for it, and other for any card.
func (p *Peer) Shared(m Taken, origin, number, id string, at time.Time) []byte {
	card := map[string]any{"origin": origin, "phones": []any{map[string]any{"phone": "+" + number, "wa_id": number}}}
	if origin == "other" {
		card["name"], card["vcard"] = map[string]any{"formatted_name": "Ugo Bassi"}, "BEGIN:VCARD\nEND:VCARD"
	}
	return p.Quoting(m.Number, m.Message.Recipient(), id, m.WAMID, at, "contacts", []any{card})
}

// Filled returns the body of a delivery: the recipient of a form sent it.
func (p *Peer) Filled(m Taken, answers, id string, at time.Time) []byte {
	return p.Quoting(m.Number, m.Message.Recipient(), id, m.WAMID, at, "interactive", map[string]any{
		"type": "nfm_reply", "nfm_reply": map[string]any{"name": "flow", "body": "Sent", "response_json": answers},
	})
}

func (p *Peer) tap(m Taken, n int) (kind string, content any) {
	p.t.Helper()
	if i := m.Message.Interactive; i != nil && i.Type == "list" {
		return "interactive", map[string]any{"type": "list_reply", "list_reply": i.Action.Rows()[n]}
	} else if i != nil {
		return "interactive", map[string]any{"type": "button_reply", "button_reply": i.Action.Buttons[n].Reply}
	}
	var replies []Component
	for _, c := range m.Message.Template.Components {
		if c.SubType == "quick_reply" {
			replies = append(replies, c)
		}
	}
	return "button", map[string]any{"payload": replies[n].Parameters[0].Payload, "text": p.label(m, replies[n].Index)}
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
