package campaign

import (
	"crypto/sha256"
	"encoding/binary"

	"puntuale"
)

// Variant returns which variant of a campaign's message a person gets, from 0. shares are percentages, 100 in all. The
// result depends only on the arguments, so a person keeps the variant in every list, on every server.
func Variant(id puntuale.CampaignID, phone string, shares []int) int {
	at := draw("variant", id, phone)
	for i, share := range shares {
		if at -= share; at < 0 {
			return i
		}
	}
	return max(0, len(shares)-1)
}

// HeldOut reports whether a person belongs to the holdout of a campaign, a share in percent. This does not depend on the
// person's variant.
func HeldOut(id puntuale.CampaignID, phone string, share int) bool {
	return share > 0 && draw("holdout", id, phone) < share
}

// draw returns a number from 0 to 99 for a person. Both forms of a number have the same.
func draw(what string, id puntuale.CampaignID, phone string) int {
	sum := sha256.Sum256([]byte(what + ":" + id.String() + ":" + puntuale.FormKey(phone)))
	return int(binary.BigEndian.Uint64(sum[:]) % 100)
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
