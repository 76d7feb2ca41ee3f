package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// blacklistReport is the answer of an import into the blacklist.
type blacklistReport struct {
	Rows, Found, Added, Header int
	Columns                    []struct {
		Name  string
		Field *string
	}
	Numbers []struct{ Written, Phone string }
	Refused []struct {
		Reason string
		Count  int
	}
	Lines []struct {
		Line          int
		Phone         *string
		Reason, Value string
	}
}

// TestBlacklistImport: an opt-out holds for each number of a person's row, in whichever column and form a file has it. A
// check stores nothing and says the same. What is no number is reported, and does not keep the row's other numbers back.
func TestBlacklistImport(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	for name, c := range map[string]struct{ file, listed, refused string }{
		"landline and mobile": {"Telefono;Cellulare;Motivo\n011 4445566;333 1234567;basta\n", "+390114445566=basta +393331234567=basta", "[]"},
		"whole words":         {"Numero di telefono;Nota\n333 1234567;basta\n", "+393331234567=basta", "[]"},
		"joined":              {"Name,Phone 1 - Label,Phone 1 - Value,Phone 2 - Label,Phone 2 - Value\nAnna,Home,011 4445566,Mobile,333 1234567 ::: 333 7654321\n", "+390114445566= +393331234567= +393337654321=", "[]"},
		"no header":           {"333 1234567,basta\n333 7654321\n", "+393331234567=basta +393337654321=", "[]"},
		"a title":             {"Chi non vuole messaggi\n\ntelefono,motivo\n333 1234567,basta\n", "+393331234567=basta", "[]"},
		"no group":            {"telefono\n3331234567-33376543210\n333 1234567\n", "+393331234567=", "[{invalid_phone 1}]"},
		"a wrong cell":        {"Telefono;Cellulare\nn/d;333 1234567\n011 4445566;\n;\"\"\nMario;\n333 1234567;\n", "+390114445566= +393331234567=", "[{invalid_phone 2}]"},
		"a long reason":       {"telefono;motivo\n333 1234567;" + strings.Repeat("x", 201) + "\n", "+393331234567=", "[{bad_field 1}]"},
		"numbers, no header":  {"011 4445566,333 1234567\n", "+390114445566= +393331234567=", "[]"},
		"both, no header":     {"20/11/2026,011 4445566,333 1234567,basta\n", "+390114445566=basta +393331234567=basta", "[]"},
		"late, no header":     {"333 1234567\n" + strings.Repeat("\n333 1234567,\n", 10) + "333 7654321,non scrivere, grazie\n", "+393331234567= +393337654321=non scrivere, grazie", "[]"},
		"later, no header":    {"333 1234567,basta\n" + strings.Repeat("333 1234567\n", 10) + "011 4445566,333 7654321,basta\n", "+390114445566=basta +393331234567=basta +393337654321=basta", "[]"},
		"a text between":      {strings.Repeat("333 1234567,basta\n", 11) + "333 1111111,no,333 7654321,grazie\n", "+393331111111=no, grazie +393331234567=basta +393337654321=no, grazie", "[]"},
		"late date":           {strings.Repeat("333 1234567,basta\n", 11) + "333 1111111,01/11/26,333 7654321\n", "+393331111111=01/11/26 +393331234567=basta +393337654321=01/11/26", "[]"},
		"late third":          {strings.Repeat("333 1234567,basta\n", 6) + "011 4445566,333 7654321,no\n011 4445566,333 765,no\n", "+390114445566=no +393331234567=basta +393337654321=no", "[{invalid_phone 1}]"},
		"a postcode":          {"333 1234567,Rossi,10121,Torino\n", "+393331234567=Rossi, 10121, Torino", "[]"},
		"no date":             {"333 1234567,02.33.4455,basta\n", "+3902334455=basta +393331234567=basta", "[]"},
		"a date as a number":  {"Telefono;Cellulare\n01/11/26;333 1234567\n", "+393331234567=", "[{invalid_phone 1}]"},
		"a tax number":        {"Cliente;Partita IVA;Recapito\n" + strings.Repeat("Anna;01114445566;\n", 6) + "Anna;01114445566;333 1234567\n", "+393331234567=", "[{invalid_phone 6}]"},
		"an order's number":   {"Cellulare;Numero ordine\n333 1234567;A1\n333 1234567;A2\n333 1234567;011 4445566\n", "+393331234567=", "[]"},
		"a date, no header":   {"333 1234567,20/11/2026,basta\n", "+393331234567=20/11/2026, basta", "[]"},
		"a short date":        {"333 1234567,01/11/26\n", "+393331234567=01/11/26", "[]"},
		"a late second":       {"Cellulare;Recapito 2\n" + strings.Repeat("333 1234567;\n", 6) + "333 1234567;333 7654321\n333 1234567;n/d\n", "+393331234567= +393337654321=", "[{invalid_phone 1}]"},
		"a doubtful second":   {"Cellulare;Telefono 2\n333 1234567;n/d\n333 1234567;n/d\n333 1234567;011 4445566\n", "+390114445566= +393331234567=", "[{invalid_phone 2}]"},
		"a mistyped second":   {"Cellulare;Telefono 2\n333 1234567;333 76543\n", "+393331234567=", "[{invalid_phone 1}]"},
		"another name":        {"Cellulare;Altro;Data;Partita IVA;Phone Type\n333 1234567;011 4445566;20/11/2026;01114445566;Mobile\n", "+390114445566= +393331234567=", "[]"},
		"our export":          {"telefono;motivo;aggiunto\n'+393331234567;'=1;2026-11-20 10:00\n", "+393331234567==1", "[]"},
	} {
		a := s.newAccount(strings.ReplaceAll(name, " ", "-")+"@x", "full")
		check := blacklistReportOf(t, s.importBlacklist(a.Key, "?check=true", c.file))
		if got := s.blacklisted(a.Key); got != "" {
			t.Errorf("%s: a check stored %s", name, got)
		}
		done := blacklistReportOf(t, s.importBlacklist(a.Key, "", c.file))
		if got := s.blacklisted(a.Key); got != c.listed || fmt.Sprint(done.Refused) != c.refused || fmt.Sprint(done.Rows, done.Found, done.Added) != fmt.Sprint(check.Rows, check.Found, check.Added) {
			t.Errorf("%s: %s, refused %v, %+v", name, got, done.Refused, check)
		}
		for _, l := range done.Lines {
			if l.Value == "" && name != "a tax number" { // its number is missing
				t.Errorf("%s: line %d has no reason", name, l.Line)
			}
		}
		again := blacklistReportOf(t, s.importBlacklist(a.Key, "?check=true", c.file))
		if again.Added != 0 || again.Found != done.Found {
			t.Errorf("%s: again %+v", name, again)
		}
	}
	a := s.newAccount("many@x", "full")
	many := "telefono\n333 1234567\n" + strings.Repeat("333 7654321"+strings.Repeat(":::333 7654321", 249)+"\n", 401)
	if got := s.importBlacklist(a.Key, "", strings.ReplaceAll(many, " ", "")); got.status != http.StatusUnprocessableEntity || !strings.Contains(got.body, "100000") || s.blacklisted(a.Key) != "" {
		t.Errorf("too many numbers: %d %.300s", got.status, got.body)
	}
	a = s.newAccount("chosen@x", "full")
	const file = "A;B;C\n333 1234567;333 7654321;333 1111111\n"
	done := blacklistReportOf(t, s.importBlacklist(a.Key, "?columns=phone3:C,phone2:B", file))
	if got := s.blacklisted(a.Key); got != "+393331111111= +393337654321=" || len(done.Numbers) != 1 || done.Numbers[0].Phone != "+393337654321" {
		t.Errorf("chosen columns: %s, %+v", got, done)
	}
	done = blacklistReportOf(t, s.importBlacklist(a.Key, "?columns=phone:1,reason:2", "333 2222222,Rossi,basta\n333 3333333,Bianchi,333 765\n")) // as the page sends it
	if got := s.blacklisted(a.Key); !strings.Contains(got, "2222222=Rossi, basta") || fmt.Sprint(done.Refused) != "[{invalid_phone 1}]" {
		t.Errorf("columns of a list without a header: %s, %+v", got, done)
	}
	for _, query := range []string{"?columns=reason:A", "?columns=phone:A,nome:B", "?columns=phone:X", "?check=yes", "?dates=x"} {
		if got := s.importBlacklist(a.Key, query, file); got.status != http.StatusUnprocessableEntity {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":1,"expiration_date":"2026-11-19"}`)
	if got := s.importBlacklist(a.Key, "", "333 2222222\n"); got.status != http.StatusOK || !strings.Contains(s.blacklisted(a.Key), "2222222") {
		t.Errorf("a client that may not send: %d %s", got.status, got.body)
	}
}

func blacklistReportOf(t *testing.T, answer response) (r blacklistReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer.body), &r); err != nil || answer.status != http.StatusOK {
		t.Fatalf("%d %s (%v)", answer.status, answer.body, err)
	}
	return r
}

// importBlacklist uploads a file of numbers.
func (s *service) importBlacklist(key, query, file string) response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPut, "/api/blacklist/import"+query, strings.NewReader(file))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "text/csv")
	return s.send(r)
}

// blacklisted returns the numbers on the blacklist with their reasons, sorted.
func (s *service) blacklisted(key string) string {
	s.t.Helper()
	var page struct {
		Blacklist []struct{ Phone, Reason string }
	}
	s.must(&page, "GET", "/api/blacklist", key, "")
	var all []string
	for _, e := range page.Blacklist {
		all = append(all, e.Phone+"="+e.Reason)
	}
	slices.Sort(all)
	return strings.Join(all, " ")
}
