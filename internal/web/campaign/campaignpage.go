package campaign

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"puntuale/internal/web/view"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
)

// CampaignList is a page of the list of campaigns.
type CampaignList struct {
	Rows         []puntuale.Campaign
	Cursor, Next string
	Count        int // campaigns on all pages, see [page.Total]; only the whole page has it
}

// active reports whether the page must reload itself, because a campaign in the list changes by itself.
func (l CampaignList) active() bool {
	return slices.ContainsFunc(l.Rows, func(c puntuale.Campaign) bool { return works(c.State) })
}

// works reports whether a campaign in this state changes by itself.
func works(s puntuale.CampaignState) bool {
	return s == puntuale.CampaignChecking || s >= puntuale.CampaignRunning && s <= puntuale.CampaignCancelling
}

// CampaignPage contains the progress of one campaign, and a page of its recipients.
type CampaignPage struct {
	puntuale.Campaign
	Counts puntuale.CampaignCounts
	// What is the name of the content, or "" for a campaign of one message. Session is the name of the session, or "" if no
	// session is chosen yet.
	What, Session string
	PerMinute     int   // how many messages ended per minute recently
	Moving        bool  // true: PerMinute is known
	Bill          *Bill // nil: the network does not bill messages

	Recipients     []puntuale.Recipient
	Filter, Reason string
	After, Next    string

	now time.Time
}

// Measure computes the rate. The argument before is the number of messages that had ended at an earlier time. The
// argument since is this time in Unix milliseconds; 0 means that it is not known.
func (p *CampaignPage) Measure(now time.Time, before int, since int64) {
	p.now = now
	past := now.Sub(time.UnixMilli(since))
	if since == 0 || past < time.Second || past > time.Minute || p.ended() < before {
		return
	}
	p.PerMinute, p.Moving = int(float64(p.ended()-before)*float64(time.Minute)/float64(past)), true
}

func (p *CampaignPage) ended() int { return p.Counts.Total() - p.Counts.Pending }

// size returns how many recipients were not refused.
func (p *CampaignPage) size() int { return p.Feed.Waiting + p.Feed.Fed }

// end returns the approximate time of the last message, or zero if the time is not known.
func (p *CampaignPage) end() time.Time {
	planned := p.Checked.Last
	if p.State != puntuale.CampaignRunning || planned.IsZero() {
		return time.Time{}
	}
	at := planned
	if !p.Resumed.IsZero() && p.Resumed.After(p.Paused) && p.Paused.After(p.Started) {
		at = at.Add(p.Resumed.Sub(p.Paused))
	}
	if per := p.Frozen.PerMinute; per > 0 && p.Feed.Waiting > 0 {
		if byPace := p.Feed.Next.Add(time.Duration(p.Feed.Waiting) * time.Minute / time.Duration(per)); byPace.After(at) {
			at = byPace
		}
	}
	if p.Moving && p.PerMinute > 0 {
		left := p.Feed.Waiting + p.Counts.Pending
		if byRate := p.now.Add(time.Duration(left) * time.Minute / time.Duration(p.PerMinute)); at.Before(p.now) {
			at = byRate
		}
	}
	if at.Before(p.now) {
		return time.Time{}
	}
	return at
}

// every returns the interval at which the page reloads its numbers. A large campaign has a longer interval, because a
// reload costs more.
func (p *CampaignPage) every() string {
	if p.Counts.Total() > 50_000 {
		return "every 10s"
	}
	return "every 2s"
}

// everyBelow returns the interval at which the page reloads its lower part. A small campaign reloads both parts at the
// same interval.
func (p *CampaignPage) everyBelow() string {
	if p.Counts.Total() < 5_000 {
		return p.every()
	}
	if p.Counts.Total() > 50_000 {
		return "every 30s"
	}
	return "every 6s"
}

// partURL returns the address of a part of the page, with the present filter.
func (p *CampaignPage) partURL(ctx context.Context, part string) string {
	address, _, _ := strings.Cut(p.listURL(ctx, p.Filter, p.Reason), "#")
	return view.WithQuery(view.WithQuery(address, "after", p.After), "part", part)
}

// Bill contains the estimated cost of a campaign, and the cost that the network has billed so far.
type Bill struct {
	Estimated *puntuale.CampaignCost // nil: the check made no estimate
	Reported  *puntuale.CampaignCost
	Free      int // how many messages the network delivered without a charge
}

// billRow is one kind of messages, in the estimate and in the bill. If estimated or reported is nil, the estimate or
// the bill has no messages of this kind.
type billRow struct {
	kind                puntuale.MessageKind
	estimated, reported *puntuale.CostRow
}

// rows returns the kinds of messages in the estimate or the bill. Kinds in the estimate come first.
func (b *Bill) rows() []billRow {
	var all []billRow
	if b.Estimated != nil {
		for i, r := range b.Estimated.Rows {
			all = append(all, billRow{kind: r.MessageKind, estimated: &b.Estimated.Rows[i]})
		}
	}
	for i, r := range b.Reported.Rows {
		at := slices.IndexFunc(all, func(known billRow) bool { return known.kind == r.MessageKind })
		if at < 0 {
			at = len(all)
			all = append(all, billRow{kind: r.MessageKind})
		}
		all[at].reported = &b.Reported.Rows[i]
	}
	return all
}

// own reports whether the client sees the prices of its partner instead of the network's.
func (b *Bill) own() bool { return b.Reported.Own || b.Estimated != nil && b.Estimated.Own }

func (b *Bill) heading() string {
	if b.own() {
		return "campaign.bill_own"
	}
	return "campaign.bill"
}

// client says to a user of the partner what the client sees instead; "": the same.
func (b *Bill) client(ctx context.Context) string {
	estimated, now := "–", b.Reported.ToClient
	if b.Estimated != nil && b.Estimated.ToClient != nil {
		estimated = view.Amount(ctx, b.Estimated.ToClient.Amount, b.Estimated.ToClient.Currency)
		now = cmp.Or(now, &puntuale.CampaignCost{Currency: b.Estimated.ToClient.Currency, Amount: "0.00"})
	}
	if now == nil {
		return ""
	}
	return view.T(ctx, "campaign.bill_client", "Amount", estimated, "Now", view.Amount(ctx, now.Amount, now.Currency))
}

// costKey names the sentence with the amount of a cost.
func costKey(c *puntuale.CampaignCost) string {
	if c.Own {
		return "campaign.cost_own"
	}
	return "campaign.cost"
}

// kindWords returns the name of a kind of messages, such as "IT · Marketing".
func kindWords(ctx context.Context, k puntuale.MessageKind) string {
	return view.Or(k.Country, "?") + " · " + view.Or(view.KnownWord(view.T(ctx, "campaign.category."+k.Category), k.Category), "?")
}

// dayWords formats the date of a price table for the reader.
func dayWords(ctx context.Context, day string) string {
	d, err := puntuale.ParseDate(day)
	if err != nil {
		return day
	}
	return view.FrameOf(ctx).Language.Day(d)
}

// summary returns one line about a campaign's progress.
func (p *CampaignPage) summary(ctx context.Context) string {
	parts := []string{view.T(ctx, "campaign.fed_of", "N", p.Feed.Fed, "Of", view.Number(ctx, p.size()))}
	if p.Feed.Waiting > 0 {
		parts = append(parts, view.T(ctx, "campaign.left", "N", p.Feed.Waiting))
	}
	if p.State == puntuale.CampaignRunning && p.Moving && p.PerMinute > 0 {
		parts = append(parts, view.T(ctx, "campaign.rate", "N", p.PerMinute))
	}
	if at := p.end(); !at.IsZero() {
		parts = append(parts, view.T(ctx, "campaign.end", "When", view.FrameOf(ctx).Language.Moment(at.In(view.FrameOf(ctx).Zone), view.FrameOf(ctx).Now)))
	}
	return strings.Join(parts, " · ")
}

func campaignTone(s puntuale.CampaignState) string {
	switch s {
	case puntuale.CampaignRunning:
		return "wait"
	case puntuale.CampaignDone:
		return "ok"
	case puntuale.CampaignPaused, puntuale.CampaignResuming, puntuale.CampaignCancelling:
		return "warn"
	case puntuale.CampaignFailed:
		return "bad"
	case puntuale.CampaignReady, puntuale.CampaignChecking:
		return "info"
	}
	return "quiet"
}

func campaignURL(ctx context.Context, id puntuale.CampaignID, more string) string {
	return view.Base(ctx) + "/campaigns/" + id.String() + more
}

// messagesOf returns the address of the list of a campaign's messages in one state.
func messagesOf(ctx context.Context, id puntuale.CampaignID, state string) string {
	return view.Base(ctx) + "/messages" + view.MessageSearch{State: state, Campaign: id.String()}.Query("")
}

// refusedOf returns the reasons for refusals, with their counts. The check refused some recipients, and other
// recipients were refused after the start.
func (p *CampaignPage) refusedOf() []puntuale.RefusedGroup {
	all, known := slices.Clone(p.Checked.Refused), 0
	for _, g := range all {
		known += g.Count
	}
	if later := p.Feed.Refused - known; later > 0 {
		all = append(all, puntuale.RefusedGroup{Count: later})
	}
	return all
}

// listURL returns the address of this page with another filter of recipients.
func (p *CampaignPage) listURL(ctx context.Context, state, reason string) string {
	q := url.Values{}
	if state != "" {
		q.Set("state", state)
	}
	if reason != "" {
		q.Set("reason", reason)
	}
	address := campaignURL(ctx, p.ID, "")
	if len(q) > 0 {
		address += "?" + q.Encode()
	}
	return address + "#recipients"
}

func (p *CampaignPage) exportURL(ctx context.Context) string {
	q := url.Values{}
	if p.Filter != "" {
		q.Set("state", p.Filter)
	}
	if p.Reason != "" {
		q.Set("reason", p.Reason)
	}
	if len(q) == 0 {
		return campaignURL(ctx, p.ID, "/export")
	}
	return campaignURL(ctx, p.ID, "/export?"+q.Encode())
}

// Wizard is the present position in the wizard of a campaign.
type Wizard struct {
	ID    puntuale.CampaignID // 0: the campaign is not stored yet
	Name  string
	Step  string // the wizard step: what, people, check, when or start
	List  bool   // true: the draft has recipients
	Ready bool   // true: the last check is still valid
}

var wizardSteps = []string{"what", "people", "check", "when", "start"}

func (w Wizard) number() int { return slices.Index(wizardSteps, w.Step) + 1 }

// open reports whether the person may go to a wizard step.
func (w Wizard) open(step string) bool {
	switch step {
	case "what", "people":
		return w.ID != 0
	}
	return w.ID != 0 && w.List
}

// WhatPage is the wizard step that asks for the campaign's content.
type WhatPage struct {
	Wizard
	Form                           *view.Form
	Sequences, Templates, Sessions []view.Option
}

// PeoplePage is the wizard step that asks for the recipients.
type PeoplePage struct {
	Wizard
	Form     *view.Form
	Found    view.ImportedTable // of a list that was checked and is not stored
	Checked  bool               // true: Found is set
	Rows     int                // of this list
	Hidden   int                // how many rows of the stored list the spreadsheet hides
	Columned *view.Form         // the form that chooses the column of each field
	Faults   []view.LineFault
	Size     int
	Columns  []string
	Mapping  map[string]int
	Preview  [][]string
	Fields   []string // the fields that occur in the campaign's texts
	Required []string // fields without a fallback: if the value is missing, the text would have a gap
	Missing  []string
	Unread   []string // dates of the texts whose column was stored as a text
	Common   map[string]string
	Tags     map[string]int // for each tag: the number of the client's contacts with this tag
	Tagged   *view.Form     // the form with the chosen tags
}

// asked returns the fields that a column can fill: first the phone number, then the fields in the texts.
func (p PeoplePage) asked() []string {
	all := []string{"phone"}
	for _, f := range p.Fields {
		if f != "phone" {
			all = append(all, f)
		}
	}
	return all
}

func (p PeoplePage) columnOptions(ctx context.Context, field string) []view.Option {
	none := view.T(ctx, "campaign.no_column")
	if common := p.Common[field]; common != "" {
		none = view.T(ctx, "campaign.common_column", "Text", common)
	}
	all := []view.Option{{Text: none}}
	for i, name := range p.Columns {
		at, header := strconv.Itoa(i+1), view.Or(name, fmt.Sprint(i+1))
		all = append(all, view.Option{Value: at, Text: header})
		chosen, _, dated := strings.Cut(p.Columned.Value("column."+field), view.DateMark)
		if chosen == at && (dated || p.Columned.Fault("column."+field) != "") {
			all = append(all, view.DateOptions(ctx, at, header)...)
		}
	}
	return all
}

// columnNames returns the names of the choices of columns, in the order of the page.
func columnNames(p PeoplePage) (names []string) {
	for _, field := range p.asked() {
		names = append(names, "column."+field)
	}
	return names
}

// meanings returns the options for the meaning of a column in a list that was checked.
func (p PeoplePage) meanings(ctx context.Context, at int) []view.Option {
	all := []view.Option{{Text: view.T(ctx, "campaign.column_unused")}, {Value: "phone", Text: view.T(ctx, "contact.column.phone")}}
	for _, field := range p.asked()[1:] {
		all = append(all, p.Found.FieldOptions(ctx, p.Form, at, field)...)
	}
	return all
}

// reads returns the value of a field in a row of the preview.
func (p PeoplePage) reads(row []string, field string) string {
	if at, ok := p.Mapping[field]; ok && at < len(row) && row[at] != "" {
		return row[at]
	}
	return p.Common[field]
}

func (p PeoplePage) missing(field string) bool { return slices.Contains(p.Missing, field) }

// needs reports whether a recipient without this field would get no message.
func (p PeoplePage) needs(field string) bool {
	return field == "phone" || slices.Contains(p.Required, field) && p.Common[field] == ""
}

func columnLabel(ctx context.Context, field string) string {
	if field == "phone" {
		return view.T(ctx, "campaign.phone")
	}
	return view.FieldName(field)
}

// CheckPage shows the result of a check.
type CheckPage struct {
	Wizard
	Campaign      puntuale.Campaign
	Check         puntuale.CampaignCheck
	What, Session string
	Left          *int64                   // the client's remaining credits; nil: unlimited
	Form          *view.Form               // the form of the button that starts the campaign
	Excluded      []puntuale.Recipient     // the first refused rows
	Trial         *view.Form               // nil: the campaign uses a sequence
	Row           *view.Form               // asks for a line of the file; nil: there is no list
	Sample        *control.RecipientSample // of this line; nil: none was asked for
	TrialSessions []view.Option            // the sessions that can send a trial
}

func (p CheckPage) short() bool { return p.Left != nil && *p.Left < int64(p.Check.Messages) }

// WhenPage is the wizard step that asks when the campaign starts.
type WhenPage struct {
	Wizard
	Form       *view.Form
	OfSequence bool
}

// windowOr describes the hours in which messages may leave. If there is no window, it returns "at any time" in the
// reader's language.
func windowOr(ctx context.Context, w *puntuale.Window) string {
	return view.Or(view.WindowWords(ctx, w), view.T(ctx, "campaign.any_time"))
}

// action returns the words of the button that takes the list; "": it cannot be taken yet.
func (p PeoplePage) action(ctx context.Context) string {
	if p.Found.Open {
		return ""
	}
	return view.T(ctx, "campaign.upload_do", "N", p.Rows)
}

func (p PeoplePage) uploadHeading(ctx context.Context) string {
	if p.Size == 0 {
		return view.T(ctx, "campaign.upload_heading")
	}
	return view.T(ctx, "campaign.other_list")
}

// windowed reports whether the fields of the window have values.
func (p WhenPage) windowed() bool {
	return p.Form.Value("window.weekdays")+p.Form.Value("window.from")+p.Form.Value("window.to")+p.Form.Value("window.holidays") != ""
}

// nextURL returns the address of the next page of recipients.
func (p *CampaignPage) nextURL(ctx context.Context) string {
	address, part, _ := strings.Cut(p.listURL(ctx, p.Filter, p.Reason), "#")
	return view.WithQuery(address, "after", p.Next) + "#" + part
}

// comparison returns the address of the page that compares the campaign's texts; "": it has not started.
func (p *CampaignPage) comparison(ctx context.Context) string {
	if p.Started.IsZero() {
		return ""
	}
	return resultsOf(ctx, *p)
}

// resultsOf returns the address of the campaign's results, from the day of its first message up to today. If the first one is
// still to come, the period is its day. A report has at most a year.
func resultsOf(ctx context.Context, p CampaignPage) string {
	first, f := p.Started, view.FrameOf(ctx)
	if p.Draft.StartAt.After(first) {
		first = p.Draft.StartAt
	}
	start, end := puntuale.DateOf(first.In(f.Zone)), puntuale.DateOf(f.Now.In(f.Zone))
	if end.Before(start) {
		end = start
	}
	if longest := end.AddDays(-365); start.Before(longest) {
		start = longest
	}
	by := puntuale.ResultByDay
	if len(p.Draft.Shares) > 0 || p.Draft.Holdout > 0 {
		by = puntuale.ResultByVariant
	}
	return view.Base(ctx) + "/results?" + url.Values{"by": {string(by)}, "campaign": {p.ID.String()}, "start": {start.String()}, "end": {end.String()}}.Encode()
}
