package official

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"puntuale"
)

// inboundMessage is a message that a person wrote, a phone call, or an echo. An echo is a message that the business wrote in
// its own app. The content is in the member with the name of the type. (Meta, webhooks/reference/messages and
// smb_message_echoes.)
type inboundMessage struct {
	ID         string  `json:"id"`
	From       string  `json:"from"`
	FromID     string  `json:"from_user_id"` // set in addition to From, or instead of From
	FromParent string  `json:"from_parent_user_id"`
	To         string  `json:"to"` // set only in an echo
	ToID       string  `json:"to_user_id"`
	ToParent   string  `json:"to_parent_user_id"`
	At         seconds `json:"timestamp"`
	Group      string  `json:"group_id"`
	Direction  string  `json:"direction"` // set only in a phone call: who called
	Callback   string  `json:"biz_opaque_callback_data"`
	shownMessage
}

// shownMessage is what a message shows. Parts that this version cannot decode are left out; the message is still
// stored.
type shownMessage struct {
	Type        string          `json:"type"`
	Text        json.RawMessage `json:"text"`
	Image       json.RawMessage `json:"image"`
	Video       json.RawMessage `json:"video"`
	Audio       json.RawMessage `json:"audio"`
	Voice       json.RawMessage `json:"voice"`
	Document    json.RawMessage `json:"document"`
	Sticker     json.RawMessage `json:"sticker"`
	Location    json.RawMessage `json:"location"`
	Contacts    json.RawMessage `json:"contacts"`
	Reaction    json.RawMessage `json:"reaction"`
	Button      json.RawMessage `json:"button"`
	Interactive json.RawMessage `json:"interactive"`
	Order       json.RawMessage `json:"order"`
	Edit        json.RawMessage `json:"edit"`
	System      json.RawMessage `json:"system"`
	Context     json.RawMessage `json:"context"` // has an id if the person quotes a message, or pressed one of its buttons
}

// fileLife is how long Meta stores a file that came with a message.
const fileLife = 7 * 24 * time.Hour

// fileRef is the content of [puntuale.ReplyMedia.Ref]. With it the connector can request the file from Meta.
type fileRef struct {
	ID     string `json:"id"`
	SHA256 string `json:"sha256,omitempty"`
}

// echoes reads the messages that the number's owner wrote in the WhatsApp Business app.
func (r *reader) echoes(value json.RawMessage) {
	var v change
	if json.Unmarshal(value, &v) != nil || v.Metadata.PhoneNumberID == "" {
		r.odd++
		return
	}
	r.concerns(v.Metadata.PhoneNumberID, "", func() {
		for _, text := range append(v.Echoes, v.AppEchoes...) {
			each(r, text, r.echo)
		}
	})
}

// echo records a message that the business wrote in its app. It ignores echoes of this connector's own messages.
func (r *reader) echo(m *inboundMessage) bool {
	if _, _, own := readCallback(m.Callback); own || m.Type == "revoke" || m.Group != "" {
		return true
	}
	phone, ok := r.nameOf(m.To, m.ToID, m.ToParent)
	if !ok || m.ID == "" {
		return false
	}
	h := r.inbound(phone, m)
	h.Own = true
	r.hear(h)
	return true
}

func (r *reader) message(m *inboundMessage) bool {
	switch {
	case m.Type == "system":
		return r.system(m)
	case m.Type == "revoke": // no person wrote such a message
		return true
	case puntuale.IsNetworkGroup(m.Group): // a message in a group opens the group's window, not its writer's window
		r.hear(puntuale.InboundMessage{Phone: m.Group, At: r.moment(m.At), Group: true})
		return true
	case m.Group != "":
		return true
	}
	phone, ok := r.nameOf(m.From, m.FromID, m.FromParent)
	if !ok {
		return false
	}
	h := r.inbound(phone, m)
	if h.ID != "" { // a welcome answers nothing
		m.answer(&h)
		r.shared(m)
	}
	r.hear(h)
	return true
}

func (r *reader) call(m *inboundMessage) bool {
	if m.Direction != "USER_INITIATED" {
		return true
	}
	phone, ok := r.nameOf(m.From, m.FromID, m.FromParent)
	if !ok {
		return false
	}
	r.hear(puntuale.InboundMessage{Phone: phone, At: r.moment(m.At), ID: m.ID, Kind: puntuale.ReplyCall})
	return true
}

// hear records a message from a person, or a message that the client's people wrote to a person.
func (r *reader) hear(h puntuale.InboundMessage) {
	h.Client, h.Session = r.at.client, r.at.session
	r.at.Messages = append(r.at.Messages, h.Storable())
}

// inbound returns the message to store. A welcome has no content: it means only that a person opened the chat. So its
// entry has no id and opens only the window.
func (r *reader) inbound(phone string, m *inboundMessage) puntuale.InboundMessage {
	h := puntuale.InboundMessage{Phone: phone, At: r.moment(m.At), ID: m.ID}
	if m.Type == "request_welcome" {
		h.ID = ""
		return h
	}
	h.Kind, h.Text, h.Media = m.shown(r.now)
	return h
}

// answer sets what a person's message answers: the button or the row, and the message that had it or that the person
// quotes.
func (m *shownMessage) answer(h *puntuale.InboundMessage) {
	h.Quoted = part[struct{ ID string }](m.Context).ID
	switch m.Type {
	case "button":
		h.Payload = part[struct{ Payload string }](m.Button).Payload
	case "interactive":
		type choice struct{ ID string }
		i := part[struct {
			Button choice `json:"button_reply"`
			Row    choice `json:"list_reply"`
		}](m.Interactive)
		h.Payload = cmp.Or(i.Button.ID, i.Row.ID)
	}
}

// sharedContact is a contact card in a message.
type sharedContact struct {
	Origin string `json:"origin"` // contact_request: the person's own number, which the business asked for
	Name   struct {
		Formatted string `json:"formatted_name"`
		First     string `json:"first_name"`
	} `json:"name"`
	Phones []struct {
		Phone string `json:"phone"`
		ID    string `json:"wa_id"`
	} `json:"phones"`
}

// shared records the number that the person gave when the business asked for it. Only this number is another name of the
// person: a card that a person sends by themselves may be anybody's.
func (r *reader) shared(m *inboundMessage) {
	if m.Type != "contacts" || !puntuale.IsPersonID(m.FromID) { // without an id, the number is known already
		return
	}
	for _, c := range part[[]sharedContact](m.Contacts) {
		if c.Origin != "contact_request" || len(c.Phones) != 1 {
			continue
		}
		if phone, ok := phoneOf(cmp.Or(c.Phones[0].ID, digitsOf(c.Phones[0].Phone))); ok {
			r.alias(m.FromID, phone)
		}
	}
}

// digitsOf returns the digits of a number as a person writes it. It returns "" without the code of a country.
func digitsOf(phone string) string {
	number, international := strings.CutPrefix(strings.TrimSpace(phone), "+")
	if !international {
		return ""
	}
	return strings.Map(func(c rune) rune {
		if c < '0' || c > '9' {
			return -1
		}
		return c
	}, number)
}

// shown returns what a message shows. now is the time at which the message came.
func (m *shownMessage) shown(now time.Time) (kind puntuale.ReplyKind, text string, media *puntuale.ReplyMedia) {
	switch m.Type {
	case "text":
		return puntuale.ReplyText, part[struct{ Body string }](m.Text).Body, nil
	case "image":
		return m.file(puntuale.ReplyImage, m.Image, now)
	case "video":
		return m.file(puntuale.ReplyVideo, m.Video, now)
	case "audio":
		return m.file(puntuale.ReplyAudio, m.Audio, now)
	case "voice":
		return m.file(puntuale.ReplyAudio, m.Voice, now)
	case "document":
		return m.file(puntuale.ReplyDocument, m.Document, now)
	case "sticker":
		return m.file(puntuale.ReplySticker, m.Sticker, now)
	case "location":
		l := part[struct {
			Name, Address       string
			Latitude, Longitude float64
		}](m.Location)
		return puntuale.ReplyLocation, puntuale.LocationText(l.Name, l.Address, l.Latitude, l.Longitude), nil
	case "contacts":
		return puntuale.ReplyContact, contactNames(m.Contacts), nil
	case "reaction": // if the person withdrew the reaction, the text is empty
		return puntuale.ReplyReaction, part[struct{ Emoji string }](m.Reaction).Emoji, nil
	case "button":
		return puntuale.ReplyButton, part[struct{ Text string }](m.Button).Text, nil
	case "interactive":
		return chosen(m.Interactive)
	case "order":
		return puntuale.ReplyOther, part[struct{ Text string }](m.Order).Text, nil
	case "edit":
		edited := part[struct{ Message shownMessage }](m.Edit).Message
		if edited.Type != "edit" {
			return edited.shown(now)
		}
	}
	return puntuale.ReplyOther, "", nil
}

// part decodes a member of a message. If the member cannot be decoded, part returns the zero value.
func part[T any](text json.RawMessage) (v T) {
	if len(text) > 0 && json.Unmarshal(text, &v) != nil {
		var zero T
		return zero
	}
	return v
}

// file returns the kind, the caption and the file of a message with a file.
func (m *shownMessage) file(kind puntuale.ReplyKind, member json.RawMessage, now time.Time) (puntuale.ReplyKind, string, *puntuale.ReplyMedia) {
	f := part[struct {
		ID       string
		Type     string `json:"mime_type"`
		SHA256   string
		Caption  string
		Filename string
	}](member)
	if f.ID == "" {
		return kind, f.Caption, nil
	}
	ref, err := json.Marshal(fileRef{f.ID, f.SHA256})
	if err != nil {
		return kind, f.Caption, nil
	}
	return kind, f.Caption, &puntuale.ReplyMedia{Type: f.Type, Name: f.Filename, Until: now.Add(fileLife), Ref: ref}
}

// contactNames returns the names on the contact cards that a person sent, each with its numbers.
func contactNames(member json.RawMessage) string {
	var cards []string
	for _, c := range part[[]sharedContact](member) {
		var numbers []string
		for _, p := range c.Phones {
			if number := cmp.Or(p.Phone, p.ID); number != "" {
				numbers = append(numbers, number)
			}
		}
		name, phones := cmp.Or(c.Name.Formatted, c.Name.First), strings.Join(numbers, ", ")
		switch {
		case name != "" && phones != "":
			cards = append(cards, name+": "+phones)
		case name+phones != "":
			cards = append(cards, name+phones)
		}
	}
	return strings.Join(cards, "\n")
}

// chosen returns the button or list row that a person chose. The answer to a form has no button and no row.
func chosen(member json.RawMessage) (puntuale.ReplyKind, string, *puntuale.ReplyMedia) {
	type choice struct{ Title string }
	i := part[struct {
		Button choice                `json:"button_reply"`
		Row    choice                `json:"list_reply"`
		Form   struct{ Body string } `json:"nfm_reply"`
	}](member)
	if title := cmp.Or(i.Button.Title, i.Row.Title); title != "" {
		return puntuale.ReplyButton, title, nil
	}
	return puntuale.ReplyOther, i.Form.Body, nil
}
