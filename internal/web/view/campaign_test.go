package view

import (
	"strings"
	"testing"

	"puntuale"
)

// TestCampaignBill: the results of a campaign show what the check estimated beside what the network billed.
func TestCampaignBill(t *testing.T) {
	t.Parallel()
	p := CampaignPage{
		Bills: true, Free: 2, Estimated: &puntuale.CampaignCost{Amount: "26.32", Currency: "EUR"},
		Billed: &puntuale.CampaignCost{Amount: "13.16", Currency: "EUR", Unknown: 3},
	}
	shown := func() string {
		var page strings.Builder
		if err := campaignBill(p).Render(t.Context(), &page); err != nil {
			t.Fatal(err)
		}
		return page.String()
	}
	all := shown()
	for _, want := range []string{"26.32 EUR", "13.16 EUR", "2 messaggi sono stati consegnati gratis", "Di 3 messaggi non conosciamo il prezzo"} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing from %s", want, all)
		}
	}
	p.Billed, p.Free = nil, 0
	if none := shown(); !strings.Contains(none, "Ancora niente") || strings.Contains(none, "gratis") {
		t.Errorf("before anything was billed: %s", none)
	}
}
