package official

import (
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

// person identifies a person in a change: by a number, by an id or by both.
type person struct {
	Number string `json:"wa_id"`
	ID     string `json:"user_id"`
}

// templateChange is the content of a change that is about a template.
type templateChange struct {
	ID       json.Number `json:"message_template_id"`
	Name     string      `json:"message_template_name"`
	Language string      `json:"message_template_language"`
	Event    string      `json:"event"`
	Reason   string      `json:"reason"`
	Category string      `json:"new_category"`
	Quality  string      `json:"new_quality_score"`
	Other    struct {
		Title string `json:"title"`
	} `json:"other_info"`
	Rejection struct {
		Reason string `json:"reason"`
		Advice string `json:"recommendation"`
	} `json:"rejection_info"`
}

type status struct {
	ID       string       `json:"id"`
	Status   string       `json:"status"`
	At       seconds      `json:"timestamp"`
	Callback string       `json:"biz_opaque_callback_data"`
	To       string       `json:"recipient_id"`
	ToID     string       `json:"recipient_user_id"`
	Errors   []graphError `json:"errors"`
	Pricing  *pricing     `json:"pricing"`
}

// pricing is what Meta bills for a message. It is in the status "sent", and again in the status "delivered" or "read".
// Meta bills only messages that it delivers. (Meta, webhooks/reference/messages/status.)
type pricing struct {
	Billable *bool  `json:"billable"`
	Kind     string `json:"type"` // "regular", "free_customer_service" or "free_entry_point"
	Category string `json:"category"`
}

// billed are the categories of Meta's bills. Any other category is stored as "other".
var billed = []string{"marketing", "utility", "authentication", "service", "marketing_lite", "authentication_international", "referral_conversion"}

func (p *pricing) charge(phone string) (c puntuale.Charge) {
	if p == nil || p.Category == "" {
		return c
	}
	c.Phone, c.Category, c.Billable = phone, strings.ToLower(p.Category), p.Kind == "regular"
	if p.Billable != nil {
		c.Billable = *p.Billable
	}
	if !slices.Contains(billed, c.Category) {
		c.Category = "other"
	}
	return c
}

type preference struct {
	Person   string  `json:"wa_id"`
	PersonID string  `json:"user_id"`
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
			case "smb_message_echoes": // not message_echoes, which repeats this connector's own messages
				r.echoes(part.Value)
			case "message_template_status_update", "message_template_quality_update", "template_category_update":
				r.template(part.Value, entry.ID, entry.At)
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
		Status: statusOf(v.Event), Reason: reasonOf(v.Reason), Quality: word(v.Quality), Category: word(v.Category),
	}
	if n.Reason == "" && n.Status != puntuale.TemplateApproved {
		n.Reason = word(v.Other.Title)
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
	phone, _ := phoneOf(s.To)
	e.Charge = s.Pricing.charge(phone)
	r.nameOf(s.To, s.ToID)
	r.at.Receipts = append(r.at.Receipts, e)
	return true
}

// failed sets the reason why a message failed, and records an opt-out. If the number is open on this node, and the
// failure is not too old, failed also does the other actions, such as a pause.
func (r *reader) failed(e *puntuale.DeliveryReceipt, s *status) {
	e.Reason = puntuale.Because(reasonInvalid)
	if len(s.Errors) == 0 {
		return
	}
	refusal := &s.Errors[0]
	row, _ := ruleOf(refusal.Code)
	e.Reason, e.Detail = puntuale.Because(row.reason), puntuale.Quoted(refusal.detail()+" "+storable(clip(s.ID, 300)))
	a := r.c.account(r.at.session)
	switch {
	case row.action == optedOut:
		if name, ok := r.nameOf(s.To, s.ToID); ok {
			r.at.Preferences = append(r.at.Preferences, puntuale.Preference{
				Client: r.at.client, Session: r.at.session, Phone: name, Stop: true, At: e.At, Reason: optOutReason(refusal.Code, e.At),
			})
		}
	case a == nil || r.now.Sub(e.At) > pauseTime && row.action != noMarketing:
		// Do nothing if the number is not open on this node, or if the failure is old. Only the action noMarketing also
		// follows an old failure, because its wait lasts longer.
	case row.action == pauseNumber:
		a.pause(puntuale.LinkLinked, row.reason, refusal, pauseTime)
	case row.action == pausePerson:
		for _, name := range namesOf(s.To, s.ToID) {
			a.unreachable.note(name, e.At, final(row.reason, puntuale.Quoted(refusal.detail())), r.now)
		}
	case row.action == noMarketing:
		for _, name := range namesOf(s.To, s.ToID) {
			a.marketingPauses.pauseFor(name, e.At.Add(tomorrowWait), r.now)
		}
	case row.action == pauseTemplate:
		a.reconsider("", false)
	case row.action == noAccess:
		a.pause(puntuale.LinkUnlinked, row.reason, refusal, noAccessFor)
	}
}

func (r *reader) preference(p *preference) bool {
	phone, ok := r.nameOf(p.Person, p.PersonID)
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
	r.nameOf(p.Number, p.ID)
	return true
}

// nameOf returns the name under which a person is stored: the number, or the id if the person hides the number. If Meta
// gives both, nameOf records that they belong to one person.
func (r *reader) nameOf(number, id string) (string, bool) {
	phone, ok := phoneOf(number)
	known := puntuale.IsPersonID(id)
	switch {
	case ok && known:
		r.alias(id, phone)
	case !ok:
		return id, known
	}
	return phone, ok
}

// namesOf returns the names under which messages to a person may be sent: the number, the id, or both.
func namesOf(number, id string) (names []string) {
	if phone, ok := phoneOf(number); ok {
		names = append(names, phone)
	}
	if puntuale.IsPersonID(id) {
		names = append(names, id)
	}
	return names
}

// alias records that name and phone are two names of one person, unless this was recorded a short time ago.
func (r *reader) alias(name, phone string) {
	x := puntuale.Alias{Client: r.at.client, Session: r.at.session, Name: name, Phone: phone}
	if name != phone && !slices.Contains(r.at.Aliases, x) && !r.c.aliases.known(x, r.now) {
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
