package roster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultListColumnTwice   puntuale.ReasonCode = "list.column_twice"
	faultListFieldTwice    puntuale.ReasonCode = "list.field_twice"
	faultListHasColumns    puntuale.ReasonCode = "list.has_columns"
	faultListMappingFaults puntuale.ReasonCode = "list.mapping_faults"
	faultListNoColumn      puntuale.ReasonCode = "list.no_column"
	faultListNotMapping    puntuale.ReasonCode = "list.not_mapping"
)

// A column of phone numbers may have one of these words as its name. The words are in folded form. phoneWords begins
// with the most certain word: a word for mobile numbers is before a word for any number. A weak word may also be the name of a column of house numbers or of persons. Therefore, a
// weak word counts only if the column's cells are phone numbers or empty.
var (
	phoneWords = []string{
		"whatsapp", "numerowhatsapp", "cellulare", "cell", "mobile", "smartphone", "telefonino", "mobilephone", "mobilenumber", "cellphone", "numerocellulare",
		"telefonocellulare", "telefonomobile", "phone", "telefono", "tel", "telephone", "phonenumber", "numeroditelefono", "numerotelefono",
	}
	weakWords = []string{"numero", "number", "num", "nr", "n", "recapito", "contatto", "contact", "utenza", "destinatario", "recipient", "to"}

	// taxWords are in the names of columns of tax numbers, many of which could also be phone numbers.
	taxWords = []string{"iva", "piva", "vat", "fiscale", "tax"}

	// nameWords are the usual names of a column with persons' names, in folded form. Google, Outlook and Apple export
	// the first name alone.
	nameWords = []string{"nome", "name", "nominativo", "nomecompleto", "nomeecognome", "cognomeenome", "cognomenome", "fullname", "firstname", "givenname"}

	// ownExport is how each export of the product's contacts begins. Any of its other columns is a field.
	ownExport = []string{"phone", "nome", "language", "source", "tags"}
)

// joint is what Google writes between several values in one cell.
const joint = ":::"

// Values splits a cell at the marks with which an export of Google joins several values.
func Values(cell string) []string {
	values := strings.Split(cell, joint)
	for i, v := range values {
		values[i] = strings.TrimFunc(v, isSpace)
	}
	return values
}

// labelled matches the names of columns in an export of Google: of a number, and of what this number is.
var labelled = regexp.MustCompile(`(?i)^(.+?) *[0-9]+ *- *(value|valore|label|type|etichetta|tipo)$`)

// mobileWords is how many of phoneWords name mobile phones only.
var mobileWords = slices.Index(phoneWords, "phone")

// Phones are the columns of phone numbers in a list that says beside each number what it is, as an export of Google does.
type Phones []phonePair

type phonePair struct{ label, value int }

// PhonesOf returns the labelled columns of phone numbers, beginning with the column at. It returns none if this column has
// no label.
func PhonesOf(columns []string, at int) Phones {
	var all Phones
	of, value := kindOf(columns[at])
	if !value {
		return nil
	}
	for i := range columns[1:] {
		label, isValue := kindOf(columns[i])
		next, nextIsValue := kindOf(columns[i+1])
		if label == of && next == of && !isValue && nextIsValue {
			all = append(all, phonePair{i, i + 1})
		}
	}
	first := slices.IndexFunc(all, func(p phonePair) bool { return p.value == at })
	if first < 0 {
		return nil
	}
	all[0], all[first] = all[first], all[0]
	return all
}

// kindOf splits the name of a column in an export of Google. value is false if the column says what another one is.
func kindOf(column string) (of string, value bool) {
	m := labelled.FindStringSubmatch(column)
	if m == nil {
		return "", false
	}
	return folded(m[1]), slices.Contains([]string{"value", "valore"}, folded(m[2]))
}

// First puts the mobile number of a row into the first of the columns, and the number there into the other's. Without a
// mobile number, it puts the first number there, if the column is empty.
func (p Phones) First(cells []string) {
	filled := func(pair phonePair) bool { return pair.value < len(cells) && cells[pair.value] != "" }
	mobile := func(pair phonePair) bool {
		return filled(pair) && slices.Contains(phoneWords[:mobileWords], folded(cells[pair.label]))
	}
	if len(p) == 0 || p[0].value >= len(cells) || mobile(p[0]) {
		return
	}
	at := slices.IndexFunc(p, mobile)
	if at < 0 && !filled(p[0]) {
		at = slices.IndexFunc(p, filled)
	}
	if at < 0 {
		return
	}
	first, other := p[0], p[at]
	cells[first.label], cells[other.label] = cells[other.label], cells[first.label]
	cells[first.value], cells[other.value] = cells[other.value], cells[first.value]
}

// Guess finds the column of "phone" by the header and by the cells of the first rows. It finds the columns of fields by
// the header, and ignores case, accents, spaces and punctuation. If no column has the name of the field "nome", it uses
// a column with another usual header of names. It omits a field without a column. If several columns have the same name,
// Guess uses the first.
func Guess(columns []string, first [][]string, fields []string) map[string]int {
	found, best := map[string]int{}, 0
	for i, name := range columns {
		if score := likeness(name, i, first); score > best {
			found["phone"], best = i, score
		}
	}
	if at, ok := found["phone"]; ok {
		for _, labelled := range PhonesOf(columns, at) {
			found["phone"] = min(found["phone"], labelled.value)
		}
	}
	if IsExport(columns) {
		found["phone"] = 0
	}
	for _, field := range fields {
		words := []string{folded(field)}
		if field == "nome" {
			words = nameWords
		}
		for _, word := range words {
			at := slices.IndexFunc(columns, func(c string) bool { return word != "" && folded(c) == word })
			if at >= 0 && field != "phone" {
				found[field] = at
				break
			}
		}
	}
	return found
}

// IsExport reports whether columns are those of an export of the product's contacts.
func IsExport(columns []string) bool {
	return len(columns) >= len(ownExport) && slices.Equal(columns[:len(ownExport)], ownExport)
}

// likeness returns how much a column looks like a column of phone numbers; 0 means not at all. A name in phoneWords
// counts more than the cells. Of two columns full of phone numbers, the one with the more certain name counts more. An empty column with a name in phoneWords counts as much as a column full of tax numbers.
func likeness(name string, at int, first [][]string) int {
	const sure, weak, full, word = 1 << 20, 1 << 10, 1 << 15, 1 << 6
	if of, value := kindOf(name); of != "" && !value {
		return 0
	}
	words := wordsOf(name)
	if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(taxWords, w) }) && !slices.Contains(phoneWords, words[0]) {
		return 0
	}
	score := 0
	filled, phones := phonesIn(at, first)
	if 2*phones > filled {
		score = full + min(phones, word-1)
	}
	for i, w := range phoneWords {
		if slices.Contains(words, w) {
			return sure + score + word*(len(phoneWords)-i)
		}
	}
	if (score > 0 || filled == 0) && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(weakWords, w) }) {
		score += weak
	}
	return score
}

// PhoneCells counts the cells of one column.
type PhoneCells struct {
	Filled int // cells that are not empty
	Phones int // cells with a phone number
	Wrong  int // other cells that look like a phone number
}

// OfPhones reports whether the column with this name and these cells has phone numbers that nobody may overlook. A column
// with the name of one has them, unless its cells contradict the name, as those of "Phone Type" do. Of a column
// without a name, one cell is enough; of one named "Contact" or so, half of the cells; of any other, most cells.
func (c PhoneCells) OfPhones(name string) bool {
	if of, value := kindOf(name); of != "" && !value {
		return false
	}
	words := wordsOf(name)
	has := func(names []string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(names, w) })
	}
	switch {
	case name == "":
		return c.Phones > 0
	case slices.Contains(phoneWords, words[0]):
		return true
	case has(taxWords):
		return false
	case has(phoneWords):
		return c.Filled == 0 || c.Phones+c.Wrong > 0
	case has(weakWords):
		return 2*c.Phones >= c.Filled
	}
	return 2*c.Phones > c.Filled
}

// phonesIn counts the cells of a column that are not empty, and those of them that look like phone numbers.
func phonesIn(at int, first [][]string) (filled, phones int) {
	for _, row := range first {
		if at < len(row) && row[at] != "" {
			filled++
			if looksLikePhone(row[at]) {
				phones++
			}
		}
	}
	return filled, phones
}

// wordsOf returns the name of a column and its words, in folded form.
func wordsOf(name string) []string {
	words := []string{folded(name)}
	for part := range strings.FieldsFuncSeq(name, func(r rune) bool { return !unicode.IsLetter(r) }) {
		words = append(words, folded(part))
	}
	return words
}

// namesColumn reports whether a text is the usual name of a column of phone numbers or of names.
func namesColumn(text string) bool {
	words := wordsOf(text)
	return slices.ContainsFunc(phoneWords, func(w string) bool { return slices.Contains(words, w) }) ||
		slices.Contains(nameWords, words[0]) || slices.Contains(weakWords, words[0])
}

// LooksLikePhone reports whether a cell looks like a phone number, although it may be none: a date has as many digits.
func LooksLikePhone(cell string) bool { return looksLikePhone(cell) && !MayBeDate(cell) }

func looksLikePhone(cell string) bool {
	cell = Values(cell)[0]
	digits, ok := phoneDigits(cell)
	return ok && digits >= 8 && digits <= 15 || LostDigits(cell)
}

// MistypedPhone reports whether a value that is no phone number should be one: it has six digits or more and no other characters
// than phone numbers have, and is no date.
func MistypedPhone(value string) bool {
	digits, ok := phoneDigits(strings.TrimPrefix(value, "'"))
	return ok && digits >= 6 && !MayBeDate(value)
}

// phoneDigits counts the digits of a text. ok is true if the text contains digits, and all its other characters are
// usual in phone numbers.
func phoneDigits(text string) (digits int, ok bool) {
	for _, r := range text {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case !unicode.IsSpace(r) && !unicode.Is(unicode.Cf, r) && !strings.ContainsRune("+-.()/", r):
			return 0, false
		}
	}
	return digits, digits > 0
}

// folded removes case and accents, and keeps only letters and digits.
func folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(text) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(unicode.ToLower(r))
		}
	}
	return b.String()
}

// ParseMapping parses a mapping such as "phone:Telefono,nome:Nome", which is a list of pairs of a field and its column.
// A column is given by its header, or by its number from 1: "phone:2". The error is a [*MappingError] with all faults.
func ParseMapping(text string, columns []string) (map[string]int, error) {
	found := map[string]int{}
	var faults []puntuale.Reason
	for part := range strings.SplitSeq(text, ",") {
		field, column, ok := strings.Cut(part, ":")
		field, column = strings.TrimSpace(field), strings.TrimSpace(column)
		if !ok || field == "" || column == "" {
			faults = append(faults, puntuale.Because(faultListNotMapping, strconv.Quote(part)))
			continue
		}
		if _, twice := found[field]; twice {
			faults = append(faults, puntuale.Because(faultListFieldTwice, field))
			continue
		}
		at, wrong := columnAt(column, columns)
		if !wrong.IsZero() {
			faults = append(faults, wrong)
		}
		found[field] = at
	}
	if unknown := slices.ContainsFunc(faults, func(f puntuale.Reason) bool { return f.Code == faultListNoColumn }); unknown {
		faults = append(faults, puntuale.Because(faultListHasColumns, Named(columns)))
	}
	if len(faults) > 0 {
		return nil, &MappingError{faults}
	}
	return found, nil
}

// MappingError contains all faults of a mapping.
type MappingError struct{ faults []puntuale.Reason }

func (e *MappingError) Error() string { return e.Reason().String() }

// Reason returns all faults as one reason.
func (e *MappingError) Reason() puntuale.Reason {
	if len(e.faults) == 1 {
		return e.faults[0]
	}
	all := make([]string, len(e.faults))
	for i, f := range e.faults {
		all[i] = f.Stored()
	}
	return puntuale.Because(faultListMappingFaults, all...)
}

func columnAt(column string, columns []string) (at int, wrong puntuale.Reason) {
	same := func(c string) bool { return strings.EqualFold(c, column) }
	if at := slices.IndexFunc(columns, same); at >= 0 {
		if slices.IndexFunc(columns[at+1:], same) >= 0 {
			return 0, puntuale.Because(faultListColumnTwice, strconv.Quote(column))
		}
		return at, puntuale.Reason{}
	}
	if n, err := strconv.Atoi(column); err == nil && n >= 1 && n <= len(columns) {
		return n - 1, puntuale.Reason{}
	}
	return 0, puntuale.Because(faultListNoColumn, strconv.Quote(column))
}

// Named lists column names in a text of at most about 1,000 bytes.
func Named(columns []string) string {
	var b strings.Builder
	for i, c := range columns {
		name := strconv.Quote(c)
		if b.Len()+len(name) > 1000 {
			fmt.Fprintf(&b, "and %d more", len(columns)-i)
			break
		}
		if b.WriteString(name); i < len(columns)-1 {
			b.WriteString(", ")
		}
	}
	return b.String()
}

var lostDigits = regexp.MustCompile(`^\s*[+-]?[0-9]([.,][0-9]+)?[Ee]\+[0-9]{1,3}\s*$`)

// LostDigits reports whether a spreadsheet wrote a number with an exponent, such as 3,33E+09. In this form, the
// number's last digits are lost.
func LostDigits(cell string) bool { return lostDigits.MatchString(cell) }
