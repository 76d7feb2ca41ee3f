package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// importFile imports a file of the package roster's examples. It returns a line for each contact that is stored.
func (s *service) importFile(key, query, name string) (answer response, stored []string) {
	s.t.Helper()
	file, err := os.ReadFile("../roster/testdata/exports/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	kind := "text/csv"
	if strings.HasSuffix(name, ".xlsx") {
		kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPut, "/api/contacts/import"+query, bytes.NewReader(file))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", kind)
	answer = s.send(r)
	var page struct{ Contacts []contact }
	s.must(&page, "GET", "/api/contacts", key, "")
	for _, c := range page.Contacts {
		name := "-"
		if c.Name != nil {
			name = *c.Name
		}
		stored = append(stored, fmt.Sprint(c.Phone[3:], " ", name, " ", c.Fields))
	}
	slices.Sort(stored)
	return answer, stored
}

// TestImportFiles: before anything is stored, a check shows the header, the hidden rows, and each date as it is written
// and as it would be stored. The import stores just that.
func TestImportFiles(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	for name, want := range map[string]struct {
		header, hidden int
		dates          string
		stored         []string
	}{
		"excel-it.csv":    {1, 0, "data_di_nascita dmy 28/02/1990=1990-02-28 03/04/1992=1992-04-03", []string{"3331234561 Rossi Anna map[citta:Forlì codice:10.5.2026 data_di_nascita:1990-02-28]", "3331234562 Verdi Nicolò map[citta:Cantù codice:A-33 data_di_nascita:1992-04-03]"}},
		"excel-utf16.csv": {1, 0, "scadenza dmy 31/12/2026=2026-12-31 01/02/2027=2027-02-01", []string{"3331234561 Anna map[scadenza:2026-12-31]", "3331234562 Niccolò map[scadenza:2027-02-01]"}},
		"libreoffice.csv": {1, 0, "nascita dmy 1990-02-28=1990-02-28 1992-04-03=1992-04-03", []string{"3331234561 Anna map[nascita:1990-02-28]", "3331234562 Bruno map[nascita:1992-04-03]"}},
		"titled.csv":      {4, 0, "nascita dmy 28/02/1990=1990-02-28 03/04/1992=1992-04-03", []string{"3331234561 Anna map[nascita:1990-02-28]", "3331234562 Bruno map[nascita:1992-04-03]"}},
		"american.csv":    {1, 0, "birthday mdy 02/28/1990=1990-02-28 03/04/1992=1992-03-04", []string{"3331234561 Anna map[birthday:1990-02-28]", "3331234562 Bruno map[birthday:1992-03-04]"}},
		"filtered.xlsx":   {3, 2, "nascita dmy 1990-02-28=1990-02-28 1992-04-03=1992-04-03", []string{"3331234561 Anna map[nascita:1990-02-28]", "3331234562 Bruno map[nascita:1992-04-03]", "3331234563 Carla map[]"}},
		"blank.csv":       {1, 0, "", []string{"3331234561 - map[]", "3331234562 Bruno map[citta:Roma]"}},
	} {
		a := s.newAccount(name+"@x", "full")
		checked, stored := s.importFile(a.Key, "?check=true", name)
		var got struct {
			Header, Hidden int
			Dates          []struct {
				Field, Order string
				Question     *string
				Examples     []struct{ Written, Stored string }
			}
		}
		if err := json.Unmarshal([]byte(checked.body), &got); err != nil || checked.status != 200 || len(stored) > 0 {
			t.Fatalf("%s: %d %s, stored %q", name, checked.status, checked.body, stored)
		}
		dates := ""
		for _, d := range got.Dates {
			dates += d.Field + " " + d.Order
			for _, e := range d.Examples {
				dates += " " + e.Written + "=" + e.Stored
			}
		}
		if got.Header != want.header || got.Hidden != want.hidden || dates != want.dates {
			t.Errorf("%s: the check says header %d, hidden %d, dates %q: %s", name, got.Header, got.Hidden, dates, checked.body)
		}
		done, stored := s.importFile(a.Key, "", name)
		if done.body != checked.body || !slices.Equal(stored, want.stored) {
			t.Errorf("%s: stored %q, want %q; the import says %s", name, stored, want.stored, done.body)
		}
	}
	a := s.newAccount("google@x", "full")
	if done, stored := s.importFile(a.Key, "", "google-many.csv"); done.status != 200 || len(stored) != 2 || !strings.HasPrefix(stored[0], "3331234561 Anna map[birthday:1990-02-28") {
		t.Errorf("google-many.csv: %q, %s", stored, done.body)
	}
}

// TestImportAsksForDates: an import refuses a column with dates of both orders until the caller decides. Then a date of
// the other order is refused, and no text becomes a date.
func TestImportAsksForDates(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.newAccount("mixed@x", "full")
	if checked, _ := s.importFile(a.Key, "?check=true", "mixed.csv"); checked.status != 200 || !strings.Contains(checked.body, `"order":null`) || !strings.Contains(checked.body, `line 2 has the day first`) {
		t.Errorf("check: %d %s", checked.status, checked.body)
	}
	refused, stored := s.importFile(a.Key, "", "mixed.csv")
	if refused.status != 422 || !strings.Contains(refused.body, "query.dates") || len(stored) > 0 {
		t.Errorf("%d %s, stored %q", refused.status, refused.body, stored)
	}
	decided, stored := s.importFile(a.Key, "?dates=nascita:mdy", "mixed.csv")
	if decided.status != 200 || !strings.Contains(decided.body, `"line":2`) || !slices.Equal(stored, []string{"3331234562 Bruno map[nascita:1990-02-28]"}) {
		t.Errorf("%d %s, stored %q", decided.status, decided.body, stored)
	}
	b := s.newAccount("text@x", "full")
	if _, stored := s.importFile(b.Key, "?dates=none", "mixed.csv"); !slices.Equal(stored, []string{"3331234561 Anna map[nascita:28/02/1990]", "3331234562 Bruno map[nascita:02/28/1990]"}) {
		t.Errorf("as texts: %q", stored)
	}
	for query, at := range map[string]string{"?dates=x": "query.dates", "?dates=nascita:ymd": "query.dates", "?header=0": "query.header", "?header=x": "query.header", "?header=99": "body"} {
		if got, _ := s.importFile(a.Key, query, "mixed.csv"); got.status != 422 || !strings.Contains(got.body, `"`+at+`"`) {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got, _ := s.importFile(a.Key, "?header=4&check=true&columns=phone:2", "titled.csv"); got.status != 200 || !strings.Contains(got.body, `"header":4`) {
		t.Errorf("a chosen header: %d %s", got.status, got.body)
	}
}
