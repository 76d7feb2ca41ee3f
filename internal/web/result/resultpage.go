package result

import (
	"cmp"
	"context"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control/result"
	"puntuale/internal/web/view"
)

// Page is a report with what the page shows besides.
type Page struct {
	Query    url.Values // what the address chose
	Form     *view.Form
	Filter   puntuale.ResultFilter
	Report   puntuale.ResultReport
	Days     puntuale.ResultReport // the same messages by day
	Before   puntuale.ResultRow    // the same, in the period before
	Subject  string                // the name of what it is about; "": everything
	Today    puntuale.Date
	Partner  bool
	Running  bool     // the report is about a campaign that has not ended
	Variants bool     // the report is about a step or a campaign with several texts, or about a campaign with a holdout
	Varied   []string // only by step: the ids of the steps with several texts
}

// period is a period that the page offers.
type period struct {
	name       string
	start, end puntuale.Date
}

// periods returns the periods that people ask for most, the shortest first. A week begins on Monday.
func (p Page) periods() []period {
	today := p.Today
	monday := today.AddDays(1 - today.Weekday())
	month := puntuale.Date{Year: today.Year, Month: today.Month, Day: 1}
	return []period{
		{"today", today, today}, {"week", monday, monday.AddDays(6)}, {"last_week", monday.AddDays(-7), monday.AddDays(-1)},
		{"month", month, month.AddMonths(1).AddDays(-1)}, {"last_month", month.AddMonths(-1), month.AddDays(-1)},
	}
}

// columns returns the columns of the table of groups.
func (p Page) columns() []puntuale.ResultMarks {
	if p.Report.Total.Told(puntuale.ResultClicked) {
		return append(slices.Clone(columnMarks), puntuale.ResultClicked)
	}
	return columnMarks
}

func (p Page) days() int { return daysBetween(p.Filter.Start, p.Filter.End) + 1 }

// base returns the address of the page without parameters.
func (p Page) base(ctx context.Context) string {
	if p.Partner {
		return "/partner/results"
	}
	return view.Base(ctx) + "/results"
}

// with returns the parameters of the page, with others. A value "" removes one.
func (p Page) with(pairs ...string) url.Values {
	q := url.Values{}
	maps.Copy(q, p.Query)
	q.Set("start", p.Filter.Start.String())
	q.Set("end", p.Filter.End.String())
	for i := 0; i+1 < len(pairs); i += 2 {
		if q.Set(pairs[i], pairs[i+1]); pairs[i+1] == "" {
			q.Del(pairs[i])
		}
	}
	return q
}

func (p Page) url(ctx context.Context, pairs ...string) string {
	return p.base(ctx) + "?" + p.with(pairs...).Encode()
}

// tabs are the groups that the page offers.
func (p Page) tabs() []puntuale.ResultGroup {
	switch {
	case p.Partner:
		return []puntuale.ResultGroup{puntuale.ResultByClient, puntuale.ResultByDay}
	case p.Filter.Sequence != 0 && !p.Variants:
		return []puntuale.ResultGroup{puntuale.ResultByStep, puntuale.ResultByTemplate, puntuale.ResultBySession, puntuale.ResultByDay}
	case p.Variants:
		return []puntuale.ResultGroup{puntuale.ResultByVariant, puntuale.ResultBySession, puntuale.ResultByDay}
	}
	return []puntuale.ResultGroup{puntuale.ResultBySequence, puntuale.ResultByCampaign, puntuale.ResultByRule, puntuale.ResultByTemplate, puntuale.ResultBySession, puntuale.ResultByDay}
}

// narrowed reports whether the report is about a part of the client's messages.
func (p Page) narrowed() bool {
	for _, name := range choices[3:] {
		if p.Query.Get(name) != "" {
			return true
		}
	}
	return false
}

// shownMarks are the marks of the funnel, in order.
var shownMarks = []puntuale.ResultMarks{puntuale.ResultPlanned, puntuale.ResultSent, puntuale.ResultDelivered, puntuale.ResultRead, puntuale.ResultAnswered, puntuale.ResultOptedOut,
	puntuale.ResultFailed, puntuale.ResultSkipped, puntuale.ResultCancelled, puntuale.ResultClicked}

// whole returns what the share of a mark is a part of.
func whole(c puntuale.ResultCounts, mark puntuale.ResultMarks) int64 {
	switch mark {
	case puntuale.ResultDelivered, puntuale.ResultRead, puntuale.ResultAnswered, puntuale.ResultOptedOut, puntuale.ResultClicked:
		return c.Tells(mark)
	}
	return c.Planned
}

// share returns the part of a count in percent, from 0 to 100.
func share(c puntuale.ResultCounts, mark puntuale.ResultMarks) int64 {
	all := whole(c, mark)
	if all == 0 {
		return 0
	}
	return min(100, (c.Of(mark)*200+all)/(2*all))
}

func percent(ctx context.Context, n int64) string {
	return view.T(ctx, "result.percent", "N", view.Number(ctx, n))
}

// change returns how a count compares with the period before; "": there is nothing to compare.
func (p Page) change(ctx context.Context, mark puntuale.ResultMarks) string {
	now, before := p.Report.Total, p.Before
	if before.Planned == 0 || !now.Told(mark) || !before.Told(mark) {
		return ""
	}
	return view.T(ctx, "result.before", "Value", view.Number(ctx, before.Of(mark)))
}

// tone is the colour of a mark.
func tone(mark puntuale.ResultMarks) string {
	switch mark {
	case puntuale.ResultFailed, puntuale.ResultOptedOut:
		return "bad"
	case puntuale.ResultSkipped, puntuale.ResultCancelled:
		return "quiet"
	case puntuale.ResultPlanned:
		return "wait"
	}
	return "ok"
}

// peopleURL returns the address of the people behind a count.
func (p Page) peopleURL(ctx context.Context, is puntuale.ResultMarks, pairs ...string) string {
	return view.Base(ctx) + "/results/people?" + p.with(append([]string{"is", is.String()}, pairs...)...).Encode()
}

// rowPairs returns the parameters that choose the messages of a row.
func (p Page) rowPairs(r puntuale.ResultRow) []string {
	if p.Filter.By == puntuale.ResultByTemplate && r.Key == "" {
		return []string{"none", string(puntuale.ResultByTemplate)}
	}
	switch p.Filter.By {
	case puntuale.ResultByDay:
		return []string{"start", r.Key, "end", r.Key}
	case puntuale.ResultByStep, puntuale.ResultBySequence, puntuale.ResultByCampaign, puntuale.ResultByRule, puntuale.ResultBySession, puntuale.ResultByTemplate, puntuale.ResultByVariant:
		return []string{string(p.Filter.By), r.Key}
	}
	return nil
}

// linked reports whether the people behind a row can be listed: those of messages without a variant cannot be chosen.
func (p Page) linked(r puntuale.ResultRow) bool {
	return !p.Partner && (r.Key != "" || p.Filter.By == puntuale.ResultByTemplate)
}

// rowURL returns the page of a row: a sequence by its steps, anything else by day.
func (p Page) rowURL(ctx context.Context, r puntuale.ResultRow) string {
	switch p.Filter.By {
	case puntuale.ResultBySequence:
		if r.Key != "0" {
			return p.url(ctx, "by", string(puntuale.ResultByStep), "sequence", r.Key)
		}
	case puntuale.ResultByClient, puntuale.ResultByDay:
		return ""
	}
	if p.Filter.By == puntuale.ResultByStep && slices.Contains(p.Varied, r.Key) {
		return p.url(ctx, append(p.rowPairs(r), "by", string(puntuale.ResultByVariant))...)
	}
	return p.url(ctx, append(p.rowPairs(r), "by", string(puntuale.ResultByDay))...)
}

// rowName returns what a row is about.
func (p Page) rowName(ctx context.Context, r puntuale.ResultRow) string {
	by := p.Filter.By
	if by == puntuale.ResultByVariant {
		return strings.TrimSpace(r.Key + ". " + r.Name)
	}
	if by == puntuale.ResultByDay {
		day, err := puntuale.ParseDate(r.Key)
		if err == nil {
			return view.FrameOf(ctx).Language.ListedDay(day)
		}
	}
	if (r.Key == "0" || r.Key == "") && by != puntuale.ResultByStep {
		return view.T(ctx, "result.none."+string(by))
	}
	return cmp.Or(r.Name, view.T(ctx, "result.gone", "ID", r.Key))
}

// compared says in plain words whether one text does better than another.
func compared(ctx context.Context, x puntuale.ResultComparison) string {
	text := "clear"
	switch {
	case x.Few:
		text = "too_few"
	case x.Chance && x.More > 0:
		text = "chance"
	case x.Chance:
		text = "same"
	}
	return view.T(ctx, "result.compare."+text, "What", view.T(ctx, "result.mark."+x.Mark.String()), "Best", x.Best, "Next", x.Next, "More", view.Number(ctx, x.More))
}

// bars returns the chart of days.
func (p Page) bars(ctx context.Context) view.Bars {
	b := view.Bars{Label: view.T(ctx, "result.chart"), Kinds: []view.Kind{
		{Name: view.T(ctx, "result.mark.sent"), Tone: "ok"}, {Name: view.T(ctx, "result.mark.failed"), Tone: "bad"},
		{Name: view.T(ctx, "result.left_out"), Tone: "quiet"}, {Name: view.T(ctx, "result.pending"), Tone: "wait"},
	}}
	rows := p.byDay()
	n := p.days()
	each := max(1, (n+5)/6) // about six names fit below the chart
	for i := range n {
		day := p.Filter.Start.AddDays(i)
		r := rows[day.String()]
		bar := view.BarDay{Title: view.FrameOf(ctx).Language.ListedDay(day), Values: []int64{r.Sent, r.Failed, r.Skipped + r.Cancelled, r.Pending()}}
		if i%each == 0 && (i == 0 || i+each/2 < n) {
			bar.Name = view.FrameOf(ctx).Language.ShortDay(day)
		}
		b.Days = append(b.Days, bar)
	}
	return b
}

func (p Page) byDay() map[string]puntuale.ResultRow {
	rows := map[string]puntuale.ResultRow{}
	for _, r := range p.Days.All {
		rows[r.Key] = r
	}
	return rows
}

// notPending are the marks that no message has that waits.
const notPending = puntuale.ResultSent | puntuale.ResultFailed | puntuale.ResultSkipped | puntuale.ResultCancelled

// barURL returns the people behind a part of the chart: at is the day, from 0, and kind the part. rows are those of byDay. No list has both what
// was skipped and what was cancelled: then it returns the report of the day, where each has its link. "": there is no list.
func (p Page) barURL(ctx context.Context, rows map[string]puntuale.ResultRow, at, kind int) string {
	if p.Partner {
		return ""
	}
	day := p.Filter.Start.AddDays(at).String()
	period := []string{"start", day, "end", day}
	switch r := rows[day]; {
	case kind == 0:
		return p.peopleURL(ctx, puntuale.ResultSent, period...)
	case kind == 1:
		return p.peopleURL(ctx, puntuale.ResultFailed, period...)
	case kind == 3:
		return p.peopleURL(ctx, puntuale.ResultPlanned, append(period, "not", notPending.String())...)
	case r.Skipped == 0:
		return p.peopleURL(ctx, puntuale.ResultCancelled, period...)
	case r.Cancelled == 0:
		return p.peopleURL(ctx, puntuale.ResultSkipped, period...)
	}
	return p.url(ctx, period...)
}

// bookingsURL returns the list of the bookings behind a count.
func (p Page) bookingsURL(ctx context.Context, status puntuale.BookingStatus) string {
	q := url.Values{"day": {p.Filter.Start.String()}, "end": {p.Filter.End.String()}, "status": {status.String()}}
	if p.Filter.Sequence != 0 {
		q.Set("sequence", p.Filter.Sequence.String())
	}
	return view.Base(ctx) + "/bookings?" + q.Encode()
}

// hourBars and weekdayBars are the charts of when people read.
func (p Page) hourBars(ctx context.Context) view.Bars {
	all := p.hours()
	b := readBars(ctx, "result.hours", all[:])
	for hour, n := range all {
		bar := view.BarDay{Title: view.T(ctx, "result.at", "Hour", strconv.Itoa(hour)), Values: []int64{n}}
		if hour%3 == 0 {
			bar.Name = strconv.Itoa(hour)
		}
		b.Days = append(b.Days, bar)
	}
	return b
}

func (p Page) weekdayBars(ctx context.Context) view.Bars {
	all := p.weekdays()
	b := readBars(ctx, "result.weekdays", all[:])
	for day, n := range all {
		name := view.T(ctx, "result.weekday."+strconv.Itoa(day+1))
		b.Days = append(b.Days, view.BarDay{Name: name, Title: name, Values: []int64{n}})
	}
	return b
}

func readBars(ctx context.Context, label string, all []int64) view.Bars {
	return view.Bars{Label: view.T(ctx, label), Most: view.T(ctx, "result.most", "Most", view.Number(ctx, slices.Max(all))), Kinds: []view.Kind{{Name: view.T(ctx, "result.mark.read"), Tone: "ok"}}}
}

// values returns how many bars a chart has. A chart of one bar compares nothing.
func values(b view.Bars) (n int) {
	for _, bar := range b.Days {
		if bar.Sum() > 0 {
			n++
		}
	}
	return n
}

func (p Page) hours() (all [24]int64) {
	for _, day := range p.Report.Hours {
		for hour, n := range day {
			all[hour] += n
		}
	}
	return all
}

func (p Page) weekdays() (all [7]int64) {
	for day, hours := range p.Report.Hours {
		for _, n := range hours {
			all[day] += n
		}
	}
	return all
}

// readMost returns the hour in which most people read, or -1.
func (p Page) readMost() int {
	best, most := -1, int64(0)
	for hour, n := range p.hours() {
		if n > most {
			best, most = hour, n
		}
	}
	return best
}

// sorted returns the words of a count, the most frequent first.
func sorted(all map[string]int64) []string {
	return slices.SortedFunc(maps.Keys(all), func(x, y string) int { return cmp.Or(cmp.Compare(all[y], all[x]), cmp.Compare(x, y)) })
}

// reasonText returns the sentence of a reason. A reason with arguments was counted without them, because they may name a
// person; it has its code.
func reasonText(ctx context.Context, code string) string {
	if key := "result.reason." + code; view.FrameOf(ctx).Language.Has(key) {
		return view.T(ctx, key)
	}
	return view.Says(ctx, puntuale.Because(puntuale.ReasonCode(code), "…", "…", "…"))
}

// PeoplePage lists the people behind a count.
type PeoplePage struct {
	Query        url.Values
	Start, End   puntuale.Date
	Subject      string // the name of what the list is about; "": everything
	Rows         []result.Person
	Places       map[puntuale.SequenceID]map[string]int // of the steps of the messages; see [result.Places]
	Count        int                                    // how many messages there are on all pages
	All          bool                                   // there are not more than Count
	Cursor, Next string
	Form         *view.Form
	Open         bool // the form of the campaign is open
}

func (p PeoplePage) url(ctx context.Context, more string, without ...string) string {
	q := url.Values{}
	maps.Copy(q, p.Query)
	for _, name := range without {
		q.Del(name)
	}
	return view.Base(ctx) + "/results" + more + "?" + q.Encode()
}

// total says how many messages the list has on all pages.
func (p PeoplePage) total(ctx context.Context) string {
	if !p.All {
		return view.T(ctx, "result.total_more", "Count", view.Number(ctx, p.Count)+"+")
	}
	text := view.T(ctx, "result.total", "N", p.Count)
	if n := p.persons(); n > 0 && n < p.Count {
		text += " · " + view.T(ctx, "result.total_people", "N", n)
	}
	return text
}

// persons returns to how many people the messages of the list were; 0: not counted, because the list has several pages.
func (p PeoplePage) persons() int {
	if p.Cursor != "" || p.Next != "" {
		return 0
	}
	phones := map[string]bool{}
	for _, r := range p.Rows {
		if phones[r.Phone] = true; r.Phone == "" {
			return 0 // nobody knows to how many people messages were that were erased
		}
	}
	return len(phones)
}

// messageOf names the message of a row: its sequence, which message of it today, and which of several texts. A message
// whose step was removed has no number.
func (p PeoplePage) messageOf(ctx context.Context, r result.Person) string {
	text := r.Of
	if place := p.Places[r.Sequence][strconv.Itoa(r.Step)]; place > 0 {
		text += " · " + view.T(ctx, "result.message_number", "Number", place)
	}
	if key := r.Letter(); key != "" {
		text += " · " + view.T(ctx, "campaign.variant", "Key", key)
	}
	return strings.Trim(text, " ·")
}

// not returns the marks that the messages do not have.
func (p PeoplePage) not() puntuale.ResultMarks {
	not, _ := puntuale.ParseResultMarks(p.Query.Get("not"))
	return not
}

// title says which people the page lists.
func (p PeoplePage) title(ctx context.Context) string {
	if is, _ := puntuale.ParseResultMarks(p.Query.Get("is")); is == puntuale.ResultSent && p.not() == puntuale.ResultRead && p.Query.Get("reason") == "" && p.Query.Get("button") == "" {
		return view.T(ctx, "result.not_read")
	}
	if p.not() == notPending {
		return view.T(ctx, "result.pending")
	}
	return p.what(ctx)
}

// about says of which period and of what the messages are.
func (p PeoplePage) about(ctx context.Context) string {
	l := view.FrameOf(ctx).Language
	text := l.Day(p.Start)
	if p.End != p.Start {
		text += " – " + l.Day(p.End)
	}
	if p.Subject != "" {
		text = p.Subject + " · " + text
	}
	return text
}

// what says in words which marks the messages have.
func (p PeoplePage) what(ctx context.Context) string {
	is, _ := puntuale.ParseResultMarks(p.Query.Get("is"))
	text := ""
	for _, mark := range shownMarks {
		if is&mark != 0 {
			text = view.T(ctx, "result.mark."+mark.String())
		}
	}
	if text == "" {
		text = view.T(ctx, "result.mark.planned")
	}
	for _, mark := range shownMarks {
		if p.not()&mark != 0 {
			text = view.T(ctx, "result.but_not", "Is", text, "Not", view.T(ctx, "result.mark."+mark.String()))
		}
	}
	if code := p.Query.Get("reason"); code != "" {
		text += ": " + reasonText(ctx, code)
	}
	if label := p.Query.Get("button"); label != "" {
		text += ": " + label
	}
	return text
}

// marksOf returns the marks that the list shows of a person.
func marksOf(r result.Person) (all []puntuale.ResultMarks) {
	for _, mark := range shownMarks[1:] {
		if r.Marks&mark != 0 {
			all = append(all, mark)
		}
	}
	return all
}

// personName returns a person's name, or else the number.
func personName(ctx context.Context, r result.Person) string {
	switch {
	case r.Name != "":
		return r.Name
	case r.Phone == "":
		return view.T(ctx, "result.erased")
	}
	return view.ShownPhone(ctx, r.Phone)
}
