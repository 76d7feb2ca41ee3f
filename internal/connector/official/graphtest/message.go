package graphtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Message is the message that a business posts. It has every member that Meta knows for these kinds of message, and no
// other member.
type Message struct {
	Product       string    `json:"messaging_product"`
	RecipientType string    `json:"recipient_type"`
	To            string    `json:"to,omitempty"`
	Person        string    `json:"recipient,omitempty"`
	Type          string    `json:"type"`
	Text          *Text     `json:"text,omitempty"`
	Image         *Media    `json:"image,omitempty"`
	Video         *Media    `json:"video,omitempty"`
	Audio         *Media    `json:"audio,omitempty"`
	Document      *Media    `json:"document,omitempty"`
	Location      *Location `json:"location,omitempty"`
	Template      *Template `json:"template,omitempty"`
	Token         string    `json:"biz_opaque_callback_data"`

	Interactive *InteractiveMessage `json:"interactive,omitempty"`

	Category string `json:"category,omitempty"`    // utility: by Direct Send
	TTL      *int   `json:"ttl_seconds,omitempty"` // only with Category

	Policy  string `json:"product_policy,omitempty"` // only to /marketing_messages
	Sharing *bool  `json:"message_activity_sharing,omitempty"`
}

// Recipient returns To, or the recipient in another member of the message.
func (m Message) Recipient() string {
	if m.To != "" {
		return m.To
	}
	return m.Person
}

// Text is free text.
type Text struct {
	Preview *bool  `json:"preview_url,omitempty"`
	Body    string `json:"body"`
}

// Media is a file.
type Media struct {
	ID       string `json:"id,omitempty"`
	Caption  string `json:"caption,omitempty"`
	Filename string `json:"filename,omitempty"`
	Voice    bool   `json:"voice,omitempty"`
}

// Location is a location.
type Location struct {
	Latitude  string `json:"latitude"`
	Longitude string `json:"longitude"`
	Name      string `json:"name,omitempty"`
	Address   string `json:"address,omitempty"`
}

// Template is an approved template.
type Template struct {
	Name     string `json:"name"`
	Language struct {
		Code string `json:"code"`
	} `json:"language"`
	Components []Component `json:"components,omitempty"`
}

// Component is a part of a template.
type Component struct {
	Type       string      `json:"type"`
	SubType    string      `json:"sub_type,omitempty"`
	Index      string      `json:"index,omitempty"`
	Parameters []Parameter `json:"parameters"`
}

// Parameter fills a placeholder.
type Parameter struct {
	Type     string    `json:"type"`
	Name     string    `json:"parameter_name,omitempty"`
	Text     string    `json:"text,omitempty"`
	Image    *Media    `json:"image,omitempty"`
	Video    *Media    `json:"video,omitempty"`
	Document *Media    `json:"document,omitempty"`
	Location *Location `json:"location,omitempty"`
	Payload  string    `json:"payload,omitempty"`
	Code     string    `json:"coupon_code,omitempty"`
}

var groupShape = regexp.MustCompile(`^Y2FwaV9ncm91cD[A-Za-z0-9+/=_-]+$`)

var personShape = regexp.MustCompile(`^[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}$`)

var phoneShape = regexp.MustCompile(`^\+[1-9][0-9]{4,18}$`)

// readMessage decodes a message. It refuses messages that Meta would refuse.
func readMessage(body []byte) (Message, error) {
	var m Message
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	switch {
	case m.Product != "whatsapp" || m.RecipientType != "individual" && m.RecipientType != "group":
		return m, fmt.Errorf("messaging_product %q, recipient_type %q", m.Product, m.RecipientType)
	case m.RecipientType == "group" && (m.Person != "" || !groupShape.MatchString(m.To)):
		return m, fmt.Errorf("to group %q, recipient %q", m.To, m.Person)
	case m.RecipientType == "group":
	case m.To != "" && m.Person != "", m.Person == "" && !phoneShape.MatchString(m.To), m.To == "" && !personShape.MatchString(m.Person):
		return m, fmt.Errorf("to %q, recipient %q", m.To, m.Person)
	}
	if m.Token == "" || len(m.Token) > 512 {
		return m, fmt.Errorf("biz_opaque_callback_data %q", m.Token)
	}
	parts := map[string]bool{
		"text": m.Text != nil, "image": m.Image != nil, "video": m.Video != nil, "audio": m.Audio != nil,
		"document": m.Document != nil, "location": m.Location != nil, "template": m.Template != nil, "interactive": m.Interactive != nil,
	}
	for kind, present := range parts {
		if present != (kind == m.Type) {
			return m, fmt.Errorf("a message of type %q, and %s there: %v", m.Type, kind, present)
		}
	}
	if err := m.checkWay(); err != nil {
		return m, err
	}
	return m, m.check()
}

func (m Message) check() error {
	switch m.Type {
	case "text":
		if m.Text.Body == "" || len([]rune(m.Text.Body)) > 4096 {
			return fmt.Errorf("text of %d characters", len(m.Text.Body))
		}
	case "image", "video", "audio", "document":
		for kind, part := range map[string]*Media{"image": m.Image, "video": m.Video, "audio": m.Audio, "document": m.Document} {
			if part == nil {
				continue
			}
			switch {
			case part.ID == "":
				return errors.New("a file without id")
			case part.Filename != "" && kind != "document", part.Voice && kind != "audio", part.Caption != "" && kind == "audio", len([]rune(part.Caption)) > 1024:
				return fmt.Errorf("a %s with %+v", kind, *part)
			}
		}
	case "location":
		if m.Location.Latitude == "" || m.Location.Longitude == "" {
			return errors.New("a location without degrees")
		}
	case "interactive":
		if m.RecipientType == "group" {
			return errors.New("an interactive message to a group")
		}
		return m.Interactive.check()
	case "template":
		return m.Template.check()
	}
	return nil
}

func (t *Template) check() error {
	if t.Name == "" || t.Language.Code == "" {
		return errors.New("a template without name or language")
	}
	named, all := 0, 0
	for _, c := range t.Components {
		if c.Type == "button" {
			if err := c.checkButton(); err != nil {
				return err
			}
			continue
		}
		if c.Type != "header" && c.Type != "body" || len(c.Parameters) == 0 || c.SubType != "" || c.Index != "" {
			return fmt.Errorf("component %+v", c)
		}
		for _, p := range c.Parameters {
			given := map[string]bool{"text": p.Text != "", "image": p.Image != nil, "video": p.Video != nil, "document": p.Document != nil, "location": p.Location != nil}
			for kind, present := range given {
				if present != (kind == p.Type) {
					return fmt.Errorf("parameter %+v", p)
				}
			}
			if p.Type == "text" {
				all++
				if p.Name != "" {
					named++
				}
				if strings.ContainsAny(p.Text, "\n\t") {
					return errors.New("a parameter with a line break")
				}
			}
		}
	}
	if named > 0 && named < all {
		return errors.New("named and numbered places together")
	}
	return nil
}

// suffixShape matches the end of an address. Meta encodes nothing.
var suffixShape = regexp.MustCompile(`^([-A-Za-z0-9._~/?#&=+@,;!$'()*]|%[0-9A-Fa-f]{2})+$`)

func (c Component) checkButton() error {
	if len(c.Parameters) != 1 || len(c.Index) != 1 || c.Index < "0" || c.Index > "9" {
		return fmt.Errorf("button %+v", c)
	}
	p := c.Parameters[0]
	bare := p
	bare.Type, bare.Text, bare.Payload, bare.Code = "", "", "", ""
	var fits bool
	switch c.SubType {
	case "url":
		fits = p.Type == "text" && suffixShape.MatchString(p.Text) && p.Payload+p.Code == ""
	case "quick_reply":
		fits = p.Type == "payload" && sized(p.Payload, 1, 128) && p.Text+p.Code == ""
	case "copy_code":
		fits = p.Type == "coupon_code" && sized(p.Code, 1, 20) && p.Text+p.Payload == ""
	}
	if !fits || bare != (Parameter{}) {
		return fmt.Errorf("button %+v", c)
	}
	return nil
}
