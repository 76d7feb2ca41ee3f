package campaign

import (
	"slices"

	"puntuale"
	"puntuale/internal/plan"
)

// Variant returns which variant of a campaign's message a person gets, from 0. shares are percentages, 100 in all. The
// result depends only on the arguments, so a person keeps the variant in every list, on every server.
func Variant(id puntuale.CampaignID, phone string, shares []int) int {
	return plan.Pick(plan.Draw("variant", id.String(), phone), slices.Values(shares))
}

// HeldOut reports whether a person belongs to the holdout of a campaign, a share in percent. This does not depend on the
// person's variant.
func HeldOut(id puntuale.CampaignID, phone string, share int) bool {
	return share > 0 && plan.Draw("holdout", id.String(), phone) < share
}

// variant returns which variant a phone gets, or -1 if the campaign has only one.
func (p *Plan) variant(phone string) int {
	shares := p.campaign.Draft.Shares
	if len(shares) == 0 || len(shares) != len(p.frozen.Sequence.Steps) {
		return -1
	}
	return Variant(p.campaign.ID, phone, shares)
}

// heldOut reports whether a phone belongs to the campaign's holdout.
func (p *Plan) heldOut(phone string) bool {
	return HeldOut(p.campaign.ID, phone, p.campaign.Draft.Holdout)
}
