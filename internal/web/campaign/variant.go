package campaign

import (
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// variantLetters are the variants of a message in names of fields: text_b, share_a.
var variantLetters = []string{"a", "b", "c", "d"}

// otherTexts returns the letters of the further texts that the form has.
func otherTexts(f *view.Form) (letters []string) {
	for _, letter := range variantLetters[1:] {
		if strings.TrimSpace(f.Value("text_"+letter)) != "" {
			letters = append(letters, letter)
		}
	}
	return letters
}

// readVariants reads the further texts, and their shares. A text has the file of the first one, unless a program gave it
// its own.
func readVariants(f *view.Form, call *control.NewCampaign, stored control.NewCampaign) {
	letters := otherTexts(f)
	if len(letters) == 0 {
		return
	}
	for i, letter := range letters {
		step := *call.Step
		if i < len(stored.Others) && stored.Others[i].Template == "" && stored.Step != nil && stored.Others[i].Media != stored.Step.Media {
			step = stored.Others[i]
		}
		step.Text = f.Value("text_" + letter)
		call.Others = append(call.Others, step)
	}
	n := len(letters) + 1
	for i, letter := range append([]string{"a"}, letters...) {
		equal := 100 / n
		if i < 100%n {
			equal++
		}
		call.Shares = append(call.Shares, wholeOr(&call.Faults, f, "share_"+letter, equal, 99))
	}
}

// fillVariants fills the form with the variants of a draft.
func fillVariants(f *view.Form, call control.NewCampaign) {
	for i, step := range call.Others {
		f.Values.Set("text_"+variantLetters[i+1], step.Text)
	}
	for i, share := range call.Shares {
		f.Values.Set("share_"+variantLetters[i], strconv.Itoa(share))
	}
	if call.Holdout > 0 {
		f.Values.Set("holdout", strconv.Itoa(call.Holdout))
	}
}

// variantField changes the location of a fault of a variant into the field of the form.
func variantField(f *view.Form, location string) string {
	rest, ok := strings.CutPrefix(location, "body.variants")
	if !ok {
		return location
	}
	letters := append([]string{"a"}, otherTexts(f)...)
	for i, letter := range letters {
		more, ok := strings.CutPrefix(rest, "["+strconv.Itoa(i)+"]")
		switch {
		case !ok:
		case more == ".share":
			return "body.share_" + letter
		case i == 0:
			return "body" + more
		default:
			return "body.text_" + letter
		}
	}
	return "body.share_a"
}

// compares reports whether a form has a part about variants or the holdout.
func compares(f *view.Form) bool {
	for _, name := range []string{"text_b", "text_c", "text_d", "share_a", "holdout"} {
		if f.Value(name) != "" || f.Fault(name) != "" {
			return true
		}
	}
	return false
}

// sharedVariant is one variant of a campaign as its page shows it.
type sharedVariant struct {
	key   string
	share int
	step  puntuale.Step
}

// variantsOf returns the variants of a campaign that has several.
func variantsOf(c *puntuale.Campaign) (all []sharedVariant) {
	for i, step := range c.Texts() {
		if i < len(c.Draft.Shares) {
			all = append(all, sharedVariant{puntuale.VariantKey(i), c.Draft.Shares[i], step})
		}
	}
	return all
}
