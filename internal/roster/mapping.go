package roster

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// phoneWords are headers of columns that hold numbers, folded.
var phoneWords = []string{"phone", "telefono", "cellulare", "cell", "tel", "mobile", "numero", "whatsapp", "telefonocellulare", "numerotelefono",
	"numeroditelefono", "numerocellulare", "phonenumber", "recapito", "tel1", "telefono1", "cellulare1", "smartphone"}

// Guess finds the column of "phone" and of each field by the words of the header. Without a word for phone, the column is taken
// whose first rows look like numbers. What is not found is left out.
func Guess(columns []string, first [][]string, fields []string) map[string]int {
	found, taken := map[string]int{}, map[int]bool{}
	take := func(field string, at int) {
		if at >= 0 {
			found[field], taken[at] = at, true
		}
	}
	for _, word := range phoneWords {
		if _, ok := found["phone"]; !ok {
			take("phone", slices.IndexFunc(columns, func(c string) bool { return folded(c) == word }))
		}
	}
	if _, ok := found["phone"]; !ok {
		take("phone", numbersAt(len(columns), first))
	}
	for _, field := range fields {
		at := slices.IndexFunc(columns, func(c string) bool { return folded(c) == folded(field) })
		if at >= 0 && !taken[at] && field != "phone" {
			take(field, at)
		}
	}
	return found
}

var numberShape = regexp.MustCompile(`^\+?[0-9][0-9 ()./-]{6,20}$`)

// numbersAt is the column whose rows look most like phone numbers, -1 when none does.
func numbersAt(columns int, first [][]string) int {
	best, most := -1, 0
	for at := range columns {
		n := 0
		for _, row := range first {
			if at < len(row) && numberShape.MatchString(row[at]) {
				n++
			}
		}
		if n > most {
			best, most = at, n
		}
	}
	return best
}

// folded drops case, accents and all but letters and digits.
func folded(text string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(strings.ToLower(text)) {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// ParseMapping reads "phone:Telefono,nome:Nome": each field with its column, by header or, "phone:2", by number. The error names
// every fault.
func ParseMapping(text string, columns []string) (map[string]int, error) {
	found := map[string]int{}
	var faults []string
	for part := range strings.SplitSeq(text, ",") {
		field, column, ok := strings.Cut(part, ":")
		field, column = strings.TrimSpace(field), strings.TrimSpace(column)
		if !ok || field == "" || column == "" {
			faults = append(faults, fmt.Sprintf("%q is not a field and its column, such as phone:Telefono", part))
			continue
		}
		if _, twice := found[field]; twice {
			faults = append(faults, fmt.Sprintf("names %s twice", field))
			continue
		}
		at, says := columnAt(column, columns)
		if says != "" {
			faults = append(faults, says)
			continue
		}
		found[field] = at
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("%s", strings.Join(faults, "; "))
	}
	return found, nil
}

func columnAt(column string, columns []string) (at int, says string) {
	same := func(c string) bool { return strings.EqualFold(c, column) }
	if at := slices.IndexFunc(columns, same); at >= 0 {
		if slices.IndexFunc(columns[at+1:], same) >= 0 {
			return 0, fmt.Sprintf("the list has two columns %q; name one by its number", column)
		}
		return at, ""
	}
	if n, err := strconv.Atoi(column); err == nil && n >= 1 && n <= len(columns) {
		return n - 1, ""
	}
	return 0, fmt.Sprintf("the list has no column %q; it has %q", column, columns)
}

var exponent = regexp.MustCompile(`^[+-]?[0-9]+[.,]?[0-9]*[eE]\+?[0-9]+$`)

// LostDigits reports a number that a spreadsheet wrote with an exponent: its last digits are gone.
func LostDigits(cell string) bool { return exponent.MatchString(strings.TrimSpace(cell)) }
