package draft

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"puntuale"
)

// Finding is something that Meta refuses, or takes for marketing, with some probability. A draft with findings can be
// submitted.
type Finding struct {
	Location string // the part of the draft: "text", "name" and so on
	Reason   puntuale.Reason
}

// Codes of findings.
const (
	findEdge      puntuale.ReasonCode = "lint.edge"         // a placeholder stands at the beginning or the end
	findAdjacent  puntuale.ReasonCode = "lint.adjacent"     // nothing stands between two placeholders
	findMany      puntuale.ReasonCode = "lint.many"         // too many placeholders for the length
	findBraces    puntuale.ReasonCode = "lint.single_brace" // { or } beside the placeholders
	findMarketing puntuale.ReasonCode = "lint.marketing"    // {1}: a word that Meta takes for marketing
	findShort     puntuale.ReasonCode = "lint.short_link"   // {1}: the host of a service that shortens links
	findChat      puntuale.ReasonCode = "lint.wa_link"
	findShouting  puntuale.ReasonCode = "lint.shouting"
	findEmoji     puntuale.ReasonCode = "lint.emoji"
	findLines     puntuale.ReasonCode = "lint.lines"
	findSame      puntuale.ReasonCode = "lint.same_examples" // examples repeat the names of the placeholders
	findVague     puntuale.ReasonCode = "lint.vague"         // a utility text names no event of the person
)

// marketing finds words that Meta takes for marketing, in Italian and English.
var marketing = regexp.MustCompile(`(?i)(^|[^\pL])(scont[oi]|offert[ae]|promo(zion[ei])?|gratis|gratuit[oaie]|omaggi?o?|regal[oi]|saldi|coupon|voucher|buoni? (sconto|regalo)|` +
	`approfitta(ne)?|conviene|risparmi\pL*|imperdibil[ei]|esclusiv[aoei]|solo (per )?oggi|ultim[ie] (posti|giorni|pezzi)|novit\x{e0}|scopri|acquista|compra( ora)?|prezzi? speciali?|black friday|` +
	`discounts?|offers?|promotions?|free|gifts?|sales?|deals?|save \d+|limited time|last chance|exclusive|new arrivals?|buy (now|one)|shop now|don.t miss|special prices?)($|[^\pL])|` +
	`\d ?% (di )?(sconto|off)|-\d+ ?%|\d ?%`)

var shorteners = []string{"bit.ly", "tinyurl.com", "goo.gl", "t.co", "ow.ly", "is.gd", "buff.ly", "cutt.ly", "rebrand.ly", "shorturl.at", "t.ly", "rb.gy", "lnkd.in"}

var (
	hostIn   = regexp.MustCompile(`(?i)(?:https?://)?((?:[a-z0-9-]+\.)+[a-z]{2,})`)
	shouting = regexp.MustCompile(`!{2,}|\?{2,}|!\?|\p{Lu}{4,}[ !]+\p{Lu}{4,}`)
	lines    = regexp.MustCompile(`\n{3,}`)
	event    = regexp.MustCompile(`(?i)(appuntament|prenot|ordin|spedi|consegn|pagament|fattura|ricevut|rimbors|richiest|pratic|conferm|promemoria|scaden|ritir|visit|abbonament|account|rinnov|recension|lavor|preventiv|` +
		`appointment|booking|order|ship|deliver|payment|invoice|receipt|refund|request|confirm|reminder|due|pick ?up|visit|subscription|account|renew|review|quote)`)
)

// perPlaceholder is how many words a text must have for each placeholder. Meta does not tell its own number.
const perPlaceholder = 3

// Lint returns what Meta may refuse in a draft, or take for marketing.
func Lint(d puntuale.TemplateDraft) (all []Finding) {
	found := func(location string, code puntuale.ReasonCode, args ...string) {
		all = append(all, Finding{location, puntuale.Because(code, args...)})
	}
	text := strings.TrimSpace(d.Text)
	places := placeholder.FindAllStringIndex(text, -1)
	for i, p := range places {
		if p[0] == 0 || p[1] == len(text) {
			found("text", findEdge)
			break
		}
		if i > 0 && strings.TrimSpace(text[places[i-1][1]:p[0]]) == "" {
			found("text", findAdjacent)
			break
		}
	}
	bare := placeholder.ReplaceAllString(text, " ")
	if words := len(strings.FieldsFunc(bare, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })); len(places) > 0 && words < perPlaceholder*len(places) {
		found("text", findMany)
	}
	if strings.ContainsAny(bare, "{}") {
		found("text", findBraces)
	}
	if lines.MatchString(text) {
		found("text", findLines)
	}
	for name, value := range d.Examples {
		if strings.EqualFold(strings.TrimSpace(value), name) {
			found("examples."+name, findSame)
		}
	}
	slices.SortStableFunc(all, func(a, b Finding) int { return strings.Compare(a.Location, b.Location) })
	return append(all, tone(d)...)
}

// tone returns the findings about what a draft says, in all its texts.
func tone(d puntuale.TemplateDraft) (all []Finding) {
	parts := []struct{ location, text string }{{"text", d.Text}, {"footer", d.Footer}}
	if d.Header != nil {
		parts = append(parts, struct{ location, text string }{"header.text", d.Header.Text})
	}
	for _, b := range d.Buttons {
		parts = append(parts, struct{ location, text string }{"buttons", b.Text + " " + b.URL})
	}
	for _, p := range parts {
		bare := placeholder.ReplaceAllString(p.text, " ")
		if d.Category == puntuale.CategoryUtility {
			if word := marketing.FindString(bare); word != "" {
				all = append(all, Finding{p.location, puntuale.Because(findMarketing, strings.Trim(word, " .,;:!?()\n"))})
			}
		}
		for _, host := range hostIn.FindAllStringSubmatch(bare, -1) {
			switch name := strings.ToLower(host[1]); {
			case slices.Contains(shorteners, name):
				all = append(all, Finding{p.location, puntuale.Because(findShort, name)})
			case name == "wa.me" || name == "api.whatsapp.com":
				all = append(all, Finding{p.location, puntuale.Because(findChat)})
			}
		}
		if shouting.MatchString(bare) {
			all = append(all, Finding{p.location, puntuale.Because(findShouting)})
		}
		if emojis(p.text) > 2 || p.location != "text" && emojis(p.text) > 0 {
			all = append(all, Finding{p.location, puntuale.Because(findEmoji)})
		}
	}
	if d.Category == puntuale.CategoryUtility && !event.MatchString(d.Text) {
		all = append(all, Finding{"text", puntuale.Because(findVague)})
	}
	return all
}

func emojis(text string) (n int) {
	for _, r := range text {
		if r >= 0x1F000 && r <= 0x1FAFF || r >= 0x2600 && r <= 0x27BF {
			n++
		}
	}
	return n
}
