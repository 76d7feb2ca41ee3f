//go:build !nosocket

package socket

import (
	"cmp"
	"context"
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

// wrote takes a message of a chat. A person wrote it, or the client's people on the phone or on another linked device.
func (n *number) wrote(cli *whatsmeow.Client, e *events.Message) bool {
	shown, ok := shownBy(e.Message)
	if _, own := n.c.ids.message(e.Info.ID); !ok || e.Info.IsFromMe && own {
		return true
	}
	shown.Client, shown.Session, shown.At, shown.ID = n.client, n.id, n.moment(e.Info.Timestamp), e.Info.ID
	ctx, cancel := context.WithTimeout(n.ctx, takeWait)
	defer cancel()
	if e.Info.IsFromMe {
		return n.take(puntuale.InboundBatch{Messages: n.ownMessage(ctx, cli, e, shown)})
	}
	reported := puntuale.InboundBatch{Messages: n.inbound(ctx, cli, e, shown)}
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

// inbound makes entries of one message from a person. In a direct chat, the first entry has the message's id. A second
// entry, without an id, opens the window of the person's other name. In a group there is at most one entry, without an
// id, which opens the group's window.
func (n *number) inbound(ctx context.Context, cli *whatsmeow.Client, e *events.Message, shown puntuale.InboundMessage) (all []puntuale.InboundMessage) {
	bare := puntuale.InboundMessage{Client: n.client, Session: n.id, At: shown.At}
	switch e.Info.Chat.Server {
	case types.GroupServer:
		// A message in a group does not open the window of its writer. The message counts as an answer of the group if
		// we wrote to the group. A reaction does not count.
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

// ownMessage returns what the client's people wrote to a person. What they write to groups or to themselves is not
// kept.
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

// chatOf returns the LID of a person's chat, or "" if it is not known. A message may come under the LID, and once more
// under the number after the number became known. The LID shows that both are the same message.
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

// wrappedMost is how many messages around a message are opened. WhatsApp wraps messages that disappear, or that may be
// viewed once, into others.
const wrappedMost = 6

// unwrapped returns the message that a person sees. After an edit it is the new one.
func unwrapped(m *waE2E.Message) *waE2E.Message {
	for range wrappedMost {
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

// shownBy returns what a message shows, with its kind, text and file. It returns false if no person wrote the message:
// devices also send each other messages that nobody sees.
func shownBy(m *waE2E.Message) (h puntuale.InboundMessage, ok bool) {
	if m == nil {
		return h, false
	}
	if m = unwrapped(m); !isMessage(m) {
		return h, false
	}
	h.Kind = puntuale.ReplyOther
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
	case m.ReactionMessage != nil: // a reaction that is taken back has no emoji
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

// chosen returns the words of the button or the list row that a person chose, "" for any other message.
func chosen(m *waE2E.Message) string {
	return cmp.Or(
		m.GetButtonsResponseMessage().GetSelectedDisplayText(), m.GetListResponseMessage().GetTitle(),
		m.GetTemplateButtonReplyMessage().GetSelectedDisplayText(), m.GetInteractiveResponseMessage().GetBody().GetText(),
	)
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

// encryptedFile is what all messages with a file have in common.
type encryptedFile interface {
	whatsmeow.DownloadableMessage
	GetURL() string
	GetMimetype() string
	GetFileLength() uint64
}

// fileOf returns the file of a message, nil for none. It notes in h the message's kind and caption.
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

// isMessage reports whether a person wrote a message. Messages between devices do not count, and neither do votes or
// the announcement of an album's pictures.
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
