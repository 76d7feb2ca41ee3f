package person

import (
	"context"
	"net/url"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/web/view"
)

// ConversationItem is one message of a conversation: one of ours, or what the person wrote. What the client's people wrote on
// the phone itself is a reply, too.
type ConversationItem struct {
	At      time.Time
	Message *puntuale.MessageDetail // nil: Reply is set
	Reply   *puntuale.Reply
}

// ConversationPart is a part of a conversation, oldest first, and the cursors of the part before it.
type ConversationPart struct {
	Phone          string
	Items          []ConversationItem
	Sent, Received string
}

// more reports whether something stands before the part.
func (p ConversationPart) more() bool { return p.Sent != listEnd || p.Received != listEnd }

// olderURL is the part before.
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

// AnswerPage has the ways to answer a person.
type AnswerPage struct {
	Phone    string
	Sessions []AnswerSession
	Form     *view.Form
}

// AnswerSession is a session that one can answer from.
type AnswerSession struct {
	ID, Name string
	Bounded  bool      // the network takes free text only within 24 hours after the person wrote
	Until    time.Time // then until this moment; zero: not now
}

// closed reports a session from which only a template can leave.
func (s AnswerSession) closed() bool { return s.Bounded && s.Until.IsZero() }

// chosen is the session that the form names; nil: none.
func (p AnswerPage) chosen() *AnswerSession {
	for i := range p.Sessions {
		if p.Sessions[i].ID == p.Form.Value("id_sessione") {
			return &p.Sessions[i]
		}
	}
	return nil
}

// options are the sessions, each with its restrictions.
func (p AnswerPage) options(ctx context.Context) (all []view.Option) {
	for _, s := range p.Sessions {
		text := s.Name
		if s.closed() {
			text += " · " + view.T(ctx, "answer.closed_short")
		} else if s.Bounded {
			text += " · " + view.T(ctx, "answer.until_short", "When", momentWords(ctx, s.Until))
		}
		all = append(all, view.Option{Value: s.ID, Text: text})
	}
	return all
}

func momentWords(ctx context.Context, t time.Time) string {
	return view.Of(ctx).Language.Moment(t.In(view.Of(ctx).Zone), view.Of(ctx).Now)
}

// replyIcon is the icon for a reply's kind; "" for plain text.
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

// replySummary is a reply in one line.
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

// wordless reports a reply without text, of which a page can show only the kind.
func wordless(y puntuale.Reply) bool { return strings.TrimSpace(y.Text) == "" && !y.Blanked }

// kindWords names a kind of replies.
func kindWords(ctx context.Context, k puntuale.ReplyKind) string {
	if k == puntuale.ReplyOther {
		return view.T(ctx, "reply.unreadable")
	}
	return view.T(ctx, "reply.kind."+string(k))
}

// mediaWords name a file: its kind, its name and its size.
func mediaWords(ctx context.Context, y puntuale.Reply) string {
	words := view.T(ctx, "media.open", "What", kindWords(ctx, y.Kind))
	if y.Media.Name != "" {
		words += " " + y.Media.Name
	}
	if y.Media.Size > 0 {
		words += " (" + view.Number(ctx, (y.Media.Size+1023)/1024) + " kB)"
	}
	return words
}
