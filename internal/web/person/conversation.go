package person

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// conversationRoutes are the pages of a conversation between a client and a person.
var conversationRoutes = []page.Route{
	page.Get("/c/{client}/person/live", page.ClientSide, puntuale.Reader, liveConversation),
	page.Post("/c/{client}/person/answer", page.ClientSide, puntuale.Staff, "person.answer", answer),
}

const (
	conversationRows = 40  // how many rows of each direction one part has
	listEnd          = "-" // the cursor of a direction that has no older rows
)

// conversationPart reads the newest part of a conversation, or the part before two cursors. It reads one page of each
// direction, and one page may go further back in time than the other. The part begins at the time from which both pages
// are complete.
func conversationPart(v *page.Request, phone, sent, received string) (p ConversationPart, err error) {
	p.Phone = phone
	messages := func(p request.Page) ([]puntuale.MessageDetail, string, error) {
		return v.Client.Messages(v.Ctx(), control.MessageQuery{Phone: phone, Page: p})
	}
	replies := func(p request.Page) ([]puntuale.Reply, string, error) { return v.Client.Thread(v.Ctx(), phone, p) }
	sentRows, nextSent, err := readPart(sent, messages)
	if err != nil {
		return p, err
	}
	theirs, nextReceived, err := readPart(received, replies)
	if err != nil {
		return p, err
	}
	var since time.Time
	if nextSent != listEnd && len(sentRows) > 0 {
		since = sentRows[len(sentRows)-1].Received
	}
	if nextReceived != listEnd && len(theirs) > 0 && theirs[len(theirs)-1].At.After(since) {
		since = theirs[len(theirs)-1].At
	}
	if sentRows, p.Sent, err = cutPart(sentRows, sent, nextSent, since, moment, messages); err != nil {
		return p, err
	}
	if theirs, p.Received, err = cutPart(theirs, received, nextReceived, since, written, replies); err != nil {
		return p, err
	}
	for i := range sentRows {
		if m := &sentRows[i]; m.State != puntuale.Cancelled && m.State != puntuale.Rescheduled && (m.State != puntuale.Pending || !m.Planned().After(v.Now().Add(time.Minute))) {
			p.Items = append(p.Items, ConversationItem{At: moment(m), Message: m})
		}
	}
	if p.Unwanted, err = v.Client.Unwanted(v.Ctx(), sentRows); err != nil {
		return p, err
	}
	for i := range theirs {
		p.Items = append(p.Items, ConversationItem{At: theirs[i].At, Reply: &theirs[i]})
	}
	slices.SortStableFunc(p.Items, func(a, b ConversationItem) int { return a.At.Compare(b.At) })
	return p, nil
}

func written(y *puntuale.Reply) time.Time { return y.At }

// readPart reads the rows behind a cursor. The next cursor is never "". After the last row it is listEnd.
func readPart[T any](cursor string, list func(request.Page) ([]T, string, error)) (rows []T, next string, err error) {
	if cursor == listEnd {
		return nil, listEnd, nil
	}
	rows, next, err = list(request.Page{Limit: strconv.Itoa(conversationRows), Cursor: cursor})
	return rows, cmp.Or(next, listEnd), err
}

// cutPart removes those rows at the end of the list that are older than the time since. The next part begins with these
// rows.
func cutPart[T any](rows []T, cursor, next string, since time.Time, at func(*T) time.Time, list func(request.Page) ([]T, string, error)) ([]T, string, error) {
	keep := len(rows)
	for keep > 0 && at(&rows[keep-1]).Before(since) {
		keep--
	}
	switch keep {
	case len(rows):
		return rows, next, nil
	case 0:
		return nil, cursor, nil
	}
	_, next, err := list(request.Page{Limit: strconv.Itoa(keep), Cursor: cursor})
	return rows[:keep], cmp.Or(next, listEnd), err
}

// liveConversation sends the newest part again each time that somebody wrote or a message changed. While the page is
// open, new replies are marked as read.
func liveConversation(v *page.Request) error {
	phone, err := asked(v)
	if err != nil {
		return err
	}
	return v.Stream(func() (string, error) {
		if err := markRead(v, phone); err != nil {
			return "", err
		}
		p, err := conversationPart(v, phone, "", "")
		if err != nil {
			return "", err
		}
		turns, err := v.Rendered(ConversationItems(p))
		if err != nil || v.Query("runs") == "" {
			return turns, err
		}
		sent := PersonPage{Phone: phone}
		if err := readRuns(v, &sent); err != nil {
			return "", err
		}
		runs, err := v.Rendered(PersonRunsAgain(sent))
		return turns + runs, err
	})
}

// markRead marks the person's replies as read. It does nothing if the reader's role does not allow changes.
func markRead(v *page.Request, phone string) error {
	if v.Person.User().Role < puntuale.Staff {
		return nil
	}
	n, err := v.Client.MarkRead(v.Ctx(), phone, 0)
	if err == nil && n > 0 {
		v.Frame.Unread, err = v.Client.UnreadReplies(v.Ctx())
	}
	return err
}

// answerPage returns the sessions that can answer the person. For an Official session, it also returns the time until
// which free text is allowed. The session of the latest reply is preselected, or another one if that one can send only a
// template.
func answerPage(v *page.Request, phone string, last puntuale.SessionID) (p AnswerPage, err error) {
	p = AnswerPage{Phone: phone}
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return p, err
	}
	chosen := ""
	for _, s := range sessions {
		o := AnswerSession{ID: s.ID.String(), Name: s.Name}
		if s.Type == puntuale.Official {
			o.Bounded = true
			if o.Until, err = v.Client.ReplyWindowEnd(v.Ctx(), s.ID, phone); err != nil {
				return p, err
			}
			if !o.Until.After(v.Now()) {
				o.Until = time.Time{}
			}
		}
		if s.ID == last || s.Default && chosen == "" {
			chosen = o.ID
		}
		p.Sessions = append(p.Sessions, o)
	}
	p.Form = view.NewForm("phone", phone, "id_sessione", chosen, "key", v.Frame.Request)
	if s := p.chosen(); s != nil && s.closed() {
		for _, open := range p.Sessions {
			if !open.closed() {
				p.Form = view.NewForm("phone", phone, "id_sessione", open.ID, "key", v.Frame.Request)
				break
			}
		}
	}
	return p, nil
}

// answer sends one message with free text to the person.
func answer(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	phone := f.Value("phone")
	buttons, interactive := view.ButtonsIn(f), view.InteractiveIn(f, "")
	body, err := json.Marshal(map[string]any{"phone": phone, "text": f.Value("text"), "id_sessione": f.Value("id_sessione"), "buttons": buttons, "interactive": interactive, "media": f.Value("media"), "media_name": f.Value("media_name")})
	if err != nil {
		return err
	}
	fields := map[string]json.RawMessage{}
	for _, name := range []string{"text", "media", "media_name"} {
		if fields[name], err = json.Marshal(f.Value(name)); err != nil {
			return err
		}
	}
	call := control.SingleCall{Phone: phone, Fields: fields, Session: f.Value("id_sessione"), Buttons: buttons, Interactive: interactive, Body: body, Scope: http.MethodPost + " person/answer", Key: f.Value("key")}
	if strings.TrimSpace(f.Value("text")) == "" && f.Value("media") == "" { // a file may have no words
		call.Faults = append(call.Faults, puntuale.Fault{Location: "body.text", Code: puntuale.FaultRequired})
	}
	started, err := v.Client.Answer(v.Ctx(), call)
	if err != nil {
		known, missing := v.Client.Known(phone)
		if missing != nil {
			return err
		}
		p, missing := personPage(v, known)
		if missing != nil {
			return missing
		}
		p.Answer.Form = f
		return v.ShowRefused(err, f, AnswerForm(p.Answer), Person(p), append(view.ButtonNames(), "text", "media", "media_name", "id_sessione")...)
	}
	v.SetAuditTarget(started.IDs[0].String())
	return v.Redirect(personAddress(v, phone))
}
