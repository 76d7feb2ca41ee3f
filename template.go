package puntuale

import "time"

// Template is named content of a client that steps and single sends may name instead of bringing their own. The name is
// unique among the client's.
type Template struct {
	ID        TemplateID
	Name      string
	Text      string
	Media     string
	MediaName string
	Latitude  *float64
	Longitude *float64
	Official  *Approved // nil: an Official session sends its content as it is, inside the 24-hour window
	Created   time.Time
	Updated   time.Time
}

// Approved names a template that Meta approved for a number, with the values of its placeholders. A template with a
// media header gets the media of the [Template], one with a location header its location. The JSON form is both the
// wire's and what stores keep. Texts may hold {{field}} while they are being written. In a frozen content they are
// rendered.
type Approved struct {
	Name     string      `json:"name"`
	Language string      `json:"language"`         // as Meta writes it: "it", "en_US"
	Header   []Parameter `json:"header,omitempty"` // of a text header
	Body     []Parameter `json:"body,omitempty"`
	Buttons  []Button    `json:"buttons,omitempty"` // those that need something
}

// Button fills one button of an approved template.
type Button struct {
	Index int        `json:"index"` // its place among the template's, from 0
	Kind  ButtonKind `json:"type"`
	Text  string     `json:"text"`
}

// ButtonKind says what a button's text is.
type ButtonKind string

const (
	ButtonURL   ButtonKind = "url"         // the end of its address
	ButtonReply ButtonKind = "quick_reply" // the payload that comes back when a person presses it
	ButtonCode  ButtonKind = "copy_code"   // the code that it copies
)

// MaxButtons bounds the buttons of a template.
const MaxButtons = 10

// Parameter fills one placeholder of an approved template.
type Parameter struct {
	Name string `json:"name,omitempty"` // "" in a template with numbered placeholders
	Text string `json:"text"`
}

// MaxParameters bounds the placeholders of a header or a body.
const MaxParameters = 100
