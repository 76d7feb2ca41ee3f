package web

import (
	"encoding/csv"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// messageRoutes are the list of messages and each one's story.
var messageRoutes = []Route{
	Get("/c/{client}/messages", ClientSide, puntuale.Reader, messages),
	Get("/c/{client}/messages/live", ClientSide, puntuale.Reader, liveMessages),
	Get("/c/{client}/messages/export", ClientSide, puntuale.Reader, exportMessages),
	Get("/c/{client}/messages/{id}", ClientSide, puntuale.Reader, message),
	Post("/c/{client}/messages/{id}/cancel", ClientSide, puntuale.Staff, "message.cancel", cancelMessage),
	Post("/c/{client}/messages/{id}/restore", ClientSide, puntuale.Staff, "message.restore", restoreMessage),
	Post("/c/{client}/messages/{id}/again", ClientSide, puntuale.Staff, "message.again", sendAgain),
	Post("/c/{client}/messages/{id}/move", ClientSide, puntuale.Staff, "message.move", moveMessage),
	Post("/c/{client}/messages/{id}/back", ClientSide, puntuale.Staff, "message.back", moveBack),
}

// messageRows is the length of a page of the list.
const messageRows = "50"

// sought is what the list is asked for, from the address or a form.
func sought(value func(string) string) view.MessageSearch {
	search := view.MessageSearch{
		State: value("state"), Text: strings.TrimSpace(value("text")), Origin: value("origin"), Sequence: value("sequence"), Campaign: value("campaign"),
		Phone: strings.TrimSpace(value("phone")), From: value("from"), To: value("to"), Cursor: value("cursor"),
	}
	if search.Phone == "" && dialled.MatchString(search.Text) {
		search.Phone, search.Text = search.Text, ""
	}
	return search
}

// dialled is what is a phone number where names, texts and numbers may be written.
var dialled = regexp.MustCompile(`^\+?([ ()./-]*[0-9]){9,15}$`)

func queryOf(s view.MessageSearch, limit string) control.MessageQuery {
	return control.MessageQuery{
		State: s.State, Text: s.Text, Standing: s.State == "", Origin: s.Origin, Sequence: s.Sequence, Campaign: s.Campaign, Phone: s.Phone,
		Period: request.Period{Start: []request.Bound{{Name: "from", Text: s.From}}, End: []request.Bound{{Name: "to", Text: s.To}}},
		Page:   request.Page{Limit: limit, Cursor: s.Cursor},
	}
}

// messageList reads a page of the list. What is wrong with the search is said beside its fields.
func messageList(v *Request) (view.MessageList, error) {
	l := view.MessageList{Search: sought(v.query), Form: &view.Form{Values: v.HTTP.URL.Query()}}
	var err error
	if l.Version, err = v.client.Version(v.ctx()); err != nil { // before the rows: what changes meanwhile is shown twice, not never
		return l, err
	}
	q := queryOf(l.Search, messageRows)
	q.Brief = true
	l.Rows, l.Next, err = v.client.Messages(v.ctx(), q)
	e, _ := refusal(err)
	if e != nil && e.Code == puntuale.CodeInvalid {
		l.Form.Take(v.frame.Language, e, "text", "state", "origin", "sequence", "campaign", "phone", "from", "to")
		return l, nil
	}
	if err != nil {
		return l, err
	}
	l.Short = l.Search.Text != "" && l.Next != "" && len(l.Rows) > 0 && strconv.Itoa(len(l.Rows)) != messageRows
	if l.Unwanted, err = v.client.Unwanted(v.ctx(), l.Rows); err != nil {
		return l, err
	}
	var before []puntuale.MessageID
	for i := range l.Rows {
		if l.Rows[i].ResentFrom != 0 {
			before = append(before, l.Rows[i].ResentFrom)
		}
	}
	l.Before, err = v.client.Before(v.ctx(), before...)
	return l, err
}

func messages(v *Request) error {
	l, err := messageList(v)
	if err != nil {
		return err
	}
	if l.Sequences, err = sequenceChoices(v, l.Search.Sequence); err != nil {
		return err
	}
	if l.Campaigns, err = campaignChoices(v, l.Search.Campaign); err != nil {
		return err
	}
	if l.Form.Bad() {
		return v.showAs(http.StatusUnprocessableEntity, view.Messages(l))
	}
	return v.show(view.Messages(l))
}

// liveMessages sends the first page of a list again whenever it has changed.
func liveMessages(v *Request) error {
	return v.stream(func() (string, error) {
		l, err := messageList(v)
		if err != nil {
			return "", err
		}
		return v.rendered(view.MessageRows(l))
	})
}

func message(v *Request) error {
	p, err := messagePage(v)
	if err != nil {
		return err
	}
	if next := calendarPage(v, v.query("next")); next != "" {
		p.Move.Values.Set("next", next)
	}
	return v.show(view.Message(p))
}

// messagePage is all of the message that the address names.
func messagePage(v *Request) (view.MessagePage, error) {
	story, err := v.client.Story(v.ctx(), v.path("id"))
	if err != nil {
		return view.MessagePage{}, err
	}
	unwanted, err := v.client.Unwanted(v.ctx(), []puntuale.MessageDetail{story.MessageDetail})
	if err != nil {
		return view.MessagePage{}, err
	}
	planned := story.Planned().In(v.frame.Zone)
	if planned.Before(v.now()) {
		planned = v.now().In(v.frame.Zone).Add(time.Hour).Truncate(15 * time.Minute)
	}
	date, at := planned.Format(time.DateOnly), planned.Format("15:04")
	return view.MessagePage{Story: view.Story{MessageDetail: story.MessageDetail, Events: story.Events, Resent: story.Resent, Earlier: story.Earlier, Later: story.Later, Session: seen(story.Session), Unwanted: unwanted}, Again: view.NewForm("when", "now", "date", date, "time", at), Move: view.NewForm("date", date, "time", at)}, nil
}

// messageAddress is the page of one message.
func messageAddress(v *Request, id puntuale.MessageID) string {
	return v.frame.Place.Base + "/messages/" + id.String()
}

func cancelMessage(v *Request) error {
	id := v.path("id")
	cancelled, err := v.client.CancelMessages(v.ctx(), []string{id})
	if err != nil {
		return err
	}
	v.did(id)
	address := v.frame.Place.Base + "/messages/" + id
	if len(cancelled) == 0 {
		v.quiet = true
		v.toast("bad", v.T("message.not_cancelled"), "")
		return v.Redirect(address)
	}
	v.say("message.cancelled", address+"/restore")
	return v.Redirect(address)
}

func restoreMessage(v *Request) error {
	moved, err := v.client.Restore(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	v.did(moved.ID.String())
	v.say("message.restored", "")
	return v.Redirect(messageAddress(v, moved.ID))
}

func sendAgain(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	resent, err := v.client.Resend(v.ctx(), resendCall(f, v.path("id")))
	if err != nil {
		p, missing := messagePage(v)
		if missing != nil {
			return missing
		}
		p.Again = f
		return v.again(err, f, view.AgainForm(p), view.Message(p), "date", "time")
	}
	v.did(v.path("id"))
	v.say("message.again_done", "")
	return v.Redirect(messageAddress(v, resent.IDs[0]))
}

// resendCall is what a form asks for that sends messages again: now, or on a date.
func resendCall(f *view.Form, ids ...string) control.ResendCall {
	call := control.ResendCall{IDs: ids}
	if f.Value("when") == "date" {
		call.Date, call.Time = f.Value("date"), f.Value("time")
		if call.Date == "" {
			call.Faults = []puntuale.Fault{{Location: "body.date", Message: "is required"}}
		}
	}
	return call
}

func moveMessage(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	moved, err := v.client.Move(v.ctx(), v.path("id"), f.Value("date"), f.Value("time"))
	if err != nil {
		if back := calendarPage(v, f.Value("next")); back != "" && f.Value("dragged") != "" { // there is no form to show it in
			e, _ := refusal(err)
			if e == nil {
				return err
			}
			v.quiet = true
			v.toast("bad", v.T("message.not_moved", "Why", v.frame.Language.Fault(FirstFault(e))), "")
			return v.Redirect(back)
		}
		p, missing := messagePage(v)
		if missing != nil {
			return missing
		}
		p.Move = f
		return v.again(err, f, view.MoveForm(p), view.Message(p), "date", "time")
	}
	v.did(moved.ID.String())
	undo := url.Values{"at": {strconv.FormatInt(moved.Before.UnixMicro(), 10)}}
	next := messageAddress(v, moved.ID)
	if back := calendarPage(v, f.Value("next")); back != "" {
		next = back
		undo.Set("next", back)
	}
	v.say("message.moved", messageAddress(v, moved.ID)+"/back?"+undo.Encode(), "When", v.frame.Language.Moment(moved.Due.In(v.frame.Zone), v.now()))
	return v.Redirect(next)
}

// moveBack takes a move back.
func moveBack(v *Request) error {
	at, err := strconv.ParseInt(v.query("at"), 10, 64)
	if err != nil { // another's message is not there, whatever else is wrong
		if _, missing := v.client.Story(v.ctx(), v.path("id")); missing != nil {
			return missing
		}
		return puntuale.Invalid(puntuale.Fault{Location: "query.at", Message: "is not a moment"})
	}
	moved, err := v.client.MoveTo(v.ctx(), v.path("id"), time.UnixMicro(at))
	if err != nil {
		return err
	}
	v.did(moved.ID.String())
	v.say("message.moved_back", "")
	if back := calendarPage(v, v.query("next")); back != "" {
		return v.Redirect(back)
	}
	return v.Redirect(messageAddress(v, moved.ID))
}

// calendarPage is an address if it is one of the client's calendar, else "".
func calendarPage(v *Request, address string) string {
	if path, _, _ := strings.Cut(address, "?"); ownAddress(address) && path == v.frame.Place.Base+"/calendar" {
		return address
	}
	return ""
}

// exportRows is how many messages are read at a time.
const exportRows = "500"

// exportMessages writes what a search finds as CSV, as it is read.
func exportMessages(v *Request) error {
	search := sought(v.query)
	search.Cursor = ""
	rows, next, err := v.client.Messages(v.ctx(), queryOf(search, exportRows))
	if err != nil {
		return err
	}
	v.answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+v.T("message.file")+"-"+v.now().In(v.frame.Zone).Format(time.DateOnly)+`.csv"`)
	_, _ = v.Writer.Write([]byte("\uFEFF")) // by which spreadsheets know UTF-8
	out := csv.NewWriter(v.Writer)
	if v.frame.Language.Code == "it" {
		out.Comma = ';' // where the comma parts decimals
	}
	out.UseCRLF = true
	_ = out.Write(strings.Split(v.T("message.columns"), "|"))
	connection := http.NewResponseController(v.Writer)
	for {
		v.pass.Rest()                                           // a slow reader needs no place
		_ = connection.SetWriteDeadline(deadline(exportAllows)) // as far as the connection has one
		for i := range rows {
			_ = out.Write(exportedMessage(v, &rows[i]))
		}
		out.Flush()
		if next == "" || out.Error() != nil {
			return nil //nolint:nilerr // whoever is gone needs no answer
		}
		_ = connection.Flush()
		search.Cursor = next
		rows = nil
		if err = v.readOn(); err == nil {
			rows, next, err = v.client.Messages(v.ctx(), queryOf(search, exportRows))
		}
		if err != nil {
			v.breakOff(err)
		}
	}
}

// exportedMessage is a message as a row of the file.
func exportedMessage(v *Request, m *puntuale.MessageDetail) []string {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(v.frame.Zone).Format("2006-01-02 15:04:05")
	}
	c, ctx := m.Content, view.With(v.ctx(), v.frame)
	name := view.CalledName(*m)
	if name == "" {
		name = m.RunName
	}
	row := []string{m.ID.String(), view.StateWords(ctx, *m), m.Phone, m.SequenceName, name, string(m.Origin),
		moment(m.Received), moment(m.Planned()), moment(m.Left()), moment(m.Delivered), moment(m.Read),
		view.Reason(ctx, m.Response()), view.Says(ctx, m.Detail), c.Text, c.MediaURL}
	for i, cell := range row {
		row[i] = inert(cell)
	}
	return row
}
