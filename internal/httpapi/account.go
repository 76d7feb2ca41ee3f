package httpapi

import (
	"context"
	"encoding/json"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
	"puntuale/internal/control/account"
)

// Codes of the faults that this file reports.
const (
	faultCallInQueryToo    puntuale.ReasonCode = "call.in_query_too"
	faultCallMustBeStrings puntuale.ReasonCode = "call.must_be_strings"
	faultClientBadCredits  puntuale.ReasonCode = "client.bad_credits"
	faultNotDayOrNull      puntuale.ReasonCode = "fault.not_day_or_null"
)

func registerAccounts(a *api) {
	const one = "/api/client/{id}"
	missing := []int{http.StatusNotFound}
	partner(a, operation{id: "getClientExpirations", method: http.MethodGet, path: "/api/clients/expiration", body: expirationBody{},
		optional: true, summary: "Get clients' expiration dates",
		description: "All ids must be of the partner's clients.", refusals: missing}, expirations)
	partner(a, operation{id: "getClientSnapshot", method: http.MethodGet, path: "/api/client/{id_client}/snapshot", versioned: true,
		summary: "Get a client's snapshot", refusals: missing}, clientSnapshot)
	partner(a, operation{id: "listClients", method: http.MethodGet, path: "/api/clients", strict: true,
		summary: "List the clients, by id"}, listClients)
	partner(a, operation{id: "changeClient", method: http.MethodPatch, path: one, prevents: true, body: changeBody{}, versioned: true,
		summary:     "Change a client",
		description: "What is absent stays.", refusals: changes(http.StatusNotFound)}, withBody(changeClient))
	partner(a, operation{id: "deleteClient", method: http.MethodDelete, path: one, prevents: true,
		summary:     "Delete a client for good",
		description: "Pending messages are cancelled, keys are revoked.", refusals: missing}, deleteClient)
}

// expirationBody documents the body of the call that asks for clients' expiration dates.
type expirationBody struct {
	IDs []int64 `json:"client_ids,omitempty" maxItems:"1000" doc:"IDs of the clients; texts are taken too"`
}

// expirationInput documents the query, for callers that cannot send a body with GET. The handler reads the list from
// [call], not from this type.
type expirationInput struct {
	IDs []string `query:"client_ids[],explode" doc:"The same list, in the query"`
}

type expiration struct {
	ID      int64   `json:"id"`
	Name    string  `json:"nome"`
	Expires *string `json:"expiration_date" format:"date" doc:"Last day of service; null when it does not expire"`
}

// TransformSchema documents that the value may be null.
func (*clientPlanAnswer) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema {
	s.Nullable = true
	return s
}

func expirations(ctx context.Context, p *account.Partner, in *call, _ *expirationInput) ([]expiration, error) {
	location, ids, faults, err := in.clientIDs()
	if err != nil {
		return nil, err
	}
	accounts, err := p.Expirations(ctx, location, ids, faults...)
	if err != nil {
		return nil, err
	}
	return each(accounts, func(c puntuale.Client) expiration {
		return expiration{int64(c.ID), c.Name, dateOrNull(c.Expires)}
	}), nil
}

const faultCallNoClientIDs puntuale.ReasonCode = "call.no_client_ids"

// clientIDs reads the list of client ids from the body or from the query. location says which of the two contained the
// list.
func (c *call) clientIDs() (location string, ids []string, faults []puntuale.Fault, err error) {
	queried, inQuery := c.query["client_ids[]"]
	if inQuery && len(c.body) == 0 {
		kept := []string{}
		for _, id := range queried {
			if id != "" {
				kept = append(kept, id)
			}
		}
		return "query.client_ids", kept, nil, nil
	}
	if len(c.body) == 0 {
		return "", nil, nil, unreadable(puntuale.Fault{Location: "query.client_ids[]", Code: faultCallNoClientIDs})
	}
	body, err := c.object()
	if err != nil {
		return "", nil, nil, err
	}
	body.read("client_ids", "id,need", &ids)
	if inQuery {
		body.refuse("client_ids", faultCallInQueryToo, nil)
	}
	return "body.client_ids", ids, *body.refused, body.err()
}

type snapshotInput struct {
	ID string `path:"id_client" doc:"ID of the client"`
}

func clientSnapshot(ctx context.Context, p *account.Partner, c *call, in *snapshotInput) (account.Snapshot, error) {
	found, err := p.Account(ctx, in.ID)
	if err != nil {
		return account.Snapshot{}, err
	}
	c.tagged(found.Version())
	return account.SnapshotOf(found), nil
}

// listedClient contains a client's snapshot, and those settings of the client that the snapshot does not contain.
type listedClient struct {
	ID string `json:"id_client"`
	account.Snapshot
	Type      string   `json:"account_type" enum:"test,baby,full"`
	Cap       *int64   `json:"daily_api_cap" doc:"Calls a day; null when none is refused"`
	RefillTo  *int64   `json:"refill_to" doc:"Credits after a refill; null without refills"`
	Timezone  string   `json:"timezone"`
	Region    string   `json:"region" doc:"Country that numbers written without one are taken to be of"`
	Holidays  []string `json:"holidays" doc:"Own holidays, besides the national ones"`
	Suspended bool     `json:"suspended"`
	Created   string   `json:"created_at" format:"date-time"`

	Quotas quotasAnswer `json:"quotas" doc:"How many of each the client may have"`

	Plan *clientPlanAnswer `json:"plan" doc:"The plan that it was created with or moved to; null: none"`
}

type clientPlanAnswer struct {
	ID      string   `json:"id"`
	Name    string   `json:"name"`
	Since   string   `json:"since" format:"date" doc:"The plan's days of service are counted from here"`
	Differs []string `json:"differs" doc:"The client's own values, which differ from the plan's: such as daily_api_cap or quotas.sessions. Credits differ if the last grant does, not what is left of it"`
}

type quotasAnswer struct {
	Sessions  int64 `json:"sessions"`
	Sequences int64 `json:"sequences"`
	Templates int64 `json:"templates"`
	Users     int64 `json:"users" doc:"Of its dashboard"`
	Keys      int64 `json:"keys" doc:"API keys that were not replaced"`
}

func quotasOf(q puntuale.Quotas) quotasAnswer {
	return quotasAnswer{
		q.Get(puntuale.QuotaSessions), q.Get(puntuale.QuotaSequences), q.Get(puntuale.QuotaTemplates), q.Get(puntuale.QuotaUsers), q.Get(puntuale.QuotaKeys),
	}
}

type clientsAnswer struct {
	Clients []listedClient `json:"clients"`
	Next    *string        `json:"next_cursor"`
}

func listClients(ctx context.Context, p *account.Partner, in *call, q *ListInput) (clientsAnswer, error) {
	rows, next, err := p.Clients(ctx, q.page(in))
	if err != nil {
		return clientsAnswer{}, err
	}
	quotas, err := p.Quotas(ctx, rows...)
	if err != nil {
		return clientsAnswer{}, err
	}
	plans, err := p.PlansOf(ctx, rows...)
	if err != nil {
		return clientsAnswer{}, err
	}
	listed := each(rows, func(c puntuale.Client) listedClient {
		l := listedOf(c)
		l.Quotas = quotasOf(quotas[c.ID])
		if plan, found := plans[c.ID]; found {
			l.Plan = &clientPlanAnswer{plan.ID.String(), plan.Name, c.PlanSince.String(), plan.Differing}
		}
		return l
	})
	return clientsAnswer{listed, textOrNull(next)}, nil
}

func listedOf(c puntuale.Client) listedClient {
	l := listedClient{
		ID: c.ID.String(), Snapshot: account.SnapshotOf(c), Type: string(c.Type), Cap: c.Cap, Timezone: c.Zone, Region: c.Region,
		Holidays:  each(c.Closed, puntuale.Date.String),
		Suspended: c.Suspended, Created: stamp(c.Created),
	}
	if c.Refill != puntuale.RefillNone {
		l.RefillTo = &c.RefillTo
	}
	return l
}

// changeBody documents the body of a client's change. Null means "none" if the value may be missing. Otherwise null
// means the same as leaving the member out.
type changeBody struct {
	Profile    *string                `json:"profile,omitempty" enum:"Account gratuito,Fase di Test,Subscription Mensile,Subscription Annuale"`
	Refill     *string                `json:"refill_period,omitempty" enum:"Nessuno,Mensile,Annuale" doc:"Counted from the day of creation"`
	Name       *string                `json:"name,omitempty" minLength:"1" maxLength:"200"`
	Timezone   *string                `json:"timezone,omitempty" doc:"IANA name"`
	Region     *string                `json:"region,omitempty" pattern:"^[A-Za-z]{2}$" doc:"Country that numbers written without one are taken to be of"`
	Features   *[]string              `json:"active_features,omitempty" read:"strings" maxItems:"100"`
	Holidays   *[]string              `json:"holidays,omitempty" read:"strings" maxItems:"1000" doc:"Own holidays, YYYY-MM-DD, besides the national ones"`
	CreditsAdd *int64                 `json:"credits_add,omitempty" doc:"Added to the credits; may be negative"`
	RefillTo   *int64                 `json:"refill_to,omitempty" minimum:"0" doc:"Credits after a refill; else 2000 for a baby account, those set last for another"`
	Expires    nullableMember[string] `json:"expiration_date,omitzero" nullable:"true" format:"date" doc:"Last day of service; null: it does not expire"`
	Phone      *string                `json:"phone,omitempty" read:"phone" minLength:"1" maxLength:"200" doc:"A number is taken too"`
	Suspended  *bool                  `json:"suspended,omitempty" doc:"true: every call of the client is refused, and what is due waits"`
	Cap        nullableMember[int64]  `json:"daily_api_cap,omitzero" nullable:"true" minimum:"0" doc:"Calls a day; null: none is refused"`
	_          dayCheck
	Credits    credits     `json:"credits,omitzero" doc:"An integer, or Illimitati"`
	Quotas     *quotasBody `json:"quotas,omitempty" doc:"How many of each the client may have; what is left out stays as it is, and a client that has more keeps them"`

	Plan nullableMember[string] `json:"plan,omitzero" nullable:"true" doc:"ID of a plan: the client gets its values, except those that are given here, and its days of service begin today. null: no plan any more; the values stay"`

	SettingsBody
	_ closedCheck
}

// dayCheck adds a fault if a client's last day is an empty text.
type dayCheck struct{}

func (dayCheck) check(o *object, to any) {
	if day := to.(*changeBody).Expires.To; day != nil && *day == "" {
		o.refuse("expiration_date", faultNotDayOrNull, "")
	}
}

// quotasBody documents a client's limits. Null means the default limit.
type quotasBody struct {
	Sessions  nullableMember[int64] `json:"sessions,omitzero" nullable:"true" minimum:"0" maximum:"10000" doc:"10 by default"`
	Sequences nullableMember[int64] `json:"sequences,omitzero" nullable:"true" minimum:"0" maximum:"100000" doc:"1000 by default"`
	Templates nullableMember[int64] `json:"templates,omitzero" nullable:"true" minimum:"0" maximum:"100000" doc:"1000 by default"`
	Users     nullableMember[int64] `json:"users,omitzero" nullable:"true" minimum:"0" maximum:"200" doc:"Of its dashboard; 50 by default"`
	Keys      nullableMember[int64] `json:"keys,omitzero" nullable:"true" minimum:"0" maximum:"200" doc:"API keys that were not replaced; 20 by default"`
	_         closedCheck
}

// credits is a number of credits in its two JSON forms. To is nil for unlimited credits.
type credits puntuale.Change[*int64]

// Schema describes both forms to huma: a whole number, or the text for unlimited credits.
func (credits) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeInteger, Minimum: new(0.0)}, {Type: huma.TypeString, Enum: []any{puntuale.UnlimitedCredits}},
	}}
}

// MarshalJSON writes the form in which the credits were read.
func (c credits) MarshalJSON() ([]byte, error) {
	if c.To == nil {
		return render(puntuale.UnlimitedCredits)
	}
	return render(*c.To)
}

func (c *credits) readJSON(o *object, name string, raw json.RawMessage) {
	if raw[0] != '"' {
		c.Set = true
		o.read(name, "", &c.To)
	} else if text := unquote(raw); text == puntuale.UnlimitedCredits {
		c.Set = true
	} else {
		o.refuse(name, faultClientBadCredits, text)
	}
}

func changeClient(ctx context.Context, p *account.Partner, in *call, q *changeInput, body *changeBody) (account.Snapshot, error) {
	known, faults := in.knownVersions()
	requested := body.requested()
	requested.Known, requested.Faults = known, append(in.refused, faults...)
	changed, err := p.ChangeClient(ctx, q.ID, requested)
	if err != nil {
		return account.Snapshot{}, err
	}
	in.tagged(changed.Version())
	return account.SnapshotOf(changed), nil
}

func (b *changeBody) requested() account.ClientChange {
	r := account.ClientChange{
		Name: changeTo(b.Name), Phone: changeTo(b.Phone), Profile: changeTo(b.Profile), Refill: changeTo(b.Refill), RefillTo: changeTo(b.RefillTo),
		Zone: changeTo(b.Timezone), Region: changeTo(b.Region), Expires: changeTo(b.Expires.orEmpty()), Closed: changeTo(b.Holidays), Features: changeTo(b.Features),
		Cap: puntuale.Change[*int64](b.Cap), Credits: puntuale.Change[*int64](b.Credits), CreditsAdd: changeTo(b.CreditsAdd), Suspended: changeTo(b.Suspended),
		Plan: changeTo(b.Plan.orEmpty()), Settings: b.patch(), Quotas: b.Quotas.limits(),
	}
	return r
}

// limits returns the limits that are set. nil means the default.
func (q *quotasBody) limits() map[puntuale.Quota]*int64 {
	all := map[puntuale.Quota]*int64{}
	if q == nil {
		return all
	}
	for name, limit := range map[puntuale.Quota]nullableMember[int64]{
		puntuale.QuotaSessions: q.Sessions, puntuale.QuotaSequences: q.Sequences, puntuale.QuotaTemplates: q.Templates, puntuale.QuotaUsers: q.Users, puntuale.QuotaKeys: q.Keys,
	} {
		if limit.Set {
			all[name] = limit.To
		}
	}
	return all
}

// changeTo returns the change to a value, or no change for nil.
func changeTo[T any](value *T) (c puntuale.Change[T]) {
	if value != nil {
		c = puntuale.Change[T]{Set: true, To: *value}
	}
	return c
}

func deleteClient(ctx context.Context, p *account.Partner, _ *call, in *oneInput) (messageAnswer, error) {
	if err := p.DeleteClient(ctx, in.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"Cliente eliminato"}, nil
}

// dateOrNull returns a date as text, or nil for no date, which becomes null in JSON.
func dateOrNull(d puntuale.Date) *string {
	if d.IsZero() {
		return nil
	}
	return new(d.String())
}
