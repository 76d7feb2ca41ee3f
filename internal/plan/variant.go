package plan

import (
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"slices"
	"strconv"
	"strings"

	"puntuale"
)

// Draw returns a number from 0 to 99 for a person. It depends only on the arguments: what is drawn, for which subject, and
// the number. Both forms of a number have the same.
func Draw(what, subject, phone string) int {
	sum := sha256.Sum256([]byte(what + ":" + subject + ":" + puntuale.FormKey(phone)))
	return int(binary.BigEndian.Uint64(sum[:]) % 100)
}

// Pick returns the position of the share, in percent, into which a drawn number falls.
func Pick(drawn int, shares iter.Seq[int]) (at int) {
	n := 0
	for share := range shares {
		at = n
		if drawn -= share; drawn < 0 {
			break
		}
		n++
	}
	return at
}

// shares yields the shares of a step's variants.
func shares(step *puntuale.Step) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range step.Variants {
			if !yield(step.Variants[i].Share) {
				return
			}
		}
	}
}

// chosen returns which variant of a step the recipient gets, from 0. The person keeps it: it depends only on the step's id,
// the shares and the number.
func (b *builder) chosen(i int, step *puntuale.Step) int {
	return Pick(Draw("variant", b.in.Sequence.ID.String()+"/"+step.Name(i), b.in.Phone), shares(step))
}

// text renders a step for the recipient. variant is which of its variants this is, from 1; 0: it has none. All variants are
// rendered, so that whether a call has faults does not depend on the person. A dry run gets all of them.
func (b *builder) text(i int, step *puntuale.Step) (c puntuale.Content, variant int8, all *[]puntuale.Content) {
	if len(step.Variants) == 0 {
		return b.content(i, step), 0, nil
	}
	variant = int8(b.chosen(i, step) + 1)
	contents := make([]puntuale.Content, 0, len(step.Variants))
	for x := range step.Texts() {
		b.variant++
		contents = append(contents, b.content(i, x))
	}
	b.variant = 0
	if b.in.Seed == 0 {
		all = &contents
	}
	return contents[variant-1], variant, all
}

// Codes of the faults in this file.
const (
	faultCampaignVariantsCount puntuale.ReasonCode = "campaign.variants_count"
	faultCampaignShares        puntuale.ReasonCode = "campaign.shares"
	faultSequenceVariantsMixed puntuale.ReasonCode = "sequence.variants_mixed"
)

// CheckShares returns the faults of the number of variants and of their shares, in percent. location is that of the list.
func CheckShares(location string, shares iter.Seq[int]) (faults []puntuale.Fault) {
	n, total, bad := 0, 0, false
	var wrong []puntuale.Fault
	for share := range shares {
		if total += share; !bad && (share < 1 || share > 99) {
			bad = true
			wrong = append(wrong, puntuale.Because(puntuale.FaultNotInRange, "1", "99").At(location+"["+strconv.Itoa(n)+"].share", share))
		}
		n++
	}
	if n < 2 || n > puntuale.MaxVariants {
		faults = append(faults, puntuale.Because(faultCampaignVariantsCount, strconv.Itoa(puntuale.MaxVariants)).At(location, nil))
	}
	if !bad && total != 100 {
		wrong = append(wrong, puntuale.Because(faultCampaignShares, strconv.Itoa(total)).At(location, nil))
	}
	return append(faults, wrong...)
}

// variants checks the texts of a step that has several.
func (c *checker) variants(step *puntuale.Step) {
	first := &step.Variants[0]
	if step.Text != first.Content.Text || step.Template != first.Template { // readers of answers see the first text there
		c.addCode("variants", puntuale.FaultGoesWithout, nil, "text, template")
	}
	c.faults = append(c.faults, CheckShares(c.where+".variants", shares(step))...)
	for i, v := range step.Variants {
		switch at := variantPart(i+1, ""); {
		case v.Template != "" && v.Content.Text != "":
			c.addCode(at+".template", puntuale.FaultGoesWithout, nil, "content")
		case (v.Template == "") != (first.Template == ""):
			c.addCode(at, faultSequenceVariantsMixed, nil)
		}
	}
}

// variantPart returns the location of a part of a step within one of its variants, counted from 1: the text, the template,
// or "", the whole. Other parts are the step's own.
func variantPart(variant int, part string) string {
	at := "variants[" + strconv.Itoa(variant-1) + "]"
	switch {
	case variant == 0:
		return part
	case part == "":
		return at
	case part == "text":
		return at + ".content.text"
	case part == "template":
		return at + ".template"
	}
	return part
}

// reported reports whether there is the same fault already: the parts that variants share are looked at once for each.
func reported(faults []puntuale.Fault, f puntuale.Fault) bool {
	return slices.ContainsFunc(faults, func(g puntuale.Fault) bool {
		return g.Location == f.Location && g.Code == f.Code && strings.Join(g.Args, "\n") == strings.Join(f.Args, "\n")
	})
}
