package roster

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"puntuale"
)

// Phone is the field of a [Mapping] that holds the recipient.
const Phone = "phone"

// Mapping says which column feeds which field: from a field's name to the column's index, from 0.
type Mapping map[string]int

// Words that name a column of phone numbers, the surest first. A weak one counts only over numbers, for it may also name
// a house's number or a person.
var (
	phoneWords = []string{
		"phone", "cellulare", "cell", "mobile", "whatsapp", "smartphone", "telefonino", "telefono", "tel", "telephone", "phonenumber",
		"mobilephone", "mobilenumber", "cellphone", "numerowhatsapp", "numerocellulare", "numeroditelefono", "numerotelefono", "telefonocellulare", "telefonomobile",
	}
	weakWords = []string{"numero", "number", "num", "nr", "n", "recapito", "contatto", "contact", "utenza", "destinatario", "recipient", "to"}
)

// Guess finds the columns of Phone and of other fields by their names, without regard to case, accents, spaces and
// signs, and Phone failing that by what the first rows hold. A field for which it finds none is left out. Of columns with
// the same name it takes the first.
func Guess(columns []string, first [][]string, fields []string) Mapping {
	m := Mapping{}
	for _, field := range fields {
		if i := slices.IndexFunc(columns, func(c string) bool { return bare(c) != "" && bare(c) == bare(field) }); i >= 0 && field != Phone {
			m[field] = i
		}
	}
	best := 0
	for i, name := range columns {
		filled, phones := 0, 0
		for _, row := range first {
			if i < len(row) && strings.TrimSpace(row[i]) != "" {
				filled++
				if looksLikePhone(row[i]) {
					phones++
				}
			}
		}
		if is := likeness(name, filled, phones); is > best {
			m[Phone], best = i, is
		}
	}
	return m
}

// likeness says how much a column is like one of phone numbers: 0 not at all. A sure name counts for more than what
// the column holds: an empty column of phones is no worse a guess than one full of tax numbers.
func likeness(name string, filled, phones int) int {
	const sure, weak, full = 1 << 20, 1 << 10, 1 << 15
	is := 0
	if 2*phones > filled {
		is = full + phones
	}
	words := append(strings.FieldsFunc(folded(name), func(r rune) bool { return !unicode.IsLetter(r) }), bare(name))
	for i, word := range phoneWords {
		if slices.Contains(words, word) {
			return sure + is + len(phoneWords) - i
		}
	}
	if (is > 0 || filled == 0) && slices.ContainsFunc(words, func(w string) bool { return slices.Contains(weakWords, w) }) {
		is += weak
	}
	return is
}

func looksLikePhone(cell string) bool {
	digits, ok := phoneDigits(cell)
	return ok && digits >= 8 && digits <= 15 || LostDigits(cell)
}

// phoneDigits counts the digits of what could be a phone number, and reports whether all else in it may stand in one.
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

var lostDigits = regexp.MustCompile(`^\s*[+-]?[0-9]([.,][0-9]+)?[Ee]\+[0-9]{1,3}\s*$`)

// LostDigits reports whether a spreadsheet has spoilt a long number, such as 3,33E+09: its last digits are lost for good.
func LostDigits(cell string) bool { return lostDigits.MatchString(cell) }

// bare is a name without case, accents, spaces and signs.
func bare(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return r
		}
		return -1
	}, folded(name))
}

func folded(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, norm.NFKD.String(name))
}

// maxShown is how much of a wrong mapping an error repeats, in signs.
const maxShown = 60

// ParseMapping reads "phone:Telefono,nome:Nome": each field, and the column that feeds it, by its name or by its number
// from 1. A name with a comma, one of digits alone, and one that several columns have, only go by the number. Names are
// compared as they are, then without regard to case, accents, spaces and signs. The error is a [*puntuale.Error] that
// names every fault, at "columns[1]" the second item's.
func ParseMapping(s string, columns []string) (Mapping, error) {
	m := Mapping{}
	var faults []puntuale.Fault
	fault := func(i int, value, format string, args ...any) {
		if r := []rune(value); len(r) > maxShown {
			value = string(r[:maxShown]) + "…"
		}
		faults = append(faults, puntuale.Fault{Location: fmt.Sprintf("columns[%d]", i), Message: fmt.Sprintf(format, args...), Value: value})
	}
	items := strings.Split(s, ",")
	if len(items) > MaxColumns {
		return nil, puntuale.Invalid(puntuale.Fault{Location: "columns", Message: fmt.Sprintf("holds %d fields, of at most %d", len(items), MaxColumns)})
	}
	for i, item := range items {
		field, column, both := strings.Cut(item, ":")
		field, column = strings.TrimSpace(field), strings.TrimSpace(column)
		if !both || field == "" || column == "" {
			fault(i, item, "must be a field, a colon and a column; a column whose name has a comma or a colon goes by its number, such as phone:2")
			continue
		}
		if _, twice := m[field]; twice {
			fault(i, item, "names a field twice")
			continue
		}
		at, wrong := find(column, columns)
		if m[field] = at; wrong != "" {
			fault(i, item, "%s", wrong)
		}
	}
	if _, ok := m[Phone]; !ok {
		faults = append(faults, puntuale.Fault{Location: "columns", Message: "must say which column holds the numbers, such as phone:2"})
	}
	if faults != nil {
		return nil, puntuale.Invalid(faults...)
	}
	return m, nil
}

// find returns the index of a column, or what is wrong with its name.
func find(column string, columns []string) (at int, wrong string) {
	if strings.Trim(column, "0123456789") == "" {
		n, err := strconv.Atoi(column)
		if err != nil || n < 1 || n > len(columns) {
			return 0, fmt.Sprintf("names a column by a number that is not from 1 to %d", len(columns))
		}
		return n - 1, ""
	}
	for _, same := range []func(a, b string) bool{
		func(a, b string) bool { return a == b },
		func(a, b string) bool { return bare(a) != "" && bare(a) == bare(b) },
	} {
		at, found := 0, 0
		for i, c := range columns {
			if same(c, column) {
				at = i
				found++
			}
		}
		switch {
		case found > 1:
			return 0, fmt.Sprintf("names %d columns; use the number of one, such as %d", found, at+1)
		case found == 1:
			return at, ""
		}
	}
	return 0, "names a column that the list does not have"
}

// Text is the mapping in the form that ParseMapping reads, fields in the order of their columns, phone first. It names columns
// where that is plain, and gives their numbers elsewhere. Every index must be one of columns.
func (m Mapping) Text(columns []string) string {
	order := func(field string) int {
		if field == Phone {
			return -1
		}
		return m[field]
	}
	fields := slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(order(a), order(b)), cmp.Compare(a, b))
	})
	var b strings.Builder
	for i, field := range fields {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(field)
		b.WriteByte(':')
		name := columns[m[field]]
		if at, wrong := find(name, columns); wrong != "" || at != m[field] || strings.ContainsAny(name, ",:") {
			name = strconv.Itoa(m[field] + 1)
		}
		b.WriteString(name)
	}
	return b.String()
}
