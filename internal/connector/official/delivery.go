package official

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// delivery is the body that Meta posts to a webhook, with the fields that this package uses.
type delivery struct {
	Object string `json:"object"`
	Entry  []struct {
		ID      string  `json:"id"` // the business's id
		At      seconds `json:"time"`
		Changes []struct {
			Field string          `json:"field"`
			Value json.RawMessage `json:"value"`
		} `json:"changes"`
	} `json:"entry"`
}

// change is the content of one change in a delivery. Its parts are decoded one by one, so that one unreadable part does
// not affect others.
type change struct {
	Metadata struct {
		PhoneNumberID string `json:"phone_number_id"`
	} `json:"metadata"`
	Statuses    []json.RawMessage `json:"statuses"`
	Messages    []json.RawMessage `json:"messages"`
	Echoes      []json.RawMessage `json:"message_echoes"`
	AppEchoes   []json.RawMessage `json:"smb_message_echoes"` // the same as Echoes, under the name that some providers use
	Calls       []json.RawMessage `json:"calls"`
	Preferences []json.RawMessage `json:"user_preferences"`
	Contacts    []json.RawMessage `json:"contacts"`
}

// person identifies a person in a change: by a number, by ids or by both. Linked businesses share the parent's id.
type person struct {
	Number   string `json:"wa_id"`
	ID       string `json:"user_id"`
	ParentID string `json:"parent_user_id"`
}

// templateChange is the content of a change that is about a template.
type templateChange struct {
	ID       json.Number `json:"message_template_id"`
	Name     string      `json:"message_template_name"`
	Language string      `json:"message_template_language"`
	Event    string      `json:"event"`
	Reason   string      `json:"reason"`
	Present  string      `json:"message_template_category"`
	Category string      `json:"new_category"`
	Correct  string      `json:"correct_category"` // set before Meta changes the category
	ChangeAt seconds     `json:"category_update_timestamp"`
	Quality  string      `json:"new_quality_score"`
	Other    struct {
		Title string `json:"title"`
	} `json:"other_info"`
	Disable struct {
		Date json.RawMessage `json:"disable_date"`
	} `json:"disable_info"`
	Rejection struct {
		Reason string `json:"reason"`
		Advice string `json:"recommendation"`
	} `json:"rejection_info"`
}

// reason returns Meta's code for the state of the template, and when Meta disables it.
func (v *templateChange) reason(state puntuale.TemplateStatus) string {
	reason := reasonOf(v.Reason)
	if reason == "" && state != puntuale.TemplateApproved {
		reason = cmp.Or(reasonOf(v.Rejection.Reason), word(v.Other.Title))
	}
	if date := strings.Trim(string(v.Disable.Date), `"`); date != "" && date != "null" {
		reason = strings.TrimSpace(reason + " (" + word(date) + ")")
	}
	return word(reason)
}

type status struct {
	ID       string       `json:"id"`
	Status   string       `json:"status"`
	At       seconds      `json:"timestamp"`
	Callback string       `json:"biz_opaque_callback_data"`
	To       string       `json:"recipient_id"`
	ToID     string       `json:"recipient_user_id"`
	ToParent string       `json:"recipient_parent_user_id"`
	Errors   []graphError `json:"errors"`
	Pricing  *pricing     `json:"pricing"`
}

// pricing is what Meta bills for a message. It is in the status "sent", and again in the status "delivered" or "read".
// Meta bills only messages that it delivers. (Meta, webhooks/reference/messages/status; pricing.)
type pricing struct {
	Billable *bool  `json:"billable"` // Meta will remove this member
	Kind     string `json:"type"`     // "regular", "free_customer_service", "free_entry_point" or "free_group_customer_service"
	Category string `json:"category"`
	Exempt   string `json:"subtype"` // "paid_exempt": a government or a non-profit, which pays nothing for now
}

// billed are the categories of Meta's bills. Any other category is stored as "other".
var billed = []string{
	"marketing", "utility", "authentication", "authentication-international", "service", "marketing_lite", "referral_conversion",
	"group_marketing", "group_service", "group_utility", "general_purpose_ai",
}

// charge returns the charge of a message to a person with a number, or with an id that begins with the country.
func (p *pricing) charge(number, id string) (c puntuale.Charge) {
	if p == nil || p.Category == "" {
		return c
	}
	c.Category = strings.ToLower(p.Category)
	if c.Category == "authentication_international" { // older webhooks
		c.Category = "authentication-international"
	}
	if !slices.Contains(billed, c.Category) {
		c.Category = "other"
	}
	switch {
	case p.Kind == "regular":
		c.Billable = p.Exempt != "paid_exempt"
	case strings.HasPrefix(p.Kind, "free_"):
	case p.Billable != nil:
		c.Billable = *p.Billable
	}
	if c.Phone, _ = phoneOf(number); c.Phone == "" && puntuale.IsPersonID(id) {
		c.Country = id[:2]
	}
	return c
}

type preference struct {
	Person   string  `json:"wa_id"`
	PersonID string  `json:"user_id"`
	ParentID string  `json:"parent_user_id"`
	Category string  `json:"category"`
	Value    string  `json:"value"`
	At       seconds `json:"timestamp"`
}

// seconds is a time that Meta writes as a text or a number.
type seconds struct{ time.Time }

func (s *seconds) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseInt(strings.Trim(string(text), `"`), 10, 64)
	if err == nil && n > 0 && n < 1<<40 {
		s.Time = time.Unix(n, 0).UTC()
	}
	return nil
}

// sessionReport contains everything that one delivery reports about one session.
type sessionReport struct {
	origin
	puntuale.InboundBatch
	pauses []puntuale.OfficialPause // what failures of messages hold back
	health []puntuale.HealthReport
	reread bool // the templates must be read again
}

// reader collects the reports of one delivery.
type reader struct {
	c *Connector
	// find returns the sessions of a number, or of a business if number is "". It returns only sessions with the secret
	// that signed the delivery.
	find func(number, account string) ([]origin, error)
	now  time.Time
	all  []sessionReport
	at   *sessionReport // the report to which the parts of one change are added
	odd  int
	err  error
}

// read returns the reports that the store must keep. odd counts the parts that cannot be decoded, and the parts whose
// number has no session here.
func (c *Connector) read(body []byte, find func(number, account string) ([]origin, error)) (all []sessionReport, odd int, err error) {
	r := &reader{c: c, find: find, now: c.cfg.Clock.Now()}
	var d delivery
	if json.Unmarshal(body, &d) != nil || d.Object != "whatsapp_business_account" {
		return nil, 1, nil //nolint:nilerr // the body cannot be used, and Meta would send the same body again
	}
	for _, entry := range d.Entry {
		for _, part := range entry.Changes {
			switch part.Field {
			case "messages", "calls", "user_preferences":
				r.change(part.Value)
				r.errors(part.Value, entry.At)
			case "smb_message_echoes": // not message_echoes, which repeats this connector's own messages
				r.echoes(part.Value)
			case "message_template_status_update", "message_template_quality_update", "template_category_update":
				r.template(part.Value, entry.ID, entry.At)
				r.templateHealth(part.Field, part.Value, entry.ID, entry.At)
			case "template_correct_category_detection", "message_template_components_update":
				r.templateHealth(part.Field, part.Value, entry.ID, entry.At)
			default:
				if read := accountFields[part.Field]; read != nil {
					r.account(read, part.Value, entry.ID, entry.At)
				}
			}
		}
	}
	return r.all, r.odd, r.err
}

// concerns calls the function take for each session of a number or a business.
func (r *reader) concerns(number, account string, take func()) {
	found, err := r.find(number, account)
	if err != nil {
		r.err = err
		return
	}
	if len(found) == 0 {
		r.odd++ // an app has one webhook for all its numbers, and some of them may have no session here
	}
	for _, at := range found {
		i := slices.IndexFunc(r.all, func(t sessionReport) bool { return t.origin == at })
		if i < 0 {
			i = len(r.all)
			r.all = append(r.all, sessionReport{origin: at})
		}
		r.at = &r.all[i]
		take()
	}
}

func (r *reader) change(value json.RawMessage) {
	var v change
	if json.Unmarshal(value, &v) != nil || v.Metadata.PhoneNumberID == "" {
		r.odd++
		return
	}
	r.concerns(v.Metadata.PhoneNumberID, "", func() {
		for _, text := range v.Contacts {
			each(r, text, r.contact)
		}
		for _, text := range v.Statuses {
			each(r, text, r.status)
		}
		for _, text := range v.Messages {
			each(r, text, r.message)
		}
		for _, text := range v.Calls {
			each(r, text, r.call)
		}
		for _, text := range v.Preferences {
			each(r, text, r.preference)
		}
	})
}

// template reads a change of a template. State, quality and category come in separate changes. Each change leaves the
// other two as they are.
func (r *reader) template(value json.RawMessage, account string, at seconds) {
	if !at.IsZero() {
		at.Time = at.Add(time.Second) // Meta drops the fraction of the second, and the change must not look older than a list from that second
	}
	var v templateChange
	if json.Unmarshal(value, &v) != nil || v.Name == "" || v.Language == "" || account == "" {
		r.odd++
		return
	}
	n := puntuale.TemplateEvent{
		Account: account, Name: word(v.Name), Language: languageOf(v.Language), ID: word(v.ID.String()), At: r.moment(at),
		Status: statusOf(v.Event), Quality: word(v.Quality), Category: word(cmp.Or(v.Category, v.Present)),
	}
	if n.Status != "" {
		n.Reason = v.reason(n.Status)
	}
	n.Advice = storable(clip(v.Rejection.Advice, 600))
	r.concerns("", account, func() {
		n.Client = r.at.client
		r.at.Templates = append(r.at.Templates, n)
	})
}

// each decodes one part and passes it to the function take. A part that cannot be decoded counts as odd.
func each[T any](r *reader, text json.RawMessage, take func(*T) bool) {
	var part T
	if json.Unmarshal(text, &part) != nil || !take(&part) {
		r.odd++
	}
}

var receiptKinds = map[string]puntuale.ReceiptKind{
	"sent": puntuale.ReceiptSent, "delivered": puntuale.ReceiptDelivered, "read": puntuale.ReceiptRead,
	"played": puntuale.ReceiptRead, "failed": puntuale.ReceiptFailed,
}

func (r *reader) status(s *status) bool {
	kind, known := receiptKinds[s.Status]
	id, token, own := readCallback(s.Callback)
	if !known || !own {
		return !known // true: an unknown kind of status is ignored; false: a status of another program's message counts as odd
	}
	e := puntuale.DeliveryReceipt{
		MessageRef: puntuale.MessageRef{Client: r.at.client, ID: id}, Session: r.at.session, Token: token, Kind: kind,
		At: r.moment(s.At), Detail: puntuale.Quoted(storable(clip(s.ID, 300))),
	}
	if kind == puntuale.ReceiptFailed {
		r.failed(&e, s)
	}
	if strings.HasSuffix(s.Callback, directMark) && len(e.Detail.Args) > 0 {
		e.Detail.Args[0] += " " + puntuale.MarkDirectSend
	}
	e.Charge = s.Pricing.charge(s.To, s.ToID)
	r.nameOf(s.To, s.ToID, s.ToParent)
	r.at.Receipts = append(r.at.Receipts, e)
	return true
}

// failed sets the reason why a message failed, and records an opt-out and what the failure holds back. If the number is
// open on this node, failed also does the actions that last a short time.
func (r *reader) failed(e *puntuale.DeliveryReceipt, s *status) {
	e.Reason = puntuale.Because(reasonInvalid)
	if len(s.Errors) == 0 {
		return
	}
	refusal := &s.Errors[0]
	a := r.c.account(r.at.session)
	m := refusedMessage{origin: r.at.origin, names: namesOf(s.To, s.ToID, s.ToParent), at: e.At}
	if len(m.names) > 0 {
		m.country = r.c.countryOf(m.names[0])
	}
	if a != nil {
		m.ended = a.restrictionEnd()
	}
	row, known := ruleFor(refusal, m.country)
	if !known {
		r.c.unknownCode(a, refusal)
	}
	e.Reason, e.Detail = puntuale.Because(row.reason), puntuale.Quoted(refusal.detail()+" "+storable(clip(s.ID, 300)))
	if strings.HasSuffix(s.Callback, directMark) {
		r.at.pauses = append(r.at.pauses, notDirect(refusal, row, m)...)
	}
	for _, w := range row.pauses(refusal, m) {
		if r.now.Before(w.Until) {
			r.at.pauses = append(r.at.pauses, w)
		}
	}
	switch {
	case row.action == optedOut:
		if name, ok := r.nameOf(s.To, s.ToID, s.ToParent); ok {
			r.at.Preferences = append(r.at.Preferences, puntuale.Preference{
				Client: r.at.client, Session: r.at.session, Phone: name, Stop: true, At: e.At, Reason: optOutReason(refusal.Code, e.At),
			})
		}
	case a == nil || r.now.Sub(e.At) > pauseTime:
	case row.pause.scope == puntuale.PauseTemplate: // the status does not name the template, but Meta's list shows its state
		a.reconsider()
	case row.action == noAccess:
		a.pause(puntuale.LinkUnlinked, row.reason, refusal.Code, r.now.Add(noAccessFor))
	}
}

func (r *reader) preference(p *preference) bool {
	phone, ok := r.nameOf(p.Person, p.PersonID, p.ParentID)
	if !ok || p.Value != "stop" && p.Value != "resume" {
		return false
	}
	at := r.moment(p.At)
	r.at.Preferences = append(r.at.Preferences, puntuale.Preference{
		Client: r.at.client, Session: r.at.session, Phone: phone, Stop: p.Value == "stop", At: at,
		Reason: "non vuole messaggi di marketing (preferenza WhatsApp, " + at.Format(time.RFC3339) + ")",
	})
	return true
}

// contact records that a number and an id belong to one person.
func (r *reader) contact(p *person) bool {
	r.nameOf(p.Number, p.ID, p.ParentID)
	return true
}

// nameOf returns the name under which a person is stored: the number, or the first id if the person hides the number. If
// Meta gives several names, nameOf records that they belong to one person.
func (r *reader) nameOf(number string, ids ...string) (string, bool) {
	names := namesOf(number, ids...)
	if len(names) == 0 {
		return "", false
	}
	for _, other := range names[1:] {
		r.alias(other, names[0])
	}
	return names[0], true
}

// namesOf returns the names under which messages to a person may be sent: the number and the ids, as far as Meta gives
// them.
func namesOf(number string, ids ...string) (names []string) {
	if phone, ok := phoneOf(number); ok {
		names = append(names, phone)
	}
	for _, id := range ids {
		if puntuale.IsPersonID(id) && !slices.Contains(names, id) {
			names = append(names, id)
		}
	}
	return names
}

// alias records that name and phone are two names of one person, unless this was recorded a short time ago.
func (r *reader) alias(name, phone string) {
	x := puntuale.Alias{Client: r.at.client, Session: r.at.session, Name: name, Phone: phone}
	if name != phone && !slices.Contains(r.at.Aliases, x) && !r.c.aliases.Known(x, r.now) {
		r.at.Aliases = append(r.at.Aliases, x)
	}
}

// moment returns the time of an event, but never a time later than now.
func (r *reader) moment(at seconds) time.Time {
	if at.IsZero() || at.After(r.now) {
		return r.now
	}
	return at.Time
}

// phoneOf turns a wa_id, which is digits without a +, into a phone number.
func phoneOf(waID string) (string, bool) {
	waID = strings.TrimPrefix(waID, "+")
	if len(waID) < 5 || len(waID) > 20 || strings.Trim(waID, "0123456789") != "" {
		return "", false
	}
	return "+" + waID, true
}
