package official

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
)

// payload is a prepared message.
type payload struct {
	message  outgoing
	template string    // key of the template; "" for free content
	category string    // of the template; "": unknown
	country  string    // of the person; "": unknown
	window   time.Time // only for free content: the end of the 24-hour window that Prepare read
	first    bool      // the person has no open window, so reach must count the person
	way      puntuale.MessageWay
	path     bool // it leaves by Meta's own path for marketing
	ways     puntuale.OfficialWays
	missing  *puntuale.SendError // why the message's template is in no language; nil: it has one
	instead  *templatePayload    // the template, if Meta refuses the message by Direct Send; nil: there is none
	replies  []int               // the positions of the template's quick replies, if the template's buttons are known
	upload   *puntuale.Upload
}

// templatePayload is the template of a message that leaves by Direct Send.
type templatePayload struct {
	message  outgoing
	template string
	category string
	path     bool
}

// outgoing is a message in Meta's form.
type outgoing struct {
	Product  string        `json:"messaging_product"`
	Kind     string        `json:"recipient_type"`
	To       string        `json:"to,omitempty"`        // begins with +, because Meta adds the country code of the business to numbers without it
	Person   string        `json:"recipient,omitempty"` // set instead of To: Meta's id of a person whose number is not known
	Type     string        `json:"type"`
	Text     *textPart     `json:"text,omitempty"`
	Image    *mediaPart    `json:"image,omitempty"`
	Video    *mediaPart    `json:"video,omitempty"`
	Audio    *mediaPart    `json:"audio,omitempty"`
	Document *mediaPart    `json:"document,omitempty"`
	Location *locationPart `json:"location,omitempty"`
	Template *templatePart `json:"template,omitempty"`

	Interactive *interactivePart `json:"interactive,omitempty"`

	Token string `json:"biz_opaque_callback_data"`

	// Only by Direct Send.
	Category string `json:"category,omitempty"`
	TTL      int    `json:"ttl_seconds,omitempty"`

	// Only by the path for marketing.
	Policy  string `json:"product_policy,omitempty"`
	Sharing *bool  `json:"message_activity_sharing,omitempty"` // whether Meta learns what becomes of the message
}

type textPart struct {
	Preview *bool  `json:"preview_url,omitempty"` // nil in a message by Direct Send
	Body    string `json:"body"`
}

type mediaPart struct {
	ID      string `json:"id"`
	Caption string `json:"caption,omitempty"`
	Name    string `json:"filename,omitempty"`
	Voice   bool   `json:"voice,omitempty"`
}

type locationPart struct {
	Latitude  string `json:"latitude"`
	Longitude string `json:"longitude"`
	Name      string `json:"name,omitempty"`
	Address   string `json:"address,omitempty"`
}

type templatePart struct {
	Name       string      `json:"name"`
	Language   language    `json:"language"`
	Components []component `json:"components,omitempty"`
}

type language struct {
	Code string `json:"code"`
}

type component struct {
	Type       string      `json:"type"`
	Kind       string      `json:"sub_type,omitempty"` // set only for a button
	Index      string      `json:"index,omitempty"`    // set only for a button
	Parameters []parameter `json:"parameters"`
}

type parameter struct {
	Type     string        `json:"type"`
	Name     string        `json:"parameter_name,omitempty"`
	Text     string        `json:"text,omitempty"`
	Image    *mediaPart    `json:"image,omitempty"`
	Video    *mediaPart    `json:"video,omitempty"`
	Document *mediaPart    `json:"document,omitempty"`
	Location *locationPart `json:"location,omitempty"`
	Payload  string        `json:"payload,omitempty"`
	Code     string        `json:"coupon_code,omitempty"`
}

// Reasons why a message is refused before it is sent, or must wait.
const (
	reasonGroup        puntuale.ReasonCode = "official.no_groups"
	reasonOtherGroup   puntuale.ReasonCode = "official.other_group_id"
	reasonWindow       puntuale.ReasonCode = "official.outside_window"
	reasonWroteLongAgo puntuale.ReasonCode = "official.wrote_long_ago"
	reasonClosedBefore puntuale.ReasonCode = "official.window_closed_before"
	reasonWindowUnread puntuale.ReasonCode = "official.window_unread"
	reasonEverySix     puntuale.ReasonCode = "official.every_6_seconds"
	reasonManyPeople   puntuale.ReasonCode = "official.too_many_people"
	reasonNumberLimit  puntuale.ReasonCode = "official.number_limit"
	reasonPlaceLong    puntuale.ReasonCode = "official.location_text_too_long"
	reasonCharacters   puntuale.ReasonCode = "official.more_characters" // {1}: the largest allowed number
	reasonHeader       puntuale.ReasonCode = "official.header_kind"
	reasonValueEmpty   puntuale.ReasonCode = "official.value_empty"
	reasonNoEmpty      puntuale.ReasonCode = "official.no_empty_values"
	reasonValueSpaces  puntuale.ReasonCode = "official.value_spaces"
	reasonNotAllowed   puntuale.ReasonCode = "official.not_allowed"
)

// newOutgoing returns a message without content.
func newOutgoing(to string) outgoing {
	m := outgoing{Product: "whatsapp", Kind: "individual"}
	switch {
	case puntuale.IsPersonID(to):
		m.Person = to
	case puntuale.IsNetworkGroup(to):
		m.Kind, m.To = "group", to
	default:
		m.To = to
	}
	return m
}

func (m *outgoing) setText(text string) {
	m.Type = "text"
	m.Text = &textPart{Body: text, Preview: new(strings.Contains(text, "https://") || strings.Contains(text, "http://"))}
}

func (m *outgoing) setLocation(c puntuale.Content) *puntuale.SendError {
	place, refusal := locationOf(c)
	m.Type, m.Location = "location", place
	return refusal
}

// maxPlace is the largest number of characters in a location's text.
const maxPlace = 1000

// locationOf returns the location part of a message. The first line of the text is the name, and the rest is the
// address.
func locationOf(c puntuale.Content) (*locationPart, *puntuale.SendError) {
	name, address, _ := strings.Cut(c.Text, "\n")
	p := &locationPart{Latitude: degrees(*c.Latitude), Longitude: degrees(*c.Longitude), Name: strings.TrimSpace(name), Address: strings.TrimSpace(address)}
	if utf8.RuneCountInString(c.Text) > maxPlace {
		return nil, final(reasonPlaceLong, puntuale.Because(reasonCharacters, strconv.Itoa(maxPlace)))
	}
	return p, nil
}

func degrees(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// setMedia sets an uploaded file as the message's content.
func (m *outgoing) setMedia(k mediaKind, id string, c puntuale.Content) *puntuale.SendError {
	part := &mediaPart{ID: id, Caption: c.Text}
	m.Type = k.kind
	switch k.kind {
	case "image":
		m.Image = part
	case "video":
		m.Video = part
	case "audio":
		if c.Text != "" || len(c.Buttons()) > 0 {
			return final(puntuale.ReasonAudioAlone, puntuale.Because(puntuale.ReasonAudioUncaptioned))
		}
		part.Voice = k.voice
		m.Audio = part
	default:
		part.Name = fileName(c)
		m.Document = part
	}
	return nil
}

// fileName returns the name that people see on a document.
func fileName(c puntuale.Content) string {
	if c.MediaName != "" {
		return c.MediaName
	}
	u, err := url.Parse(c.MediaURL)
	if err != nil || path.Base(u.Path) == "/" || path.Base(u.Path) == "." {
		return "documento"
	}
	return path.Base(u.Path)
}

// setTemplate sets an approved template as the content. media is the id of the header's file, or "" if there is none.
func (m *outgoing) setTemplate(c puntuale.Content, k mediaKind, media string) *puntuale.SendError {
	t := c.Official
	m.Type = "template"
	m.Template = &templatePart{Name: t.Name, Language: language{t.Language}}
	var header []parameter
	switch {
	case media != "":
		part := &mediaPart{ID: media}
		p := parameter{Type: k.kind}
		switch k.kind {
		case "image":
			p.Image = part
		case "video":
			p.Video = part
		case "document":
			part.Name = fileName(c)
			p.Document = part
		default:
			return final(reasonHeader, puntuale.Quoted("file "+k.kind))
		}
		header = append(header, p)
	case c.Latitude != nil:
		place, refusal := locationOf(c)
		if refusal != nil {
			return refusal
		}
		header = append(header, parameter{Type: "location", Location: place})
	}
	for _, part := range []struct {
		name   string
		places []puntuale.Parameter
		begun  []parameter
	}{{"header", t.Header, header}, {"body", t.Body, nil}} {
		all := part.begun
		for _, p := range part.places {
			if refusal := checkValue(p.Text); refusal != nil {
				return refusal
			}
			all = append(all, parameter{Type: "text", Name: p.Name, Text: p.Text})
		}
		if len(all) > 0 {
			m.Template.Components = append(m.Template.Components, component{Type: part.name, Parameters: all})
		}
	}
	return m.setButtons(t.Buttons)
}

func (m *outgoing) setButtons(all []puntuale.Button) *puntuale.SendError {
	for _, b := range all {
		if refusal := checkValue(b.Text); refusal != nil {
			return refusal
		}
		p := parameter{Type: "text", Text: encodeSuffix(b.Text)}
		switch b.Kind {
		case puntuale.ButtonReply:
			p = parameter{Type: "payload", Payload: b.Text}
		case puntuale.ButtonCode:
			p = parameter{Type: "coupon_code", Code: b.Text}
		}
		m.Template.Components = append(m.Template.Components, component{Type: "button", Kind: string(b.Kind), Index: strconv.Itoa(b.Index), Parameters: []parameter{p}})
	}
	return nil
}

// checkValue refuses values that Meta refuses. If Meta refused such a value, the connector would pause the template,
// and all other messages with this template would wait.
func checkValue(text string) *puntuale.SendError {
	switch {
	case strings.TrimSpace(text) == "":
		return final(reasonValueEmpty, puntuale.Because(reasonNoEmpty))
	case puntuale.ValueBreaks(text):
		return final(reasonValueSpaces, puntuale.Because(reasonNotAllowed))
	}
	return nil
}

// encodeSuffix percent-encodes what may not stand in an address. Meta appends the text to the button's address as it is.
// The marks between the parts of an address, and what is encoded already, stay.
func encodeSuffix(text string) string {
	var b strings.Builder
	for i := range len(text) {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/?&=#+,;@!$'()*", c) >= 0,
			c == '%' && encodedByte.MatchString(text[i:]):
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

var encodedByte = regexp.MustCompile(`^%[0-9A-Fa-f]{2}`)

// templateKey returns the key of a template in the table of paused templates.
func templateKey(t *puntuale.Approved) string { return t.Name + " " + t.Language }

func final(code puntuale.ReasonCode, detail puntuale.Reason) *puntuale.SendError {
	return &puntuale.SendError{Kind: puntuale.Final, Reason: puntuale.Because(code), Detail: detail}
}

// callback returns a text that identifies an attempt. Meta repeats this text in each status of the attempt.
func callback(e puntuale.Envelope) string {
	return e.ConnectorID + "." + strconv.FormatInt(e.Token, 36)
}

// readCallback is the inverse of callback. It returns false for texts that callback did not write.
func readCallback(text string) (id puntuale.MessageID, token int64, ok bool) {
	parts := strings.Split(strings.TrimSuffix(text, directMark), ".")
	if len(parts) != 3 || len(text) > 64 {
		return 0, 0, false
	}
	number, err := strconv.ParseInt(parts[0], 36, 64)
	if err != nil || number <= 0 {
		return 0, 0, false
	}
	if _, err := strconv.ParseUint(parts[1], 10, 16); err != nil {
		return 0, 0, false
	}
	token, err = strconv.ParseInt(parts[2], 36, 64)
	return puntuale.MessageID(number), token, err == nil && token > 0
}

// encode returns a message as JSON. The types of this package can always be encoded.
func encode(m outgoing) []byte { return jsonOf(m) }
