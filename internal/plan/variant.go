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
func (b *builder) text(i int, step *puntuale.Step) (c puntuale.Content, variant int, all []puntuale.Content) {
	if len(step.Variants) == 0 {
		return b.content(i, step), 0, nil
	}
	variant = b.chosen(i, step) + 1
	for x := range step.Texts() {
		b.variant++
		content := b.content(i, x)
		if b.variant == variant {
			c = content
		}
		if b.in.Seed == 0 {
			all = append(all, content)
		}
	}
	b.variant = 0
	return c, variant, all
}

// Codes of the faults in this file.
const (
	faultVariantsCount puntuale.ReasonCode = "campaign.variants_count"
	faultVariantShares puntuale.ReasonCode = "campaign.shares"
	faultVariantsMixed puntuale.ReasonCode = "sequence.variants_mixed"
)

// variants checks the texts of a step that has several.
func (c *checker) variants(step *puntuale.Step) {
	first, total, known := &step.Variants[0], 0, true
	if step.Text != first.Content.Text || step.Template != first.Template { // readers of answers see the first text there
		c.addCode("variants", puntuale.FaultGoesWithout, nil, "text, template")
	}
	if n := len(step.Variants); n < 2 || n > puntuale.MaxVariants {
		c.addCode("variants", faultVariantsCount, nil, strconv.Itoa(puntuale.MaxVariants))
		return
	}
	for i, v := range step.Variants {
		switch at := variantPart(i+1, ""); {
		case v.Template != "" && v.Content.Text != "":
			c.addCode(at+".template", puntuale.FaultGoesWithout, nil, "content")
		case (v.Template == "") != (first.Template == ""):
			c.addCode(at, faultVariantsMixed, nil)
		}
		if total += v.Share; v.Share < 1 || v.Share > 99 {
			c.addCode(variantPart(i+1, "")+".share", puntuale.FaultNotInRange, v.Share, "1", "99")
			known = false
		}
	}
	if known && total != 100 {
		c.addCode("variants", faultVariantShares, nil, strconv.Itoa(total))
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
