package calendar

import (
	"context"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/calendar"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// List is the page with all calendars.
type List struct {
	Rows      []puntuale.Calendar
	Sequences map[puntuale.SequenceID]string
}

// Editor is the page with the form of a calendar.
type Editor struct {
	Form      *view.Form
	Calendar  puntuale.Calendar // zero: a new calendar
	Sequences []view.Option     // those for bookings; empty: there is none
}

// Detail is the page of one calendar, with a part of its entries.
type Detail struct {
	puntuale.Calendar
	Sequence string // its name; "": it was deleted
	AtOnce   string // the text that everybody gets as soon as the calendar is started; "": none
	Problems bool   // only entries that are no appointments
	Rows     []puntuale.CalendarEntry
	Cursor   string
	Next     string
	Now      time.Time
}

func url(ctx context.Context, id puntuale.CalendarID, more string) string {
	return view.Base(ctx) + "/calendars/" + id.String() + more
}

// waiting reports whether the calendar is being read for the first time, or about to be read.
func (d Detail) waiting() bool {
	return d.Read.IsZero() && d.Fault.Code == "" || !d.Calendar.Next.After(d.Now)
}

// listURL returns the address of the list of entries.
func (d Detail) listURL(ctx context.Context) string {
	if d.Problems {
		return url(ctx, d.ID, "?only=problems")
	}
	return url(ctx, d.ID, "")
}

// stateOf returns the tone and the text key of a calendar's state.
func stateOf(c puntuale.Calendar) (tone, key string) {
	switch {
	case c.Fault.Code != "":
		return "bad", "feed.state.failing"
	case c.Read.IsZero():
		return "wait", "feed.state.reading"
	case c.Asked > 0:
		return "warn", "feed.state.asks"
	case c.Started.IsZero():
		return "warn", "feed.state.new"
	}
	return "ok", "feed.state.on"
}

// entryState returns the tone and the text key of what became of an entry.
func entryState(e puntuale.CalendarEntry, started bool) (tone, key string) {
	switch {
	case e.Cancelled:
		return "quiet", "feed.entry.cancelled"
	case e.Problem != "":
		return "warn", "feed.entry.problem"
	case e.Refused != "":
		return "bad", "feed.entry.refused"
	case e.Withdrawn:
		return "quiet", "feed.entry.withdrawn"
	case e.Missing > 0:
		return "warn", "feed.entry.missing"
	case e.Live():
		return "ok", "feed.entry.booked"
	case started:
		return "wait", "feed.entry.waiting"
	}
	return "ok", "feed.entry.understood"
}

// whyOf says why an entry is no appointment, or why its booking could not be changed.
func whyOf(ctx context.Context, e puntuale.CalendarEntry) string {
	switch {
	case e.Problem != "" && !e.Cancelled:
		return view.Says(ctx, puntuale.Because(e.Problem))
	case e.Refused != "":
		return view.Says(ctx, puntuale.ParseReason(e.Refused))
	case e.Warning != "":
		return view.Says(ctx, puntuale.Because(e.Warning))
	}
	return ""
}

func calendarsOf(v *page.Request) *calendar.Owner { return v.Site.Calendars.OfClient(v.Client) }

func list(v *page.Request) error {
	all, err := calendarsOf(v).List(v.Ctx())
	if err != nil {
		return err
	}
	l := List{Rows: all, Sequences: map[puntuale.SequenceID]string{}}
	for _, c := range all {
		s, err := sequenceOf(v, c)
		if err != nil {
			return err
		}
		l.Sequences[c.Sequence] = s.Name
	}
	return v.Show(Calendars(l))
}

// sequenceOf returns a calendar's sequence. If it was deleted, it has no name.
func sequenceOf(v *page.Request, c puntuale.Calendar) (puntuale.Sequence, error) {
	s, err := v.Client.Sequence(v.Ctx(), c.Sequence.String())
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return puntuale.Sequence{}, nil
	}
	return s.Sequence, err
}

var formFields = []string{"name", "url", "sequence", "phone_from", "all_day"}

func editorOf(v *page.Request, f *view.Form) (e Editor, err error) {
	e.Form = f
	_, e.Sequences, err = page.BookingChoices(v)
	return e, err
}

// places returns the form's values for the sources of a calendar: one for each place in the order.
func places(f *view.Form, sources []string) {
	for i := range puntuale.CalendarSources() {
		value := ""
		if i < len(sources) {
			value = sources[i]
		}
		f.Values.Set("from"+strconv.Itoa(i+1), value)
	}
}

func newCalendar(v *page.Request) error {
	f := view.NewForm("sequence", v.Query("sequence"))
	places(f, puntuale.CalendarSources())
	e, err := editorOf(v, f)
	if err != nil {
		return err
	}
	return v.Show(Edit(e))
}

// readForm reads the form. Without an address, the calendar keeps the one that it has.
func readForm(f *view.Form) calendar.NewCalendar {
	r := calendar.NewCalendar{Name: new(f.Value("name")), Sequence: new(f.Value("sequence")), AllDay: new(f.Is("all_day", "on")), PhoneFrom: []string{}}
	if address := f.Value("url"); address != "" {
		r.Address = &address
	}
	for i := range puntuale.CalendarSources() {
		if source := f.Value("from" + strconv.Itoa(i+1)); source != "" && !slices.Contains(r.PhoneFrom, source) {
			r.PhoneFrom = append(r.PhoneFrom, source)
		}
	}
	return r
}

func create(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	made, err := calendarsOf(v).Create(v.Ctx(), readForm(f), control.Once[puntuale.Calendar]{})
	if err != nil {
		return refused(v, f, puntuale.Calendar{}, err)
	}
	v.SetAuditTarget(made.ID.String())
	return v.Redirect(url(view.With(v.Ctx(), v.Frame), made.ID, ""))
}

func refused(v *page.Request, f *view.Form, c puntuale.Calendar, err error) error {
	e, missing := editorOf(v, f)
	if missing != nil {
		return missing
	}
	e.Calendar = c
	return v.ShowRefused(err, f, Form(e), Edit(e), formFields...)
}

// pathCalendar returns the calendar in the path.
func pathCalendar(v *page.Request) (*calendar.Owner, puntuale.Calendar, error) {
	o := calendarsOf(v)
	c, err := o.Calendar(v.Ctx(), v.Path("id"))
	return o, c, err
}

func show(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	d := Detail{Calendar: c, Problems: v.Query("only") == "problems", Cursor: v.Query("cursor"), Now: v.Now()}
	s, err := sequenceOf(v, c)
	if err != nil {
		return err
	}
	d.Sequence, d.AtOnce = s.Name, atOnce(s)
	d.Rows, d.Next, err = o.Entries(v.Ctx(), c.ID.String(), d.Problems, request.Page{Limit: page.RowsOfPage, Cursor: d.Cursor})
	if err != nil {
		return page.Lost(err)
	}
	if v.Query("part") == "now" {
		return v.Show(Live(d))
	}
	return v.Show(Calendar(d))
}

func edit(v *page.Request) error {
	_, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	f := view.NewForm("name", c.Name, "sequence", c.Sequence.String())
	places(f, c.PhoneFrom)
	if c.AllDay {
		f.Values.Set("all_day", "on")
	}
	e, err := editorOf(v, f)
	if err != nil {
		return err
	}
	e.Calendar = c
	return v.Show(Edit(e))
}

func change(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	if _, err := o.Update(v.Ctx(), c.ID.String(), readForm(f)); err != nil {
		return refused(v, f, c, err)
	}
	return done(v, c, "feed.saved")
}

// done shows the calendar after a change.
func done(v *page.Request, c puntuale.Calendar, word string) error {
	v.SetAuditTarget(c.ID.String())
	if word != "" {
		v.Say(word, "")
	}
	return v.Redirect(url(view.With(v.Ctx(), v.Frame), c.ID, ""))
}

func fetch(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	if _, err := o.ReadNow(v.Ctx(), c.ID.String()); err != nil {
		return err
	}
	return done(v, c, "feed.reading_now")
}

func start(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	if _, err := o.Start(v.Ctx(), c.ID.String()); err != nil {
		return err
	}
	return done(v, c, "feed.started")
}

func cancelGone(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	n, _ := strconv.Atoi(f.Value("count")) // 0 is refused like any wrong number
	if _, err := o.CancelGone(v.Ctx(), c.ID.String(), n); err != nil {
		return err
	}
	return done(v, c, "feed.cancelling")
}

func remove(v *page.Request) error {
	o, c, err := pathCalendar(v)
	if err != nil {
		return err
	}
	if err := o.Delete(v.Ctx(), c.ID.String()); err != nil {
		return err
	}
	v.SetAuditTarget(c.ID.String())
	v.Say("feed.deleted", "")
	return v.Redirect(v.Frame.Place.Base + "/calendars")
}
