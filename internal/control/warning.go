package control

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/keyword"
	"puntuale/internal/plan"
)

// Warning says that a message of a step would fail now. A sequence with warnings can be stored.
type Warning struct {
	Step   int // the number of the step, counted from 0
	Reason puntuale.Reason
}

// reasonOnlyInWindow: without an approved template, a message leaves only within 24 hours after the recipient's last
// message.
const reasonOnlyInWindow puntuale.ReasonCode = "sequence.only_in_window"

// SequenceWarnings checks an unsaved sequence, and stores nothing. Codes: invalid, with all faults.
func (c *Client) SequenceWarnings(ctx context.Context, r NewSequence) ([]Warning, error) {
	checked, err := c.checkSequence(ctx, r)
	return checked.Warnings, err
}

// warn adds warnings about steps that the session's network will refuse. Every network refuses files of some kinds. For
// Official sessions, Meta has further rules.
func (c *Client) warn(ctx context.Context, s *Sequence, expanded puntuale.Sequence) error {
	if err := c.warnLinks(ctx, s, expanded); err != nil {
		return err
	}
	id := ""
	if s.Session != 0 {
		id = s.Session.String()
	}
	var f request.Faults
	session, err := c.sessionFor(ctx, &f, id)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil
	}
	if err != nil || session.Sandbox {
		return err
	}
	add := func(w Warning) { // several variants of a step may have the same
		if !slices.ContainsFunc(s.Warnings, func(x Warning) bool { return x.Step == w.Step && x.Reason.Stored() == w.Reason.Stored() }) {
			s.Warnings = append(s.Warnings, w)
		}
	}
	for i, step := range puntuale.Texts(expanded.Steps) {
		if reason := mediaWarning(*step, session.Type); reason != "" {
			add(Warning{i, puntuale.Because(reason)})
		}
		if reason := shownInstead(step.Interactive, step.Official != nil, session); reason != "" {
			add(Warning{i, puntuale.Because(reason)})
		}
	}
	if session.Type != puntuale.Official {
		return nil
	}
	var names []string
	for _, step := range puntuale.Texts(expanded.Steps) {
		if step.Official != nil && !slices.Contains(names, step.Official.Name) {
			names = append(names, step.Official.Name)
		}
	}
	about, _, _, err := c.tenant.NetworkTemplates(ctx, session.ID, puntuale.Page{Limit: 1})
	if err != nil {
		return fmt.Errorf("read about templates: %w", err)
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, session.ID, names)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	ways, err := c.tenant.OfficialWays(ctx, session.ID, c.control.clock.Now())
	if err != nil {
		return fmt.Errorf("read the ways of session %d: %w", session.ID, err)
	}
	for i, step := range puntuale.Texts(expanded.Steps) {
		q := puntuale.WayQuery{Content: puntuale.Content{Text: step.Text, MediaURL: step.Media, Latitude: step.Latitude, Interactive: step.Interactive}, To: "+", Purpose: expanded.Purpose, Ways: ways, Now: c.control.clock.Now()}
		if way, _ := q.Way(); way == puntuale.WayDirectSend && step.Official == nil {
			continue
		}
		if reason := stepWarning(*step, about, known); !reason.IsZero() {
			add(Warning{i, reason})
		}
	}
	return nil
}

// reasonLinksStay: the links of a step should be tracked, but nobody could open them.
const reasonLinksStay puntuale.ReasonCode = "sequence.links_stay"

// warnLinks adds warnings about steps whose links should be tracked although the service has no address.
func (c *Client) warnLinks(ctx context.Context, s *Sequence, expanded puntuale.Sequence) error {
	linked := func(step puntuale.Step) bool {
		for x := range step.Texts() {
			if x.Official == nil && strings.Contains(x.Text, "://") {
				return true
			}
		}
		return false
	}
	if s.TrackLinks == puntuale.TrackNever || !slices.ContainsFunc(expanded.Steps, linked) {
		return nil
	}
	if none, err := c.Addressless(ctx); err != nil || !none {
		return err
	}
	if s.TrackLinks == puntuale.TrackAsClient {
		settings, err := c.Settings(ctx)
		if err != nil || !settings.TrackLinks {
			return err
		}
	}
	for i, step := range expanded.Steps {
		if linked(step) {
			s.Warnings = append(s.Warnings, Warning{i, puntuale.Because(reasonLinksStay)})
		}
	}
	return nil
}

// Addressless reports whether the service has no address at which people could open its pages and links.
func (c *Client) Addressless(ctx context.Context) (bool, error) {
	site, err := c.pageSite(ctx)
	return site == "", err
}

// metaFiles are the extensions of the files that Meta accepts. (Meta, business-phone-numbers/media.)
var metaFiles = []string{"jpg", "jpeg", "png", "mp4", "3gp", "mp3", "ogg", "aac", "amr", "m4a", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"}

// mediaWarning returns the reason why the network will refuse a step's file. It returns "" if this cannot be decided
// before the fields are filled.
func mediaWarning(step puntuale.Step, network puntuale.ConnectionType) puntuale.ReasonCode {
	address, _, _ := strings.Cut(step.Media, "?")
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(address), "."))
	if step.Media == "" || strings.Contains(address, "{{") {
		return ""
	}
	switch {
	case step.Official == nil && step.Text != "" && puntuale.MediaKind(address) == "audio": // phones show an audio file without a caption, so nobody would see the text
		return puntuale.ReasonAudioAlone
	case network == puntuale.Official && extension != "" && !slices.Contains(metaFiles, extension):
		return puntuale.ReasonFileType
	}
	return ""
}

// Codes that say what a recipient gets instead of an interactive part.
const (
	reasonListAsLines  puntuale.ReasonCode = "interactive.as_lines"
	reasonLinkInText   puntuale.ReasonCode = "interactive.as_address"
	reasonAskAsText    puntuale.ReasonCode = "interactive.as_text"
	reasonOnlyTemplate puntuale.ReasonCode = "interactive.template"
)

// shownInstead returns what a recipient gets instead of an interactive part, or "" if the session's network shows it.
// approved says that an Official session sends an approved template.
func shownInstead(x *puntuale.Interactive, approved bool, session puntuale.Session) puntuale.ReasonCode {
	switch {
	case x == nil, session.ID == 0, session.Sandbox, session.Type == puntuale.Official && !approved:
		return ""
	case session.Type == puntuale.Official:
		return reasonOnlyTemplate
	case x.List != nil:
		return reasonListAsLines
	case x.Link != nil:
		return reasonLinkInText
	}
	return reasonAskAsText
}

// insteadOf returns what the recipient of a planned run gets instead of interactive parts.
func insteadOf(messages []puntuale.PlannedMessage, session puntuale.Session) (all []puntuale.SkippedStep) {
	for _, m := range messages {
		if why := shownInstead(m.Content.Interactive, m.Content.Official != nil, session); why != "" {
			all = append(all, puntuale.SkippedStep{Step: m.Step, Moment: m.Due, Reason: puntuale.Because(why)})
		}
	}
	return all
}

// stepWarning returns the reason why a step of an Official session will fail, or the zero reason if none is known.
func stepWarning(step puntuale.Step, about puntuale.NetworkTemplates, known []puntuale.NetworkTemplate) puntuale.Reason {
	a := step.Official
	if a == nil {
		return puntuale.Because(reasonOnlyInWindow)
	}
	t, found := puntuale.ChooseLanguage(known, a.Name, a.Language, "")
	if !found {
		if about.Synced.IsZero() {
			return puntuale.Reason{}
		}
		return puntuale.Because(puntuale.ReasonNoTemplate)
	}
	if use, reason := t.Status.Use(); use != puntuale.TemplateUsable {
		return reason
	}
	if len(t.Parts) > 0 && !fits(step, t) {
		return puntuale.Because(puntuale.ReasonTemplateValues)
	}
	if has := quickReplies(t); len(t.Parts) > 0 && has < len(step.Buttons) {
		return puntuale.Because(reasonFewQuickReplies, strconv.Itoa(len(step.Buttons)), strconv.Itoa(has))
	}
	return puntuale.Reason{}
}

// reasonFewQuickReplies: the step has {1} buttons, but its template only {2} quick replies, which the buttons need outside
// of the 24-hour window.
const reasonFewQuickReplies puntuale.ReasonCode = "sequence.few_quick_replies"

// quickReplies counts the quick replies of a template.
func quickReplies(t puntuale.NetworkTemplate) (n int) {
	for _, b := range t.Part("BUTTONS").Buttons {
		if strings.EqualFold(b.Kind, "QUICK_REPLY") {
			n++
		}
	}
	return n
}

// fits reports whether a step has a value for each placeholder of the template, and no other values.
func fits(step puntuale.Step, t puntuale.NetworkTemplate) bool {
	a, header := step.Official, t.Part("HEADER")
	switch header.Format {
	case "IMAGE", "VIDEO", "DOCUMENT":
		if step.Media == "" {
			return false
		}
	case "LOCATION":
		if step.Latitude == nil {
			return false
		}
	default:
		if step.Media != "" || step.Latitude != nil {
			return false
		}
	}
	return fills(a.Header, header.Placeholders(), t.Named) && fills(a.Body, t.Part("BODY").Placeholders(), t.Named) && pressed(a.Buttons, t.Part("BUTTONS").Buttons)
}

// fills reports whether values fit the placeholders. Each placeholder needs exactly one value. Named placeholders need
// values with the same names.
func fills(values []puntuale.Parameter, placeholders []string, named bool) bool {
	if len(values) != len(placeholders) {
		return false
	}
	if !named {
		return !slices.ContainsFunc(values, func(v puntuale.Parameter) bool { return v.Name != "" })
	}
	for _, name := range placeholders {
		if !slices.ContainsFunc(values, func(v puntuale.Parameter) bool { return v.Name == name }) {
			return false
		}
	}
	return true
}

// pressed reports whether each button that needs a value has a value, and each value belongs to a button of its kind.
func pressed(values []puntuale.Button, buttons []puntuale.TemplateButton) bool {
	for i, b := range buttons {
		if b.Open() && !slices.ContainsFunc(values, func(v puntuale.Button) bool { return v.Index == i }) {
			return false
		}
	}
	return !slices.ContainsFunc(values, func(v puntuale.Button) bool {
		return v.Index >= len(buttons) || !strings.EqualFold(string(v.Kind), buttons[v.Index].Kind)
	})
}

// optOut matches words that say how to opt out. docs/campaigns.md lists these words.
var optOut = regexp.MustCompile(`(?i)(^|[^-\w])(stop\b|disiscri|cancell(ami|ati|arti|arsi)\b|annulla(re)? l.iscrizione|` +
	`non (voglio|vuoi|vuole|desider\w+|ricever\w*)( ricevere)? (pi\x{f9}|altr)|unsubscrib|opt[ -]?out|no longer (receive|want))`)

// optOutWarnings returns the steps of a marketing campaign whose text does not say how to opt out. For an approved
// template, it checks the parts that the network shows, if they are known.
func optOutWarnings(purpose string, steps []puntuale.Step, known []puntuale.NetworkTemplate) (all []puntuale.CampaignWarning) {
	if purpose != "marketing" {
		return nil
	}
	for i, step := range puntuale.Texts(steps) {
		if !mentionsOptOut(*step, known) && (len(all) == 0 || all[len(all)-1].Step != i) {
			all = append(all, puntuale.CampaignWarning{Code: puntuale.WarnsNoOptOut, Step: i})
		}
	}
	return all
}

// insteadWarnings returns the steps of a campaign whose interactive part the session's network does not show.
func insteadWarnings(steps []puntuale.Step, session puntuale.Session) (all []puntuale.CampaignWarning) {
	for i, step := range puntuale.Texts(steps) {
		if shownInstead(step.Interactive, step.Official != nil, session) != "" && (len(all) == 0 || all[len(all)-1].Step != i) {
			all = append(all, puntuale.CampaignWarning{Code: puntuale.WarnsNotShown, Step: i})
		}
	}
	return all
}

func mentionsOptOut(step puntuale.Step, known []puntuale.NetworkTemplate) bool {
	texts := []string{step.Text}
	if step.Official != nil {
		if t := templateOf(known, step.Official); len(t.Parts) > 0 {
			texts = nil
			for _, part := range t.Parts {
				texts = append(texts, part.Text)
				for _, b := range part.Buttons {
					texts = append(texts, b.Text)
				}
			}
		}
	}
	for _, text := range texts {
		if optOut.MatchString(text) {
			return true
		}
	}
	return false
}

// reasonDayFull: the session has sent as many messages in 24 hours as its pace allows. {1} is this number.
const reasonDayFull puntuale.ReasonCode = "sequence.day_full"

// RunWarnings returns the problems that the messages of a planned run would have now. A run with warnings can still
// start. RunWarnings stores nothing.
func (c *Client) RunWarnings(ctx context.Context, s puntuale.StartRun) (all []Warning, err error) {
	if len(s.Messages) == 0 {
		return nil, nil
	}
	warn := func(step int, reason puntuale.Reason) { all = append(all, Warning{step, reason}) }
	first := s.Messages[0].Step
	phone := s.Run.Phone
	barred, err := c.Blacklisted(ctx, phone)
	if err != nil {
		return nil, err
	}
	if barred {
		warn(first, puntuale.Because(puntuale.ReasonBlacklisted))
	}
	if i := slices.IndexFunc(s.Messages, func(m puntuale.PlannedMessage) bool { return m.Purpose == puntuale.PurposeMarketing }); i >= 0 {
		refused, err := c.MarketingRefused(ctx, phone)
		if err != nil {
			return nil, err
		}
		if refused[phone] {
			warn(s.Messages[i].Step, puntuale.Because(puntuale.ReasonNoConsent))
		}
	}
	if left := c.account.Credits; left != nil && *left <= 0 {
		warn(first, puntuale.Because(puntuale.ReasonNoCredit))
	}
	session, err := c.Session(ctx, s.Run.Session.String())
	if err != nil {
		return nil, err
	}
	if session.State == puntuale.LinkUnlinked {
		warn(first, puntuale.Because(puntuale.ReasonNotLinked))
	}
	limits, err := c.limitsOf(ctx, session.Session, s.Now)
	if err != nil {
		return nil, err
	}
	if most := session.Pace.PerDay; most > 0 && limits.Load.Sent >= most {
		warn(first, puntuale.Because(reasonDayFull, strconv.Itoa(most)))
	}
	network, err := c.networkWarnings(ctx, session, s)
	return append(all, network...), err
}

// networkWarnings returns warnings about messages that the session's network would refuse. An Official session may send
// free text only within 24 hours after the recipient wrote.
func (c *Client) networkWarnings(ctx context.Context, session Session, s puntuale.StartRun) (all []Warning, err error) {
	if session.Sandbox {
		return nil, nil
	}
	steps := make([]puntuale.Step, len(s.Messages))
	var names []string
	for i, m := range s.Messages {
		steps[i] = puntuale.Step{Text: m.Content.Text, Media: m.Content.MediaURL, Latitude: m.Content.Latitude, Official: m.Content.Official, Buttons: m.Content.Buttons()}
		if why := mediaWarning(steps[i], session.Type); why != "" {
			all = append(all, Warning{m.Step, puntuale.Because(why)})
		}
		if why := shownInstead(m.Content.Interactive, m.Content.Official != nil, session.Session); why != "" {
			all = append(all, Warning{m.Step, puntuale.Because(why)})
		}
		if m.Content.Official != nil {
			names = append(names, m.Content.Official.Name)
		}
	}
	if session.Type != puntuale.Official {
		return all, nil
	}
	until, err := c.ReplyWindowEnd(ctx, session.ID, s.Run.Phone)
	if err != nil {
		return nil, err
	}
	about, _, _, err := c.tenant.NetworkTemplates(ctx, session.ID, puntuale.Page{Limit: 1})
	if err != nil {
		return nil, fmt.Errorf("read about templates: %w", err)
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, session.ID, names)
	if err != nil {
		return nil, fmt.Errorf("read templates: %w", err)
	}
	for i, m := range s.Messages {
		if m.Content.Official == nil && m.Due.Before(until) {
			continue
		}
		if why := stepWarning(steps[i], about, known); !why.IsZero() {
			all = append(all, Warning{m.Step, why})
		}
	}
	return all, nil
}

// reasonDatePassed: the sequence counts from a date that has passed, and none of its messages leaves in time.
const reasonDatePassed puntuale.ReasonCode = "sequence.date_passed"

// passedDates returns a warning for each date field that has passed, if no message leaves at the time that the date
// gives. Otherwise, for example, a sequence would confirm an appointment of last year. Without messages, the list of
// skipped steps says enough.
func passedDates(in plan.Input, p plan.Plan) (warnings []puntuale.SkippedStep) {
	if len(p.Messages) == 0 {
		return nil
	}
	seen := map[string]bool{"": true, puntuale.AnchorStart: true}
	for i, step := range in.Sequence.Steps {
		name := step.Timing.Anchor
		if seen[name] {
			continue
		}
		seen[name] = true
		m, err := plan.ParseMoment(strings.TrimSpace(in.Fields[name].Text))
		if err != nil {
			continue
		}
		at, ends := m.At(plan.DefaultTime, in.Location), m.At(24*time.Hour, in.Location) // a day without a time passes at its end
		if m.HasTime {
			ends = at
		}
		inTime := slices.ContainsFunc(p.Messages, func(message puntuale.PlannedMessage) bool {
			return in.Sequence.Steps[message.Step].Timing.Anchor == name && !message.Desired.Before(in.Now)
		})
		if ends.Before(in.Now) && !inTime {
			warnings = append(warnings, puntuale.SkippedStep{Step: i, Moment: at, Reason: puntuale.Because(reasonDatePassed, name)})
		}
	}
	return warnings
}

// Limits of the search for misspelled names in a body.
const (
	MaxUnused     = 20  // names in the answer
	maxCompared   = 200 // members of the body, and fields of the sequence
	maxComparable = 100 // bytes of a name
)

// reserved are the members of calls that are not fields of a sequence.
var reserved = map[string]bool{"phone": true, "timezone": true, "reference": true, "id_sessione": true, "name": true, "purpose": true, "template": true,
	"valid_for": true, "latitude": true, "longitude": true, "buttons": true, "interactive": true, "text": true, "media": true, "media_name": true, "date": true}

// unusedMembers returns the members of the body that no step uses, but whose name is close to a field that the body
// leaves out. Such a member is probably misspelled.
func unusedMembers(s puntuale.Sequence, body map[string]json.RawMessage) (unused []string) {
	known, missing := map[string]bool{}, []string(nil)
	for _, field := range plan.Fields(s) {
		known[field.Name] = true
		if _, given := body[field.Name]; !given && len(missing) < maxCompared {
			missing = append(missing, keyword.Fold(field.Name))
		}
	}
	if len(missing) == 0 || len(body) > maxCompared {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(body)) {
		folded := keyword.Fold(name)
		if known[name] || reserved[name] || len(name) > maxComparable || len(unused) == MaxUnused {
			continue
		}
		if slices.ContainsFunc(missing, func(field string) bool { return near(folded, field) }) {
			unused = append(unused, name)
		}
	}
	return unused
}

// near reports whether two folded names differ by separators, or by one typing error: a letter more, less or wrong,
// or two letters in the wrong order. In names of fewer than four letters, a typing error makes another name.
func near(a, b string) bool {
	letters := func(s string) []rune {
		return []rune(strings.NewReplacer("_", "", "-", "", " ", "", ".", "").Replace(s))
	}
	x, y := letters(a), letters(b)
	if slices.Equal(x, y) {
		return true
	}
	if len(x) > len(y) {
		x, y = y, x
	}
	if len(x) < 4 || len(y)-len(x) > 1 {
		return false
	}
	i := 0
	for i < len(x) && x[i] == y[i] {
		i++
	}
	if len(x) < len(y) {
		return slices.Equal(x[i:], y[i+1:])
	}
	return slices.Equal(x[i+1:], y[i+1:]) || i+1 < len(x) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[i+2:], y[i+2:])
}

// isBlacklisted reports whether the person is on the blacklist, under any name. Then a start succeeds, but no message
// leaves while the person is on the list.
func (c *Client) isBlacklisted(ctx context.Context, phone string) (bool, error) {
	listed, err := c.BlacklistedAmong(ctx, phone)
	return listed[phone], err
}

// notes returns the remarks about a change of a booking. Only a call that names the date can be wrong about it: a visit
// that is marked as "arrived" has a date that has passed.
func (p *bookingPut) notes(r *puntuale.PutBookingResult) puntuale.StartNotes {
	given, s := p.fields(), &p.info.sequence
	n := puntuale.StartNotes{Unused: unusedMembers(*s, given), Blacklisted: p.barred}
	if _, dated := given[s.Booking]; !dated || !p.call.Noted || r.Status != puntuale.BookingOpen && r.Status != puntuale.BookingConfirmed {
		return n
	}
	planned := plan.Plan{Messages: make([]puntuale.PlannedMessage, len(r.New))}
	for i := range r.New {
		planned.Messages[i] = r.New[i].PlannedMessage
	}
	n.Warnings = append(passedDates(plan.Input{Sequence: *s, Fields: values(*s, r.Fields), Location: p.zone, Now: p.put.Now}, planned), insteadOf(planned.Messages, p.info.session)...)
	return n
}
