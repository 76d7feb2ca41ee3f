package httpapi

import (
	"context"
	"net/http"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
)

func registerAutomations(a *api) {
	const all, one = "/api/automations", "/api/automations/{id}"
	missing := []int{http.StatusNotFound}
	client(a, operation{id: "listAutomations", method: http.MethodGet, path: all, strict: true,
		summary:     "List the automations, by id",
		description: "The path of a hook is only in the answer for one automation."}, a.listAutomations)
	client(a, operation{id: "createAutomation", method: http.MethodPost, path: all, creates: createsAlways, body: automationBody{}, idempotent: true,
		summary:     "Create an automation",
		description: "When something happens, and conditions hold, it acts.", refusals: []int{http.StatusConflict}}, withBody(a.createAutomation))
	client(a, operation{id: "getAutomation", method: http.MethodGet, path: one, versioned: true, summary: "Get an automation", refusals: missing}, a.getAutomation)
	client(a, operation{id: "replaceAutomation", method: http.MethodPut, path: one, body: automationBody{}, versioned: true,
		summary:     "Replace an automation as a whole",
		description: "What it started before stays as it was.", refusals: changes(http.StatusNotFound)}, withBody(a.replaceAutomation))
	client(a, operation{id: "switchAutomation", method: http.MethodPatch, path: one, body: automationSwitchBody{}, versioned: true,
		summary: "Turn an automation on or off", refusals: changes(http.StatusNotFound)}, withBody(a.switchAutomation))
	client(a, operation{id: "deleteAutomation", method: http.MethodDelete, path: one, prevents: true,
		summary:     "Delete an automation and its log",
		description: "What it started goes on.", refusals: missing}, a.deleteAutomation)
	client(a, operation{id: "tryAutomation", method: http.MethodPost, path: one + "/try", body: tryBody{},
		summary:     "See what an automation would do for a person now, and why",
		description: "Nothing is stored or sent.", refusals: missing}, withBody(a.tryAutomation))
	client(a, operation{id: "rotateHook", method: http.MethodPost, path: one + "/rotate",
		summary:     "Give the hook of an automation a new path",
		description: "The former one is unknown at once.", refusals: missing}, a.rotateHook)
	client(a, operation{id: "listFirings", method: http.MethodGet, path: one + "/firings", strict: true,
		summary: "List when an automation acted in the last 30 days, and when it did not and why, newest first", refusals: missing}, a.listFirings)
}

// automationBody documents the body of an automation.
type automationBody struct {
	Name       string              `json:"name" minLength:"1" maxLength:"200" doc:"Also the nome_invio of what it starts"`
	Active     *bool               `json:"active,omitempty" default:"true" doc:"false: it waits for nothing"`
	Trigger    puntuale.Trigger    `json:"trigger" read:"need" doc:"What it waits for. Its kind cannot change later"`
	Conditions puntuale.Conditions `json:"conditions,omitempty" doc:"All of them must hold"`
	Actions    []puntuale.Action   `json:"actions" read:"need,capped" minItems:"1" maxItems:"10" doc:"What it does, in this order; stops come before starts"`
	_          closedCheck
}

// triggerBody, conditionsBody and actionBody document the JSON form that package puntuale defines, in bodies and in
// answers. The server creates no values of these types.
type triggerBody struct {
	Kind     string            `json:"kind" enum:"reply,reply_to,no_reply,date,hook,outcome,booking"`
	Words    []string          `json:"words,omitempty" maxItems:"50" doc:"reply: the whole message is one of them, whatever its case, accents and punctuation. None: any message"`
	Sequence string            `json:"sequence,omitempty" read:"id" doc:"reply_to, no_reply, outcome: the id of a sequence. booking: the id of a sequence for bookings; without it, all of them. A number is taken too"`
	Hours    int               `json:"hours,omitempty" minimum:"1" maximum:"720" doc:"no_reply: so long after the last message of the run was COMPLETED"`
	Field    string            `json:"field,omitempty" doc:"date: the name of contacts' date fields"`
	Repeat   string            `json:"repeat,omitempty" enum:"yearly,monthly,once" doc:"date: how often the date comes. 29 February counts as 28 February in common years"`
	Is       string            `json:"is,omitempty" enum:"COMPLETED,FAILED,READ,CLICKED,created,moved,confirmed,cancelled,arrived,no_show" doc:"outcome: COMPLETED, FAILED, READ or CLICKED (a tracked link, the first time), of a message of the sequence. booking: one of the others; created is also a booking that is open again"`
	First    bool              `json:"first,omitempty" doc:"reply: only a person's first message ever"`
	Map      map[string]string `json:"map,omitempty" doc:"hook: where the phone and fields stand in the payload, such as {\"phone\": \"customer.phone\"}. Paths are dotted, with [0] for an entry of a list and [key=value] for the entry that holds a value; or JSON Pointers. phone is needed, or reference, which names a booking. The actions about bookings read reference and as_of"`
	Preset   string            `json:"preset,omitempty" enum:"calcom,calendly,easyappointments,woocommerce_bookings" doc:"hook: the program for appointments that calls, instead of map. One action book then makes, moves and cancels its appointments"`
	_        closedCheck
}

type conditionsBody struct {
	Tags          []string                  `json:"tags,omitempty" maxItems:"20" doc:"The contact has all of them"`
	Session       string                    `json:"id_sessione,omitempty" read:"id" doc:"What happened came through this session; not with date, hook and booking"`
	Window        *puntuale.Window          `json:"window,omitempty" doc:"The hours and days in which it acts; not with date"`
	NotIn         string                    `json:"not_in,omitempty" read:"id" doc:"The id of a sequence: none of its messages to the person is pending"`
	CooldownHours int                       `json:"cooldown_hours,omitempty" minimum:"0" maximum:"720" doc:"It did not act for the person in so many hours"`
	Fields        []puntuale.FieldCondition `json:"fields,omitempty" read:"capped" maxItems:"20" doc:"Comparisons of the contact's fields. The fields of a hook or a booking come before the contact's"`
	BookingStatus []string                  `json:"booking_status,omitempty" maxItems:"5" doc:"The booking of the trigger, or the one that a hook maps as reference, has one of these statuses when the rule acts: open, confirmed, cancelled, arrived, no_show"`
	_             closedCheck
}

type fieldConditionBody struct {
	Name  string `json:"name"`
	Op    string `json:"op" enum:"equal,not_equal,less,more,contains,filled,empty" doc:"Texts are compared without case and accents; less and more are for numbers and dates; filled and empty go without value"`
	Value string `json:"value,omitempty" read:"id" doc:"A number is taken too"`
	_     closedCheck
}

type actionBody struct {
	Kind     string `json:"kind" enum:"start,stop,send,book,cancel_booking,tag,blacklist"`
	Sequence string `json:"sequence,omitempty" read:"id" doc:"start: the id of a sequence, or default, the session's default start sequence. stop: the id of a sequence, default, the session's default stop sequence, or all. book: the id of a sequence for bookings"`

	Text      string   `json:"text,omitempty" doc:"send: one message that leaves at once, as in a step of a sequence"`
	Media     string   `json:"media,omitempty" doc:"send"`
	MediaName string   `json:"media_name,omitempty" doc:"send"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"send"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"send"`
	Template  string   `json:"template,omitempty" doc:"send: the name of a template of the client"`
	Purpose   string   `json:"purpose,omitempty" enum:"service,marketing" default:"service" doc:"send"`

	Add    []string `json:"add,omitempty" doc:"tag: tags that the contact gets. A person who is no contact becomes one"`
	Remove []string `json:"remove,omitempty" doc:"tag: tags that the contact loses"`

	Reference string `json:"reference,omitempty" maxLength:"255" doc:"book, cancel_booking: of the booking, with placeholders for fields. Without it: the trigger's booking, or what a hook maps as reference. Without any, book makes a new booking each time"`
	Status    string `json:"status,omitempty" enum:"open,confirmed,cancelled,arrived,no_show" doc:"book: the status that the booking gets. open reopens only what a rule cancelled"`
	Silent    bool   `json:"silent,omitempty" doc:"cancel_booking: no message tells the person"`
	_         closedCheck
}

type automationSwitchBody struct {
	Active bool `json:"active" read:"need"`
	_      closedCheck
}

// AutomationAnswer is an automation as callers see it.
type AutomationAnswer struct {
	ID         string              `json:"id"`
	Name       string              `json:"name"`
	Active     bool                `json:"active"`
	Trigger    puntuale.Trigger    `json:"trigger"`
	Conditions puntuale.Conditions `json:"conditions"`
	Actions    []puntuale.Action   `json:"actions"`
	Path       *string             `json:"path" doc:"Of its hook: programs post to it below the server's address. It is a secret. null without a hook, and in lists"`
	Fired      int64               `json:"fired" doc:"How often it acted"`
	LastFired  *string             `json:"last_fired_at" format:"date-time"`
	Created    string              `json:"created_at" format:"date-time"`
	Updated    string              `json:"updated_at" format:"date-time"`
}

type automationsAnswer struct {
	Automations []AutomationAnswer `json:"automations"`
}

type firingAnswer struct {
	At         string   `json:"at" format:"date-time"`
	Phone      *string  `json:"phone" doc:"null: the person was erased, or the payload has no phone"`
	Occurrence *string  `json:"occurrence" doc:"What it acts for only once: a reply, a run, a date, a call. null: the person was erased, or contents were blanked"`
	Acted      bool     `json:"acted"`
	Code       *string  `json:"code" doc:"Why it did not act, or not wholly, for programs"`
	Why        *string  `json:"why" doc:"The same for people, in Italian"`
	English    *string  `json:"why_en"`
	Messages   []string `json:"messages" doc:"IDs of the first message of each start and send, and of each booking that planned messages"`
}

type firingsAnswer struct {
	Firings []firingAnswer `json:"firings"`
	Next    *string        `json:"next_cursor"`
}

func automationOf(r automation.Rule) AutomationAnswer {
	return AutomationAnswer{
		ID: r.ID.String(), Name: r.Name, Active: r.Active, Trigger: r.Trigger, Conditions: r.Conditions,
		Actions: append([]puntuale.Action{}, r.Actions...), Path: textOrNull(r.Path), Fired: r.Fired, LastFired: stampOrNull(r.LastFired),
		Created: stamp(r.Created), Updated: stamp(r.Updated),
	}
}

func firingOf(f puntuale.Firing) firingAnswer {
	reason := puntuale.Because(f.Reason)
	if f.Reason == "" {
		reason = puntuale.Reason{}
	} else if f.Detail != "" {
		reason = puntuale.Colon(reason, puntuale.ParseReason(f.Detail))
	}
	return firingAnswer{
		At: stamp(f.At), Phone: textOrNull(f.Phone), Occurrence: textOrNull(f.Occurrence), Acted: f.Acted, Code: textOrNull(string(f.Reason)),
		Why: textOrNull(catalogue.Italian.Sentence(reason)), English: textOrNull(catalogue.English.Sentence(reason)), Messages: each(f.Messages, puntuale.MessageID.String),
	}
}

func (a *api) rules(c *control.Client, in *call) *automation.Rules {
	return a.automations.OfClient(c, in.key)
}

func (a *api) listAutomations(ctx context.Context, c *control.Client, in *call, _ *struct{}) (automationsAnswer, error) {
	if len(in.unknown) > 0 {
		return automationsAnswer{}, puntuale.Invalid(in.unknown...)
	}
	all, err := a.rules(c, in).List(ctx)
	if err != nil {
		return automationsAnswer{}, err
	}
	return automationsAnswer{each(all, func(x puntuale.Automation) AutomationAnswer { return automationOf(automation.Rule{Automation: x}) })}, nil
}

func (a *api) createAutomation(ctx context.Context, c *control.Client, in *call, p *OnceInput, body *automationBody) (onceAnswer[AutomationAnswer], error) {
	made, err := a.rules(c, in).Create(ctx, body.draft(in.refused), once(in, p, automationOf))
	return onceAnswerOf(in, automationOf(made), err)
}

func (a *api) getAutomation(ctx context.Context, c *control.Client, in *call, p *oneInput) (AutomationAnswer, error) {
	found, err := a.rules(c, in).Rule(ctx, p.ID)
	return tagged(in, found, err)
}

// tagged returns a rule as an answer, and sets the rule's version in the header.
func tagged(in *call, r automation.Rule, err error) (AutomationAnswer, error) {
	if err != nil {
		return AutomationAnswer{}, err
	}
	in.tagged(r.Version())
	return automationOf(r), nil
}

func (a *api) replaceAutomation(ctx context.Context, c *control.Client, in *call, p *changeInput, body *automationBody) (AutomationAnswer, error) {
	known, faults := in.knownVersions()
	draft := body.draft(append(in.refused, faults...))
	draft.Known = known
	replaced, err := a.rules(c, in).Replace(ctx, p.ID, draft)
	return tagged(in, replaced, err)
}

func (a *api) switchAutomation(ctx context.Context, c *control.Client, in *call, p *changeInput, body *automationSwitchBody) (AutomationAnswer, error) {
	known, faults := in.knownVersions()
	if faults = append(faults, in.refused...); len(faults) > 0 {
		if _, err := a.rules(c, in).Rule(ctx, p.ID); err != nil {
			return AutomationAnswer{}, err
		}
		return AutomationAnswer{}, puntuale.Invalid(faults...)
	}
	switched, err := a.rules(c, in).Switch(ctx, p.ID, body.Active, known...)
	return tagged(in, switched, err)
}

func (a *api) deleteAutomation(ctx context.Context, c *control.Client, in *call, p *oneInput) (messageAnswer, error) {
	if err := a.rules(c, in).Delete(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Automazione eliminata"}, nil
}

func (a *api) rotateHook(ctx context.Context, c *control.Client, in *call, p *oneInput) (AutomationAnswer, error) {
	rotated, err := a.rules(c, in).Rotate(ctx, p.ID)
	if err != nil {
		return AutomationAnswer{}, err
	}
	return automationOf(rotated), nil
}

type firingsInput struct {
	ListInput
	ID string `path:"id" doc:"ID of the automation"`
}

func (a *api) listFirings(ctx context.Context, c *control.Client, in *call, p *firingsInput) (firingsAnswer, error) {
	rows, next, err := a.rules(c, in).Firings(ctx, p.ID, p.page(in))
	if err != nil {
		return firingsAnswer{}, err
	}
	return firingsAnswer{each(rows, firingOf), textOrNull(next)}, nil
}

func (b *automationBody) draft(faults []puntuale.Fault) automation.Draft {
	return automation.Draft{
		Automation: puntuale.Automation{Name: b.Name, Active: b.Active == nil || *b.Active, Trigger: b.Trigger, Conditions: b.Conditions, Actions: b.Actions},
		Faults:     faults,
	}
}
