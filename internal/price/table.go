package price

import (
	_ "embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"puntuale"
)

// Categories are the message categories that may have prices.
var Categories = []string{"marketing", "utility", "authentication", "service"}

// Table is a table of prices. It never changes.
type Table struct {
	Currency string // the currency's code in ISO 4217
	Date     puntuale.Date
	Source   string

	prices map[puntuale.MessageKind]amount
}

//go:embed prices.csv
var embedded string

// Embedded returns the table that is part of the program.
func Embedded() *Table {
	t, err := Read(strings.NewReader(embedded))
	if err != nil {
		panic("the embedded prices: " + err.Error()) // cannot happen, because a test reads the embedded prices
	}
	return t
}

const (
	maxBytes  = 1 << 20
	maxFaults = 20 // the most faults that one error contains
)

// Read reads a table in CSV format. Its first lines contain currency, date and source. After the header, which begins
// with "country", there is one line for each country. The error contains every fault with its line.
func Read(from io.Reader) (*Table, error) {
	r := csv.NewReader(io.LimitReader(from, maxBytes))
	r.FieldsPerRecord = -1
	x := &reading{table: &Table{prices: map[puntuale.MessageKind]amount{}}, seen: map[string]bool{}}
	for {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return x.end()
		}
		if err != nil {
			return nil, fmt.Errorf("it is no CSV: %w", err)
		}
		x.line, _ = r.FieldPos(0)
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		x.row(cells)
	}
}

// reading is the state while a table is read.
type reading struct {
	table      *Table
	line       int
	categories []string // in the order of the columns; nil: the header was not read yet
	seen       map[string]bool
	faults     []error
}

func (x *reading) fault(format string, args ...any) {
	x.faults = append(x.faults, fmt.Errorf("line %d: %s", x.line, fmt.Sprintf(format, args...)))
}

func (x *reading) row(cells []string) {
	switch {
	case x.categories != nil:
		x.country(cells)
	case cells[0] == "country":
		x.header(cells[1:])
	case len(cells) != 2:
		x.fault("before the line that begins with country, a line has a name and a value")
	default:
		x.readHeader(cells[0], cells[1])
	}
}

func (x *reading) readHeader(name, value string) {
	var err error
	switch name {
	case "currency":
		if x.table.Currency = value; !letters(value, 3) {
			x.fault("the currency %q is not three capital letters", value)
		}
	case "date":
		if x.table.Date, err = puntuale.ParseDate(value); err != nil {
			x.fault("the date %v", err)
		}
	case "source":
		x.table.Source = value
	default:
		x.fault("%q is not one of currency, date, source, country", name)
	}
}

func (x *reading) header(categories []string) {
	x.categories = slices.Clone(categories)
	for i, c := range categories {
		switch {
		case !slices.Contains(Categories, c):
			x.fault("%q is not one of %s", c, strings.Join(Categories, ", "))
		case slices.Contains(categories[:i], c):
			x.fault("%s is there twice", c)
		}
	}
}

func (x *reading) country(cells []string) {
	country := cells[0]
	switch {
	case !letters(country, 2):
		x.fault("the country %q is not two capital letters", country)
	case x.seen[country]:
		x.fault("%s is there twice", country)
	case len(cells) != len(x.categories)+1:
		x.fault("%s has %d prices, and the header has %d categories", country, len(cells)-1, len(x.categories))
	default:
		x.seen[country] = true
		for i, text := range cells[1:] {
			if text == "" { // the price is unknown
				continue
			}
			price, err := parseAmount(text)
			if err != nil {
				x.fault("the price %q %v", text, err)
			}
			x.table.prices[puntuale.MessageKind{Country: country, Category: x.categories[i]}] = price
		}
	}
}

func (x *reading) end() (*Table, error) {
	t := x.table
	for _, missing := range []struct {
		isMissing bool
		name      string
	}{{t.Currency == "", "currency"}, {t.Date.IsZero(), "date"}, {t.Source == "", "source"}, {x.categories == nil, "country"}} {
		if missing.isMissing && len(x.faults) == 0 {
			x.faults = append(x.faults, fmt.Errorf("no line begins with %s", missing.name))
		}
	}
	if n := len(x.faults); n > maxFaults {
		x.faults = append(x.faults[:maxFaults], fmt.Errorf("and %d more faults", n-maxFaults))
	}
	if err := errors.Join(x.faults...); err != nil {
		return nil, err
	}
	return t, nil
}

func letters(text string, n int) bool {
	return len(text) == n && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}
