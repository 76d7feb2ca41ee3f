package message

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// messageRoutes are the pages with the list of messages, and with the history of each message.
var messageRoutes = []page.Route{
	page.Get("/c/{client}/messages", page.ClientSide, puntuale.Reader, messages),
	page.Get("/c/{client}/messages/live", page.ClientSide, puntuale.Reader, liveMessages),
	page.Get("/c/{client}/messages/export", page.ClientSide, puntuale.Reader, exportMessages),
	page.Get("/c/{client}/messages/{id}", page.ClientSide, puntuale.Reader, message),
	page.Get("/c/{client}/messages/{id}/live", page.ClientSide, puntuale.Reader, liveMessage),
	page.Post("/c/{client}/messages/{id}/cancel", page.ClientSide, puntuale.Staff, "message.cancel", cancelMessage),
	page.Post("/c/{client}/messages/{id}/restore", page.ClientSide, puntuale.Staff, "message.restore", restoreMessage),
	page.Post("/c/{client}/messages/{id}/again", page.ClientSide, puntuale.Staff, "message.again", sendAgain),
	page.Post("/c/{client}/messages/{id}/move", page.ClientSide, puntuale.Staff, "message.move", moveMessage),
	page.Post("/c/{client}/messages/{id}/back", page.ClientSide, puntuale.Staff, "message.back", moveBack),
}

// messageRows is the number of rows on one page of the list.
const messageRows = "50"

// readSearch reads the list's search from an address or a form.
func readSearch(value func(string) string) view.MessageSearch {
	search := view.MessageSearch{
		State: value("state"), Text: strings.TrimSpace(value("text")), Origin: value("origin"), Sequence: value("sequence"), Campaign: value("campaign"),
		Phone: strings.TrimSpace(value("phone")), From: value("from"), To: value("to"), Cursor: value("cursor"),
	}
	if search.Phone == "" && dialled.MatchString(search.Text) {
		search.Phone, search.Text = search.Text, ""
	}
	return search
}

// dialled matches a phone number, in a search field that also accepts names and texts.
var dialled = regexp.MustCompile(`^\+?([ ()./-]*[0-9]){9,15}$`)

func queryOf(s view.MessageSearch, limit string) control.MessageQuery {
	return control.MessageQuery{
		State: s.State, Text: s.Text, WithoutRescheduled: s.State == "", Origin: s.Origin, Sequence: s.Sequence, Campaign: s.Campaign, Phone: s.Phone,
		Period: request.Period{Start: []request.Bound{{Name: "from", Text: s.From}}, End: []request.Bound{{Name: "to", Text: s.To}}},
		Page:   request.Page{Limit: limit, Cursor: s.Cursor},
	}
}

// messageList reads a page of the list. If the search has a fault, the fault is shown beside its field.
// Without counted it does not count the messages by state.
func messageList(v *page.Request, counted bool) (MessageList, error) {
	l := MessageList{Search: readSearch(v.Query), Form: &view.Form{Values: v.HTTP.URL.Query()}}
	var err error
	if l.Version, err = v.Client.Version(v.Ctx()); err != nil { // read the version before the rows: a change between the two reads is then shown twice, but never missed
		return l, err
	}
	q := queryOf(l.Search, messageRows)
	q.Brief = true
	l.Rows, l.Next, err = v.Client.Messages(v.Ctx(), q)
	e, _ := page.Refusal(err)
	if e != nil && e.Code == puntuale.CodeInvalid {
		l.Form.Take(v.Frame.Language, e, "text", "state", "origin", "sequence", "campaign", "phone", "from", "to")
		return l, nil
	}
	if err != nil {
		return l, err
	}
	if err := v.NameRecipients(l.Rows); err != nil {
		return l, err
	}
	l.Short = l.Search.Text != "" && l.Next != "" && len(l.Rows) > 0 && strconv.Itoa(len(l.Rows)) != messageRows
	if counted {
		if l.Counts, err = v.Client.CountStates(v.Ctx(), queryOf(l.Search, "")); err != nil {
			return l, err
		}
	}
	if l.Unwanted, err = v.Client.Unwanted(v.Ctx(), l.Rows); err != nil {
		return l, err
	}
	var before []puntuale.MessageID
	for i := range l.Rows {
		if l.Rows[i].ResentFrom != 0 {
			before = append(before, l.Rows[i].ResentFrom)
		}
	}
	l.Before, err = v.Client.Before(v.Ctx(), before...)
	return l, err
}

func messages(v *page.Request) error {
	l, err := messageList(v, true)
	if err != nil {
		return err
	}
	if l.Sequences, err = page.SequenceChoices(v, l.Search.Sequence); err != nil {
		return err
	}
	if l.Campaigns, err = page.CampaignChoices(v, l.Search.Campaign); err != nil {
		return err
	}
	if l.Form.HasFaults() {
		return v.ShowAs(http.StatusUnprocessableEntity, Messages(l))
	}
	return v.Show(Messages(l))
}

// liveMessages sends the first page of the list again each time that the list has changed. Beside many messages that leave, the
// counts are dearer than the list.
//
// No page asks for other lists than those that reload themselves.
func liveMessages(v *page.Request) error {
	if asked := (MessageList{Search: readSearch(v.Query), Form: view.NewForm()}); !asked.live() {
		return page.ErrNoPage
	}
	var counts map[puntuale.State]int
	return v.StreamRarely(func(dear bool) (string, error) {
		l, err := messageList(v, dear)
		if err != nil {
			return "", err
		}
		if dear {
			counts = l.Counts
		}
		l.Counts = counts
		return v.Rendered(liveList(l))
	})
}

func message(v *page.Request) error {
	p, err := messagePage(v)
	if err != nil {
		return err
	}
	if next := calendarPage(v, v.Query("next")); next != "" {
		p.Move.Values.Set("next", next)
	}
	return v.Show(Message(p))
}

// liveMessage sends the message's part of the page again each time that something has changed.
func liveMessage(v *page.Request) error {
	if _, err := v.Client.Story(v.Ctx(), v.Path("id")); err != nil {
		return err
	}
	return v.Stream(func() (string, error) {
		p, err := messagePage(v)
		if err != nil {
			return "", err
		}
		return v.Rendered(MessageNow(p))
	})
}

// messagePage reads the data of a message's page. The message's id is in the address.
func messagePage(v *page.Request) (MessagePage, error) {
	version, err := v.Client.Version(v.Ctx()) // read before the message, so that no change between the two reads is missed
	if err != nil {
		return MessagePage{}, err
	}
	story, err := v.Client.Story(v.Ctx(), v.Path("id"))
	if err != nil {
		return MessagePage{}, err
	}
	unwanted, err := v.Client.Unwanted(v.Ctx(), []puntuale.MessageDetail{story.MessageDetail})
	if err != nil {
		return MessagePage{}, err
	}
	if err := v.NamePeople(story.Phone); err != nil {
		return MessagePage{}, err
	}
	listed := story.State == puntuale.Blacklisted || unwanted[story.ID] == puntuale.ReasonBlacklisted
	var entry *puntuale.BlacklistEntry
	if listed && story.Phone != "" {
		if entry, err = page.BlacklistEntry(v, story.Phone); err != nil {
			return MessagePage{}, err
		}
	}
	var booking *puntuale.Booking
	b, belongs, err := v.Client.BookingOf(v.Ctx(), story.ID)
	if err != nil {
		return MessagePage{}, err
	}
	if belongs {
		booking = &b
	}
	planned := story.Planned().In(v.Frame.Zone)
	if planned.Before(v.Now()) {
		planned = v.Now().In(v.Frame.Zone).Add(time.Hour).Truncate(15 * time.Minute)
	}
	date, at := planned.Format(time.DateOnly), planned.Format("15:04")
	return MessagePage{Version: version, Booking: booking, Blacklisted: entry, Story: Story{MessageDetail: story.MessageDetail, Events: story.Events, Resent: story.Resent, Earlier: story.Earlier, Later: story.Later, Session: sessionView(story.Session), Unwanted: unwanted}, Again: view.NewForm("when", "now", "date", date, "time", at), Move: view.NewForm("date", date, "time", at)}, nil
}

// messageAddress returns the address of a message's page.
func messageAddress(v *page.Request, id puntuale.MessageID) string {
	return v.Frame.Place.Base + "/messages/" + id.String()
}

func cancelMessage(v *page.Request) error {
	id := v.Path("id")
	cancelled, err := v.Client.CancelMessages(v.Ctx(), []string{id})
	if err != nil {
		return err
	}
	v.SetAuditTarget(id)
	address := v.Frame.Place.Base + "/messages/" + id
	if len(cancelled) == 0 {
		v.Quiet = true
		v.Toast("bad", v.T("message.not_cancelled"), "")
		return v.Redirect(address)
	}
	v.Say("message.cancelled", address+"/restore")
	return v.Redirect(address)
}

func restoreMessage(v *page.Request) error {
	moved, err := v.Client.Restore(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(moved.ID.String())
	v.Say("message.restored", "")
	return v.Redirect(messageAddress(v, moved.ID))
}

func sendAgain(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	resent, err := v.Client.Resend(v.Ctx(), resendCall(f, v.Path("id")))
	if err != nil {
		p, missing := messagePage(v)
		if missing != nil {
			return missing
		}
		p.Again = f
		return v.ShowRefused(err, f, AgainForm(p), Message(p), "date", "time")
	}
	v.SetAuditTarget(v.Path("id"))
	v.Say("message.again_done", "")
	return v.Redirect(messageAddress(v, resent.IDs[0]))
}

// resendCall reads a form that resends messages, now or on a date.
func resendCall(f *view.Form, ids ...string) control.ResendCall {
	call := control.ResendCall{IDs: ids}
	if f.Value("when") == "date" {
		call.Date, call.Time = f.Value("date"), f.Value("time")
		if call.Date == "" {
			call.Faults = []puntuale.Fault{{Location: "body.date", Code: puntuale.FaultRequired}}
		}
	}
	return call
}

func moveMessage(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	moved, err := v.Client.Move(v.Ctx(), v.Path("id"), f.Value("date"), f.Value("time"))
	if err != nil {
		if returnTo := calendarPage(v, f.Value("next")); returnTo != "" && f.Value("dragged") != "" { // after a drag, there is no form that could show the fault
			e, _ := page.Refusal(err)
			if e == nil {
				return err
			}
			v.Quiet = true
			v.Toast("bad", v.T("message.not_moved", "Why", v.Frame.Language.Fault(page.FirstFault(e))), "")
			return v.Redirect(returnTo)
		}
		p, missing := messagePage(v)
		if missing != nil {
			return missing
		}
		p.Move = f
		return v.ShowRefused(err, f, MoveForm(p), Message(p), "date", "time")
	}
	v.SetAuditTarget(moved.ID.String())
	undo := url.Values{"at": {strconv.FormatInt(moved.Before.UnixMicro(), 10)}}
	next := messageAddress(v, moved.ID)
	if returnTo := calendarPage(v, f.Value("next")); returnTo != "" {
		next = returnTo
		undo.Set("next", returnTo)
	}
	told, tone := v.T("message.moved", "When", v.Frame.Language.Moment(moved.Due.In(v.Frame.Zone), v.Now())), "ok"
	found, err := v.Client.Details(v.Ctx(), []string{moved.ID.String()})
	if err != nil {
		return err
	}
	if words := view.DateWords(found[0].Content.Text); len(words) > 0 {
		told, tone = told+". "+v.T("message.dated", "Words", strings.Join(words, ", ")), "warn"
	}
	v.Toast(tone, told, messageAddress(v, moved.ID)+"/back?"+undo.Encode())
	return v.Redirect(next)
}

const faultNotMoment puntuale.ReasonCode = "fault.not_moment"

// moveBack undoes the move of a message.
func moveBack(v *page.Request) error {
	at, err := strconv.ParseInt(v.Query("at"), 10, 64)
	if err != nil { // another client's message must be reported as missing, even if the time is also wrong
		if _, missing := v.Client.Story(v.Ctx(), v.Path("id")); missing != nil {
			return missing
		}
		return puntuale.Invalid(puntuale.Fault{Location: "query.at", Code: faultNotMoment})
	}
	moved, err := v.Client.MoveTo(v.Ctx(), v.Path("id"), time.UnixMicro(at))
	if err != nil {
		return err
	}
	v.SetAuditTarget(moved.ID.String())
	v.Say("message.moved_back", "")
	if returnTo := calendarPage(v, v.Query("next")); returnTo != "" {
		return v.Redirect(returnTo)
	}
	return v.Redirect(messageAddress(v, moved.ID))
}

// calendarPage returns the address if it is a page of the client's calendar, or "" if it is not.
func calendarPage(v *page.Request, address string) string {
	if path, _, _ := strings.Cut(address, "?"); page.OwnAddress(address) && path == v.Frame.Place.Base+"/calendar" {
		return address
	}
	return ""
}

// exportRows is the number of messages that an export reads at a time.
const exportRows = "500"

// exportMessages reads the messages of a search page by page, and writes them as CSV.
func exportMessages(v *page.Request) error {
	search := readSearch(v.Query)
	return v.SendCSV(v.T("message.file")+"-"+v.Today(), strings.Split(v.T("message.columns"), "|"), func(cursor string) (rows [][]string, next string, err error) {
		search.Cursor = cursor
		all, next, err := v.Client.Messages(v.Ctx(), queryOf(search, exportRows))
		if err == nil {
			err = v.NameRecipients(all)
		}
		for i := range all {
			rows = append(rows, exportedMessage(v, &all[i]))
		}
		return rows, next, err
	})
}

// exportedMessage returns a message as a row of the CSV file.
func exportedMessage(v *page.Request, m *puntuale.MessageDetail) []string {
	moment := func(t time.Time) string {
		if t.IsZero() {
			return ""
		}
		return t.In(v.Frame.Zone).Format("2006-01-02 15:04:05")
	}
	c, ctx := m.Content, view.With(v.Ctx(), v.Frame)
	name := view.CalledName(ctx, *m)
	if name == "" {
		name = m.RunName
	}
	row := []string{m.ID.String(), view.StateWords(ctx, *m), m.Phone, m.SequenceName, name, string(m.Origin),
		moment(m.Received), moment(m.Planned()), moment(m.LeftAt()), moment(m.Delivered), moment(m.Read),
		view.Reason(ctx, m.Response()), view.Says(ctx, m.Detail), c.Text, c.MediaURL}
	for i, cell := range row {
		row[i] = httpkit.InertCell(cell)
	}
	return row
}
