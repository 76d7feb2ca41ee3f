package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/booking"
	"puntuale/internal/control/request"
	"puntuale/internal/file"
	"puntuale/internal/roster"
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

// CountConversations counts the people that Conversations lists, up to [puntuale.MaxCounted]. all is true if n is the complete
// count.
func (c *Client) CountConversations(ctx context.Context, unread bool) (n int, all bool, err error) {
	if n, all, err = c.tenant.CountConversations(ctx, unread, puntuale.MaxCounted); err != nil {
		return 0, false, fmt.Errorf("count conversations: %w", err)
	}
	return n, all, nil
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
			f.Add("body.last", FaultNotID, last)
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

// OpenMedia opens the file of a reply: the kept one, or else it fetches the file from its network. The virus scanner sees
// every file first, if there is one. The caller must close the file. Codes: not_found (the session was deleted), gone (there
// is no file, the network no longer has it, or it has a virus), unavailable (try later), too_large, overloaded.
func (c *Client) OpenMedia(ctx context.Context, r puntuale.Reply) (*puntuale.ReplyFile, error) {
	if k := r.Kept; k != nil && k.File != "" {
		content, err := c.OpenFile(ctx, puntuale.File{ID: k.File, Size: k.Size})
		if err != nil {
			return nil, err
		}
		return &puntuale.ReplyFile{ReadCloser: content, Size: k.Size}, nil
	} else if k != nil && k.Code == FileInfected {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: k.Reason()}
	}
	f, err := c.openAtNetwork(ctx, r, puntuale.MaxReplyFile)
	if err != nil || c.control.files.scan == nil {
		return f, err
	}
	return c.scanned(ctx, f)
}

// scanned returns a copy of a file that the virus scanner saw. The file stays open as long as its copy, because its slot at
// the opener bounds how much disk open files take.
func (c *Client) scanned(ctx context.Context, f *puntuale.ReplyFile) (_ *puntuale.ReplyFile, err error) {
	both := &scannedFile{original: f}
	defer func() {
		if err != nil {
			_ = both.Close()
		}
	}()
	spool, err := roster.Spool(c.control.lists.scratch)
	if err != nil {
		return nil, fmt.Errorf("keep a file on disk: %w", err)
	}
	both.ReadCloser = spool
	if _, err = io.Copy(spool, f); err != nil {
		return nil, fmt.Errorf("read the file of a reply: %w", err)
	}
	if err = c.scan(ctx, io.NewSectionReader(spool, 0, f.Size)); err != nil {
		if e, ok := errors.AsType[*puntuale.Error](err); ok && e.Code == puntuale.CodeInvalid {
			err = &puntuale.Error{Code: puntuale.CodeGone, Reason: e.Faults[0].Reason()}
		}
		return nil, err
	}
	if _, err = spool.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read the file of a reply: %w", err)
	}
	return &puntuale.ReplyFile{ReadCloser: both, Size: f.Size}, nil
}

// scannedFile is the copy of a file. Closing it closes both.
type scannedFile struct {
	io.ReadCloser // nil: there is no copy yet
	original      io.Closer
}

func (f *scannedFile) Close() error {
	var err error
	if f.ReadCloser != nil {
		err = f.ReadCloser.Close()
	}
	return errors.Join(err, f.original.Close())
}

// KeepFile fetches the file of a reply from its network, and stores it in the same way as UploadFile. It also takes stickers.
// The store notes the file at the reply in the transaction that makes the file usable, so a repeat stores nothing twice.
// Codes: those of UploadFile, those of OpenMedia, and not_found, if the file is not to be kept any more.
func (c *Client) KeepFile(ctx context.Context, x puntuale.IncomingFile) error {
	y, err := c.tenant.Reply(ctx, x.Reply)
	if err != nil {
		return fmt.Errorf("read a reply: %w", err)
	}
	if y.Media == nil {
		return puntuale.NotFound(puntuale.NoReply)
	}
	tooLarge := &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: file.TooLarge(puntuale.MaxFileBytes)}
	if y.Media.Size > puntuale.MaxFileBytes {
		return tooLarge
	}
	m, err := c.openAtNetwork(ctx, y, puntuale.MaxFileBytes)
	if puntuale.CodeOf(err) == puntuale.CodeTooLarge {
		return tooLarge
	}
	if err != nil {
		return err
	}
	defer func() { _ = m.Close() }()
	_, err = c.takeFile(ctx, FileUpload{Name: cmp.Or(y.Media.Name, string(y.Kind)), Content: m}, &x, y.At)
	return err
}

// FileInfected is the code of the fault of a file with a virus. {1}: what the virus scanner calls it
const FileInfected puntuale.ReasonCode = "file.infected"

// scan lets the virus scanner look at a file that enters, if the operator set one. Codes: invalid (a virus), too_large (for
// the scanner), unavailable (the scanner does not answer).
func (c *Client) scan(ctx context.Context, content io.Reader) error {
	if c.control.files.scan == nil {
		return nil
	}
	finding, err := c.control.files.scan(ctx, content)
	switch {
	case err != nil:
		return fmt.Errorf("scan a file: %w", err)
	case finding != "":
		return puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: FileInfected, Args: []string{finding}})
	}
	return nil
}

// openAtNetwork fetches the file of a reply from its network, if it has at most so many bytes.
func (c *Client) openAtNetwork(ctx context.Context, r puntuale.Reply, maxBytes int64) (*puntuale.ReplyFile, error) {
	if r.Media == nil || c.control.opener == nil {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}
	}
	s, err := c.Session(ctx, r.Session.String())
	if err != nil {
		return nil, err
	}
	f, err := c.control.opener.OpenMedia(ctx, s.Session, *r.Media, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("open the file of a reply: %w", err)
	}
	return f, nil
}

// bookingAnswer is a person's answer about a booking, which the change of the booking stores.
type bookingAnswer struct {
	message *puntuale.TakenMessage
	given   puntuale.GivenAnswer
	asked   time.Time // the main date that the question was about

	booking puntuale.BookingID // whose question it was; not for a page
	page    string             // the name of the page; "": the answer is a message
	only    bool               // the answer is only recorded
}

// AnswerBooking changes the booking that a person's message answers, and stores the message in the same transaction. Codes:
// invalid, not_found, forbidden.
func (c *Client) AnswerBooking(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) (err error) {
	given := puntuale.GivenAnswer{Does: f.Button.Does, Label: f.Button.Label, Step: f.Step, Message: f.Message, At: m.At, Matched: f.Matched}
	_, err = c.answer(ctx, f.Reference, &bookingAnswer{message: &m, given: given, asked: f.Date, booking: f.Booking})
	return err
}

// answer changes a booking as its person says. If the new state cannot be planned, the answer is only recorded.
func (c *Client) answer(ctx context.Context, reference string, a *bookingAnswer) (effect puntuale.ReplyEffect, err error) {
	effect, err = c.tryAnswer(ctx, reference, a)
	switch puntuale.CodeOf(err) {
	case puntuale.CodeInvalid, puntuale.CodeNotFound, puntuale.CodeForbidden, puntuale.CodeConflict:
		a.only = true
		return c.tryAnswer(ctx, reference, a)
	}
	return effect, err
}

func (c *Client) tryAnswer(ctx context.Context, reference string, a *bookingAnswer) (effect puntuale.ReplyEffect, err error) {
	var r BookingAnswer
	for range putAttempts {
		var p *bookingPut
		if _, err = c.bookingState(ctx, reference); err != nil {
			return 0, err
		}
		if p, err = c.newBookingPut(ctx, BookingCall{Reference: reference, Door: puntuale.DoorPerson, answer: a}); err != nil {
			return 0, err
		}
		r, err = p.store(ctx, nil)
		if !errors.Is(err, errBookingChanged) {
			return r.Effect, err
		}
	}
	return 0, err
}

// Answer does the same as [Client.AnswerBooking] for the message's client. Codes: not_found, too.
func (c *Control) Answer(ctx context.Context, m puntuale.TakenMessage, f booking.FoundAnswer) error {
	client, err := c.OfNetwork(ctx, m.Client)
	if err != nil {
		return err
	}
	return client.AnswerBooking(ctx, m, f)
}

// answered sets what the call's answer changes in a state. It returns the effect of the reply.
func (p *bookingPut) answered(state puntuale.BookingState) puntuale.ReplyEffect {
	a := p.call.answer
	if a == nil {
		return puntuale.ReplyNoEffect
	}
	if state.Page != a.page && a.page != "" || a.message != nil && (state.ID != a.booking || !slices.Contains(state.Names, a.message.Phone)) { // the booking is another person's now
		p.put.Answer, p.put.Status = nil, nil
		return puntuale.ReplyUnclear
	}
	if !p.put.Answered(state, a.given, a.asked) || a.only {
		p.put.Status = nil
		return puntuale.ReplyUnclear
	}
	return puntuale.ReplyAnswered
}

// pageSite returns the address of pages of confirmations without their names, or "" if the service has no address.
func (c *Client) pageSite(ctx context.Context) (string, error) {
	site, err := c.site(ctx)
	if err != nil || site == "" {
		return "", err
	}
	return site + PagePath + "?t=", nil
}

// site returns the address of pages for people who do not sign in: at the partner's confirmed host name, or else at the
// service's own address. It is "" if the service has none.
func (c *Client) site(ctx context.Context) (string, error) {
	h, err := c.control.tenants.Partner(c.account.Partner).Host(ctx)
	if err != nil {
		return "", fmt.Errorf("read the partner's host name: %w", err)
	}
	if h.Brand.Confirmed {
		return "https://" + h.Brand.Host, nil
	}
	return c.control.Public(), nil
}

// PagePath is the path of the page on which a person confirms or cancels a booking.
const PagePath = "/conferma"

// pageLife is how long after the main date the page exists.
const pageLife = 24 * time.Hour

// BookingPage is what a person may see and do about one booking, without signing in.
type BookingPage struct {
	puntuale.Booking
	Host     puntuale.Host // whose look the page has
	Client   string        // name of the client
	Language string        // of the person, if known
	Zone     *time.Location
	client   *Client
}

// BookingPage finds the page with a name. Codes: not_found (also a day after the booking's date).
func (c *Control) BookingPage(ctx context.Context, name string) (*BookingPage, error) {
	if len(name) > maxIdempotencyKey || !utf8.ValidString(name) {
		return nil, puntuale.NotFound(puntuale.NoBooking)
	}
	id, reference, err := c.tenants.BookingPage(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("look for a booking's page: %w", err)
	}
	client, err := c.OfNetwork(ctx, id)
	if err != nil {
		return nil, err
	}
	state, err := client.bookingState(ctx, reference)
	if err != nil {
		return nil, err
	}
	if state.Page != name || c.clock.Now().After(state.Date.Add(pageLife)) {
		return nil, puntuale.NotFound(puntuale.NoBooking)
	}
	p := &BookingPage{Booking: state.Booking, Client: client.account.Name, client: client}
	var f request.Faults
	if p.Zone, err = client.zoneOf(&f, "", state.Booking.Zone); err != nil {
		return nil, err
	}
	if p.Host, err = c.tenants.Partner(client.account.Partner).Host(ctx); err != nil {
		return nil, fmt.Errorf("read the partner's look: %w", err)
	}
	contact, found, err := client.tenant.ContactOf(ctx, state.Phone)
	if err != nil {
		return nil, fmt.Errorf("read a person's language: %w", err)
	}
	if found {
		p.Language = contact.Language
	}
	return p, nil
}

// Answer confirms or cancels the booking. asked is the main date that the page showed. It returns false if nothing
// changed but the record, so that people must look. label is the button's. Codes: invalid, not_found, forbidden.
func (p *BookingPage) Answer(ctx context.Context, does puntuale.ButtonEffect, label string, asked time.Time) (bool, error) {
	if does != puntuale.ButtonConfirms && does != puntuale.ButtonCancels {
		return false, puntuale.NotFound(puntuale.NoBooking)
	}
	given := puntuale.GivenAnswer{Does: does, Label: label, At: p.client.control.clock.Now(), Matched: puntuale.MatchPage}
	effect, err := p.client.answer(ctx, p.Reference, &bookingAnswer{given: given, asked: asked, page: p.Page})
	return effect == puntuale.ReplyAnswered, err
}
