package person

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// ConversationItem is one message of a conversation: a message that the client sent, or a reply. A reply is what the
// person wrote, or what the client's people wrote on the linked phone.
type ConversationItem struct {
	At      time.Time
	Message *puntuale.MessageDetail // nil: Reply is set instead
	Reply   *puntuale.Reply
}

// ConversationPart is a part of a conversation, oldest first, with the cursors of the next older part.
type ConversationPart struct {
	Phone          string
	Items          []ConversationItem
	Sent, Received string
	Unwanted       map[puntuale.MessageID]puntuale.ReasonCode // pending messages that will not leave, each with the reason
}

// more reports whether there is an older part.
func (p ConversationPart) more() bool { return p.Sent != listEnd || p.Received != listEnd }

// olderURL returns the address of the older part.
func (p ConversationPart) olderURL(ctx context.Context) string {
	q := url.Values{"phone": {p.Phone}}
	if p.Sent != "" {
		q.Set("sent", p.Sent)
	}
	if p.Received != "" {
		q.Set("received", p.Received)
	}
	return view.Base(ctx) + "/person?" + q.Encode()
}

// AnswerPage contains the sessions that can answer a person.
type AnswerPage struct {
	Phone    string
	Sessions []AnswerSession
	Form     *view.Form
}

// AnswerSession is a session that can send the reader's answer.
type AnswerSession struct {
	ID, Name string
	Bounded  bool      // true: the network accepts free text only within 24 hours after the person wrote
	Until    time.Time // if Bounded: free text may be sent until this time; zero: free text may not be sent now
}

// closed reports whether the session can now send only a template.
func (s AnswerSession) closed() bool { return s.Bounded && s.Until.IsZero() }

// closed reports whether no session can now send free text.
func (p AnswerPage) closed() bool {
	return len(p.Sessions) > 0 && !slices.ContainsFunc(p.Sessions, func(s AnswerSession) bool { return !s.closed() })
}

// chosen returns the session that the form names, or nil if the form names none.
func (p AnswerPage) chosen() *AnswerSession {
	for i := range p.Sessions {
		if p.Sessions[i].ID == p.Form.Value("id_sessione") {
			return &p.Sessions[i]
		}
	}
	return nil
}

// options returns the sessions as options of a choice, each with its restrictions.
func (p AnswerPage) options(ctx context.Context) (all []view.Option) {
	for _, s := range p.Sessions {
		text := s.Name
		if s.closed() {
			text += " · " + view.T(ctx, "answer.closed_short")
		} else if s.Bounded {
			text += " · " + view.T(ctx, "answer.until_short", "When", view.FrameOf(ctx).Language.Clock(s.Until.In(view.FrameOf(ctx).Zone))) // within a day, and short: a phone cuts the text
		}
		all = append(all, view.Option{Value: s.ID, Text: text})
	}
	return all
}

func momentWords(ctx context.Context, t time.Time) string {
	return view.FrameOf(ctx).Language.Moment(t.In(view.FrameOf(ctx).Zone), view.FrameOf(ctx).Now)
}

// replyIcon returns the icon for a reply's kind, or "" for plain text.
func replyIcon(y puntuale.Reply) string {
	switch y.Kind {
	case puntuale.ReplyImage, puntuale.ReplySticker:
		return "photo"
	case puntuale.ReplyVideo:
		return "video"
	case puntuale.ReplyAudio:
		return "player-play"
	case puntuale.ReplyDocument:
		return "file-text"
	case puntuale.ReplyLocation:
		return "map-pin"
	case puntuale.ReplyContact:
		return "user"
	case puntuale.ReplyCall:
		return "phone"
	}
	return ""
}

// replySummary returns a reply in one line.
func replySummary(ctx context.Context, y puntuale.Reply) string {
	text := strings.Join(strings.Fields(y.Text), " ")
	switch {
	case y.Blanked:
		return view.T(ctx, "message.blanked")
	case text == "":
		return kindWords(ctx, y.Kind)
	case y.Own:
		text = view.T(ctx, "reply.you", "Text", text)
	}
	if letters := []rune(text); len(letters) > 140 {
		return string(letters[:139]) + "…"
	}
	return text
}

// wordless reports whether a reply has no text, so that a page shows only the reply's kind.
func wordless(y puntuale.Reply) bool { return strings.TrimSpace(y.Text) == "" && !y.Blanked }

// kindWords returns the name of a kind of reply.
func kindWords(ctx context.Context, k puntuale.ReplyKind) string {
	if k == puntuale.ReplyOther {
		return view.T(ctx, "reply.unreadable")
	}
	return view.T(ctx, "reply.kind."+string(k))
}

// mediaWords describes a file by its kind, its name and its size.
func mediaWords(ctx context.Context, y puntuale.Reply) string {
	words := view.T(ctx, "media.open", "What", kindWords(ctx, y.Kind))
	name, size := y.Media.Name, y.Media.Size
	if y.FileOf() != "" {
		name, size = y.Kept.Name, y.Kept.Size
	}
	if name != "" {
		words += " " + name
	}
	if size > 0 {
		words += " (" + view.Number(ctx, (size+1023)/1024) + " kB)"
	}
	return words
}

// mediaAddress is the page that opens the file of a reply.
func mediaAddress(ctx context.Context, y puntuale.Reply) string {
	return view.Base(ctx) + "/replies/" + y.ID.String() + "/media"
}

// mediaOpens reports whether the file of a reply may be opened. One with a virus may not.
func mediaOpens(y puntuale.Reply) bool { return y.Kept == nil || y.Kept.Code != control.FileInfected }

// keptWords says why a file is not kept, or not yet; "": there is nothing to say.
func keptWords(ctx context.Context, k *puntuale.KeptFile) string {
	switch {
	case k == nil:
		return ""
	case k.Waiting:
		return view.T(ctx, "media.waits")
	case k.Code != "":
		return view.T(ctx, "media.not_kept", "Why", view.FrameOf(ctx).Language.Fault(k.Reason()))
	}
	return ""
}
