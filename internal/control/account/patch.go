package account

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nyaruka/phonenumbers"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
)

// Limits of the values that a partner sets.
const (
	maxCredits     = 1_000_000_000
	maxCap         = 1_000_000_000
	maxFeatures    = 100
	maxOwnHolidays = 1000
)

// ClientChange is a partner's request to change a client. A member that is not set changes nothing.
type ClientChange struct {
	Name     puntuale.Change[string]
	Phone    puntuale.Change[string]
	Profile  puntuale.Change[string] // one of the words for profiles in [Snapshot]
	Refill   puntuale.Change[string] // one of the words for refills in [Snapshot]
	RefillTo puntuale.Change[int64]  // credits after a refill; if this member is not set, see the method refillTo
	Zone     puntuale.Change[string]
	Region   puntuale.Change[string]
	Expires  puntuale.Change[string] // YYYY-MM-DD, the last day of service; "": the service never ends
	Closed   puntuale.Change[[]string]
	Features puntuale.Change[[]string]

	Cap        puntuale.Change[*int64] // nil: no cap
	Credits    puntuale.Change[*int64] // nil: unlimited
	CreditsAdd puntuale.Change[int64]
	Suspended  puntuale.Change[bool]
	Plan       puntuale.Change[string] // the id of the plan whose values the client gets, except those that are set here; "": no plan any more
	Settings   puntuale.SettingsPatch
	Quotas     map[puntuale.Quota]*int64 // a nil value restores the default

	Known  []puntuale.Version // the client's version must be one of these; empty: any version
	Faults []puntuale.Fault   // the faults that the calling package already found in the request

	plan      puntuale.PlanID // with Plan; 0: none
	planSince puntuale.Date
	budget    puntuale.Change[int64] // of the plan
	least     int64                  // credits to which a client with fewer is raised
}

// ChangeClient changes a client, and returns the changed client. Codes: not_found, invalid, precondition_failed.
func (p *Partner) ChangeClient(ctx context.Context, id string, r ClientChange) (puntuale.Client, error) {
	account, err := p.Account(ctx, id)
	if err != nil {
		return puntuale.Client{}, err
	}
	if err := p.moveTo(ctx, &r, account); err != nil {
		return puntuale.Client{}, err
	}
	now := p.accounts.clock.Now()
	patch, err := p.accounts.patch(account, r, now)
	if err != nil {
		return puntuale.Client{}, err
	}
	changed, err := p.tenant.UpdateClient(ctx, account.ID, patch, now)
	if err != nil {
		return puntuale.Client{}, fmt.Errorf("change client %d: %w", account.ID, err)
	}
	return changed, nil
}

// patch checks a whole request against the current account.
func (c *Accounts) patch(account puntuale.Client, r ClientChange, now time.Time) (puntuale.ClientPatch, error) {
	f := request.Faults(r.Faults)
	patch := puntuale.ClientPatch{
		Name: r.Name, Phone: r.Phone, Profile: r.Profile, Refill: r.Refill, RefillTo: r.refillTo(account.Type), Zone: r.Zone, Features: r.Features,
		Cap: r.Cap, Credits: r.Credits, CreditsAdd: r.CreditsAdd, Suspended: r.Suspended, Settings: r.Settings, Quotas: r.Quotas, Known: r.Known,
	}
	patch.Budget, patch.Currency = r.budget, c.currency
	if r.Plan.Set {
		patch.Plan, patch.PlanSince = puntuale.ChangeTo(r.plan), puntuale.ChangeTo(r.planSince)
	}
	r.checkTexts(&f)
	r.checkCredits(&f, account)
	r.checkQuotas(&f)
	control.CheckSettings(&f, r.Settings)
	if r.Region.Set {
		patch.Region = puntuale.Change[string]{Set: true, To: region(&f, r.Region.To)}
	}
	if r.Closed.Set {
		patch.Closed = puntuale.Change[[]puntuale.Date]{Set: true, To: holidays(&f, r.Closed.To)}
	}
	if r.Zone.Set && r.Zone.To != account.Zone { // an unchanged name is not checked, because an earlier version may have stored a name that is refused today
		if _, err := c.zones.Named(r.Zone.To); err != nil {
			f.Add("body.timezone", puntuale.FaultNotZone, r.Zone.To)
		}
	}
	if r.Expires.Set {
		patch.Expires = puntuale.Change[puntuale.Date]{Set: true, To: lastDay(&f, r.Expires.To)}
	}
	patch.Derive = func(changed puntuale.Client) puntuale.Client { return c.derive(changed, r, now) }
	return patch, f.Err()
}

// lastDay parses a last day of service. "" means that the service never ends.
func lastDay(f *request.Faults, text string) puntuale.Date {
	if text == "" {
		return puntuale.Date{}
	}
	day, err := puntuale.ParseDate(strings.TrimSpace(text))
	if err != nil || day.Year < 1970 {
		f.Add("body.expiration_date", puntuale.FaultNotDay, text)
	}
	return day
}

func (r *ClientChange) checkTexts(f *request.Faults) {
	if r.Name.Set {
		f.Required("body.name", r.Name.To, puntuale.MaxName)
	}
	if r.Phone.Set && !f.At("body.phone") {
		f.Required("body.phone", r.Phone.To, puntuale.MaxName)
	}
	if r.Profile.Set {
		f.Word("body.profile", r.Profile.To, puntuale.ProfileFree, puntuale.ProfileTest, puntuale.ProfileMonthly, puntuale.ProfileYearly)
	}
	if r.Refill.Set {
		f.Word("body.refill_period", r.Refill.To, puntuale.RefillNone, puntuale.RefillMonthly, puntuale.RefillYearly)
	}
	if len(r.Features.To) > maxFeatures {
		f.Add("body.active_features", puntuale.FaultMoreEntries, nil, strconv.Itoa(maxFeatures))
		return
	}
	for i, feature := range r.Features.To {
		f.Required(request.At("body.active_features", i), feature, puntuale.MaxName)
	}
}

// Codes of the faults that this file reports.
const (
	faultClientAddsToUnlimited puntuale.ReasonCode = "client.adds_to_unlimited"
	faultClientNotWithCredits  puntuale.ReasonCode = "client.not_with_credits"
	faultNotCountry            puntuale.ReasonCode = "fault.not_country"
)

func (r *ClientChange) checkCredits(f *request.Faults, account puntuale.Client) {
	bounded := func(location string, n, least, maximum int64) {
		if n < least || n > maximum {
			f.Add(location, puntuale.FaultNotInRange, n, strconv.FormatInt(least, 10), strconv.FormatInt(maximum, 10))
		}
	}
	if r.Cap.Set && r.Cap.To != nil {
		bounded("body.daily_api_cap", *r.Cap.To, 0, maxCap)
	}
	if r.Credits.Set && r.Credits.To != nil {
		bounded("body.credits", *r.Credits.To, 0, maxCredits)
	}
	if r.RefillTo.Set {
		bounded("body.refill_to", r.RefillTo.To, 0, maxCredits)
	}
	if r.CreditsAdd.Set {
		bounded("body.credits_add", r.CreditsAdd.To, -maxCredits, maxCredits)
		switch {
		case r.Credits.Set:
			f.Add("body.credits_add", faultClientNotWithCredits, nil)
		case account.Credits == nil:
			f.Add("body.credits_add", faultClientAddsToUnlimited, nil)
		}
	}
}

func (r *ClientChange) checkQuotas(f *request.Faults) {
	for _, q := range puntuale.AllQuotas {
		if limit := r.Quotas[q]; limit != nil && (*limit < 0 || *limit > q.Max()) {
			f.Add("body.quotas."+string(q), puntuale.FaultNotInRange, *limit, "0", strconv.FormatInt(q.Max(), 10))
		}
	}
}

// derive computes two times of a changed account: the end of its last day, and its next refill. They depend on the
// account's zone and creation day. It also raises credits to the least that the request wants. The store calls derive with
// the stored account, because the zone and the credits may have changed in the meantime.
func (c *Accounts) derive(account puntuale.Client, r ClientChange, now time.Time) puntuale.Client {
	loc, err := c.zones.Load(account.Zone)
	if err != nil {
		loc = time.UTC // an earlier version of the program accepted this zone, and this version does not know the zone
	}
	if account.Credits != nil && *account.Credits < r.least {
		account.Credits = new(r.least)
	}
	if r.Expires.Set || r.Zone.Set {
		account.ExpiresAt = time.Time{}
		if !account.Expires.IsZero() {
			account.ExpiresAt = request.Midnight(account.Expires, loc)
		}
	}
	if r.Refill.Set || r.Zone.Set {
		account.RefillAt = nextRefill(account, loc, now)
	}
	return account
}

// refillTo returns the change of the credits after each refill. The new number is the latest grant, and never the
// credits that are left. A grant counts even before refills are set up, so the order of changes makes no difference. An
// account of type baby keeps the refill of its type.
func (r *ClientChange) refillTo(kind puntuale.AccountType) puntuale.Change[int64] {
	switch {
	case r.RefillTo.Set || !r.Credits.Set || kind == puntuale.AccountBaby:
		return r.RefillTo
	case r.Credits.To == nil: // the client has unlimited credits
		return puntuale.Change[int64]{Set: true}
	}
	return puntuale.Change[int64]{Set: true, To: *r.Credits.To}
}

// region parses the country of phone numbers that have no country code.
func region(f *request.Faults, text string) string {
	text = strings.ToUpper(strings.TrimSpace(text))
	if _, known := phonenumbers.GetSupportedRegions()[text]; !known {
		f.Add("body.region", faultNotCountry, text)
	}
	return text
}

// holidays parses a client's own holidays.
func holidays(f *request.Faults, texts []string) []puntuale.Date {
	if len(texts) > maxOwnHolidays {
		f.Add("body.holidays", puntuale.FaultMoreEntries, nil, strconv.Itoa(maxOwnHolidays))
		return nil
	}
	days := make([]puntuale.Date, len(texts))
	for i, text := range texts {
		day, err := puntuale.ParseDate(strings.TrimSpace(text))
		if err != nil {
			f.Add(request.At("body.holidays", i), puntuale.FaultNotDay, text)
		}
		days[i] = day
	}
	return days
}
