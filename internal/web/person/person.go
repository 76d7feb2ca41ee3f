package person

import (
	"net/http"
	"net/url"
	"slices"
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

// personRoutes contains the page of one person or group, and the actions on this page. The phone number is in the query
// and in forms, but never in the path, because paths are logged.
var personRoutes = []page.Route{
	page.Get("/c/{client}/person", page.ClientSide, puntuale.Reader, person),
	page.Post("/c/{client}/person/stop", page.ClientSide, puntuale.Staff, "person.stop", stopRun),
	page.Post("/c/{client}/person/stop-all", page.ClientSide, puntuale.Staff, "person.stop_all", stopAll),
	page.Post("/c/{client}/person/resume", page.ClientSide, puntuale.Staff, "person.resume", resume),
	page.Post("/c/{client}/person/block", page.ClientSide, puntuale.Staff, "blacklist.add", block),
	page.Post("/c/{client}/person/undo-change", page.ClientSide, puntuale.Staff, "person.undo_change", undoChange),
	page.Get("/c/{client}/person/everything", page.ClientSide, puntuale.Owner, exportEverything),
	page.Get("/c/{client}/person/erase", page.ClientSide, puntuale.Owner, askToErase),
	page.Post("/c/{client}/person/erase", page.ClientSide, puntuale.Owner, "person.erase", erase),
}

// personRows is the number of messages that a page reads. A run's messages may be on two pages.
const personRows = "100"

// asked returns the number in the address, in the form that messages contain. If the text is not a number, the page
// does not exist.
func asked(v *page.Request) (string, error) {
	phone, err := v.Client.Known(v.Query("phone"))
	if err != nil {
		return "", page.ErrNoPage
	}
	return phone, nil
}

func personAddress(v *page.Request, phone string) string {
	return v.Frame.Place.Base + "/person?" + url.Values{"phone": {phone}}.Encode()
}

func person(v *page.Request) error {
	phone, err := asked(v)
	if err != nil {
		return err
	}
	if v.Query("part") == "older" {
		older, err := conversationPart(v, phone, v.Query("sent"), v.Query("received"))
		if err != nil {
			return err
		}
		return v.Show(ConversationBefore(older))
	}
	if err := markRead(v, phone); err != nil {
		return err
	}
	p, err := personPage(v, phone)
	if err != nil {
		return err
	}
	return v.Show(Person(p))
}

func personPage(v *page.Request, phone string) (p PersonPage, err error) {
	p = PersonPage{Phone: phone, Cursor: v.Query("cursor"), Block: view.NewForm("phone", phone)}
	if p.Version, err = v.Client.Version(v.Ctx()); err != nil { // read the version before the replies, so that no change between the two reads is missed
		return p, err
	}
	sent, received := v.Query("sent"), v.Query("received")
	p.Older = sent+received != ""
	if p.Conversation, err = conversationPart(v, phone, sent, received); err != nil {
		return p, err
	}
	last, err := v.Client.Conversation(v.Ctx(), phone)
	if err != nil {
		return p, err
	}
	if p.Answer, err = answerPage(v, phone, last.Last.Session); err != nil {
		return p, err
	}
	if p.Consent, err = consentPage(v, phone); err != nil {
		return p, err
	}
	if err := readRuns(v, &p); err != nil {
		return p, err
	}
	if p.Bookings, p.Sequences, err = bookingsOf(v, phone); err != nil {
		return p, err
	}
	if err := v.NamePeople(phone); err != nil {
		return p, err
	}
	p.Name = view.NameOf(view.With(v.Ctx(), v.Frame), phone)
	if p.Changes, err = v.Client.NumberChanges(v.Ctx(), phone); err != nil {
		return p, err
	}
	p.now = v.Now()
	known, err := v.Client.ContactsOf(v.Ctx(), phone)
	if err != nil {
		return p, err
	}
	if c, ok := known[phone]; ok {
		p.Contact = &c
	}
	if !p.Listed {
		return p, nil
	}
	p.Blacklisted, err = page.BlacklistEntry(v, phone)
	return p, err
}

// Which bookings of a person the page shows: the first ones from some days before today on.
const (
	bookingRows = "20"
	bookingPast = 30 // days
)

// bookingsOf reads the person's bookings, and the names of their sequences.
func bookingsOf(v *page.Request, phone string) ([]puntuale.Booking, map[puntuale.SequenceID]string, error) {
	from := puntuale.DateOf(v.Now().In(v.Frame.Zone)).AddDays(-bookingPast)
	found, _, err := v.Client.Bookings(v.Ctx(), control.BookingQuery{Phone: phone, Page: request.Page{Limit: bookingRows},
		Period: request.Period{Start: []request.Bound{{Name: "from", Text: from.String()}}}})
	return found, page.BookingSequences(v, found), err
}

// readRuns reads the runs of the page, and whether the person is on the blacklist.
func readRuns(v *page.Request, p *PersonPage) error {
	rows, next, err := v.Client.Messages(v.Ctx(), control.MessageQuery{Phone: p.Phone, Page: request.Page{Limit: personRows, Cursor: p.Cursor}})
	if err != nil {
		return err
	}
	p.Runs, p.Next = runsOf(rows), next
	if p.Unwanted, err = v.Client.Unwanted(v.Ctx(), rows); err != nil {
		return err
	}
	p.Listed, err = v.Client.Blacklisted(v.Ctx(), p.Phone)
	return err
}

// runsOf groups messages by run, with the newest run first.
func runsOf(rows []puntuale.MessageDetail) (all []PersonRun) {
	at := map[puntuale.RunID]int{}
	for _, m := range rows {
		i, known := at[m.Run]
		if !known {
			i = len(all)
			at[m.Run] = i
			all = append(all, PersonRun{ID: m.Run, Name: view.Or(m.SequenceName, m.RunName), Origin: m.Origin, Received: m.Received})
		}
		all[i].Messages = append(all[i].Messages, m)
	}
	for i := range all {
		slices.SortStableFunc(all[i].Messages, func(a, b puntuale.MessageDetail) int { return moment(&a).Compare(moment(&b)) })
	}
	return all
}

// moment returns the time at which a message left or ended. For a pending message, it returns the due time.
func moment(m *puntuale.MessageDetail) time.Time {
	switch {
	case !m.LeftAt().IsZero():
		return m.LeftAt()
	case !m.Done.IsZero():
		return m.Done
	}
	return m.Planned()
}

func stopRun(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	cancelled, err := v.Client.StopRun(v.Ctx(), f.Value("phone"), f.Value("run"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(f.Value("run"))
	return stopped(v, f.Value("phone"), cancelled)
}

func stopAll(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	var cancelled []puntuale.CancelledMessage
	n, err := v.Client.CancelPending(v.Ctx(), control.CancelCall{Phones: f.Values["phone"], Location: "body.phone"}, func(some []puntuale.CancelledMessage) error {
		cancelled = append(cancelled, some...)
		return nil
	})
	if err != nil {
		return err
	}
	v.SetAuditTarget(strconv.Itoa(n))
	return stopped(v, f.Value("phone"), cancelled)
}

// maxUndone is how many messages one request restores at most. If more were cancelled, there is no undo.
const maxUndone = 200

// stopped shows how many messages were cancelled. The undo restores exactly these.
func stopped(v *page.Request, phone string, cancelled []puntuale.CancelledMessage) error {
	undo := ""
	if len(cancelled) <= maxUndone {
		ids := url.Values{"phone": {phone}}
		for _, m := range cancelled {
			ids.Add("id", m.ID.String())
		}
		undo = v.Frame.Place.Base + "/person/resume?" + ids.Encode()
	}
	if len(cancelled) == 0 {
		v.Quiet = true
		v.Toast("bad", v.T("person.nothing_stopped"), "")
	} else {
		v.Say("person.stopped", undo, "N", len(cancelled))
	}
	return v.Redirect(personAddress(v, phone))
}

// resume restores messages that a stop cancelled. A message that cannot be restored any more does not keep the others from
// it.
func resume(v *page.Request) error {
	phone, err := asked(v)
	if err != nil {
		return err
	}
	ids := v.HTTP.URL.Query()["id"]
	var last error
	n := 0
	for _, id := range ids[:min(len(ids), maxUndone)] {
		if _, err := v.Client.Restore(v.Ctx(), id); err == nil {
			n++
		} else if refused, _ := page.Refusal(err); refused == nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return err
		} else {
			last = err
		}
	}
	if n == 0 && last != nil {
		return last
	}
	v.SetAuditTarget(strconv.Itoa(n))
	v.Say("person.resumed", "", "N", n)
	return v.Redirect(personAddress(v, phone))
}

// block puts the person on the blacklist.
func block(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	added, err := v.Client.AddBlacklisted(v.Ctx(), f.Value("phone"), strings.TrimSpace(f.Value("reason")), control.Once[puntuale.BlacklistEntry]{})
	if err != nil {
		phone, missing := v.Client.Known(f.Value("phone"))
		if missing != nil {
			return err
		}
		p, missing := personPage(v, phone)
		if missing != nil {
			return missing
		}
		p.Block = f
		return v.ShowRefused(err, f, BlockForm(p), Person(p), "reason")
	}
	v.Say("blacklist.added", "", "Phone", view.Grouped(added.Phone))
	return v.Redirect(personAddress(v, added.Phone))
}

// undoChange undoes the latest change of the person's number, and shows the person under the old number.
func undoChange(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	undone, err := v.Client.UndoChange(v.Ctx(), f.Value("phone"))
	if err != nil {
		return err
	}
	v.Say("person.changed_undone", "", "Phone", view.Grouped(undone.Old))
	return v.Redirect(personAddress(v, undone.Old))
}

func askToErase(v *page.Request) error {
	phone, err := asked(v)
	if err != nil {
		return err
	}
	return v.Show(ErasePerson(view.NewForm(), phone))
}

func erase(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	_, err = v.Client.Erase(v.Ctx(), f.Value("phone"))
	if err != nil {
		return v.ShowRefused(err, f, EraseForm(f, f.Value("phone")), ErasePerson(f, f.Value("phone")))
	}
	v.Say("person.erased", "")
	return v.Redirect(v.Frame.Place.Base + "/contacts")
}

// exportEverything sends all data about a person as one document.
func exportEverything(v *page.Request) error {
	phone, err := asked(v)
	if err != nil {
		return err
	}
	known, err := v.Client.Person(v.Ctx(), phone)
	if err != nil {
		return err
	}
	v.Answered = true
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	h := v.Writer.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Disposition", `attachment; filename="`+v.T("person.file")+`.json"`)
	h.Set("Cache-Control", "no-store")
	connection := http.NewResponseController(v.Writer)
	if err := known.WriteTo(v.Ctx(), v.Writer, func() { _ = connection.SetWriteDeadline(page.Deadline(httpkit.ExportWriteTime)) }); err != nil {
		v.BreakOff(err)
	}
	return nil
}
