package price

import (
	"strings"
	"testing"

	"puntuale"
)

const header = "currency,EUR\ndate,2026-10-01\nsource,prova\ncountry,marketing,utility\n"

// The embedded table is valid, and has a price for each of its kinds of messages.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	table := Embedded()
	if table.Currency != "EUR" || table.Date.IsZero() || table.Source == "" || len(table.prices) != 132*len(Categories) {
		t.Errorf("%s of %s, from %q: %d prices", table.Currency, table.Date, table.Source, len(table.prices))
	}
	if got := table.prices[puntuale.MessageKind{Country: "IT", Category: "marketing"}].String(); got != "0.0658" {
		t.Errorf("marketing to Italy costs %s", got)
	}
}

// The error contains every fault of a file with its line.
func TestFaults(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][]string{
		"":                    {"currency"},
		"currency,EUR\n":      {"date"},
		header + "IT,\"0.1":   {"CSV"},
		header + "IT,0.1\n":   {"line 5: IT has 1 prices"},
		"a,b,c\n":             {"line 1: before the line"},
		"valuta,EUR\n":        {`line 1: "valuta" is not one of`},
		"country,promo\n":     {`line 1: "promo" is not one of marketing`},
		header + "IT,,\nIT,,": {"line 6: IT is there twice"},
		"currency,€\ndate,1/10/2026\nsource,x\ncountry,marketing,marketing\nItalia,1,2\n": {
			"line 1: the currency", "line 2: the date", "line 4: marketing is there twice", `line 5: the country "Italia"`,
		},
		header + "IT,\"0,0658\",-1\nFR,1e3,1000\nDE,.5,0.1234567\nES,1.,\n": {
			`line 5: the price "0,0658"`, `line 5: the price "-1"`, `line 6: the price "1e3"`, `line 6: the price "1000"`,
			`line 7: the price ".5"`, `line 7: the price "0.1234567"`, `line 8: the price "1."`,
		},
		header + strings.Repeat("x\n", 30): {"and 10 more faults"},
	} {
		_, err := Read(strings.NewReader(file))
		if err == nil {
			t.Errorf("%q is taken", file)
			continue
		}
		for _, says := range want {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%q: %v, want %s", file, err, says)
			}
		}
	}
}

// A cost is exact, contains the kinds with the most messages, and counts the messages without a price.
func TestCost(t *testing.T) {
	t.Parallel()
	table, err := Read(strings.NewReader(header + "IT,0.0658,0.000001\nDE, 999.999999 ,\n"))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[puntuale.MessageKind]int{
		{Country: "IT", Category: "marketing"}: 1_000_001, {Country: "IT", Category: "utility"}: 3, {Country: "DE", Category: "marketing"}: 2,
		{Country: "DE", Category: "utility"}: 5, {Country: "", Category: "marketing"}: 7,
	}
	cost := table.Cost(counts)
	if cost.Amount != "67800.065801" || cost.Unknown != 12 || cost.Currency != "EUR" || cost.Date != "2026-10-01" || len(cost.Rows) != 5 {
		t.Errorf("%+v", cost)
	}
	if first := cost.Rows[0]; first.Messages != 1_000_001 || first.Amount != "65800.0658" || cost.Rows[1].Amount != "" || cost.Rows[4].Amount != "1999.999998" {
		t.Errorf("%+v", cost.Rows)
	}
	for i := range 26 {
		counts[puntuale.MessageKind{Country: "X" + string(rune('A'+i)), Category: "utility"}] = 1
	}
	if cost := table.Cost(counts); len(cost.Rows) != 20 || cost.Unknown != 38 {
		t.Errorf("%d rows, %d unknown", len(cost.Rows), cost.Unknown)
	}
	if cost := table.Cost(nil); cost.Amount != "0.00" {
		t.Errorf("nothing costs %s", cost.Amount)
	}
}

// For most numbers, Country uses only the calling code. For +1 and +7, which several countries share, it uses the whole
// number. For a text that is not a number, it returns no country.
func TestCountry(t *testing.T) {
	t.Parallel()
	for phone, want := range map[string]string{
		"+393331234567": "IT", "+390669812345": "IT", "+447781123456": "GB", "+12125551234": "US", "+14165551234": "CA", "+18765551234": "JM", "+77012345678": "KZ", "+79161234567": "RU",
		"+39999": "IT", "+80012345678": "", "120363012345678901@g.us": "", "": "", "IT.123": "", "+": "", "+x": "", "+999": "",
	} {
		if got := Country(phone); got != want {
			t.Errorf("%s is of %q, want %q", phone, got, want)
		}
	}
}
