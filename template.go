package puntuale

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

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
// stores use the same JSON form. Until a run starts, texts may contain {{field}}. In a frozen content, these texts are
// rendered.
type Approved struct {
	Name     string      `json:"name"`
	Language string      `json:"language"`         // Meta's code of the language: "it", "en_US"; "": the person's, see [ChooseLanguage]
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
	ButtonURL   ButtonKind = "url"         // the text is the end of the button's address
	ButtonReply ButtonKind = "quick_reply" // the text is the payload that Meta reports when a person presses the button
	ButtonCode  ButtonKind = "copy_code"   // the text is the code that the button copies
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

// Limits that Meta sets for the parts of a template, in characters. They count for the rendered parts, too.
const (
	MaxTemplateHeader = 60
	MaxTemplateBody   = 1024
)

// ValueBreaks reports whether Meta refuses the value of a placeholder because of its spaces: line breaks, tabs, or more
// than four spaces together.
func ValueBreaks(value string) bool {
	return strings.ContainsAny(value, "\n\r\t") || strings.Contains(value, "     ")
}

// FlattenValue returns a value without what [ValueBreaks] finds: each run of white space becomes one space.
func FlattenValue(value string) string {
	if !ValueBreaks(value) {
		return value
	}
	return strings.Join(strings.Fields(value), " ")
}

// ValueRule says how a step's values fit into its approved template.
type ValueRule struct {
	Flatten bool   `json:"flatten,omitempty"` // true: values are flattened; false: a value that [ValueBreaks] is refused
	Header  string `json:"header,omitempty"`  // the template's text header, with its placeholders; "": unknown
	Body    string `json:"body,omitempty"`    // the same for its body
}

// NetworkTemplate is a template as Meta lists it. A person who did not write in the last 24 hours may get only
// templates.
type NetworkTemplate struct {
	Account  string // Meta's id of the business that owns the template
	Name     string
	Language string // see [Approved.Language]
	ID       string // Meta's id of the template
	Status   TemplateStatus
	Category string // MARKETING, UTILITY or AUTHENTICATION
	Quality  string // GREEN, YELLOW, RED, UNKNOWN; "": unknown
	Reason   string // Meta's code that explains the status; often ""
	Named    bool   // the placeholders have names; false: they have numbers
	Parts    []TemplatePart
	Changed  time.Time // when Meta last reported the status

	Wanted   string    // the category that the client asked for or accepted; "": unknown
	Advice   string    // what Meta recommends after a rejection, in Meta's words; often ""
	Held     bool      // messages wait, because Meta made the template MARKETING and the client wants to decide
	LockedAt time.Time // when the client deleted the template; zero: it did not
}

// Costlier reports whether Meta made the template marketing although the client wanted another category.
func (t NetworkTemplate) Costlier() bool {
	return t.Category == CategoryMarketing && t.Wanted != "" && t.Wanted != CategoryMarketing
}

// ChooseLanguage returns the template with a name in a language. With language "", it returns one in the person's language
// that can be used, else one in Italian, else in English, else the first one. person is a contact's language, such as "en";
// "" if it is not known. It returns false if there is no such template.
func ChooseLanguage(all []NetworkTemplate, name, language, person string) (chosen NetworkTemplate, found bool) {
	rank := func(t NetworkTemplate) int {
		base, _, _ := strings.Cut(t.Language, "_")
		use, _ := t.Status.Use()
		n := int(use) * 10
		switch {
		case person != "" && t.Language == person:
		case person != "" && base == person:
			n++
		case base == "it":
			n += 2
		case base == "en":
			n += 3
		default:
			n += 4
		}
		return n
	}
	for _, t := range all {
		switch {
		case t.Name != name:
		case language != "":
			if t.Language == strings.ReplaceAll(language, "-", "_") {
				return t, true
			}
		case !found || rank(t) < rank(chosen):
			chosen, found = t, true
		}
	}
	return chosen, found
}

// Categories of templates, in Meta's words. Meta fixes the texts of AUTHENTICATION templates.
const (
	CategoryUtility        = "UTILITY"
	CategoryMarketing      = "MARKETING"
	CategoryAuthentication = "AUTHENTICATION"
)

// TemplateDraft is a template that a client asks the network to approve. The wire and stores use the same JSON form. The
// placeholders of its texts are {{name}}, or all {{1}}, {{2}} and so on.
type TemplateDraft struct {
	Name     string            `json:"name"`
	Language string            `json:"language"` // see [Approved.Language]
	Category string            `json:"category"` // UTILITY or MARKETING
	Text     string            `json:"text"`
	Header   *DraftHeader      `json:"header,omitempty"`
	Footer   string            `json:"footer,omitempty"`
	Buttons  []DraftButton     `json:"buttons,omitempty"`
	Examples map[string]string `json:"examples,omitempty"` // a value for each placeholder, which Meta's reviewers see
}

// DraftHeader is the header of a [TemplateDraft].
type DraftHeader struct {
	Kind  string `json:"kind"`            // text, image, video, document or location
	Text  string `json:"text,omitempty"`  // only of a text
	Media string `json:"media,omitempty"` // address of a sample, only of an image, a video or a document
}

// DraftButton is a button of a [TemplateDraft].
type DraftButton struct {
	Kind  string `json:"kind"`            // quick_reply, url, phone or copy_code
	Text  string `json:"text,omitempty"`  // its label; a copy_code has Meta's
	URL   string `json:"url,omitempty"`   // may end with one placeholder
	Phone string `json:"phone,omitempty"` // "+…"
	Code  string `json:"code,omitempty"`  // an example
}

// JSON returns the form that the store writes.
func (d TemplateDraft) JSON() []byte { return jsonOf(d) }

// Named reports whether the placeholders have names. A draft without placeholders has none.
func (d TemplateDraft) Named() bool {
	for _, name := range d.Placeholders() {
		if _, err := strconv.Atoi(name); err != nil {
			return true
		}
	}
	return false
}

// Placeholders returns the names of all placeholders of the draft, each once.
func (d TemplateDraft) Placeholders() []string {
	texts := d.Text
	if d.Header != nil {
		texts += "\n" + d.Header.Text
	}
	for _, b := range d.Buttons {
		texts += "\n" + b.URL
	}
	return placeholdersOf(texts)
}

// Example returns a text of the draft with the examples in place of its placeholders.
func (d TemplateDraft) Example(text string) string {
	var values []Parameter
	for name, value := range d.Examples {
		values = append(values, Parameter{Name: name, Text: value})
	}
	return Filled(text, values)
}

// Shown returns the template that the network will show.
func (d TemplateDraft) Shown() NetworkTemplate {
	t := NetworkTemplate{Name: d.Name, Language: d.Language, Category: d.Category, Wanted: d.Category, Named: d.Named()}
	if h := d.Header; h != nil {
		t.Parts = append(t.Parts, TemplatePart{Kind: "HEADER", Format: strings.ToUpper(h.Kind), Text: h.Text})
	}
	t.Parts = append(t.Parts, TemplatePart{Kind: "BODY", Text: d.Text})
	if d.Footer != "" {
		t.Parts = append(t.Parts, TemplatePart{Kind: "FOOTER", Text: d.Footer})
	}
	if len(d.Buttons) > 0 {
		part := TemplatePart{Kind: "BUTTONS"}
		for _, b := range d.Buttons {
			kind := strings.ToUpper(b.Kind)
			if b.Kind == "phone" {
				kind = "PHONE_NUMBER"
			}
			url := b.URL
			if names := placeholdersOf(url); len(names) > 0 {
				url = templatePlaceholder.ReplaceAllString(url, "{{1}}")
			}
			part.Buttons = append(part.Buttons, TemplateButton{Kind: kind, Text: b.Text, URL: url})
		}
		t.Parts = append(t.Parts, part)
	}
	return t
}

// TemplateRequestID names a [TemplateRequest].
type TemplateRequestID int64

// TemplateRequestKind says what a [TemplateRequest] asks for. The database contains the numbers.
type TemplateRequestKind int8

const (
	CreatesTemplate TemplateRequestKind = 1 + iota
	EditsTemplate
	UnpausesTemplate
	DeletesTemplate
)

// TemplateRequestState is the state of a [TemplateRequest]. The database contains the numbers.
type TemplateRequestState int8

const (
	RequestWaits   TemplateRequestState = iota // no call is under way
	RequestCalled                              // a call left, and its answer is not stored: only Meta's list says what became of it
	RequestDone                                // Meta did it
	RequestRefused                             // Meta refused it, or did not answer in [TemplateRequestLife]; the request's Reason says why
)

// TemplateRequest is what a client asks of the network about one template. It is stored before the call.
type TemplateRequest struct {
	ID          TemplateRequestID
	Client      ClientID
	Session     SessionID
	Account     string
	Kind        TemplateRequestKind
	Name        string
	Language    string
	NetworkID   string // "": not known yet
	Draft       TemplateDraft
	WasApproved bool   // an edit of an approved template, which Meta counts
	Upload      string // the network's name of the upload of the sample; "": none
	State       TemplateRequestState
	Reason      Reason
	Made        time.Time
	Called      time.Time
	Due         time.Time // until then a call may be under way
	Ended       time.Time
}

// Times and limits of requests about templates. The limits are Meta's, for each business.
const (
	TemplateRequestLife  = time.Hour           // after this time without an answer a request counts as refused
	KeepTemplateRequests = 31 * 24 * time.Hour // how long ended requests are stored, because edits of a month count
	TemplateNameLock     = 30 * 24 * time.Hour // how long the name of a deleted template is locked

	MaxTemplateCreations  = 100 // in an hour
	MaxTemplateEditsDay   = 1   // edits of an approved template in 24 hours
	MaxTemplateEditsMonth = 10  // edits of an approved template in 30 days
)

// TemplateUsage is what a client did with the templates of a business before a request.
type TemplateUsage struct {
	Now        time.Time
	Creations  int       // in the last hour
	OldestOf   time.Time // the oldest creation of the last hour
	EditsDay   int       // of the request's template while it was approved
	EditsMonth int
	LastEdit   time.Time
	FirstEdit  time.Time
	Open       bool             // a request about the template is under way
	Known      *NetworkTemplate // the template, as the store knows it; nil: it does not
	Created    *TemplateRequest // the latest request that created the template, or tried to; nil: none
}

// TemplatePart is one part of a template: HEADER, BODY, FOOTER or BUTTONS. The store writes it as JSON.
type TemplatePart struct {
	Kind    string           `json:"type"`
	Format  string           `json:"format,omitempty"` // only in a header: TEXT, IMAGE, VIDEO, DOCUMENT or LOCATION
	Text    string           `json:"text,omitempty"`   // its placeholders look like {{1}} or {{name}}
	Buttons []TemplateButton `json:"buttons,omitempty"`
}

// TemplateButton is one button of a template.
type TemplateButton struct {
	Kind string `json:"type"` // QUICK_REPLY, URL, PHONE_NUMBER, COPY_CODE and others
	Text string `json:"text,omitempty"`
	URL  string `json:"url,omitempty"` // ends with {{1}} if the sender must give the last part of the address
}

// TemplateStatus is Meta's status of a template, in Meta's words.
type TemplateStatus string

const (
	TemplateApproved TemplateStatus = "APPROVED"
	TemplatePending  TemplateStatus = "PENDING"
	TemplateRejected TemplateStatus = "REJECTED"
	TemplatePaused   TemplateStatus = "PAUSED"
	TemplateDisabled TemplateStatus = "DISABLED"
	TemplateAppealed TemplateStatus = "IN_APPEAL"
	TemplateDeleted  TemplateStatus = "DELETED"
	TemplateDeleting TemplateStatus = "PENDING_DELETION"
	TemplateOverMost TemplateStatus = "LIMIT_EXCEEDED"
	TemplateUnknown  TemplateStatus = "UNKNOWN" // not a word of Meta: Meta reported the template without a status
)

// TemplateUse says whether a template can be used.
type TemplateUse int8

const (
	TemplateUsable   TemplateUse = iota // also for statuses that this program does not know: then Meta decides
	TemplateWaits                       // may become usable again by itself: messages wait
	TemplateUnusable                    // stays unusable: messages fail
)

// Use returns what the status allows. The Reason says why the template cannot be used.
func (s TemplateStatus) Use() (TemplateUse, Reason) {
	switch s {
	case TemplatePaused:
		return TemplateWaits, Because(ReasonTemplatePaused)
	case TemplatePending:
		return TemplateWaits, Because(ReasonTemplatePending)
	case TemplateAppealed:
		return TemplateWaits, Because(ReasonTemplateAppealed)
	case TemplateOverMost:
		return TemplateWaits, Because(ReasonTemplatesOverMost)
	case TemplateDisabled:
		return TemplateUnusable, Because(ReasonTemplateDisabled)
	case TemplateRejected:
		return TemplateUnusable, Because(ReasonTemplateRejected)
	case TemplateDeleted, TemplateDeleting:
		return TemplateUnusable, Because(ReasonTemplateDeleted)
	}
	return TemplateUsable, Reason{}
}

// Codes that say why a template cannot be used.
const (
	ReasonTemplatePaused    ReasonCode = "template.paused"
	ReasonTemplateDisabled  ReasonCode = "template.disabled"
	ReasonTemplatePending   ReasonCode = "template.pending"
	ReasonTemplateAppealed  ReasonCode = "template.appealed"
	ReasonTemplateRejected  ReasonCode = "template.rejected"
	ReasonTemplateDeleted   ReasonCode = "template.deleted"
	ReasonTemplatesOverMost ReasonCode = "template.over_most" // the business has too many templates
	ReasonTemplateCostlier  ReasonCode = "template.costlier"  // Meta made it MARKETING, and the client wants to decide
	ReasonNoTemplate        ReasonCode = "template.none"      // the business has no approved template of this name and language
	ReasonTemplateValues    ReasonCode = "template.values"    // the values do not fit the placeholders
)

var templatePlaceholder = regexp.MustCompile(`\{\{\s*([A-Za-z0-9_]+)\s*\}\}`)

// Part returns the part of the given kind, or the zero value if there is none.
func (t NetworkTemplate) Part(kind string) TemplatePart {
	for _, p := range t.Parts {
		if p.Kind == kind {
			return p
		}
	}
	return TemplatePart{}
}

// Placeholders returns the placeholders that the sender must fill in, in order, each once: "1", "2" or names.
func (p TemplatePart) Placeholders() (all []string) { return placeholdersOf(p.Text) }

// Filled returns a template's text with the values in place of its placeholders. Values without names have the numbers of
// their order. A placeholder without a value stays.
func Filled(text string, values []Parameter) string {
	return templatePlaceholder.ReplaceAllStringFunc(text, func(found string) string {
		name := templatePlaceholder.FindStringSubmatch(found)[1]
		for i, v := range values {
			if v.Name == name || v.Name == "" && strconv.Itoa(i+1) == name {
				return v.Text
			}
		}
		return found
	})
}

// Open reports whether the sender must fill in the button: the end of its address, or its code.
func (b TemplateButton) Open() bool { return b.Kind == "COPY_CODE" || len(placeholdersOf(b.URL)) > 0 }

func placeholdersOf(text string) (all []string) {
	for _, found := range templatePlaceholder.FindAllStringSubmatch(text, -1) {
		if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+found[1]+" ") {
			all = append(all, found[1])
		}
	}
	return all
}

// TemplateEvent is a change of one template that Meta reported by webhook.
type TemplateEvent struct {
	Client   ClientID // a client that has a session of this business
	Account  string   // Meta's id of the business
	Name     string
	Language string
	ID       string
	Status   TemplateStatus // "": the status did not change
	Quality  string         // "": the quality did not change
	Category string         // "": the category did not change
	Reason   string         // only with Status: Meta's code that explains it
	Advice   string         // only with Status: what Meta recommends
	At       time.Time
}

// NetworkTemplates says which business a session belongs to, and how current the list of the business's templates is.
type NetworkTemplates struct {
	Number  string    // Meta's id of the session's number; "": the session has no keys, or its node has not read them
	Account string    // Meta's id of the business; "": unknown
	Synced  time.Time // when the list was last read from Meta; zero: never
	Problem Reason    // why the last reading failed; zero if it succeeded
}
