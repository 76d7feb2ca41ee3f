package calendar

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"puntuale/internal/phone"
)

// finder finds phone numbers in texts.
type finder struct{ rules Rules }

// text is a text and the numbers in it.
type text struct {
	words string
	found []span
}

// span is where a number is in a text, in bytes.
type span struct {
	begin, end int
	phone      string // "" if it is one of the client's own
}

// phones returns the different numbers, without those of the client.
func (t text) phones() (all []string) {
	for _, s := range t.found {
		if s.phone != "" && !slices.Contains(all, s.phone) {
			all = append(all, s.phone)
		}
	}
	return all
}

// Patterns of what looks like a number but is none. They are blanked before the search.
var others = []*regexp.Regexp{
	regexp.MustCompile(`[^\s<>()|,;]+@[^\s<>()|,;]+`),                                                          // e-mail address
	regexp.MustCompile(`\b(?:0?[1-9]|[12]\d|3[01])([/.\- ])(?:0?[1-9]|1[0-2])[/.\- ](?:(?:19|20)\d\d|\d\d)\b`), // date; see isDate
	regexp.MustCompile(`\b(?:19|20)\d\d[/.\-](?:0?[1-9]|1[0-2])[/.\-](?:0?[1-9]|[12]\d|3[01])\b`),              // date
	regexp.MustCompile(`\b(?:[01]?\d|2[0-4])[:h][0-5]\d(?::[0-5]\d)?\b`),                                       // time
	regexp.MustCompile(`(?i)(?:\b(?:ore|h|alle|dalle|at)\s*)(?:[01]?\d|2[0-4])(?:[.:][0-5]\d)?\b`),             // time
	regexp.MustCompile(`\b(?:[01]?\d|2[0-3])\.[0-5]\d\s*\p{Pd}\s*(?:[01]?\d|2[0-3])\.[0-5]\d\b`),               // from time to time
	regexp.MustCompile(`(?i)(?:€|£|\$|\beuro?\b)\s*\d+(?:[.,]\d+)*`),                                           // price
	regexp.MustCompile(`(?i)\b\d{1,6}(?:[.,]\d{1,3})*\s*(?:€|£|\$|euro?\b|,-)`),                                // price
	regexp.MustCompile(`\b\d{1,3}(?:\.\d{3})*,\d{1,2}\b`),                                                      // number with decimals
	regexp.MustCompile(`\b[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,3})?\b`),                          // IBAN
	regexp.MustCompile(`(?i)\b[A-Z]{6} ?\d{2}[A-Z]\d{2} ?[A-Z]\d{3}[A-Z]\b`),                                   // fiscal code
	regexp.MustCompile(`\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b\s*(?:/|:)`),                                     // network address with something after it
	regexp.MustCompile(`\b\d{1,3}[.,]\d{4,}\s*[,;]\s*-?\d{1,3}[.,]\d{4,}\b`),                                   // coordinates
}

var (
	candidate = regexp.MustCompile(`\(?\+?\d[\d \t\p{Zs}.()/\p{Pd}+]*\d|\d`)
	groups    = regexp.MustCompile(`\(?\+ *\d+|\(?\d+`)
	phoneWord = regexp.MustCompile(`(?i)(?:^|[^\p{L}])(?:tel|telef|telefono|cell|cel|cellulare|mob|mobile|phone|telephone|whatsapp|whats app|wapp|wa|recapito|contatto|` +
		`numero|num|chiamare|call|telefon|handy|mobil|móvil|teléfono|tél|téléphone|portable)[\s.:()=/°º\p{Pd}]*(?:(?:n|nr|num|no|numero)\b[\s.:°º]*)?$`)
	otherWord = regexp.MustCompile(`(?i)(?:^|[^\p{L}])(?:(?:ordine|order|fattura|invoice|pratica|protocollo|prot|p\.? ?iva|partita iva|vat|c\.? ?f|(?:cod|codice|code)(?:\.?\s\p{L}+)?|` +
		`id|pnr|ticket|polizza|tessera|iban|cap|pin|passcode|password|matricola|contratto|imei|pod|pdr|rif|ref)` +
		`[\s.:#/°º\p{Pd}]*(?:(?:n|nr|num|no|numero)\b[\s.:°º#]*)?|(?:prenotazione|booking|conto|cliente)\s*(?:n|nr|num|no|numero|#)[\s.:°º#]*)$`)
	faxWord   = regexp.MustCompile(`(?i)(?:^|[^\p{L}])(?:fax|telefax)[\s.:()]*$`)
	clockPair = regexp.MustCompile(`^(?:[01]\d|2[0-3])[0-5]\d\D+(?:[01]\d|2[0-3])[0-5]\d$`)
	dayDigits = regexp.MustCompile(`^(?:(?:0[1-9]|[12]\d|3[01])(?:0[1-9]|1[0-2])(?:19|20)\d\d|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))$`)
)

// Bounds of a number, and of the search.
const (
	minDigits  = 6
	plainSight = 8 // digits of a number without calling code, and without a word such as "tel" before it
	maxDigits  = 15
	maxGroups  = 8
	lookBack   = 60  // bytes before a number in which a word says what it is
	maxTries   = 200 // in one text; a text that needs more has no number
)

// text finds the numbers in a text without markup.
func (f *finder) text(words string) text {
	t := text{words: strings.Map(visible, words)}
	if countDigits(t.words) < minDigits {
		return t
	}
	masked := []byte(t.words)
	for _, pattern := range others {
		for _, at := range pattern.FindAllIndex(masked, -1) {
			if isDate(masked, at) {
				copy(masked[at[0]:at[1]], strings.Repeat("|", at[1]-at[0]))
			}
		}
	}
	tries := maxTries
	for _, at := range candidate.FindAllIndex(masked, -1) {
		f.run(&t, string(masked), at[0], at[1], &tries)
	}
	if tries <= 0 { // a second number may be where nobody looked
		t.found = nil
	}
	slices.SortFunc(t.found, func(a, b span) int { return a.begin - b.begin })
	return t
}

// visible removes invisible characters, and makes one kind of all blanks in a line.
func visible(r rune) rune {
	switch {
	case unicode.Is(unicode.Cf, r):
		return -1
	case r != '\n' && unicode.IsSpace(r):
		return ' '
	}
	return r
}

// isDate reports whether a match is not the beginning or the end of a longer number, as 02.12.34 is in 02.12.34.56.
func isDate(text []byte, at []int) bool {
	joins := func(separator, digit int) bool {
		return separator >= 0 && digit >= 0 && digit < len(text) && separator < len(text) && strings.IndexByte("./-", text[separator]) >= 0 && text[digit] >= '0' && text[digit] <= '9'
	}
	plus := at[0] > 0 && (text[at[0]-1] == '+')
	return !plus && !joins(at[1], at[1]+1) && !joins(at[0]-1, at[0]-2)
}

// run finds the numbers in a part of a text that has only digits and separators. It takes the longest first, because
// the part may begin or end with something else, such as a time.
func (f *finder) run(t *text, masked string, begin, end int, tries *int) {
	all := groups.FindAllStringIndex(masked[begin:end], -1)
	var best span
	most := 0
	for i := range all {
		if *tries <= 0 {
			return
		}
		digits := 0
		for j := i; j < min(len(all), i+maxGroups); j++ {
			from, to := begin+all[i][0], begin+all[j][1]
			if masked[from] == '(' && !strings.Contains(masked[from:to], ")") {
				from++ // the text is in brackets, not only a part of the number
			}
			if j > i && !joined(masked[begin+all[j-1][1]:begin+all[j][0]], masked[begin+all[j][0]:to]) {
				break
			}
			if digits += countDigits(masked[begin+all[j][0] : to]); digits < minDigits || digits <= most {
				continue
			}
			if digits > maxDigits+2 || *tries <= 0 {
				break
			}
			*tries--
			if number, ok := f.number(masked, from, to, digits); ok {
				best, most = span{from, to, number}, digits
			}
		}
	}
	if most == 0 {
		return
	}
	if slices.Contains(f.rules.Own, best.phone) {
		best.phone = ""
	}
	t.found = append(t.found, best)
	f.run(t, masked, begin, best.begin, tries)
	f.run(t, masked, best.end, end, tries)
}

// joined reports whether two groups of digits may belong to one number.
func joined(separator, next string) bool {
	if len(separator) > 8 || strings.Contains(next, "+") {
		return false
	}
	blanks, signs := 0, 0
	var before rune
	for _, r := range separator {
		switch {
		case r != ' ' && before == ' ' && r == '/', r == ' ' && (before == '/' || before == '.'):
			return false // "333 1234567 / 02 …" and the end of a sentence
		case r == ' ':
			blanks++
		default:
			signs++
		}
		before = r
	}
	return blanks <= 3 && signs <= 2
}

func countDigits(text string) (n int) {
	for _, r := range text {
		if r >= '0' && r <= '9' {
			n++
		}
	}
	return n
}

// number returns the number in a piece of a text, if its surroundings allow one.
func (f *finder) number(masked string, from, to, digits int) (string, bool) {
	piece := strings.TrimSpace(masked[from:to])
	number, ok := phone.Strict(piece, f.rules.Country)
	if !ok {
		return "", false
	}
	line := strings.ToValidUTF8(masked[max(0, from-lookBack, strings.LastIndexByte(masked[:from], '\n')+1):from], "")
	called := phoneWord.MatchString(line)
	plus := strings.Contains(piece, "+") || strings.HasPrefix(piece, "00")
	if !edges(masked, from, to, called) || faxWord.MatchString(line) || strings.Contains(strings.TrimLeft(piece, "("), "(+") {
		return "", false
	}
	if !plus && !called {
		only := strings.Map(func(r rune) rune {
			if r < '0' || r > '9' {
				return -1
			}
			return r
		}, piece)
		switch {
		case digits < plainSight, otherWord.MatchString(line), clockPair.MatchString(piece), dayDigits.MatchString(only):
			return "", false
		case len(only) == 11 && piece == only && only[0] == '0' && isVAT(only):
			return "", false
		}
	}
	return number, true
}

// edges reports whether a piece of a text ends where a number can end. A letter before it must be the end of a word
// such as "tel".
func edges(masked string, from, to int, called bool) bool {
	before, _ := utf8.DecodeLastRuneInString(masked[:from])
	after, _ := utf8.DecodeRuneInString(masked[to:])
	switch {
	case from > 0 && (unicode.IsLetter(before) && !called || unicode.IsDigit(before) && masked[from] != '+' || strings.ContainsRune("_#$€£@%&\\*+", before)):
		return false
	case to < len(masked) && (unicode.IsLetter(after) || unicode.IsDigit(after) || strings.ContainsRune("_@%€£$#*", after)):
		return false
	}
	return true
}

// isVAT reports whether eleven digits have the check digit of an Italian VAT number.
func isVAT(digits string) bool {
	sum := 0
	for i, r := range digits {
		n := int(r - '0')
		if i%2 == 1 {
			if n *= 2; n > 9 {
				n -= 9
			}
		}
		sum += n
	}
	return sum%10 == 0
}

// address returns the number in an attendee's address, such as tel:+39-333-1234567. A number with pauses or further
// digits is that of a conference.
func (f *finder) address(address string) (string, bool) {
	scheme, rest, _ := strings.Cut(address, ":")
	switch strings.ToLower(scheme) {
	case "tel", "sms", "whatsapp":
	default:
		return "", false
	}
	rest, _, _ = strings.Cut(strings.TrimLeft(rest, "/"), "?")
	number, parameters, _ := strings.Cut(rest, ";")
	if strings.ContainsAny(number, ",#*pPwW") || strings.Contains(strings.ToLower(parameters), "postd=") || strings.Contains(strings.ToLower(parameters), "ext=") {
		return "", false
	}
	found, ok := phone.Strict(number, f.rules.Country)
	return found, ok && !slices.Contains(f.rules.Own, found)
}

var (
	wordBefore = regexp.MustCompile(`(?i)(?:^|[^\p{L}])(?:n(?:umero)?\.? ?(?:di )?)?(?:tel|telef|telefono|cell|cel|cellulare|mob|mobile|phone|whatsapp|whats app|wapp|wa|num|numero|nr|recapito)[\s.:°º/]*$`)
	emptied    = regexp.MustCompile(`\(\s*\)|\[\s*\]|<\s*>|\{\s*\}`)
	dashes     = regexp.MustCompile(`(?:\s+[\p{Pd}:|,;/·•]+){2,}\s+`)
	blanks     = regexp.MustCompile(`\s+`)
)

// without returns the text without numbers, without the words before them, and without punctuation that is left over.
func (t text) without() string {
	var b strings.Builder
	end := 0
	for _, s := range t.found {
		part := t.words[end:s.begin]
		if at := wordBefore.FindStringIndex(part); at != nil {
			first, width := utf8.DecodeRuneInString(part[at[0]:])
			if unicode.IsLetter(first) {
				width = 0
			}
			part = part[:at[0]+width]
		}
		b.WriteString(part + " ")
		end = s.end
	}
	b.WriteString(t.words[end:])
	left := b.String()
	if len(t.found) > 0 {
		left = emptied.ReplaceAllString(left, " ")
		left = dashes.ReplaceAllString(left, " - ")
	}
	left = strings.TrimFunc(left, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.Is(unicode.Pd, r) || strings.ContainsRune(",;:/|·•_*+", r)
	})
	return blanks.ReplaceAllString(left, " ")
}
