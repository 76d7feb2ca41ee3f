package sendapp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"puntuale"
	"puntuale/internal/connector/replyfile"
)

// silent contains the names of content members that no person wrote. Phones send such members to each other, and show
// them to nobody.
var silent = map[string]bool{
	"messageContextInfo": true, "senderKeyDistributionMessage": true, "fastRatchetKeySenderKeyDistributionMessage": true, "protocolMessage": true,
	"pollUpdateMessage": true, "keepInChatMessage": true, "pinInChatMessage": true, "albumMessage": true, "encReactionMessage": true, "encEventResponseMessage": true,
}

// maxWrapped limits how many outer messages are removed. WhatsApp puts a message inside an outer message if the inner
// message disappears later, or if people may view it only once.
const maxWrapped = 6

// content has the members of a message's content, by type.
type content map[string]json.RawMessage

// unwrapped returns the innermost content, which a person sees. For an edit, that is the new content.
func (c content) unwrapped() content {
	for range maxWrapped {
		var next content
		for _, member := range c {
			inner := part[struct {
				Message content `json:"message"`       // the content inside a message that disappears, may be viewed once, or has a caption
				Edited  content `json:"editedMessage"` // the new content after an edit
			}](member)
			if next = inner.Message; next == nil {
				next = inner.Edited
			}
			if next != nil {
				break
			}
		}
		if next == nil {
			break
		}
		c = next
	}
	return c
}

// part decodes a member of a content. If the member cannot be decoded, part returns the zero value.
func part[T any](text json.RawMessage) (v T) {
	if len(text) > 0 && json.Unmarshal(text, &v) != nil {
		var zero T
		return zero
	}
	return v
}

// shown returns what a message shows: its kind, its text or caption, and its file. It returns false if no person wrote
// the message.
func (m message) shown() (h puntuale.InboundMessage, ok bool) {
	c := content(m.Content).unwrapped()
	for name := range c {
		ok = ok || !silent[name]
	}
	h.Kind, h.Payload, h.Quoted = puntuale.ReplyOther, c.payload(), c.quoted()
	if !ok || c.file(&h) {
		return h, ok
	}
	type place struct {
		Name, Address, Comment, Caption string
		Latitude                        float64 `json:"degreesLatitude"`
		Longitude                       float64 `json:"degreesLongitude"`
	}
	type named struct {
		Name        string
		DisplayName string
		Contacts    []struct{ DisplayName string }
	}
	for name, member := range c {
		switch name {
		case "conversation":
			h.Kind, h.Text = puntuale.ReplyText, part[string](member)
		case "extendedTextMessage":
			h.Kind, h.Text = puntuale.ReplyText, part[struct{ Text string }](member).Text
		case "locationMessage", "liveLocationMessage":
			l := part[place](member)
			h.Kind, h.Text = puntuale.ReplyLocation, puntuale.LocationText(cmp.Or(l.Name, l.Caption), cmp.Or(l.Address, l.Comment), l.Latitude, l.Longitude)
		case "contactMessage":
			h.Kind, h.Text = puntuale.ReplyContact, part[named](member).DisplayName
		case "contactsArrayMessage":
			var names []string
			for _, one := range part[named](member).Contacts {
				if one.DisplayName != "" {
					names = append(names, one.DisplayName)
				}
			}
			h.Kind, h.Text = puntuale.ReplyContact, strings.Join(names, ", ")
		case "reactionMessage": // if the person withdrew the reaction, the text is empty
			h.Kind, h.Text = puntuale.ReplyReaction, part[struct{ Text string }](member).Text
		case "pollCreationMessage", "pollCreationMessageV2", "pollCreationMessageV3":
			h.Text = part[named](member).Name
		case "buttonsResponseMessage", "templateButtonReplyMessage", "listResponseMessage", "interactiveResponseMessage":
			b := part[struct {
				SelectedDisplayText, Title string
				Body                       struct{ Text string }
			}](member)
			if text := cmp.Or(b.SelectedDisplayText, b.Title, b.Body.Text); text != "" {
				h.Kind, h.Text = puntuale.ReplyButton, text
			}
		}
	}
	return h, true
}

// payload returns the id of the button or the list row that a person chose.
func (c content) payload() string {
	flow := part[struct {
		Response struct{ ParamsJSON string } `json:"nativeFlowResponseMessage"`
	}](c["interactiveResponseMessage"])
	return cmp.Or(
		part[struct{ SelectedButtonID string }](c["buttonsResponseMessage"]).SelectedButtonID,
		part[struct{ SelectedID string }](c["templateButtonReplyMessage"]).SelectedID,
		part[struct {
			Reply struct{ SelectedRowID string } `json:"singleSelectReply"`
		}](c["listResponseMessage"]).Reply.SelectedRowID,
		part[struct{ ID string }](json.RawMessage(flow.Response.ParamsJSON)).ID,
	)
}

// quoted returns WhatsApp's id of the message that a message quotes. Many types of messages can quote.
func (c content) quoted() string {
	for _, member := range c {
		if id := part[struct {
			Context struct{ StanzaID string } `json:"contextInfo"`
		}](member).Context.StanzaID; id != "" {
			return id
		}
	}
	return ""
}

// fileKinds are the members of a content that have a file. Each has the kind of the reply, and the name with
// which the file's keys are derived.
var fileKinds = map[string]struct {
	kind puntuale.ReplyKind
	keys string
}{
	"imageMessage": {puntuale.ReplyImage, replyfile.Image}, "stickerMessage": {puntuale.ReplySticker, replyfile.Image},
	"videoMessage": {puntuale.ReplyVideo, replyfile.Video}, "ptvMessage": {puntuale.ReplyVideo, replyfile.Video},
	"audioMessage": {puntuale.ReplyAudio, replyfile.Audio}, "documentMessage": {puntuale.ReplyDocument, replyfile.Document},
}

// file writes the file of a content into h, and reports whether there is one. Gateways have no request that returns a
// file. But the message contains the address of the encrypted file at WhatsApp.
func (c content) file(h *puntuale.InboundMessage) bool {
	for name, member := range c {
		kind, ok := fileKinds[name]
		if !ok {
			continue
		}
		f := part[struct {
			Caption, Mimetype, FileName, Title, URL, DirectPath string
			FileLength                                          byteCount
			MediaKey                                            rawBytes
			Hash                                                rawBytes `json:"fileSha256"`
			EncHash                                             rawBytes `json:"fileEncSha256"`
		}](member)
		h.Kind, h.Text = kind.kind, f.Caption
		h.Media = &puntuale.ReplyMedia{Type: f.Mimetype, Name: cmp.Or(f.FileName, f.Title), Size: int64(f.FileLength), Ref: replyfile.EncryptedFile{
			Kind: kind.keys, URL: f.URL, Path: f.DirectPath, Key: f.MediaKey, Hash: f.Hash, EncHash: f.EncHash,
		}.Ref()}
		if kind.kind != puntuale.ReplyDocument {
			h.Media.Name = ""
		}
		return true
	}
	return false
}

// rawBytes are bytes that gateways write as base64, as {"type":"Buffer","data":[1,2]} or as {"0":1,"1":2}.
type rawBytes []byte

// maxRawBytes is the largest accepted number of bytes. No hash or key has so many bytes.
const maxRawBytes = 64

func (o *rawBytes) UnmarshalJSON(text []byte) error {
	var coded string
	var buffer struct{ Data []uint16 }
	var numbered map[int]uint8
	switch {
	case json.Unmarshal(text, &coded) == nil:
		if raw, err := base64.StdEncoding.DecodeString(coded); err == nil && len(raw) <= maxRawBytes {
			*o = raw
		}
	case json.Unmarshal(text, &buffer) == nil && len(buffer.Data) > 0 && len(buffer.Data) <= maxRawBytes:
		for _, b := range buffer.Data {
			*o = append(*o, byte(b)) // a value above 255 gives a wrong key, and then the file cannot be opened
		}
	case json.Unmarshal(text, &numbered) == nil && len(numbered) <= maxRawBytes:
		raw := make([]byte, len(numbered))
		for i, b := range numbered {
			if i < 0 || i >= len(raw) {
				return nil
			}
			raw[i] = b
		}
		*o = raw
	}
	return nil
}

// byteCount is a size in bytes.
type byteCount int64

func (l *byteCount) UnmarshalJSON(text []byte) error {
	if n, ok := wholeNumber(text); ok && n < 1<<50 {
		*l = byteCount(n)
	}
	return nil
}
