package httpapi

import (
	"context"
	"maps"
	"net/http"
	"slices"

	"puntuale"
	"puntuale/internal/catalogue"
	"puntuale/internal/control"
	"puntuale/internal/control/automation"
)

func registerAutomations(a *api) {
	const all, one = "/api/automations", "/api/automations/{id}"
	missing := []int{http.StatusNotFound}
	client(a, operation{id: "listAutomations", method: http.MethodGet, path: all, strict: true,
		summary: "List the automations, by id. The path of a hook is only in the answer for one automation"}, a.listAutomations)
	client(a, operation{id: "createAutomation", method: http.MethodPost, path: all, creates: createsAlways, body: automationBody{}, closed: true, idempotent: true,
		summary: "Create an automation: when something happens, and conditions hold, it acts", refusals: []int{http.StatusConflict}}, a.createAutomation)
	client(a, operation{id: "getAutomation", method: http.MethodGet, path: one, versioned: true, summary: "Get an automation", refusals: missing}, a.getAutomation)
	client(a, operation{id: "replaceAutomation", method: http.MethodPut, path: one, body: automationBody{}, closed: true, versioned: true,
		summary: "Replace an automation as a whole; what it started before stays as it was", refusals: changes(http.StatusNotFound)}, a.replaceAutomation)
	client(a, operation{id: "switchAutomation", method: http.MethodPatch, path: one, body: automationSwitchBody{}, closed: true, versioned: true,
		summary: "Turn an automation on or off", refusals: changes(http.StatusNotFound)}, a.switchAutomation)
	client(a, operation{id: "deleteAutomation", method: http.MethodDelete, path: one, prevents: true,
		summary: "Delete an automation and its log; what it started goes on", refusals: missing}, a.deleteAutomation)
	client(a, operation{id: "tryAutomation", method: http.MethodPost, path: one + "/try", body: tryBody{}, closed: true,
		summary: "See what an automation would do for a person now, and why. Nothing is stored or sent", refusals: missing}, a.tryAutomation)
	client(a, operation{id: "rotateHook", method: http.MethodPost, path: one + "/rotate",
		summary: "Give the hook of an automation a new path; the former one is unknown at once", refusals: missing}, a.rotateHook)
	client(a, operation{id: "listFirings", method: http.MethodGet, path: one + "/firings", strict: true,
		summary: "List when an automation acted in the last 30 days, and when it did not and why, newest first", refusals: missing}, a.listFirings)
}

// automationBody documents the body of an automation.
type automationBody struct {
	Name       string          `json:"name" minLength:"1" maxLength:"200" doc:"Also the nome_invio of what it starts"`
	Active     *bool           `json:"active,omitempty" default:"true" doc:"false: it waits for nothing"`
	Trigger    triggerBody     `json:"trigger" doc:"What it waits for. Its kind cannot change later"`
	Conditions *conditionsBody `json:"conditions,omitempty" doc:"All of them must hold"`
	Actions    []actionBody    `json:"actions" minItems:"1" maxItems:"10" doc:"What it does, in this order; stops come before starts"`
}

// triggerBody, conditionsBody and actionBody document the JSON form that package puntuale defines. Answers use the same
// form.
type triggerBody struct {
	Kind     string            `json:"kind" enum:"reply,reply_to,no_reply,date,hook,outcome"`
	Words    []string          `json:"words,omitempty" maxItems:"50" doc:"reply: the whole message is one of them, whatever its case, accents and punctuation. None: any message"`
	First    bool              `json:"first,omitempty" doc:"reply: only a person's first message ever"`
	Sequence string            `json:"sequence,omitempty" doc:"reply_to, no_reply, outcome: the id of a sequence. A number is taken too"`
	Hours    int               `json:"hours,omitempty" minimum:"1" maximum:"720" doc:"no_reply: so long after the last message of the run was COMPLETED"`
	Field    string            `json:"field,omitempty" doc:"date: the name of contacts' date fields"`
	Repeat   string            `json:"repeat,omitempty" enum:"yearly,monthly,once" doc:"date: how often the date comes. 29 February counts as 28 February in common years"`
	Map      map[string]string `json:"map,omitempty" doc:"hook: where the phone and fields stand in the payload, such as {\"phone\": \"customer.phone\"}. Paths are dotted, with [0] for an entry of a list and [key=value] for the entry that holds a value; or JSON Pointers. phone is needed"`
	Is       string            `json:"is,omitempty" enum:"COMPLETED,FAILED,READ" doc:"outcome: of a message of the sequence"`
}

type conditionsBody struct {
	Tags          []string             `json:"tags,omitempty" maxItems:"20" doc:"The contact has all of them"`
	Fields        []fieldConditionBody `json:"fields,omitempty" maxItems:"20" doc:"Comparisons of the contact's fields. A hook's fields come before the contact's"`
	Session       string               `json:"id_sessione,omitempty" doc:"What happened came through this session; not with date and hook"`
	Window        *window              `json:"window,omitempty" doc:"The hours and days in which it acts; not with date"`
	NotIn         string               `json:"not_in,omitempty" doc:"The id of a sequence: none of its messages to the person is pending"`
	CooldownHours int                  `json:"cooldown_hours,omitempty" minimum:"0" maximum:"720" doc:"It did not act for the person in so many hours"`
}

type fieldConditionBody struct {
	Name  string `json:"name"`
	Op    string `json:"op" enum:"equal,not_equal,less,more,contains,filled,empty" doc:"Texts are compared without case and accents; less and more are for numbers and dates; filled and empty go without value"`
	Value string `json:"value,omitempty" doc:"A number is taken too"`
}

type actionBody struct {
	Kind     string `json:"kind" enum:"start,stop,send,tag,blacklist"`
	Sequence string `json:"sequence,omitempty" doc:"start: the id of a sequence, or default, the session's default start sequence. stop: the id of a sequence, default, the session's default stop sequence, or all"`

	Text      string   `json:"text,omitempty" doc:"send: one message that leaves at once, as in a step of a sequence"`
	Media     string   `json:"media,omitempty" doc:"send"`
	MediaName string   `json:"media_name,omitempty" doc:"send"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"send"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"send"`
	Template  string   `json:"template,omitempty" doc:"send: the name of a template of the client"`
	Purpose   string   `json:"purpose,omitempty" enum:"service,marketing" default:"service" doc:"send"`

	Add    []string `json:"add,omitempty" doc:"tag: tags that the contact gets. A person who is no contact becomes one"`
	Remove []string `json:"remove,omitempty" doc:"tag: tags that the contact loses"`
}

type automationSwitchBody struct {
	Active bool `json:"active"`
}

// AutomationAnswer is an automation as callers see it.
type AutomationAnswer struct {
	ID         string          `json:"id"`
	Name       string          `json:"name"`
	Active     bool            `json:"active"`
	Trigger    triggerValue    `json:"trigger"`
	Conditions conditionsValue `json:"conditions"`
	Actions    []actionValue   `json:"actions"`
	Path       *string         `json:"path" doc:"Of its hook: programs post to it below the server's address. It is a secret. null without a hook, and in lists"`
	Fired      int64           `json:"fired" doc:"How often it acted"`
	LastFired  *string         `json:"last_fired_at" format:"date-time"`
	Created    string          `json:"created_at" format:"date-time"`
	Updated    string          `json:"updated_at" format:"date-time"`
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
	Messages   []string `json:"messages" doc:"IDs of the first message of each start and send"`
}

type firingsAnswer struct {
	Firings []firingAnswer `json:"firings"`
	Next    *string        `json:"next_cursor"`
}

func automationOf(r automation.Rule) AutomationAnswer {
	return AutomationAnswer{
		ID: r.ID.String(), Name: r.Name, Active: r.Active, Trigger: triggerValue{r.Trigger}, Conditions: conditionsValue{r.Conditions},
		Actions: each(r.Actions, func(x puntuale.Action) actionValue { return actionValue{x} }), Path: textOrNull(r.Path), Fired: r.Fired, LastFired: stampOrNull(r.LastFired),
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

func (a *api) createAutomation(ctx context.Context, c *control.Client, in *call, p *OnceInput) (onceAnswer[AutomationAnswer], error) {
	draft, err := readAutomation(in)
	if err != nil {
		return onceAnswer[AutomationAnswer]{}, err
	}
	made, err := a.rules(c, in).Create(ctx, draft, once(in, p, automationOf))
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

func (a *api) replaceAutomation(ctx context.Context, c *control.Client, in *call, p *changeInput) (AutomationAnswer, error) {
	draft, err := readAutomation(in)
	if err != nil {
		return AutomationAnswer{}, err
	}
	known, faults := in.knownVersions()
	draft.Known, draft.Faults = known, append(draft.Faults, faults...)
	replaced, err := a.rules(c, in).Replace(ctx, p.ID, draft)
	return tagged(in, replaced, err)
}

func (a *api) switchAutomation(ctx context.Context, c *control.Client, in *call, p *changeInput) (AutomationAnswer, error) {
	body, err := in.object()
	if err != nil {
		return AutomationAnswer{}, err
	}
	body.need("active")
	active := body.flag("active")
	if err := body.err(); err != nil {
		return AutomationAnswer{}, err
	}
	body.refuseUndocumented(automationSwitchBody{})
	known, faults := in.knownVersions()
	if faults = append(faults, *body.refused...); len(faults) > 0 {
		if _, err := a.rules(c, in).Rule(ctx, p.ID); err != nil {
			return AutomationAnswer{}, err
		}
		return AutomationAnswer{}, puntuale.Invalid(faults...)
	}
	switched, err := a.rules(c, in).Switch(ctx, p.ID, *active, known...)
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

// readAutomation reads the body of an automation. Codes: unreadable.
func readAutomation(in *call) (automation.Draft, error) {
	body, err := in.object()
	if err != nil {
		return automation.Draft{}, err
	}
	d := automation.Draft{Automation: puntuale.Automation{Name: body.text("name"), Active: true}}
	if active := body.flag("active"); active != nil {
		d.Active = *active
	}
	if body.need("trigger") {
		d.Trigger = readTrigger(body.object("trigger"))
	}
	if o := body.object("conditions"); o != nil {
		d.Conditions = readConditions(o)
	}
	if body.need("actions") {
		d.Actions = readActions(body)
	}
	body.refuseUndocumented(automationBody{})
	d.Faults = *body.refused
	return d, body.err()
}

func readTrigger(o *object) puntuale.Trigger {
	t := puntuale.Trigger{
		Kind: puntuale.TriggerKind(o.text("kind")), Words: o.texts("words"), Sequence: puntuale.SequenceChoice(o.id("sequence")), Hours: o.wholeNumber("hours"),
		Field: o.text("field"), Repeat: puntuale.Repeat(o.text("repeat")), Is: puntuale.OutcomeStatus(o.text("is")),
	}
	if first := o.flag("first"); first != nil {
		t.First = *first
	}
	if m := o.object("map"); m != nil {
		t.Map = map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(m.members)) {
			t.Map[name] = m.text(name)
		}
	}
	o.refuseUndocumented(triggerBody{})
	return t
}

func readConditions(o *object) puntuale.Conditions {
	k := puntuale.Conditions{
		Tags: o.texts("tags"), Session: o.id("id_sessione"), Window: readWindow(o), NotIn: puntuale.SequenceChoice(o.id("not_in")), CooldownHours: o.wholeNumber("cooldown_hours"),
	}
	if n := len(o.list("fields")); n > puntuale.MaxConditionFields {
		k.Fields = make([]puntuale.FieldCondition, n) // too many conditions: control refuses the number, so the contents are not read
	} else if n > 0 {
		for _, f := range o.objects("fields") {
			k.Fields = append(k.Fields, puntuale.FieldCondition{Name: f.text("name"), Op: puntuale.FieldOperator(f.text("op")), Value: f.id("value")})
			f.refuseUndocumented(fieldConditionBody{})
		}
	}
	o.refuseUndocumented(conditionsBody{})
	return k
}

func readActions(body *object) []puntuale.Action {
	all := body.list("actions")
	if n := len(all); n == 0 || n > puntuale.MaxActions {
		return make([]puntuale.Action, n) // no actions, or too many: control refuses the number, so the contents are not read
	}
	return each(body.objects("actions"), func(o *object) puntuale.Action {
		x := puntuale.Action{
			Kind: puntuale.ActionKind(o.text("kind")), Sequence: puntuale.SequenceChoice(o.id("sequence")), Text: o.text("text"), Media: o.text("media"), MediaName: o.text("media_name"),
			Latitude: o.number("latitude"), Longitude: o.number("longitude"), Template: o.text("template"), Purpose: o.text("purpose"), Add: o.texts("add"), Remove: o.texts("remove"),
		}
		o.refuseUndocumented(actionBody{})
		return x
	})
}
