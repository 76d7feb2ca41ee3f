//go:build !nosocket

package socket

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waE2E"
	"go.mau.fi/whatsmeow/types"
	"go.mau.fi/whatsmeow/types/events"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"puntuale"
	"puntuale/internal/connector/replyfile"
)

// wrote handles a message of a chat. A person wrote it, or the client's own people wrote it on the phone or on another
// linked device.
func (n *number) wrote(cli *whatsmeow.Client, e *events.Message) bool {
	shown, ok := shownBy(e.Message)
	if !ok || e.Info.IsFromMe && n.c.ids.made(e.Info.ID, n.c.cfg.Clock.Now()) {
		return true
	}
	shown.Client, shown.Session, shown.At, shown.ID = n.client, n.id, n.moment(e.Info.Timestamp), e.Info.ID
	n.resolve(&shown, e.Info.IsFromMe)
	ctx, cancel := context.WithTimeout(n.ctx, takeWait)
	defer cancel()
	if e.Info.IsFromMe {
		return n.take(puntuale.InboundBatch{Messages: n.ownMessage(ctx, cli, e, shown)})
	}
	reported := puntuale.InboundBatch{Messages: n.inbound(ctx, cli, e, shown)}
	if s := e.Info.Chat.Server; s == types.DefaultUserServer || s == types.HiddenUserServer {
		reported.Aliases = n.aliases(n.bothOf(ctx, cli, e.Info.Sender.ToNonAD(), e.Info.SenderAlt.ToNonAD()))
	}
	if !n.take(reported) {
		return false
	}
	for _, h := range reported.Messages {
		if err := n.coldContacts.acquaint(ctx, h.Phone, longPast); err != nil {
			n.log.Warn("that somebody wrote could not be kept", "error", err)
		}
	}
	return true
}

// resolve finds the message of this installation that a person quotes. What the client's own people write answers no
// message.
func (n *number) resolve(h *puntuale.InboundMessage, own bool) {
	if own {
		h.Payload, h.Quoted = "", ""
		return
	}
	if m, ok := n.c.ids.message(h.Quoted); ok && n.c.ids.made(h.Quoted, n.c.cfg.Clock.Now()) {
		h.InReplyTo, h.Quoted = m, ""
	}
}

// inbound returns the entries to store for one message from a person. In a direct chat, the first entry contains the
// message and its id. A person may have a number and a LID. Then a second entry without an id opens the window of the
// LID. In a group there is at most one entry. It has no id and opens the group's window.
func (n *number) inbound(ctx context.Context, cli *whatsmeow.Client, e *events.Message, shown puntuale.InboundMessage) (all []puntuale.InboundMessage) {
	bare := puntuale.InboundMessage{Client: n.client, Session: n.id, At: shown.At}
	switch e.Info.Chat.Server {
	case types.GroupServer:
		// A message in a group does not open its writer's window. If we wrote to the group, the message counts as the
		// group's answer, except if it is a reaction.
		bare.Phone, bare.Group = e.Info.Chat.String(), true
		if known, err := n.coldContacts.knows(ctx, bare.Phone); err == nil && known && shown.Kind != puntuale.ReplyReaction {
			all = append(all, bare)
		}
	case types.DefaultUserServer, types.HiddenUserServer:
		phone, lid := n.bothOf(ctx, cli, e.Info.Sender.ToNonAD(), e.Info.SenderAlt.ToNonAD())
		shown.Chat = n.chatOf(ctx, cli, phone, lid)
		if shown.Phone = nameOf(phone, lid); shown.Phone != "" {
			all = append(all, shown.Storable())
		}
		if !phone.IsEmpty() && !lid.IsEmpty() && shown.Kind != puntuale.ReplyReaction { // the LID's window opens only if we wrote to the LID
			bare.Phone = lid.String()
			if known, err := n.coldContacts.knows(ctx, bare.Phone); err == nil && known {
				all = append(all, bare)
			}
		}
	}
	return all
}

// ownMessage returns the entry for a message that the client's people wrote to a person. It returns nil for messages to
// groups or to themselves, because these are not stored.
func (n *number) ownMessage(ctx context.Context, cli *whatsmeow.Client, e *events.Message, shown puntuale.InboundMessage) []puntuale.InboundMessage {
	if s := e.Info.Chat.Server; s != types.DefaultUserServer && s != types.HiddenUserServer {
		return nil
	}
	phone, lid := n.bothOf(ctx, cli, e.Info.Chat.ToNonAD(), e.Info.RecipientAlt.ToNonAD())
	if own := e.Info.Sender.ToNonAD(); own == phone || own == lid || cli.Store.ID != nil && phone.User == cli.Store.ID.User {
		return nil
	}
	shown.Chat, shown.Phone, shown.Own = n.chatOf(ctx, cli, phone, lid), nameOf(phone, lid), true
	if shown.Phone == "" {
		return nil
	}
	return []puntuale.InboundMessage{shown.Storable()}
}

// chatOf returns the LID of a person's chat, or "" if the LID is not known. The same message may come twice: first
// under the LID, and again under the number once the number is known. The LID shows that it is the same message.
func (n *number) chatOf(ctx context.Context, cli *whatsmeow.Client, phone, lid types.JID) string {
	if lid.IsEmpty() && !phone.IsEmpty() {
		if found, err := cli.Store.LIDs.GetLIDForPN(ctx, phone); err == nil {
			lid = found.ToNonAD()
		}
	}
	if lid.IsEmpty() {
		return ""
	}
	return lid.String()
}

// nameOf returns the name under which a person's messages are stored: the number, or the LID if the number is not
// known.
func nameOf(phone, lid types.JID) string {
	switch {
	case !phone.IsEmpty():
		return "+" + phone.User
	case !lid.IsEmpty():
		return lid.String()
	}
	return ""
}

// maxWrapped limits how many outer messages are removed. WhatsApp puts a message inside an outer message if the inner
// message disappears later, or if people may view it only once.
const maxWrapped = 6

// unwrapped returns the innermost message, which a person sees. For an edit, that is the new message.
func unwrapped(m *waE2E.Message) *waE2E.Message {
	for range maxWrapped {
		inner := m.GetDeviceSentMessage().GetMessage()
		if p := m.GetProtocolMessage(); p.GetType() == waE2E.ProtocolMessage_MESSAGE_EDIT && p.GetEditedMessage() != nil {
			inner = p.GetEditedMessage()
		}
		m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
			if f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() {
				if w, ok := v.Message().Interface().(*waE2E.FutureProofMessage); ok && w.GetMessage() != nil {
					inner = w.GetMessage()
				}
			}
			return inner == nil
		})
		if inner == nil {
			break
		}
		m = inner
	}
	return m
}

// shownBy returns what a message shows: its kind, text and file. It returns false if no person wrote the message.
// Devices send such messages to each other, and show them to nobody.
func shownBy(m *waE2E.Message) (h puntuale.InboundMessage, ok bool) {
	if m == nil {
		return h, false
	}
	if m = unwrapped(m); !isMessage(m) {
		return h, false
	}
	h.Kind, h.Payload, h.Quoted = puntuale.ReplyOther, payloadOf(m), quotedBy(m)
	if h.Media = fileOf(m, &h); h.Media != nil {
		return h, true
	}
	switch {
	case m.Conversation != nil:
		h.Kind, h.Text = puntuale.ReplyText, m.GetConversation()
	case m.ExtendedTextMessage != nil:
		h.Kind, h.Text = puntuale.ReplyText, m.GetExtendedTextMessage().GetText()
	case m.LocationMessage != nil:
		l := m.GetLocationMessage()
		h.Kind = puntuale.ReplyLocation
		h.Text = puntuale.LocationText(l.GetName(), cmp.Or(l.GetAddress(), l.GetComment()), l.GetDegreesLatitude(), l.GetDegreesLongitude())
	case m.LiveLocationMessage != nil:
		l := m.GetLiveLocationMessage()
		h.Kind, h.Text = puntuale.ReplyLocation, puntuale.LocationText(l.GetCaption(), "", l.GetDegreesLatitude(), l.GetDegreesLongitude())
	case m.ContactMessage != nil:
		h.Kind, h.Text = puntuale.ReplyContact, m.GetContactMessage().GetDisplayName()
	case m.ContactsArrayMessage != nil:
		h.Kind, h.Text = puntuale.ReplyContact, contactNames(m.GetContactsArrayMessage())
	case m.ReactionMessage != nil: // if the person withdrew the reaction, the text is empty
		h.Kind, h.Text = puntuale.ReplyReaction, m.GetReactionMessage().GetText()
	case m.PollCreationMessage != nil, m.PollCreationMessageV2 != nil, m.PollCreationMessageV3 != nil:
		h.Text = cmp.Or(m.GetPollCreationMessage().GetName(), m.GetPollCreationMessageV2().GetName(), m.GetPollCreationMessageV3().GetName())
	default:
		if text := chosen(m); text != "" {
			h.Kind, h.Text = puntuale.ReplyButton, text
		}
	}
	return h, true
}

// chosen returns the text of the button or the list row that a person chose. It returns "" for any other message.
func chosen(m *waE2E.Message) string {
	return cmp.Or(
		m.GetButtonsResponseMessage().GetSelectedDisplayText(), m.GetListResponseMessage().GetTitle(),
		m.GetTemplateButtonReplyMessage().GetSelectedDisplayText(), m.GetInteractiveResponseMessage().GetBody().GetText(),
	)
}

// payloadOf returns the id of the button or the list row that a person chose.
func payloadOf(m *waE2E.Message) string {
	var native struct {
		ID string `json:"id"`
	}
	if flow := m.GetInteractiveResponseMessage().GetNativeFlowResponseMessage().GetParamsJSON(); flow != "" && json.Unmarshal([]byte(flow), &native) != nil {
		native.ID = ""
	}
	return cmp.Or(
		m.GetButtonsResponseMessage().GetSelectedButtonID(), m.GetListResponseMessage().GetSingleSelectReply().GetSelectedRowID(),
		m.GetTemplateButtonReplyMessage().GetSelectedID(), native.ID,
	)
}

// quotedBy returns WhatsApp's id of the message that a message quotes. Many types of messages can quote.
func quotedBy(m *waE2E.Message) (id string) {
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		if f.Kind() == protoreflect.MessageKind && !f.IsList() && !f.IsMap() {
			if part, ok := v.Message().Interface().(interface{ GetContextInfo() *waE2E.ContextInfo }); ok {
				id = part.GetContextInfo().GetStanzaID()
			}
		}
		return id == ""
	})
	return id
}

func contactNames(m *waE2E.ContactsArrayMessage) string {
	var names []string
	for _, c := range m.GetContacts() {
		if name := c.GetDisplayName(); name != "" {
			names = append(names, name)
		}
	}
	return strings.Join(names, ", ")
}

// encryptedFile is the common interface of all messages with a file.
type encryptedFile interface {
	whatsmeow.DownloadableMessage
	GetURL() string
	GetMimetype() string
	GetFileLength() uint64
}

// fileOf returns the file of a message, or nil if it has none. It writes the message's kind and caption into h.
func fileOf(m *waE2E.Message, h *puntuale.InboundMessage) *puntuale.ReplyMedia {
	var f encryptedFile
	kind, name := replyfile.Image, ""
	switch {
	case m.ImageMessage != nil:
		f, h.Kind, h.Text = m.GetImageMessage(), puntuale.ReplyImage, m.GetImageMessage().GetCaption()
	case m.StickerMessage != nil:
		f, h.Kind = m.GetStickerMessage(), puntuale.ReplySticker
	case m.VideoMessage != nil:
		f, h.Kind, h.Text, kind = m.GetVideoMessage(), puntuale.ReplyVideo, m.GetVideoMessage().GetCaption(), replyfile.Video
	case m.PtvMessage != nil:
		f, h.Kind, h.Text, kind = m.GetPtvMessage(), puntuale.ReplyVideo, m.GetPtvMessage().GetCaption(), replyfile.Video
	case m.AudioMessage != nil:
		f, h.Kind, kind = m.GetAudioMessage(), puntuale.ReplyAudio, replyfile.Audio
	case m.DocumentMessage != nil:
		d := m.GetDocumentMessage()
		f, h.Kind, h.Text, kind, name = d, puntuale.ReplyDocument, d.GetCaption(), replyfile.Document, cmp.Or(d.GetFileName(), d.GetTitle())
	default:
		return nil
	}
	return &puntuale.ReplyMedia{Type: f.GetMimetype(), Name: name, Size: int64(min(f.GetFileLength(), 1<<50)), Ref: replyfile.EncryptedFile{
		Kind: kind, URL: f.GetURL(), Path: f.GetDirectPath(), Key: f.GetMediaKey(), Hash: f.GetFileSHA256(), EncHash: f.GetFileEncSHA256(),
	}.Ref()}
}

// isMessage reports whether a person wrote a message. Messages between devices do not count. Votes and the announcement
// of an album's pictures do not count either.
func isMessage(m *waE2E.Message) bool {
	if m.ProtocolMessage != nil || m.EncReactionMessage != nil || m.PollUpdateMessage != nil || m.KeepInChatMessage != nil ||
		m.PinInChatMessage != nil || m.AlbumMessage != nil || m.EncEventResponseMessage != nil {
		return false
	}
	bare, ok := proto.Clone(m).(*waE2E.Message)
	if !ok {
		return false
	}
	bare.SenderKeyDistributionMessage, bare.MessageContextInfo, bare.FastRatchetKeySenderKeyDistributionMessage = nil, nil, nil
	return proto.Size(bare) > 0
}
