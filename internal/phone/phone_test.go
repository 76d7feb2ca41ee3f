package phone_test

import (
	"testing"

	"puntuale/internal/phone"
)

func TestStrict(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, region, want string }{
		{"333 1234567", "IT", "+393331234567"},
		{"02/1234 5678", "IT", "+390212345678"},
		{"+39 (0)2 12345678", "IT", "+390212345678"},
		{"0041 79 123 45 67", "IT", "+41791234567"},
		{"(0041) 791234567", "IT", "+41791234567"},
		{"39 333 1234567", "IT", "+393331234567"},
		{"800 123456", "IT", "+39800123456"},
		{"39312345678", "IT", ""},            // may be 393 1234567 and a digit
		{"41 79 123 45 67", "IT", ""},        // another country without "+"
		{"+39 000 000 0000", "IT", ""},       // possible, but not valid
		{"199 123456", "IT", "+39199123456"}, // a number of a company
		{"848 123456", "IT", ""},             // the caller pays a part
		{"899 123456", "IT", ""},             // premium rate
		{"12345", "IT", ""},                  // too short
		{"", "IT", ""},                       //
		{"0791234567", "CH", "+41791234567"},
		{"(212) 555-2368", "US", "+12125552368"},
	} {
		if got, ok := phone.Strict(c.text, c.region); got != c.want || ok != (c.want != "") {
			t.Errorf("%q in %s: %q, want %q", c.text, c.region, got, c.want)
		}
	}
}
