package official

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
)

// Look starts a status check of an open session, because Meta reported something about its number or its business.
func (c *Connector) Look(session puntuale.SessionID) {
	if a := c.account(session); a != nil {
		a.look()
	}
}

// numberInfo is Meta's answer about a number.
type numberInfo struct {
	ID      string `json:"id"`
	Number  string `json:"display_phone_number"`
	Tier    string `json:"whatsapp_business_manager_messaging_limit"`
	Quality string `json:"quality_rating"`
	Name    string `json:"name_status"`
	Health  health `json:"health_status"`
}

// health says whether a number or a business can send, as Meta writes it.
type health struct {
	CanSend  string `json:"can_send_message"` // AVAILABLE, LIMITED or BLOCKED
	Entities []struct {
		Kind    string   `json:"entity_type"`
		ID      string   `json:"id"`
		CanSend string   `json:"can_send_message"`
		Info    []string `json:"additional_info"`
		Errors  []struct {
			Code        int    `json:"error_code"`
			Description string `json:"error_description"`
			Solution    string `json:"possible_solution"`
		} `json:"errors"`
	} `json:"entities"`
}

// words returns what Meta says about the entities that cannot send.
func (h *health) words() string {
	var all []string
	for _, e := range h.Entities {
		if e.CanSend == puntuale.MetaAvailable {
			continue
		}
		all = append(all, e.Info...)
		for _, x := range e.Errors {
			all = append(all, strings.TrimSpace(x.Description+" "+x.Solution))
		}
	}
	return word(strings.Join(slices.Compact(all), " "))
}

// noPayment is the code in Meta's answer about a number whose business cannot pay. (Meta, health-status; likely.)
const noPayment = 141006

// payment returns what Meta says about how the business pays. Without a value, Meta says nothing about the number.
func (h *health) payment() puntuale.HealthReport {
	r := puntuale.HealthReport{Kind: puntuale.HealthPayment, Value: "ok"}
	if h.CanSend == "" {
		r.Value = ""
	}
	for _, e := range h.Entities {
		for _, x := range e.Errors {
			if x.Code == noPayment {
				r.Value, r.Detail = "problem", word(strings.TrimSpace(x.Description+" "+x.Solution))
			}
		}
	}
	return r
}

// subscription asks Meta whether the business sends its reports to the app of the keys, and returns the report. With
// subscribe, it first subscribes the app of the token if this is missing. Without a value it is unknown, because Meta did
// not answer, or because the keys do not name the app, and some app is subscribed. (Meta, subscribed_apps.)
func (c *Connector) subscription(ctx context.Context, a *account, k puntuale.OfficialKeys, subscribe bool) puntuale.HealthReport {
	r := puntuale.HealthReport{Kind: puntuale.HealthSubscribed}
	if k.BusinessAccountID == "" {
		return r
	}
	path := url.PathEscape(k.BusinessAccountID) + "/subscribed_apps"
	type subscribed struct {
		App struct {
			ID string `json:"id"`
		} `json:"whatsapp_business_api_data"`
	}
	var found struct {
		Data []subscribed `json:"data"`
	}
	err := c.graph.call(ctx, a.clientID(), k, http.MethodGet, path, nil, nil, 0, "", &found)
	if err == nil {
		switch ours := func(s subscribed) bool { return s.App.ID == k.AppID }; {
		case slices.ContainsFunc(found.Data, ours):
			r.Value = "yes"
		case k.AppID != "" || len(found.Data) == 0:
			r.Value = "no"
		}
		if subscribe && r.Value != "yes" {
			if err = c.graph.post(ctx, a.clientID(), k, path, []byte("{}"), &struct{}{}); err == nil {
				r.Value = "yes"
			}
		}
	}
	if refusal, ok := errors.AsType[*graphError](err); ok {
		r.Detail = word(refusal.detail())
	}
	return r
}

// reports returns what the answer says about the health of a number.
func (n *numberInfo) reports(o origin, now time.Time) []puntuale.HealthReport {
	portfolio := ""
	for _, e := range n.Health.Entities {
		if e.Kind == "BUSINESS" {
			portfolio = e.ID
		}
	}
	all := []puntuale.HealthReport{{Kind: puntuale.HealthChecked, Value: "1"}}
	if limit, told := limitOf(n.Tier); told {
		all = append(all, puntuale.HealthReport{Kind: puntuale.HealthLimit, Value: strconv.Itoa(limit)})
	}
	for _, r := range []puntuale.HealthReport{
		{Kind: puntuale.HealthQuality, Value: word(n.Quality)}, {Kind: puntuale.HealthNameStatus, Value: nameStatus(n.Name)},
		{Kind: puntuale.HealthCanSend, Value: word(n.Health.CanSend), Detail: n.Health.words()}, {Kind: puntuale.HealthPortfolio, Value: word(portfolio)},
		n.Health.payment(),
	} {
		if r.Value != "" {
			all = append(all, r)
		}
	}
	for i := range all {
		all[i].Client, all[i].Session, all[i].At = o.client, o.session, now
	}
	return all
}

// The fields of a number that ask requests. If the token may not read all of them, ask requests fewer.
var numberFields = []string{
	"id,display_phone_number,whatsapp_business_manager_messaging_limit,quality_rating,name_status,health_status",
	"id,display_phone_number,whatsapp_business_manager_messaging_limit",
	"id,display_phone_number",
}

// ask requests a number's data from Meta.
func (c *Connector) ask(ctx context.Context, client puntuale.ClientID, k puntuale.OfficialKeys) (found numberInfo, err error) {
	for _, fields := range numberFields {
		found = numberInfo{}
		err = c.graph.call(ctx, client, k, http.MethodGet, url.PathEscape(k.PhoneNumberID), url.Values{"fields": {fields}}, nil, 0, "", &found)
		if refusal, ok := errors.AsType[*graphError](err); !ok || refusal.Code != 100 || refusal.Subcode == missingObject {
			break
		}
	}
	if err != nil {
		return numberInfo{}, err
	}
	if found.ID != k.PhoneNumberID {
		return numberInfo{}, errors.New("the answer is about another number")
	}
	return found, nil
}

// obey reads what Meta reported about the number and the business, and makes the session follow it. Before a report stops
// messages, Meta must confirm it: webhooks may be late or out of order. obey returns when the
// next status check is due. 0: no report demands one.
func (c *Connector) obey(ctx context.Context, a *account, k puntuale.OfficialKeys, now time.Time) (next time.Duration, err error) {
	o := a.origin()
	all, err := c.cfg.Store.HealthReports(ctx, o.client, a.session)
	if err != nil {
		return 0, fmt.Errorf("read what Meta reported: %w", err)
	}
	a.mu.Lock()
	due := now.Sub(a.confirmed) >= lookAgain
	a.mu.Unlock()
	stops, ends := false, time.Time{}
	for _, r := range all {
		if r.Kind == puntuale.HealthLimit {
			if limit, err := strconv.Atoi(r.Value); err == nil {
				a.persons().setLimit(limit)
			}
		}
		if !r.Stops() || !r.Until.IsZero() && !now.Before(r.Until) {
			continue
		}
		stops, next = true, cmp.Or(next, lookAgain)
		if r.Until.After(ends) {
			ends = r.Until
		}
		due = due || r.Confirmed.IsZero()
		if left := r.Until.Sub(now); left > 0 {
			next = min(next, left)
		}
	}
	if stops && due {
		can, known := c.canSend(ctx, a, k)
		if !known {
			next = lookUnknown
		} else {
			if err := c.cfg.Store.ConfirmHealth(ctx, o.client, a.session, can, now); err != nil {
				return 0, fmt.Errorf("confirm what Meta reported: %w", err)
			}
			a.mu.Lock()
			a.confirmed = now
			a.mu.Unlock()
			if all, err = c.cfg.Store.HealthReports(ctx, o.client, a.session); err != nil {
				return 0, fmt.Errorf("read what Meta reported: %w", err)
			}
		}
	}
	a.mu.Lock()
	a.ends = ends
	a.mu.Unlock()
	demands, gone := orders(all, now)
	a.obeys(demands, gone, now)
	return next, nil
}

// canSend asks Meta whether the number and the business can send, and returns the worse answer. known is false if Meta does
// not say it.
func (c *Connector) canSend(ctx context.Context, a *account, k puntuale.OfficialKeys) (worst string, known bool) {
	order := []string{puntuale.MetaAvailable, puntuale.MetaLimited, puntuale.MetaHides, puntuale.MetaBlocked}
	worst = order[0]
	for _, id := range []string{k.PhoneNumberID, k.BusinessAccountID} {
		if id == "" {
			continue
		}
		var found struct {
			Health health `json:"health_status"`
		}
		err := c.graph.call(ctx, a.clientID(), k, http.MethodGet, url.PathEscape(id), url.Values{"fields": {"health_status"}}, nil, 0, "", &found)
		can := found.Health.CanSend
		if refusal, ok := errors.AsType[*graphError](err); ok {
			if r, _ := ruleOf(refusal.Code); r.action == noAccess || refusal.Code == 100 && refusal.Subcode == missingObject {
				can, err = puntuale.MetaHides, nil
			}
		}
		if err != nil || !slices.Contains(order, can) {
			a.log.Info("Meta does not say whether a number can send", "error", err)
			return "", false
		}
		if slices.Index(order, can) > slices.Index(order, worst) {
			worst = can
		}
	}
	return worst, true
}

// limitOf parses Meta's names of limits, such as TIER_250, TIER_2K or TIER_UNLIMITED: how many persons a portfolio may
// address in 24 hours. 0: any number. It returns false for a name that it does not know; then the limit told before stays.
func limitOf(tier string) (int, bool) {
	text, ok := strings.CutPrefix(tier, "TIER_")
	if !ok || text == "UNLIMITED" {
		return 0, ok
	}
	times := 1
	if thousands, ok := strings.CutSuffix(text, "K"); ok {
		text, times = thousands, 1000
	}
	n, err := strconv.Atoi(text)
	return n * times, err == nil && n > 0
}
