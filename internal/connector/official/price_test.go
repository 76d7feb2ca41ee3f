package official_test

import (
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/connector/official/graphtest"
)

// TestPricing: messages that Meta bills for a campaign are counted by the recipient's country. Each message is counted
// once, at its delivery, even if Meta reports the delivery several times.
func TestPricing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	now := w.clock.Now()
	campaign, _ := w.c.MustCampaign(1)
	for i, c := range []struct {
		phone, status, category string
		billable                bool
	}{
		{"+393331111111", "delivered", "marketing", true}, {"+393332222222", "read", "MARKETING", true},
		{"+4915112345678", "delivered", "service", false}, {"+393333333333", "sent", "marketing", true}, {"+393334444444", "delivered", "a later word", true},
	} {
		w.wrote(c.phone)
		id, taken, token := w.stored(c.phone)
		w.w.Exec("update message set campaign_id = $1 where id = $2", int64(campaign), int64(id))
		w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent})
		for range 2 {
			w.deliver(w.peer.Priced(taken, "sent", now, c.category, c.billable))
			w.deliver(w.peer.Priced(taken, c.status, now.Add(time.Duration(i)*time.Second), c.category, c.billable))
		}
	}
	of := func(country, category string, billable bool, n int) puntuale.ChargeCount {
		return puntuale.ChargeCount{MessageKind: puntuale.MessageKind{Country: country, Category: category}, Billable: billable, Messages: n}
	}
	want := []puntuale.ChargeCount{of("DE", "service", false, 1), of("IT", "marketing", true, 2), of("IT", "other", true, 1)}
	if got, err := w.c.Charges(t.Context(), campaign); err != nil || !slices.Equal(got, want) {
		t.Errorf("charges are %+v, %v, want %+v", got, err, want)
	}
}

// TestPortfolio: the store has the number's current business limit, which estimates read.
func TestPortfolio(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	for tier, want := range map[string]int{"TIER_2K": 2000, "TIER_UNLIMITED": 0, "TIER_250": 250} {
		w.number.Tier = tier
		w.peer.Set(w.number)
		if err := w.conn.Test(t.Context(), w.session); err != nil {
			t.Fatal(err)
		}
		if got, err := w.c.SessionLoad(t.Context(), w.session, w.clock.Now()); err != nil || got.Portfolio.Limit != want {
			t.Errorf("%s: %+v, %v", tier, got, err)
		}
	}
}

// TestPricingShapes: the type decides whether Meta bills a message. All of Meta's categories are counted by their names. A
// hidden number is counted in the country of the person's id.
func TestPricingShapes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		pricing  map[string]any
		category string
		billable bool
	}{
		"regular":                {map[string]any{"billable": false, "type": "regular", "category": "utility"}, "utility", true},
		"inside the free tier":   {map[string]any{"billable": true, "type": "free_customer_service", "category": "service"}, "service", false},
		"an entry point":         {map[string]any{"billable": true, "type": "free_entry_point", "category": "referral_conversion"}, "referral_conversion", false},
		"a group's free tier":    {map[string]any{"billable": true, "type": "free_group_customer_service", "category": "group_service"}, "group_service", false},
		"exempt":                 {map[string]any{"billable": true, "type": "regular", "category": "service", "subtype": "paid_exempt"}, "service", false},
		"without a type":         {map[string]any{"billable": true, "category": "marketing_lite"}, "marketing_lite", true},
		"with a hyphen":          {map[string]any{"type": "regular", "category": "authentication-international"}, "authentication-international", true},
		"with an underscore":     {map[string]any{"type": "regular", "category": "AUTHENTICATION_INTERNATIONAL"}, "authentication-international", true},
		"a group":                {map[string]any{"type": "regular", "category": "group_marketing"}, "group_marketing", true},
		"an AI provider":         {map[string]any{"type": "regular", "category": "general_purpose_ai"}, "general_purpose_ai", true},
		"a category of tomorrow": {map[string]any{"type": "regular", "category": "x"}, "other", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			const hidden = "DE.13491208655302741918"
			w.peer.Know(hidden, graphtest.Name{ID: hidden})
			campaign, _ := w.c.MustCampaign(1)
			w.wrote(hidden)
			id, taken, token := w.stored(hidden)
			w.w.Exec("update message set campaign_id = $1 where id = $2", int64(campaign), int64(id))
			w.record(id, token, puntuale.Outcome{Verdict: puntuale.Sent})
			w.deliver(w.peer.PricedAs(taken, "delivered", w.clock.Now(), c.pricing))
			want := []puntuale.ChargeCount{{MessageKind: puntuale.MessageKind{Country: "DE", Category: c.category}, Billable: c.billable, Messages: 1}}
			if got, err := w.c.Charges(t.Context(), campaign); err != nil || !slices.Equal(got, want) {
				t.Errorf("charges are %+v, %v, want %+v", got, err, want)
			}
		})
	}
}
