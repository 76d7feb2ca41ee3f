package control

import (
	"context"
	"fmt"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
)

// maxUnread bounds the count of people with unread replies.
const maxUnread = 100

// Replies lists the replies of people, newest first. Phone "" means all people. If unread is true, it lists only unread
// replies. Codes: invalid.
func (c *Client) Replies(ctx context.Context, phone string, unread bool, p request.Page) ([]puntuale.Reply, string, error) {
	return c.replies(ctx, puntuale.ReplyFilter{Phone: phone, Unread: unread}, p)
}

// Thread lists the inbound messages of a conversation, newest first. They are the person's replies, and the client's
// own messages from the linked phone. Codes: invalid.
func (c *Client) Thread(ctx context.Context, phone string, p request.Page) ([]puntuale.Reply, string, error) {
	return c.replies(ctx, puntuale.ReplyFilter{Phone: phone, Own: true}, p)
}

func (c *Client) replies(ctx context.Context, filter puntuale.ReplyFilter, p request.Page) ([]puntuale.Reply, string, error) {
	if filter.Phone != "" {
		var f request.Faults
		filter.Phone = c.person(&f, "query.phone", filter.Phone).Names[0]
		p.Unknown = append(p.Unknown, f...)
	}
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Reply, string, error) {
		return c.tenant.Replies(ctx, filter, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list replies: %w", err)
	}
	return rows, next, nil
}

// Reply returns one reply. Codes: not_found.
func (c *Client) Reply(ctx context.Context, id string) (puntuale.Reply, error) {
	wanted, err := puntuale.ParseID[puntuale.ReplyID](id)
	if err != nil {
		return puntuale.Reply{}, puntuale.NotFound(puntuale.NoReply)
	}
	y, err := c.tenant.Reply(ctx, wanted)
	if err != nil {
		return puntuale.Reply{}, fmt.Errorf("read a reply: %w", err)
	}
	return y, nil
}

// Conversations lists the people who wrote, ordered by their latest reply, the newest first. Codes: invalid.
func (c *Client) Conversations(ctx context.Context, unread bool, p request.Page) ([]puntuale.Conversation, string, error) {
	rows, next, err := request.List(p, func(p puntuale.Page) ([]puntuale.Conversation, string, error) {
		return c.tenant.Conversations(ctx, unread, p)
	})
	if err != nil {
		return nil, "", fmt.Errorf("list conversations: %w", err)
	}
	return rows, next, nil
}

// Conversation returns the state of one person's conversation, or the zero value if the person never wrote. The phone
// must have the form that messages use.
func (c *Client) Conversation(ctx context.Context, phone string) (puntuale.Conversation, error) {
	if !possible(phone) {
		return puntuale.Conversation{Phone: phone}, nil
	}
	talk, err := c.tenant.Conversation(ctx, phone)
	if err != nil {
		return puntuale.Conversation{}, fmt.Errorf("read a conversation: %w", err)
	}
	return talk, nil
}

// UnreadReplies counts the people with unread replies, up to 100.
func (c *Client) UnreadReplies(ctx context.Context) (int, error) {
	n, err := c.tenant.Unread(ctx, maxUnread)
	if err != nil {
		return 0, fmt.Errorf("count unread replies: %w", err)
	}
	return n, nil
}

// MarkRead marks a person's replies as read, up to and including the reply with the id last. If last is 0, it marks all
// of them. MarkRead returns how many of the marked replies were unread. The phone must have the form that messages use.
func (c *Client) MarkRead(ctx context.Context, phone string, last puntuale.ReplyID) (int, error) {
	if !possible(phone) {
		return 0, nil
	}
	n, err := c.tenant.MarkRead(ctx, phone, last, c.control.clock.Now())
	if err != nil {
		return n, fmt.Errorf("mark replies as read: %w", err)
	}
	return n, nil
}

// Answer sends a message in the same way as [Client.Send]. If the message is accepted, it stores that a person of the
// client answers, so that automations do not act in this conversation. It refuses free text if an Official session may
// not send free text to this person now. If only this note fails, a repeat under the same key adds it.
func (c *Client) Answer(ctx context.Context, call SingleCall) (Started, error) {
	phone, unknown := request.ParseRecipient(call.Phone, c.account.Region)
	if unknown == nil {
		open, err := c.mayWrite(ctx, call, phone)
		if err != nil {
			return Started{}, err
		}
		if !open {
			return Started{}, puntuale.Invalid(puntuale.Fault{Location: "body.text", Code: faultAnswerClosed})
		}
	}
	started, err := c.Send(ctx, call)
	if err != nil || unknown != nil {
		return started, err
	}
	if err := c.tenant.Answered(ctx, phone, c.control.clock.Now()); err != nil {
		return started, fmt.Errorf("note an answer: %w", err)
	}
	return started, nil
}

const faultAnswerClosed puntuale.ReasonCode = "answer.closed"

// mayWrite reports whether the call's session may send the call's text to a phone now. An Official session may send
// free text for 24 hours after the person wrote. If the session is not the client's, mayWrite returns true, because
// Send refuses the call later.
func (c *Client) mayWrite(ctx context.Context, call SingleCall, phone string) (bool, error) {
	var f request.Faults
	s, err := c.sessionFor(ctx, &f, call.Session)
	if err != nil || s.Type != puntuale.Official || call.Template != "" {
		return true, err
	}
	windowEnd, err := c.ReplyWindowEnd(ctx, s.ID, phone)
	return windowEnd.After(c.control.clock.Now()), err
}

// ReplyWindowEnd returns the end of the time in which an Official session may send free text to a phone. It returns the
// zero time if the person did not write.
func (c *Client) ReplyWindowEnd(ctx context.Context, session puntuale.SessionID, phone string) (time.Time, error) {
	if !possible(phone) {
		return time.Time{}, nil
	}
	windowEnd, err := c.tenant.ReplyWindowOf(ctx, session, phone)
	if err != nil {
		return time.Time{}, fmt.Errorf("read a window: %w", err)
	}
	return windowEnd, nil
}

// MarkReadAsked is [Client.MarkRead] for a phone and an id as a program wrote them. found contains the faults that the
// calling package already found in the request. Codes: invalid.
func (c *Client) MarkReadAsked(ctx context.Context, phone, last string, found ...puntuale.Fault) (int, error) {
	f := request.Faults(found)
	phone = c.person(&f, "body.phone", phone).Names[0]
	var id puntuale.ReplyID
	if last != "" {
		var err error
		if id, err = puntuale.ParseID[puntuale.ReplyID](last); err != nil {
			f.Add("body.last", faultNotID, last)
		}
	}
	if err := f.Err(); err != nil {
		return 0, err
	}
	return c.MarkRead(ctx, phone, id)
}

// possible reports whether a text can be a recipient. The store contains no rows with other texts.
func possible(phone string) bool {
	return len(phone) <= puntuale.MaxPersonID && !strings.ContainsRune(phone, 0)
}

// OpenMedia fetches the file of a reply from its network. The caller must close the file. Codes: not_found (the session
// was deleted), gone (there is no file, or the network no longer has it), unavailable (try later), too_large,
// overloaded.
func (c *Client) OpenMedia(ctx context.Context, r puntuale.Reply) (*puntuale.ReplyFile, error) {
	if r.Media == nil || c.control.opener == nil {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}
	}
	s, err := c.Session(ctx, r.Session.String())
	if err != nil {
		return nil, err
	}
	f, err := c.control.opener.OpenMedia(ctx, s.Session, *r.Media)
	if err != nil {
		return nil, fmt.Errorf("open the file of a reply: %w", err)
	}
	return f, nil
}
