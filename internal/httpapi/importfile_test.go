package httpapi_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"
)

// putFile sends a file of the package roster's examples.
func (s *service) putFile(key, path, name string) response {
	s.t.Helper()
	file, err := os.ReadFile("../roster/testdata/exports/" + name)
	if err != nil {
		s.t.Fatal(err)
	}
	kind := "text/csv"
	if strings.HasSuffix(name, ".xlsx") {
		kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	}
	r := httptest.NewRequestWithContext(s.t.Context(), http.MethodPut, path, bytes.NewReader(file))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", kind)
	return s.send(r)
}

// importFile imports a file of the package roster's examples. It returns a line for each contact that is stored.
func (s *service) importFile(key, query, name string) (answer response, stored []string) {
	s.t.Helper()
	answer = s.putFile(key, "/api/contacts/import"+query, name)
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
		checked, _ := s.importFile(a.Key, "?check=true", name)
		got := reportOf(t, checked)
		dates := got.dates()
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

// importReport is what each import says about its file.
type importReport struct {
	Header, Hidden int
	Dates          []struct {
		Field    string
		Order    *string
		Question *string
		Examples []struct {
			Written string
			Stored  *string
		}
	}
	Numbers []struct {
		Written string
		Phone   *string
	}
	Preview [][]string
}

func reportOf(t *testing.T, answer response) (r importReport) {
	t.Helper()
	if err := json.Unmarshal([]byte(answer.body), &r); err != nil || answer.status != 200 {
		t.Fatalf("%d %s", answer.status, answer.body)
	}
	return r
}

// dates describes the fields that are dates, each value as it is written and as it would be stored.
func (r importReport) dates() string {
	var all []string
	for _, d := range r.Dates {
		if all = append(all, d.Field); d.Order != nil {
			all = append(all, *d.Order)
		} else {
			all = append(all, "?")
		}
		for _, e := range d.Examples {
			if e.Stored != nil {
				e.Written += "=" + *e.Stored
			}
			all = append(all, e.Written)
		}
	}
	return strings.Join(all, " ")
}

// TestCampaignFiles: a campaign's upload reads the same files as the import of contacts, with the same report. A check
// stores nothing, and says what the upload says.
func TestCampaignFiles(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("files@x", "full")
	for name, want := range map[string]struct {
		field, query   string // a date of the text, and how the file is uploaded
		header, hidden int
		dates, phones  string
		stored         string // the cells of the date; "": the upload is refused, and asks
	}{
		"excel-it.csv":          {"data_di_nascita", "", 1, 0, "data_di_nascita dmy 28/02/1990=1990-02-28 03/04/1992=1992-04-03", "1 2", "28/02/1990 03/04/1992"},
		"excel-utf16.csv":       {"scadenza", "", 1, 0, "scadenza dmy 31/12/2026=2026-12-31 01/02/2027=2027-02-01", "1 2", "31/12/2026 01/02/2027"},
		"libreoffice.csv":       {"nascita", "", 1, 0, "nascita dmy 1990-02-28=1990-02-28 1992-04-03=1992-04-03", "1 2", "1990-02-28 1992-04-03"},
		"titled.csv":            {"nascita", "", 4, 0, "nascita dmy 28/02/1990=1990-02-28 03/04/1992=1992-04-03", "1 2", "28/02/1990 03/04/1992"},
		"american.csv":          {"birthday", "", 1, 0, "birthday mdy 02/28/1990=1990-02-28 03/04/1992=1992-03-04", "1 2", "28/02/1990 04/03/1992"},
		"filtered.xlsx":         {"nascita", "", 3, 2, "nascita dmy 1990-02-28=1990-02-28 1992-04-03=1992-04-03", "1 2 3", "1990-02-28 1992-04-03 "},
		"blank.csv":             {"citta", "?dates=none", 1, 0, "", "1 2", " Roma"},
		"mixed.csv":             {"nascita", "", 1, 0, "nascita ? 28/02/1990 02/28/1990", "1 2", ""},
		"american-other.csv":    {"birthday", "", 1, 0, "birthday ? 02/28/1990 03/04/1992 boh", "1 2 3", ""},
		"american-either.csv":   {"birthday", "", 1, 0, "birthday dmy 03/04/1992=1992-04-03 05/06/1993=1993-06-05", "1 2", "03/04/1992 05/06/1993"},
		"libreoffice-short.csv": {"scadenza", "", 1, 0, "scadenza ? 31/12/26 01/02/27 15/03/98", "1 2 3", ""},
		"google.csv":            {"birthday", "", 1, 0, "birthday dmy 1990-02-28=1990-02-28", "1 2 3", "1990-02-28  "},
		"google-old.csv":        {"birthday", "", 1, 0, "", "1 2", " "},
		"google-many.csv":       {"birthday", "", 1, 0, "birthday dmy 1990-02-28=1990-02-28", "1 2", "1990-02-28 "},
		"google-labels.csv":     {"birthday", "", 1, 0, "birthday dmy 1990-02-28=1990-02-28", "1 2 3 - 5", "1990-02-28    "},
		"outlook.csv":           {"birthday", "", 1, 0, "", "1 2 -", "  "},
		"apple.csv":             {"", "", 1, 0, "", "1 2", ""},
	} {
		var made campaignOf
		text := "Ciao"
		if want.field != "" {
			text = "Ciao, {{" + want.field + ":giorno|oggi}}"
		}
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","content":{"text":"`+text+`"}}`)
		path := "/api/campaigns/" + made.ID + "/recipients" + cmp.Or(want.query, "?dates=")
		checked := s.putFile(a.Key, path+"&check=true", name)
		got := reportOf(t, checked)
		var phones, stored []string
		for _, n := range got.Numbers {
			if n.Phone == nil || !strings.HasPrefix(*n.Phone, "+39333123456") {
				phones = append(phones, "-")
			} else {
				phones = append(phones, strings.TrimPrefix(*n.Phone, "+39333123456"))
			}
		}
		if got.Header != want.header || got.Hidden != want.hidden || got.dates() != want.dates || strings.Join(phones, " ") != want.phones {
			t.Errorf("%s: the check says header %d, hidden %d, dates %q, phones %q: %s", name, got.Header, got.Hidden, got.dates(), phones, checked.body)
		}
		if c := s.campaign(a.Key, made.ID); c.Counts["recipients"] != 0 {
			t.Errorf("%s: the check stored %v", name, c.Counts)
		}
		put := s.putFile(a.Key, path, name)
		if asks := strings.Contains(want.dates, "?"); asks {
			if put.status != 422 || !strings.Contains(put.body, "query.dates") || !strings.Contains(put.body, " line ") {
				t.Errorf("%s: %d %s", name, put.status, put.body)
			}
			if c := s.campaign(a.Key, made.ID); c.Counts["recipients"] != 0 {
				t.Errorf("%s: a refused upload stored %v", name, c.Counts)
			}
			continue
		}
		if put.status != 200 || put.body != checked.body {
			t.Errorf("%s: the check said %s\nthe upload %d %s", name, checked.body, put.status, put.body)
		}
		var list struct {
			Columns []struct{ Field *string }
		}
		if err := json.Unmarshal([]byte(put.body), &list); err != nil {
			t.Fatal(err)
		}
		for i, c := range list.Columns {
			for _, row := range got.Preview {
				if c.Field != nil && *c.Field == want.field {
					stored = append(stored, row[i])
				}
			}
		}
		if strings.Join(stored, " ") != want.stored {
			t.Errorf("%s: stored %q, want %q", name, stored, want.stored)
		}
	}
}

// TestCampaignAsksForDates: a campaign's upload asks how a column of dates is meant, and stores it as the caller says. A
// later change of columns keeps what was said.
func TestCampaignAsksForDates(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("asks@x", "full")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","content":{"text":"Ciao {{nome}}, {{birthday:giorno}}"}}`)
		path := "/api/campaigns/" + made.ID
		preview := func(r response) string { return fmt.Sprint(reportOf(t, r).Preview) }
		if got := s.putFile(a.Key, path+"/recipients", "american-other.csv"); got.status != 422 || !strings.Contains(got.body, `\"boh\" on line 4 is none`) {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := preview(s.putFile(a.Key, path+"/recipients?dates=birthday:mdy", "american-other.csv")); got != "[[Anna +39 333 1234561 28/02/1990] [Bruno +39 333 1234562 04/03/1992] [Carla +39 333 1234563 boh]]" {
			t.Errorf("month first: %s", got)
		}
		checked := s.must(nil, "POST", path+"/check", a.Key, "").body
		if !strings.Contains(checked, `{"reason":"bad_field","count":1}`) || !strings.Contains(checked, "mercoledì 4 marzo") {
			t.Errorf("the check: %s", checked)
		}
		mapped := s.must(nil, "POST", path+"/columns", a.Key, `{"columns":"phone:2,birthday:3"}`)
		if got := preview(mapped); !strings.Contains(got, "04/03/1992") {
			t.Errorf("mapped: %s", got)
		}
		if got := preview(s.putFile(a.Key, path+"/recipients?columns=phone:2,nome:1", "american-other.csv")); !strings.Contains(got, "03/04/1992") {
			t.Errorf("not a date yet: %s", got)
		}
		if got := s.call("POST", path+"/columns", a.Key, `{"columns":"phone:2,birthday:3"}`); got.status != 422 || !strings.Contains(got.body, `"body.dates"`) {
			t.Errorf("a column that becomes a date: %d %s", got.status, got.body)
		}
		if got := preview(s.must(nil, "POST", path+"/columns", a.Key, `{"columns":"phone:2,birthday:3","dates":"birthday:mdy"}`)); !strings.Contains(got, "04/03/1992") {
			t.Errorf("mapped with an order: %s", got)
		}
		for query, at := range map[string]string{"?dates=x": "query.dates", "?dates=birthday:ymd": "query.dates", "?check=yes": "query.check", "?header=0": "query.header"} {
			if got := s.putFile(a.Key, path+"/recipients"+query, "american.csv"); got.status != 422 || !strings.Contains(got.body, `"`+at+`"`) {
				t.Errorf("%s: %d %s", query, got.status, got.body)
			}
		}
	})
}

// TestDatesTurnOnce: a column whose dates were turned when the list was stored keeps them, whatever a later call says about
// them, also if the column fills no field for a while.
func TestDatesTurnOnce(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("once@x", "full")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","content":{"text":"Ciao {{nome}}, {{birthday:giorno}}"}}`)
		path := "/api/campaigns/" + made.ID
		if got := s.putFile(a.Key, path+"/recipients?dates=birthday:mdy", "american.csv"); !strings.Contains(fmt.Sprint(reportOf(t, got).Preview), "04/03/1992") {
			t.Fatalf("%d %s", got.status, got.body)
		}
		for _, body := range []string{`{"columns":"phone:2,birthday:3","dates":"birthday:mdy"}`, `{"columns":"phone:2,birthday:3","dates":"birthday:dmy"}`, `{"columns":"phone:2,nome:1"}`, `{"columns":"phone:2,nome:3"}`, `{"columns":"phone:2,birthday:3"}`, `{"columns":"phone:2,birthday:3","dates":"birthday:mdy"}`} {
			if got := fmt.Sprint(reportOf(t, s.must(nil, "POST", path+"/columns", a.Key, body)).Preview); !strings.Contains(got, "28/02/1990") || !strings.Contains(got, "04/03/1992") {
				t.Errorf("%s: %s", body, got)
			}
		}
		s.must(nil, "POST", path+"/recipients", a.Key, `{"recipients":[{"phone":"+393331234569","birthday":"05/06/1993"}]}`)
		if got := fmt.Sprint(reportOf(t, s.must(nil, "POST", path+"/columns", a.Key, `{"columns":"phone:2,birthday:3","dates":"birthday:mdy"}`)).Preview); !strings.Contains(got, "04/03/1992") || !strings.Contains(got, "05/06/1993") {
			t.Errorf("after more recipients: %s", got)
		}
		if got := s.must(nil, "GET", path+"/recipients", a.Key, "").body; strings.Contains(got, "u0000") {
			t.Errorf("the mapping shows %s", got)
		}
	})
}

// TestTextBecomesDate: if the texts use a column as a date only after the list was stored, the column is judged before
// anything is sent: the check asks for the columns, and the same columns are judged.
func TestTextBecomesDate(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("later@x", "full")
		for _, file := range []struct{ name, want string }{{"american.csv", "mercoledì 4 marzo"}, {"american-either.csv", "venerdì 3 aprile"}, {"mixed.csv", ""}} {
			field := "birthday"
			if file.want == "" {
				field = "nascita"
			}
			var made campaignOf
			s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","content":{"text":"Il {{`+field+`}}"}}`)
			path := "/api/campaigns/" + made.ID
			if put := s.putFile(a.Key, path+"/recipients", file.name); put.status != 200 {
				t.Fatalf("%d %s", put.status, put.body)
			}
			s.must(nil, "POST", path+"/check", a.Key, "")
			s.must(nil, "PUT", path, a.Key, `{"name":"x","content":{"text":"Il {{`+field+`:giorno}}"}}`)
			if got := s.call("POST", path+"/check", a.Key, ""); got.status != 409 || !strings.Contains(got.body, field) || !strings.Contains(got.body, "/columns") {
				t.Errorf("%s: %d %s", file.name, got.status, got.body)
			}
			again := s.call("POST", path+"/columns", a.Key, `{"columns":"phone:2,`+field+`:3"}`)
			if file.want == "" {
				if again.status != 422 || !strings.Contains(again.body, `"body.dates"`) {
					t.Errorf("%s: %d %s", file.name, again.status, again.body)
				}
				continue
			}
			if got := s.must(nil, "POST", path+"/check", a.Key, "").body; !strings.Contains(got, file.want) {
				t.Errorf("%s: %s", file.name, got)
			}
		}
	})
}

// TestImportShortYears: a year of two digits is a question. It becomes the year that is near, and a date of birth is
// never in the future.
func TestImportShortYears(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.newAccount("short@x", "full")
	if refused, stored := s.importFile(a.Key, "", "libreoffice-short.csv"); refused.status != 422 || !strings.Contains(refused.body, "has two digits") || len(stored) > 0 {
		t.Errorf("%d %s", refused.status, refused.body)
	}
	done, stored := s.importFile(a.Key, "?dates=nascita:dmy,scadenza:dmy", "libreoffice-short.csv")
	if want := []string{"3331234561 Anna map[nascita:1990-02-28 scadenza:2026-12-31]", "3331234562 Bruno map[nascita:2026-04-03 scadenza:2027-02-01]", "3331234563 Carla map[nascita:1926-12-31 scadenza:1998-03-15]"}; !slices.Equal(stored, want) {
		t.Errorf("stored %q: %s", stored, done.body)
	}
	b := s.newAccount("texts@x", "full")
	if _, stored := s.importFile(b.Key, "?dates=none", "libreoffice-short.csv"); len(stored) != 3 || !strings.Contains(stored[0], "scadenza:31/12/26") {
		t.Errorf("as texts: %q", stored)
	}
}
