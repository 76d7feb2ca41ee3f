package graphtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Message is what a business posts, with every member that Meta knows of those kinds, and no other.
type Message struct {
	Product       string    `json:"messaging_product"`
	RecipientType string    `json:"recipient_type"`
	To            string    `json:"to"`
	Type          string    `json:"type"`
	Text          *Text     `json:"text,omitempty"`
	Image         *Media    `json:"image,omitempty"`
	Video         *Media    `json:"video,omitempty"`
	Audio         *Media    `json:"audio,omitempty"`
	Document      *Media    `json:"document,omitempty"`
	Location      *Location `json:"location,omitempty"`
	Template      *Template `json:"template,omitempty"`
	Token         string    `json:"biz_opaque_callback_data"`
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

// Location is a place.
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
	Parameters []Parameter `json:"parameters"`
}

// Parameter fills a place.
type Parameter struct {
	Type     string    `json:"type"`
	Name     string    `json:"parameter_name,omitempty"`
	Text     string    `json:"text,omitempty"`
	Image    *Media    `json:"image,omitempty"`
	Video    *Media    `json:"video,omitempty"`
	Document *Media    `json:"document,omitempty"`
	Location *Location `json:"location,omitempty"`
}

var phoneShape = regexp.MustCompile(`^\+[1-9][0-9]{4,18}$`)

// readMessage refuses what Meta would.
func readMessage(body []byte) (Message, error) {
	var m Message
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&m); err != nil {
		return m, err
	}
	switch {
	case m.Product != "whatsapp" || m.RecipientType != "individual":
		return m, fmt.Errorf("messaging_product %q, recipient_type %q", m.Product, m.RecipientType)
	case !phoneShape.MatchString(m.To):
		return m, fmt.Errorf("to %q", m.To)
	case m.Token == "" || len(m.Token) > 512:
		return m, fmt.Errorf("biz_opaque_callback_data %q", m.Token)
	}
	parts := map[string]bool{
		"text": m.Text != nil, "image": m.Image != nil, "video": m.Video != nil, "audio": m.Audio != nil,
		"document": m.Document != nil, "location": m.Location != nil, "template": m.Template != nil,
	}
	for kind, there := range parts {
		if there != (kind == m.Type) {
			return m, fmt.Errorf("a message of type %q, and %s there: %v", m.Type, kind, there)
		}
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
		if c.Type != "header" && c.Type != "body" || len(c.Parameters) == 0 {
			return fmt.Errorf("component %+v", c)
		}
		for _, p := range c.Parameters {
			is := map[string]bool{"text": p.Text != "", "image": p.Image != nil, "video": p.Video != nil, "document": p.Document != nil, "location": p.Location != nil}
			for kind, there := range is {
				if there != (kind == p.Type) {
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
