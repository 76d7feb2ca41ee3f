package request_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/nyaruka/phonenumbers"

	"puntuale/internal/control/request"
)

func TestParseRecipient(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, region, want string }{
		// The result for a group's id is the same id.
		{"393331234567-1466093800@g.us", "IT", "393331234567-1466093800@g.us"},
		{"120363025246125016@g.us", "IT", "120363025246125016@g.us"},
		{"20482973843@lid", "IT", "20482973843@lid"},
		{"AbCdEfGhIjKlMnOpQrStUv", "IT", "AbCdEfGhIjKlMnOpQrStUv"},
		{"ABC_def-0123456789wxyz", "IT", "ABC_def-0123456789wxyz"},
		{"0123456789012345678901", "IT", "0123456789012345678901"},
		{"Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD", "IT", "Y2FwaV9ncm91cDoxNzA1NTU1MDEzOToxMjAzNjM0MDQ2OTQyMzM4MjAZD"},
		// The result for a person's id is the same id.
		{"US.13491208655302741918", "IT", "US.13491208655302741918"},
		{"IT.ENT.11815799212886844830", "IT", "IT.ENT.11815799212886844830"},
		{"BR." + strings.Repeat("a1", 64), "IT", "BR." + strings.Repeat("a1", 64)},
		// A number that is valid in the region gets the region's calling code.
		{"3331234567", "IT", "+393331234567"},
		{"333 123 4567", "IT", "+393331234567"},
		{"333.123.4567", "IT", "+393331234567"},
		{"(333) 123-4567", "IT", "+393331234567"},
		{"333/1234567", "IT", "+393331234567"},
		{"\u202a+39 333 123 4567\u202c", "IT", "+393331234567"},
		{"  3331234567\t", "IT", "+393331234567"},
		{"0039 333 1234567", "IT", "+393331234567"},
		{"+393331234567", "US", "+393331234567"},
		{"393331234567", "IT", "+393331234567"},
		{"02 1234 5678", "IT", "+390212345678"},
		{"800 123456", "IT", "+39800123456"},
		{"３３３１２３４５６７", "IT", "+393331234567"},
		// A plus sign may follow an opening bracket.
		{"(+39) 333 1234567", "IT", "+393331234567"},
		{"(+48 804 123 456)", "IT", "+48804123456"},
		{" ( +39 ) 333 1234567", "US", "+393331234567"},
		{"(＋39)3331234567", "US", "+393331234567"},
		// Any other number becomes "+" and its digits.
		{"447911123456", "IT", "+447911123456"},
		{"393331234567", "US", "+393331234567"},
		{"+1 (212) 555-2368", "IT", "+12125552368"},
		{"2125552368", "US", "+12125552368"},
		{"3331239901", "IT", "+393331239901"},
		{"199123456", "IT", "+39199123456"}, // a shared number of a company; the result must not be +1 99…
		// If the number has a calling code, only its length is checked.
		{"+39 000 000 0000", "IT", "+390000000000"},
		{"+52 1 55 1234 5678", "IT", "+5215512345678"},
		{"0052 1 55 1234 5678", "IT", "+5215512345678"},
		{"+55 11 8765 4321", "IT", "+551187654321"},
		{"+7 000 000 0000", "IT", "+70000000000"},
		{"00 7 000 000 0000", "US", "+70000000000"},
		{"0039 333 1234567", "US", "+393331234567"},
		// A foreign number without "+" stays foreign, even if the region has voicemail numbers with these digits.
		{"34612345678", "IT", "+34612345678"},
		{"33 612345678", "IT", "+33612345678"},
		{"  351 912 345 678", "IT", "+351912345678"},
		{"(34) 612-345-678", "IT", "+34612345678"},
		{"34612 345 678", "IT", "+34612345678"},
		{"33 1 42 68 53 00", "IT", "+33142685300"},
		{"447911 123456", "IT", "+447911123456"},
		{"442071838750", "IT", "+442071838750"},
		{"3933 3123 4567", "IT", "+393331234567"},
		{"39333 123 4567", "IT", "+393331234567"},
		{"254712123456", "SE", "+254712123456"},
		{"351212345678", "IT", "+351212345678"},
		{"20 2 2345 6789", "US", "+20223456789"},
		// What a spreadsheet adds to a number.
		{"3331234567.0", "IT", "+393331234567"},
		{" 3331234567,00 ", "IT", "+393331234567"},
		{"+34612345678.0", "IT", "+34612345678"},
		{"34612345678.0", "IT", "+34612345678"},
		{"3.331234567E9", "IT", "+393331234567"},
		{"3,331234567e+09", "IT", "+393331234567"},
		{"3.93331234567E+11", "IT", "+393331234567"},
	} {
		got, err := request.ParseRecipient(c.text, c.region)
		if err != nil || got != c.want {
			t.Errorf("%q in %s: %q, %v, want %q", c.text, c.region, got, err, c.want)
			continue
		}
		again, err := request.ParseRecipient(got, c.region)
		if err != nil || again != got {
			t.Errorf("%q comes back as %q, %v", got, again, err)
		}
	}
}

func TestParseRecipientRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, reason string }{
		{" 120363025246125016@g.us", "letters"},
		{"120363025246125016@g.us\n", "letters"},
		{"120363-025246-125016@g.us", "letters"},
		{"-120363025246125016@g.us", "letters"},
		{"120363025246125016@G.US", "letters"},
		{"20482973843-1@lid", "letters"},
		{"AbCdEfGhIjKlMnOpQrStU", "letters"},
		{"AbCdEfGhIjKlMnOpQrStUvw", "letters"},
		{"1-800-FLOWERS", "letters"},
		{"3331234567 ext. 5", "letters"},
		{"3331234567x5", "letters"},
		{"tel:+393331234567", "letters"},
		{"3331234567#5", "letters"},
		{"3331234567,5", "letters"},
		{"3331234567;5", "letters"},
		{"*3331234567", "letters"},
		{"@lid", "letters"},
		{"333\x001234567", "letters"},
		{"899 123456", "premium"},
		{"848 123456", "shared"},
		{"+39 899 123456", "premium"},
		{"0039 899 123456", "premium"},
		{"199 1234567", "valid"}, // the result must not be +1 991 …
		{"70000000000", "valid"}, // the number has no calling code
		{"+1 212 5550", "valid"}, // this number can be dialled only within its area
		{"+39 06", "valid"},
		{"+999 12345678", "valid"},
		{"+52 2 55 1234 5678", "valid"},
		{"112", "valid"},
		{"333", "valid"},
		{"", "valid"},
		{"   ", "valid"},
		{"+", "valid"},
		{"++393331234567", "plus"},
		{"333+1234567", "plus"},
		{"+(+39) 333 1234567", "plus"},
		{"(+39) +333 1234567", "plus"},
		{"(++39) 333 1234567", "plus"},
		{"((+39)) 333 1234567", "plus"},
		{"00000000000", "valid"},
		{"33312345678901234567", "valid"},
		{strings.Repeat("3", 136), "too_long"},
		// One digit too many.
		{"333 123 45678", "valid"},
		{"333-12345678", "valid"},
		{"33312345678", "valid"}, // the result must not be a French landline
		{"346 123 45678", "valid"},
		{"(347) 12345678", "valid"},
		{"3461 2345678", "valid"},
		{"393 341 23456", "valid"},
		{"312 345 67895", "valid"},
		{"31234567895", "valid"}, // the result must not be a Dutch landline
		{"39 333 123 45678", "valid"},
		{"+39 333 123 45678", "valid"},
		{"0039 333 123 45678", "valid"},
		{"3331234567 89", "valid"},
		{"333 123 45678.0", "valid"},
		{"33312345678.0", "valid"},
		// The exponent hides digits.
		{"3.33E+09", "letters"},
		{"3.33123457E+09", "letters"},
		{"3.331234567E8", "letters"},
		{"3331234567E0", "letters"},
		{strings.Repeat("1", 500_000) + "@lid", "too_long"},
	} {
		got, err := request.ParseRecipient(c.text, "IT")
		if err == nil || !strings.Contains(err.Error(), c.reason) || got != "" {
			t.Errorf("%.40q: %q, %v, want a reason with %q", c.text, got, err, c.reason)
		}
	}
}

// Without "+", a foreign mobile number is read as a foreign one, unless the region has a person's number with these
// digits. A number in the form of the region belongs to the region.
func TestForeignNumberWithoutPlus(t *testing.T) {
	t.Parallel()
	supported := phonenumbers.GetSupportedRegions()
	read := func(text, region, want string) {
		t.Helper()
		if got, err := request.ParseRecipient(text, region); err != nil || got != want {
			t.Errorf("%q in %s: %q, %v, want %q", text, region, got, err, want)
		}
	}
	persons := []phonenumbers.PhoneNumberType{phonenumbers.FIXED_LINE, phonenumbers.MOBILE, phonenumbers.FIXED_LINE_OR_MOBILE,
		phonenumbers.TOLL_FREE, phonenumbers.VOIP, phonenumbers.PERSONAL_NUMBER, phonenumbers.UAN}
	foreign := 0
	for _, region := range []string{"IT", "FR", "PT", "ES", "DE", "GB", "BR", "US", "CH", "AT", "SE", "FI", "MX", "IN", "TD"} {
		for other := range supported {
			mobile := phonenumbers.GetExampleNumberForType(other, phonenumbers.MOBILE)
			if mobile == nil || int(mobile.GetCountryCode()) == phonenumbers.GetCountryCodeForRegion(region) {
				continue
			}
			want := phonenumbers.Format(mobile, phonenumbers.E164)
			digits := strings.TrimPrefix(want, "+")
			if national, err := phonenumbers.Parse(digits, region); err == nil && slices.Contains(persons, phonenumbers.GetNumberType(national)) {
				want = phonenumbers.Format(national, phonenumbers.E164)
			} else {
				foreign++
			}
			read(digits, region, want)
		}
	}
	for region := range supported {
		for _, kind := range persons {
			if national := phonenumbers.GetExampleNumberForType(region, kind); national != nil {
				want := phonenumbers.Format(national, phonenumbers.E164)
				if text := phonenumbers.Format(national, phonenumbers.NATIONAL); !strings.HasPrefix(text, "09 15") { // Argentina's example is in no usual form
					read(text, region, want)
				}
				read(want, "IT", want)
			}
		}
	}
	if foreign < 2_500 {
		t.Errorf("only %d foreign numbers", foreign)
	}
}

// A call that looks for a person finds what an earlier version stored under a wrong number.
func TestReadings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		want []string
	}{
		{"34612345678", []string{"+34612345678", "+3934612345678"}},
		{"3331234567.0", []string{"+393331234567", "+3933312345670"}},
		{"+3934612345678", []string{"+3934612345678"}},
		{"+39 346 123 45678", []string{"+3934612345678"}},
		{"+34612345678", []string{"+34612345678"}},
		{"3331234567", []string{"+393331234567"}},
		{"447911123456", []string{"+447911123456"}},
		{"20482973843@lid", []string{"20482973843@lid"}},
		{"0123456789012345678901", []string{"0123456789012345678901"}},
	} {
		if got, err := request.Readings(c.text, "IT"); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%q: %q, %v, want %q", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"333 123 45678", "899 123456", "+39 899 123456", "abc", strings.Repeat("3", 200)} {
		if got, err := request.Readings(text, "IT"); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// Every result is an unchanged id, or "+" and digits. A second ParseRecipient does not change the result.
func FuzzParseRecipient(f *testing.F) {
	for _, seed := range []string{
		"3331234567", "+39 333 123 4567", "120363025246125016@g.us", "1-2@g.us", "20482973843@lid",
		"AbCdEfGhIjKlMnOpQrStUv", "899123456", "\u202a333\u202c", "1-800-FLOWERS", "333#5", "٣٣٣١٢٣٤٥٦٧", "",
	} {
		f.Add(seed, "IT")
	}
	f.Add("2125552368", "US")
	f.Add("1", "ZZ")
	f.Fuzz(func(t *testing.T, text, region string) {
		got, err := request.ParseRecipient(text, region)
		if err != nil || got == text && !strings.HasPrefix(got, "+") {
			return
		}
		if !strings.HasPrefix(got, "+") || len(got) < 4 || len(got) > 20 || strings.Trim(got[1:], "0123456789") != "" {
			t.Fatalf("%q becomes %q", text, got)
		}
		if again, err := request.ParseRecipient(got, region); err != nil || again != got {
			t.Fatalf("%q, accepted from %q, comes back as %q, %v", got, text, again, err)
		}
	})
}
