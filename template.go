package puntuale

import "time"

// Template is content with a name. Steps and single sends may name a template instead of having their own content. A
// client's templates have different names.
type Template struct {
	ID        TemplateID
	Name      string
	Text      string
	Media     string
	MediaName string
	Latitude  *float64
	Longitude *float64
	Official  *Approved // nil: an Official session sends the content itself, which is possible only inside the 24-hour window
	Created   time.Time
	Updated   time.Time
}

// Approved names a template that Meta approved, with the values of its placeholders. If the template has a media
// header, the media of the [Template] fills it. A location header gets the location of the [Template]. The wire and
// stores use the same JSON form. Until a run starts, texts may contain {{field}}. In a frozen content they are
// rendered.
type Approved struct {
	Name     string      `json:"name"`
	Language string      `json:"language"`         // Meta's code of the language: "it", "en_US"
	Header   []Parameter `json:"header,omitempty"` // values of a text header
	Body     []Parameter `json:"body,omitempty"`
	Buttons  []Button    `json:"buttons,omitempty"` // only the buttons that need a value
}

// Button has the value for one button of an approved template.
type Button struct {
	Index int        `json:"index"` // position among the template's buttons, from 0
	Kind  ButtonKind `json:"type"`
	Text  string     `json:"text"`
}

// ButtonKind says what the text of a [Button] is for.
type ButtonKind string

const (
	ButtonURL   ButtonKind = "url"         // the end of the button's address
	ButtonReply ButtonKind = "quick_reply" // the payload that Meta reports when a person presses the button
	ButtonCode  ButtonKind = "copy_code"   // the code that the button copies
)

// MaxButtons is the largest number of buttons of a template.
const MaxButtons = 10

// Parameter is the value of one placeholder of an approved template.
type Parameter struct {
	Name string `json:"name,omitempty"` // "" if the template's placeholders have numbers
	Text string `json:"text"`
}

// MaxParameters is the largest number of placeholders in a header or a body.
const MaxParameters = 100
