package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"puntuale"
)

// contact is a contact as the API shows it.
type contact struct {
	ID, Phone              string
	Name, Language, Source *string
	Fields                 map[string]any
	Tags                   []string
	Created                string `json:"created_at"`
	Changed                string `json:"changed_at"`
}

// newContact adds a contact and returns its id.
func (s *service) newContact(key, body string) string {
	s.t.Helper()
	var made contact
	s.must(&made, "POST", "/api/contacts", key, body)
	return made.ID
}

// contactNames returns the names of the contacts that a query finds.
func (s *service) contactNames(key string, query url.Values) (names []string) {
	s.t.Helper()
	for {
		var page struct {
			Contacts []contact
			Next     *string `json:"next_cursor"`
		}
		s.must(&page, "GET", "/api/contacts?"+query.Encode(), key, "")
		for _, c := range page.Contacts {
			names = append(names, *c.Name)
		}
		if page.Next == nil {
			return names
		}
		query.Set("cursor", *page.Next)
	}
}

// missing makes a call about a thing that does not exist, and expects status 404.
func (s *service) missing(method, path, key, body string) {
	s.t.Helper()
	if a := s.call(method, path, key, body); a.status != 404 || !strings.Contains(a.body, `"not_found"`) {
		s.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
	}
}

// usage returns how many calls of the account were counted, on all days together.
func (s *service) usage(a clientAccount) int {
	s.t.Helper()
	client, _ := idsOf(s.t, a, a.Session)
	var used int
	if err := s.owner.db.SQL.QueryRow("select coalesce(sum(used), 0) from api_usage where client_id = $1", int64(client)).Scan(&used); err != nil {
		s.t.Fatal(err)
	}
	return used
}

// importContacts uploads a file of contacts.
func (s *service) importContacts(key, query, file string) response {
	s.t.Helper()
	r := httptest.NewRequestWithContext(s.t.Context(), "PUT", "/api/contacts/import"+query, strings.NewReader(file))
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "text/csv")
	return s.send(r)
}

// TestContacts: a contact is added, merged, found, changed and deleted. Each call that changes a contact is counted,
// and the daily cap refuses none of these calls.
func TestContacts(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("contacts@x", "full")
		s.must(nil, "PATCH", "/api/client/"+a.ID, s.partner, `{"daily_api_cap":1}`)
		first := s.must(nil, "POST", "/api/contacts", a.Key, `{"phone":"333 1234567","name":" Anna Rossi ","language":"IT","fields":{"nascita":"1990-02-28","visita":"2026-11-20 10:30:00","punti":12.50,"nota":"ciao"},"tags":["cliente","Vip "]}`)
		for _, part := range []string{`"phone":"+393331234567","name":"Anna Rossi","language":"it","source":null,`,
			`"fields":{"nascita":"1990-02-28","nota":"ciao","punti":12.50,"visita":"2026-11-20T10:30"},"tags":["Vip","cliente"]`} {
			if !strings.Contains(first.body, part) {
				t.Errorf("%s is not in %s", part, first.body)
			}
		}
		var merged contact
		s.must(&merged, "POST", "/api/contacts", a.Key, `{"phone":3331234567,"fields":{"nota":"","citta":null,"via":"Roma 1"},"tags":["nuovo"]}`)
		if merged.Fields["nota"] != "ciao" || merged.Fields["via"] != "Roma 1" || *merged.Name != "Anna Rossi" || !slices.Equal(merged.Tags, []string{"Vip", "cliente", "nuovo"}) {
			t.Errorf("merged: %+v", merged)
		}
		s.newContact(a.Key, `{"phone":"+393331234568","name":"Annalisa Verdi","tags":["cliente"]}`)
		for query, want := range map[string]string{"": "Anna Rossi,Annalisa Verdi", "tag=cliente": "Anna Rossi,Annalisa Verdi", "tag=vip": "", "tag=Vip": "Anna Rossi", "phone=3331234567": "Anna Rossi",
			"phone=333*": "Anna Rossi,Annalisa Verdi", "phone=%2B39333123456*&name=verd": "Annalisa Verdi", "name=ANNA": "Anna Rossi,Annalisa Verdi", "name=ross+ann": "Anna Rossi", "name=ann&tag=nuovo": "Anna Rossi"} {
			values, _ := url.ParseQuery(query)
			values.Set("limit", "1")
			if got := strings.Join(s.contactNames(a.Key, values), ","); got != want {
				t.Errorf("%s: %q, want %q", query, got, want)
			}
		}
		one := "/api/contacts/" + merged.ID
		var changed, got contact
		s.must(&changed, "PATCH", one, a.Key, `{"name":"Anna Bianchi","fields":{"nota":null,"via":"","punti":13},"add_tags":["x"],"remove_tags":["Vip","cliente"]}`)
		s.must(&got, "GET", one, a.Key, "")
		if fmt.Sprintf("%s %v %v", *got.Name, got.Fields, got.Tags) != "Anna Bianchi map[nascita:1990-02-28 punti:13 visita:2026-11-20T10:30] [nuovo x]" || got.Changed != changed.Changed {
			t.Errorf("changed: %+v", got)
		}
		s.must(&changed, "PATCH", one, a.Key, `{"name":"","tags":[]}`)
		if changed.Name != nil || len(changed.Tags) > 0 {
			t.Errorf("changed: %+v", changed)
		}
		s.must(nil, "DELETE", one, a.Key, "")
		s.missing("GET", one, a.Key, "")
		s.missing("PATCH", one, a.Key, `{}`)
		s.missing("DELETE", one, a.Key, "")
		s.missing("GET", "/api/contacts/x", a.Key, "")
		if used := s.usage(a); used != 6 {
			t.Errorf("%d calls counted, want 6", used)
		}
	})
}

// TestContactsRefused: the refusal of a call contains all its faults, and nothing is stored or counted.
func TestContactsRefused(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.newAccount("refused@x", "full")
	id := s.newContact(a.Key, `{"phone":"+393331234567"}`)
	s.refusedAt(422, "POST", "/api/contacts", a.Key, `{"phone":"abc","language":"ita","fields":{"2x":"y","phone":"z","nome":"n"},"tags":["a,b",""," `+strings.Repeat("t", 51)+`"]}`,
		"body.phone", "body.language", "body.tags[0]", "body.tags[1]", "body.tags[2]", "body.fields", "body.fields", "body.fields")
	s.refusedAt(422, "POST", "/api/contacts", a.Key, `{"phone":"120363025246125486@g.us","nome":"Anna"}`, "body.nome", "body.phone")
	s.refusedAt(422, "POST", "/api/contacts", a.Key, `{}`, "body.phone")
	s.refusedAt(400, "POST", "/api/contacts", a.Key, `{"phone":"3331234567","fields":{"x":true},"tags":"a"}`, "body.fields.x", "body.tags")
	s.refusedAt(422, "PATCH", "/api/contacts/"+id, a.Key, `{"phone":"1","add_tags":[";"]}`, "body.phone", "body.add_tags[0]")
	s.refusedAt(422, "GET", "/api/contacts?tags=x&phone=abc&limit=0", a.Key, "", "query.tags", "query.phone", "query.limit")
	s.refusedAt(422, "GET", "/api/contacts?phone=abc*", a.Key, "", "query.phone")
	s.refusedAt(422, "GET", "/api/contacts?cursor=x", a.Key, "", "query.cursor")
	s.refusedAt(422, "GET", "/api/contacts/export?format=x", a.Key, "", "query.format")
	if used := s.usage(a); used != 1 {
		t.Errorf("%d calls counted", used)
	}
}

const contactFile = "Telefono,Nome,Tag,Data di nascita,Punti,Consenso\n" +
	"333 0000001,Anna,cliente; vip,1990-02-28,007,sì\n" +
	"abc,Nessuno,,,,si\n" +
	"+39 333 0000001,Ancora Anna,,,,\n" +
	"+393330000002,Bruno,,28/02/1990,7,no\n" +
	"+393330000003,Carla,\"" + "tttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttttt" + "\",,,\n" +
	"3330000004,Dario,,,,X\n"

// TestImportContacts: an import merges each valid row, and gives a reason for each refused row. A check gives the same
// answer, but stores nothing.
func TestImportContacts(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("import@x", "full")
		s.newContact(a.Key, `{"phone":"+393330000002","name":"Bruno","fields":{"punti":7,"data_di_nascita":"28/02/1990"}}`)
		s.newContact(a.Key, `{"phone":"+393330000004","name":"Dario Neri"}`)
		type imported struct {
			Rows, Added, Changed, Consents int
			Refused                        []struct {
				Reason string
				Count  int
			}
			Lines []struct {
				Line          int
				Phone         *string
				Reason, Value string
			}
			Columns []struct {
				Name  string
				Field *string
			}
		}
		if got := s.importContacts(a.Key, "", contactFile); got.status != 422 || !strings.Contains(got.body, "query.source") {
			t.Errorf("without a source: %d %s", got.status, got.body)
		}
		if got := s.importContacts(a.Key, "?source=x&check=yes&columnz=x", contactFile); got.status != 422 || !strings.Contains(got.body, "query.check") || !strings.Contains(got.body, "query.columnz") {
			t.Errorf("an unknown parameter: %d %s", got.status, got.body)
		}
		check := s.importContacts(a.Key, "?source=fiera&check=true", contactFile)
		if names := s.contactNames(a.Key, url.Values{}); len(names) != 2 || s.usage(a) != 2 {
			t.Errorf("a check stored %q, %d calls counted", names, s.usage(a))
		}
		done := s.importContacts(a.Key, "?source=fiera", contactFile)
		if check.status != 200 || check.body != done.body {
			t.Errorf("the check said %d %s\nthe import %d %s", check.status, check.body, done.status, done.body)
		}
		var got imported
		if err := json.Unmarshal([]byte(done.body), &got); err != nil {
			t.Fatal(err)
		}
		var lines, columns []string
		for _, l := range got.Lines {
			lines = append(lines, fmt.Sprintf("%d %s", l.Line, l.Reason))
		}
		for _, c := range got.Columns {
			columns = append(columns, *c.Field)
		}
		if got.Rows != 6 || got.Added != 1 || got.Changed != 2 || got.Consents != 2 || fmt.Sprint(got.Refused) != "[{invalid_phone 1} {duplicate 1} {bad_field 1}]" ||
			fmt.Sprint(lines) != "[3 invalid_phone 4 duplicate 6 bad_field]" || !strings.Contains(got.Lines[2].Value, "tags") {
			t.Errorf("imported: %s", done.body)
		}
		if fmt.Sprint(columns) != "[phone nome tags data_di_nascita punti consent]" {
			t.Errorf("columns: %v", columns)
		}
		var page struct{ Contacts []contact }
		s.must(&page, "GET", "/api/contacts?name=anna", a.Key, "")
		if c := page.Contacts[0]; fmt.Sprintf("%v %v %s", c.Fields, c.Tags, *c.Source) != "map[data_di_nascita:1990-02-28 punti:007] [cliente vip] fiera" {
			t.Errorf("imported: %+v", c)
		}
		s.must(&page, "GET", "/api/contacts?name=bruno", a.Key, "")
		if c := page.Contacts[0]; fmt.Sprintf("%v", c.Fields) != "map[data_di_nascita:1990-02-28 punti:7]" {
			t.Errorf("imported: %+v", c)
		}
		if used := s.usage(a); used != 3 {
			t.Errorf("%d calls counted, want 3", used)
		}
		s.importContacts(a.Key, "?source=fiera", contactFile) // a second import of the same file adds nothing
		client, _ := idsOf(t, a, a.Session)
		proof, _, err := s.owner.store.Tenant(client).Consents(t.Context(), puntuale.Person{}, puntuale.Page{})
		if err != nil || len(proof) != 2 || proof[0].Source != "fiera" || proof[0].Words != "sì" || proof[0].Purpose != puntuale.PurposeMarketing || proof[0].Change != puntuale.ConsentGrant {
			t.Errorf("the ledger: %+v, %v", proof, err)
		}
		mapped := s.importContacts(a.Key, "?columns=phone:1,name:2,soprannome:2", "x,y\n+393330000009,Zio\n")
		if mapped.status != 200 || !strings.Contains(mapped.body, `"added":1`) {
			t.Errorf("mapped: %d %s", mapped.status, mapped.body)
		}
		if got := s.importContacts(a.Key, "?columns=nome:Nome", contactFile); got.status != 422 || !strings.Contains(got.body, "query.columns") {
			t.Errorf("without a phone: %d %s", got.status, got.body)
		}
	})
}

// TestImportedConsent: a consent cell is a yes, a no or a fault, in each way in which people and programs write it.
func TestImportedConsent(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.newAccount("consent@x", "full")
	for words, want := range map[string]string{
		"sì": "yes", "si\u0300": "yes", "SI\u0300": "yes", "SI'": "yes", "Si’": "yes", "Sì.": "yes", "Accetto": "yes", "on": "yes", "TRUE": "yes", "1": "yes", "✔\ufe0f": "yes",
		"": "no", "No": "no", "off": "no", "0": "no", "-": "no", "Non accetto": "no", "FALSE": "no",
		"forse": "bad", "2": "bad", "no sì": "bad", "2026-01-01": "bad",
	} {
		got := s.importContacts(a.Key, "?source=fiera&check=true", "phone;consent\n+393330000001;"+words+"\n").body
		is := "no"
		switch {
		case strings.Contains(got, `"bad_field"`) && strings.Contains(got, "neither a yes nor a no"):
			is = "bad"
		case strings.Contains(got, `"consents":1`):
			is = "yes"
		}
		if is != want {
			t.Errorf("%q is %s, want %s: %s", words, is, want, got)
		}
	}
	s.importContacts(a.Key, "?source=fiera", "phone;consent\n+393330000001;sì\n")
	s.importContacts(a.Key, "?source=fiera", "phone;consent\n+393330000001;si\u0300\n") // the same words
	client, _ := idsOf(t, a, a.Session)
	if proof, _, err := s.owner.store.Tenant(client).Consents(t.Context(), puntuale.Person{}, puntuale.Page{}); err != nil || len(proof) != 1 {
		t.Errorf("the ledger: %+v, %v", proof, err)
	}
}

// TestImportExports: the contacts that other programs export are imported with their mobile number, name and tags.
func TestImportExports(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	for name, want := range map[string]string{
		"google.csv":        "+393331234561 Anna []; +393331234562 Bruno [Clienti]; +393331234563 Carla [Amici Clienti]; ",
		"google-old.csv":    "+393331234561 Anna Rossi []; +393331234562 Bruno Verdi [Clienti]; ",
		"google-labels.csv": "+39051123460 Dario []; +393331234561 Anna []; +393331234562 Bruno []; +393331234563 Carla []; +393331234565 Elena []; ",
		"outlook.csv":       "+393331234561 Anna [Clienti Fiera]; +393331234562 Bruno []; ",
		"apple.csv":         "+393331234561 Anna []; +393331234562 Bruno []; ",
	} {
		file, err := os.ReadFile("../roster/testdata/exports/" + name)
		if err != nil {
			t.Fatal(err)
		}
		a := s.newAccount(name+"@x", "full")
		done := s.importContacts(a.Key, "", string(file))
		var page struct{ Contacts []contact }
		s.must(&page, "GET", "/api/contacts", a.Key, "")
		slices.SortFunc(page.Contacts, func(x, y contact) int { return strings.Compare(x.Phone, y.Phone) })
		got := ""
		for _, c := range page.Contacts {
			if c.Name == nil {
				c.Name = new("no name")
			}
			got += fmt.Sprintf("%s %s %v; ", c.Phone, *c.Name, c.Tags)
		}
		if got != want {
			t.Errorf("%s: imported %s, want %s: %s", name, got, want, done.body)
		}
	}
}

// TestContactDateInText: a text prints a contact's date in the same form as the date of a call.
func TestContactDateInText(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.sending("dates@x")
	s.newContact(a.Key, `{"phone":"+393330000001","fields":{"scade":"2027-02-28","visita":"2027-02-28T10:30"},"tags":["cliente"]}`)
	var made campaignOf
	s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"x","content":{"text":"Scade il {{scade}}, visita {{visita}}, di {{visita:giorno}}."},"from":{"tags":["cliente"]}}`)
	s.feedAll(a, made.ID)
	s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"y","content":{"text":"Solo {{scade}} e {{visita}}."},"from":{"tags":["cliente"]}}`)
	s.feedAll(a, made.ID)
	all := s.must(nil, "GET", "/api/messages?phone=%2B393330000001", a.Key, "").body
	for _, want := range []string{"Scade il 28/02/2027, visita 28/02/2027 10:30, di domenica 28 febbraio.", "Solo 28/02/2027 e 28/02/2027 10:30."} {
		if !strings.Contains(all, want) {
			t.Errorf("%q is missing: %s", want, all)
		}
	}
}

// TestExportContacts: an export contains all contacts. No cell is a formula, because an apostrophe precedes such a
// text. Without these apostrophes, the export can be imported again.
func TestExportContacts(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	a := s.newAccount("export@x", "full")
	s.newContact(a.Key, `{"phone":"+393330000001","name":"=1+1","fields":{"punti":-3,"nota":"@x, \"y\""},"tags":["b","a","c|d ::: e"]}`)
	s.newContact(a.Key, `{"phone":"+393330000002","name":"Bruno","language":"it","source":"+1+cmd"}`)
	const want = "phone,nome,language,source,tags,nota,punti\n+393330000001,'=1+1,,,\"a,b,c|d ::: e\",\"'@x, \"\"y\"\"\",-3\n+393330000002,Bruno,it,'+1+cmd,,,"
	got := s.must(nil, "GET", "/api/contacts/export", a.Key, "")
	if got.body != want || !strings.HasPrefix(got.header.Get("Content-Type"), "text/csv") {
		t.Errorf("exported %s\n%s", got.header.Get("Content-Type"), got.body)
	}
	if got := s.must(nil, "GET", "/api/contacts/export?tag=a", a.Key, ""); strings.Count(got.body, "\n") != 1 {
		t.Errorf("of a tag: %s", got.body)
	}
	b := s.newAccount("again@x", "full")
	s.importContacts(b.Key, "", strings.ReplaceAll(want, "'", ""))
	if again := s.must(nil, "GET", "/api/contacts/export", b.Key, ""); again.body != want {
		t.Errorf("exported again: %s", again.body)
	}
}

// TestCampaignFromContacts: the contacts with a tag become a campaign's recipients, with their fields. If no contact
// has the tag, the campaign does not change.
func TestCampaignFromContacts(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.sending("from@x")
		s.newContact(a.Key, `{"phone":"+393330000001","name":"Anna","fields":{"citta":"Roma"},"tags":["cliente"]}`)
		s.newContact(a.Key, `{"phone":"+393330000002","name":"Bruno","fields":{"punti":7},"tags":["cliente","vip"]}`)
		s.newContact(a.Key, `{"phone":"+393330000003","name":"Carla","tags":["altro"]}`)
		id := s.newCampaign(a.Key, "x@x")
		path := "/api/campaigns/" + id + "/recipients"
		s.refusedAt(422, "POST", path, a.Key, `{"from":{"tags":["nessuno"]}}`, "body.from.tags")
		s.refusedAt(422, "POST", path, a.Key, `{"from":{"tags":[],"tag":"x"},"recipients":[{"phone":"1"}]}`, "body.from.tag", "body.from", "body.from.tags")
		if c := s.campaign(a.Key, id); c.Counts["recipients"] != 1 {
			t.Errorf("a refused call changed the list: %v", c.Counts)
		}
		var list struct {
			Recipients int
			Columns    []struct{ Name string }
			Preview    [][]string
		}
		s.must(&list, "POST", path, a.Key, `{"from":{"tags":["vip","cliente"]}}`)
		if list.Recipients != 2 || fmt.Sprintf("%v %v", list.Columns, list.Preview) != "[{phone} {nome} {citta} {punti}] [[+393330000001 Anna Roma ] [+393330000002 Bruno  7]]" {
			t.Errorf("the list: %+v", list)
		}
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns?start=true", a.Key, `{"name":"Auguri","content":{"text":"Ciao {{nome}} di {{citta|qui}}"},"from":{"tags":["cliente"]}}`)
		s.feedAll(a, made.ID)
		if c := s.campaign(a.Key, made.ID); c.Counts["recipients"] != 2 || c.Counts["fed"] != 2 {
			t.Errorf("started: %+v", c)
		}
		if all := s.must(nil, "GET", "/api/messages?phone=%2B393330000001", a.Key, ""); !strings.Contains(all.body, "Ciao Anna di Roma") {
			t.Errorf("messages: %s", all.body)
		}
		s.refusedAt(422, "POST", "/api/campaigns", a.Key, `{"name":"Auguri","content":{"text":"Ciao"},"from":{"tags":["nessuno"]}}`, "body.from.tags")
		s.refusedAt(422, "PUT", "/api/campaigns/"+id, a.Key, `{"name":"Auguri","content":{"text":"Ciao"},"from":{"tags":["vip"]}}`, "body.from")
	})
}
