package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestContract covers each table and sentence of the contract, in the contract's order, on both databases.
func TestContract(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		test func(*testing.T, *service)
	}{
		{"MessageDetailRecord", contractDetails},
		{"MessageOutcomeRecord", contractOutcomes},
		{"CancelledPendingMessageRecord", contractCancel},
		{"DailyUsageCounters", contractUsage},
		{"ClientAccountCreationResult", contractCreation},
		{"ClientExpirationRecord", contractExpiration},
		{"ClientSnapshot", contractSnapshot},
		{"DefaultSequencePair", contractPair},
		{"AccountTypes", contractAccountTypes},
		{"RecipientIdentifiers", contractRecipients},
		{"StatesAndTransitions", contractStates},
		{"Start", contractStart},
		{"Stop", contractStop},
		{"Resend", contractResend},
		{"BlacklistRemoval", contractBlacklist},
		{"Authentication", contractAuthentication},
		{"Errors", contractErrors},
		{"Limits", contractLimits},
		{"Versioning", contractVersion},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			databases(t, options{sandbox: true}, c.test)
		})
	}
}

// shape returns the members of an object with their types, in the object's order.
func shape(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		t.Fatalf("%s is no object", raw)
	}
	var members []string
	for d.More() {
		name, _ := d.Token()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			t.Fatal(err)
		}
		kind := "number"
		switch value[0] {
		case '"':
			kind = "string"
		case 'n':
			kind = "null"
		case 't', 'f':
			kind = "boolean"
		case '[':
			kind = "array"
		case '{':
			kind = "object"
		}
		members = append(members, fmt.Sprintf("%s:%s", name, kind))
	}
	return strings.Join(members, " ")
}

// wantShape fails the test if an object has other members than want.
func wantShape(t *testing.T, raw json.RawMessage, want string) {
	t.Helper()
	if got := shape(t, raw); got != strings.Join(strings.Fields(want), " ") {
		t.Errorf("members\n%s\nwant\n%s", got, strings.Join(strings.Fields(want), " "))
	}
}

// messages returns the entries of an answer's list of messages.
func messages(t *testing.T, a response) []json.RawMessage {
	t.Helper()
	var v struct{ Messages []json.RawMessage }
	decode(t, a, &v)
	if v.Messages == nil {
		t.Errorf("messages is no list: %s", a.body)
	}
	return v.Messages
}

var contractStamp = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$`)

// detail is a message in the contract's form.
type detail struct {
	Tipologia, Ricezione, Telefono, Stato, Cliente, Contenuto, Richiesta, Risposta string
	Variant                                                                        string
	NomeInvio                                                                      string  `json:"nome_invio"`
	Desired                                                                        *string `json:"invio_desiderato"`
	Planned                                                                        string  `json:"invio_previsto"`
	Left                                                                           *string `json:"invio_effettivo"`
	Sequenza, Template                                                             *string
	MediaURL                                                                       *string `json:"media_url"`
	Latitudine, Longitudine                                                        *float64
	MediaName                                                                      *string `json:"nome_media"`
	Detail                                                                         *string `json:"dettaglio_risposta"`
}

// details reads messages in the contract's form.
func (s *service) details(key string, ids ...string) []detail {
	s.t.Helper()
	var v struct{ Messages []detail }
	s.must(&v, "GET", "/api/messages/details?message_ids[]="+strings.Join(ids, ","), key, "")
	return v.Messages
}

func contractDetails(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepDate+`,{"media":"https://x.it/a/listino.pdf","timing":{"anchor":"start","offset":{"amount":0}}},
 {"latitude":45.5,"longitude":9.25,"timing":{"anchor":"start","offset":{"amount":0}}}`)
	body := `{"phone":"3331234567", "quando":"25/11/2026 15:30"}`
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, body)
	s.clock.Advance(time.Second)
	s.end(a, run.ID[1], "+393331234567", sent)
	raw := s.must(nil, "GET", "/api/messages/details?api_key="+a.Key+"&message_ids[]="+strings.Join(run.ID, "&message_ids[]="), "", "")
	rows := messages(t, raw)
	if len(rows) != 3 {
		t.Fatal(raw.body)
	}
	order := `tipologia:string nome_invio:string ricezione:string invio_desiderato:%s invio_previsto:string invio_effettivo:%s
 telefono:string stato:string cliente:string sequenza:string template:null contenuto:string media_url:%s latitudine:%s longitudine:%[4]s
 nome_media:%[3]s richiesta:string risposta:string dettaglio_risposta:%[2]s`
	wantShape(t, rows[0], fmt.Sprintf(order, "string", "null", "null", "null"))
	wantShape(t, rows[1], fmt.Sprintf(order, "null", "string", "string", "null"))
	wantShape(t, rows[2], fmt.Sprintf(order, "null", "null", "null", "number"))
	d := s.details(a.Key, run.ID...)
	first, second := d[0], d[1]
	if first.Tipologia != "SEQUENCE" || first.NomeInvio != "" || *first.Sequenza != "Promemoria" || first.Cliente != "Studio Bianchi" ||
		first.Stato != "PENDING" || first.Richiesta != body || first.Risposta != "In attesa di invio" || first.Telefono != "+393331234567" ||
		first.Contenuto != "Il mercoledì 25 novembre alle 15:30" || *first.Desired != "2026-11-24T17:00:00.000000Z" || first.Planned != *first.Desired {
		t.Errorf("%+v", first)
	}
	if second.Stato != "COMPLETED" || *second.Left != "2026-11-20T09:30:01.123456Z" || second.Risposta != "Inviato" || *second.Detail != "wamid.1" ||
		*second.MediaName != "listino.pdf" || second.Ricezione != "2026-11-20T09:30:00.123456Z" {
		t.Errorf("%+v", second)
	}
	for _, text := range []string{first.Ricezione, *first.Desired, first.Planned, *second.Left} {
		if !contractStamp.MatchString(text) {
			t.Errorf("timestamp %q", text)
		}
	}
	if *d[2].Latitudine != 45.5 || *d[2].Longitudine != 9.25 {
		t.Errorf("%+v", d[2])
	}
	// The answer contains the messages that exist, in the order of the ids.
	if got := s.details(a.Key, run.ID[2], "1", run.ID[0]); len(got) != 2 || got[0].Latitudine == nil {
		t.Errorf("%+v", got)
	}
}

func contractOutcomes(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepNow+","+stepNow+","+stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.end(a, run.ID[1], "+393331234567", refused)
	s.clock.Advance(time.Minute)
	s.end(a, run.ID[0], "+393331234567", sent)
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	s.clock.Advance(time.Minute)
	if _, granted := s.begin(a, run.ID[2], "+393331234567"); granted == 1 {
		t.Error("a blacklisted number was written to")
	}
	s.clock.Advance(2 * time.Second) // after this time the outcomes are complete: see TestBehaviour/OutcomesAreComplete
	period := func(from, to string) response {
		return s.must(nil, "GET", "/api/messages/statusByPeriod?api_key="+a.Key+"&start=20/11/2026%20"+from+"&end=20/11/2026%20"+to, "", "")
	}
	all := period("10:30", "10:32")
	rows := messages(t, all)
	want := fmt.Sprintf(`{"messages":[{"message_id":%s,"status":"FAILED","reason":"Numero non raggiungibile"},`+
		`{"message_id":%s,"status":"SENT","reason":null},{"message_id":%s,"status":"FAILED","reason":"Numero in blacklist"}]}`, run.ID[1], run.ID[0], run.ID[2])
	if all.body != want {
		t.Errorf("%s\nwant\n%s", all.body, want)
	}
	wantShape(t, rows[1], "message_id:number status:string reason:null")
	// A period selects outcomes by the completion date. Its first and its last minute belong to the period.
	for _, c := range []struct {
		from, to string
		want     int
	}{{"10:30", "10:30", 1}, {"10:31", "10:31", 1}, {"10:31", "10:32", 2}, {"10:29", "10:29", 0}, {"10:33", "11:40", 0}, {"00:00", "23:59", 3}} {
		if got := messages(t, period(c.from, c.to)); len(got) != c.want {
			t.Errorf("%s to %s: %d", c.from, c.to, len(got))
		}
	}
}

func contractCancel(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	other := s.newAccount("b@x", "full")
	steps := stepLater + `,{"text":"x","timing":{"anchor":"start","offset":{"amount":0},"window":{"from":"12:00","to":"13:00"}}}`
	id, foreign := s.newSequence(a.Key, steps), s.newSequence(other.Key, steps)
	cancel := "/api/messages/cancel/pending"
	if got := s.must(nil, "POST", cancel, a.Key, ""); got.body != `{"message":"Nessun messaggio annullato","messages":[]}` {
		t.Error(got.body)
	}
	var run, second started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.must(&second, "POST", "/api/start/"+id, a.Key, `{"phone":"3337654321","testo":"t"}`)
	s.must(nil, "POST", "/api/start/"+foreign, other.Key, `{"phone":"3331234567","testo":"t"}`)
	got := s.must(nil, "POST", cancel+"?api_key="+a.Key, "", `{"phones":["+393331234567"]}`)
	rows := messages(t, got)
	if len(rows) != 2 || !strings.HasPrefix(got.body, `{"message":"2 messaggi annullati","messages":[{"id":`+run.ID[0]+`,"desired_date":"2026-11-20T10:30:00.123456Z"},`+
		`{"id":`+run.ID[1]+`,"desired_date":"2026-11-20T11:00:00.000000Z"}`) {
		t.Error(got.body)
	}
	wantShape(t, rows[0], "id:number desired_date:string")
	// Without phones, all messages of the key's client are cancelled, and no messages of another client.
	if got := messages(t, s.must(nil, "POST", cancel, a.Key, "")); len(got) != 2 {
		t.Errorf("%d cancelled", len(got))
	}
	if got := messages(t, s.must(nil, "GET", "/api/messages?state=PENDING", other.Key, "")); len(got) != 2 {
		t.Errorf("%d of the other client's are pending", len(got))
	}
}

func contractUsage(t *testing.T, s *service) {
	a := s.newAccount("a@x", "test")
	id := s.newSequence(a.Key, stepLater)
	got := s.must(nil, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	if !strings.HasSuffix(got.body, `"daily_api_cap":100,"daily_api_used":1,"daily_api_remaining":99}`) {
		t.Error(got.body)
	}
	got = s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
	if !strings.HasSuffix(got.body, `"daily_api_cap":100,"daily_api_used":2,"daily_api_remaining":98}`) {
		t.Error(got.body)
	}
}

func contractCreation(t *testing.T, s *service) {
	a := s.must(nil, "POST", "/api/client/create?api_key="+s.partner, "",
		`{"name":"Studio","email":"non@usata","password":"x","phone":"+39 02 1234","account_type":"baby"}`)
	wantShape(t, json.RawMessage(a.body), "id_client:string id_sessione:string api_key:string nome_account:string telefono:string email_di_login:string account_type:string timestamp:string")
	var c struct {
		Name, Phone, Email, Type, Timestamp string
	}
	var m map[string]string
	decode(t, a, &m)
	c.Name, c.Phone, c.Email, c.Type, c.Timestamp = m["nome_account"], m["telefono"], m["email_di_login"], m["account_type"], m["timestamp"]
	if c.Name != "Studio" || c.Phone != "+39 02 1234" || c.Email != "non@usata" || c.Type != "baby" || c.Timestamp != "2026-11-20T09:30:00.123456Z" {
		t.Errorf("%+v", c)
	}
	// The new key works, and the partner's list contains the new client.
	s.must(nil, "GET", "/api/sessions/"+m["id_sessione"], m["api_key"], "")
	if list := s.must(nil, "GET", "/api/clients", s.partner, ""); !strings.Contains(list.body, `"id_client":"`+m["id_client"]+`"`) {
		t.Error(list.body)
	}
	for _, missing := range []string{"name", "email", "password", "phone"} {
		body := map[string]string{"name": "x", "email": "y@z", "password": "p", "phone": "1"}
		delete(body, missing)
		text, _ := json.Marshal(body)
		if a := s.call("POST", "/api/client/create", s.partner, string(text)); a.status != 422 || !slices.Equal(a.locations(), []string{"body." + missing}) {
			t.Errorf("without %s: %d %s", missing, a.status, a.body)
		}
	}
}

func contractExpiration(t *testing.T, s *service) {
	a, b := s.newAccount("a@x", "test"), s.newAccount("b@x", "full")
	want := `[{"id":` + b.ID + `,"nome":"Studio Bianchi","expiration_date":null},{"id":` + a.ID + `,"nome":"Studio Bianchi","expiration_date":"2026-12-04"}]`
	for target, body := range map[string]string{
		"/api/clients/expiration?api_key=" + s.partner:                           `{"client_ids":[` + b.ID + `,` + a.ID + `]}`,
		"/api/clients/expiration":                                                `{"client_ids":["` + b.ID + `",` + a.ID + `,` + b.ID + `]}`,
		"/api/clients/expiration?client_ids[]=" + b.ID + "&client_ids[]=" + a.ID: "",
		"/api/clients/expiration?client_ids=" + b.ID + "," + a.ID:                "",
	} {
		if got := s.must(nil, "GET", target, s.partner, body); got.body != want {
			t.Errorf("%s %s: %s", target, body, got.body)
		}
	}
	if got := s.must(nil, "GET", "/api/clients/expiration", s.partner, `{"client_ids":[]}`); got.body != `[]` {
		t.Error(got.body)
	}
}

func contractSnapshot(t *testing.T, s *service) {
	for kind, want := range map[string]string{
		"test": `"profile":"Fase di Test","credits":"100","refill_period":"Nessuno","expiration_date":"2026-12-04","active_features":[]}`,
		"baby": `"profile":"Subscription Annuale","credits":"2000","refill_period":"Annuale","expiration_date":null,"active_features":[]}`,
		"full": `"profile":"Subscription Mensile","credits":"Illimitati","refill_period":"Nessuno","expiration_date":null,"active_features":[]}`,
	} {
		a := s.newAccount(kind+"@x", kind)
		got := s.must(nil, "GET", "/api/client/"+a.ID+"/snapshot?api_key="+s.partner, "", "")
		if got.body != `{"account_name":"Studio Bianchi","login":"`+kind+`@x","phone":"0212345678","connection_type":"Socket",`+want {
			t.Errorf("%s: %s", kind, got.body)
		}
	}
}

func contractPair(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	path := "/api/session/" + a.Session + "/defaultSequence"
	if got := s.must(nil, "GET", path+"?api_key="+a.Key, "", ""); got.body != `{"start":"","stop":""}` {
		t.Error(got.body)
	}
	start, stop := s.newSequence(a.Key, stepNow), s.newSequence(a.Key, stepNow)
	want := `{"start":"` + start + `","stop":"` + stop + `"}`
	if got := s.must(nil, "PUT", path, a.Key, `{"start":"`+start+`","stop":`+stop+`}`); got.body != want {
		t.Error(got.body)
	}
	if got := s.must(nil, "GET", path, a.Key, ""); got.body != want {
		t.Error(got.body)
	}
	if a := s.call("GET", path, "", ""); a.status != 401 {
		t.Errorf("without a key: %d", a.status)
	}
}

func contractAccountTypes(t *testing.T, s *service) {
	// A test account has 100 credits and lasts 14 days. A baby account has 2,000 credits a year. A full account has no
	// limits, and is the default.
	var full clientAccount
	s.must(&full, "POST", "/api/client/create", s.partner, `{"name":"x","email":"d@x","password":"p","phone":"1"}`)
	if got := s.must(nil, "GET", "/api/client/"+full.ID+"/snapshot", s.partner, ""); !strings.Contains(got.body, `"credits":"Illimitati"`) {
		t.Error(got.body)
	}
	if a := s.call("POST", "/api/client/create", s.partner, `{"name":"x","email":"e@x","password":"p","phone":"1","account_type":"gold"}`); a.status != 422 {
		t.Errorf("%d %s", a.status, a.body)
	}
	test := s.newAccount("t@x", "test")
	id := s.newSequence(test.Key, stepNow)
	s.clock.Set(time.Date(2026, 12, 4, 22, 59, 0, 0, time.UTC))
	s.must(nil, "POST", "/api/start/"+id, test.Key, `{"phone":"3331234567"}`)
	s.clock.Advance(time.Minute)
	if a := s.call("POST", "/api/start/"+id, test.Key, `{"phone":"3331234567"}`); a.status != 403 {
		t.Errorf("on the 15th day: %d", a.status)
	}
}

func contractRecipients(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater)
	for given, want := range map[string]string{
		"3331234567": "+393331234567", "120363025246125016@g.us": "120363025246125016@g.us", "20482973843@lid": "20482973843@lid",
		"AbCdEfGhIjKlMnOpQrStUv": "AbCdEfGhIjKlMnOpQrStUv", "0123456789012345678901": "0123456789012345678901",
	} {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"`+given+`","testo":"t"}`)
		if got := s.details(a.Key, run.ID[0])[0].Telefono; got != want {
			t.Errorf("%s became %s", given, got)
		}
		if got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"`+given+`"}`); !strings.HasPrefix(got.body, `{"message":"1 messaggio annullato"`) {
			t.Errorf("%s: %s", given, got.body)
		}
	}
}

func contractStates(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id, other := s.newSequence(a.Key, stepLater), s.newSequence(a.Key, stepLater)
	start := func(sequence, phone string) string {
		var run started
		s.must(&run, "POST", "/api/start/"+sequence, a.Key, `{"phone":"`+phone+`","testo":"t"}`)
		return run.ID[0]
	}
	mine, otherPhone, otherSequence := start(id, "3331234567"), start(id, "3337654321"), start(other, "3331234567")
	state := func(id string) string { return s.details(a.Key, id)[0].Stato }
	got := s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
	if !strings.HasPrefix(got.body, `{"message":"1 messaggio annullato","id":["`+mine+`"]`) ||
		state(mine) != "CANCELLED" || state(otherPhone) != "PENDING" || state(otherSequence) != "PENDING" {
		t.Errorf("%s: %s %s %s", got.body, state(mine), state(otherPhone), state(otherSequence))
	}
	s.must(nil, "POST", "/api/messages/cancel/pending", a.Key, `{"phones":["3337654321"]}`)
	if state(otherPhone) != "CANCELLED" || state(otherSequence) != "PENDING" {
		t.Errorf("%s %s", state(otherPhone), state(otherSequence))
	}
	s.must(nil, "POST", "/api/messages/reschedule/all", a.Key, `{"id":["`+mine+`"]}`)
	if state(mine) != "RESCHEDULED" {
		t.Error(state(mine))
	}
}

func contractStart(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, `{"text":"{{text|}} {{chi}}","media":"{{media|}}","media_name":"{{media_name|}}","timing":{"anchor":"start","offset":{"amount":0}}},`+stepDate)
	got := s.must(nil, "POST", "/api/start/"+id+"?api_key="+a.Key, "",
		`{"phone":"3331234567","text":"Ciao","media":"https://x.it/a.jpg","media_name":"b.jpg","chi":"Anna","quando":"2026-12-01T10:00"}`)
	wantShape(t, json.RawMessage(got.body), "id:array daily_api_cap:number daily_api_used:number daily_api_remaining:number")
	var run started
	decode(t, got, &run)
	if len(run.ID) != 2 || run.Cap != 1_000_000 {
		t.Fatal(got.body)
	}
	d := s.details(a.Key, run.ID...)
	if d[0].Contenuto != "Ciao Anna" || *d[0].MediaURL != "https://x.it/a.jpg" || *d[0].MediaName != "b.jpg" || d[1].Planned != "2026-11-30T17:00:00.000000Z" {
		t.Errorf("%+v", d)
	}
	if a := s.call("POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","chi":"x","quando":"2026-12-01T10:00","media":"https://x.it/a.exe"}`); a.status != 422 ||
		!slices.Equal(a.locations(), []string{"body.media"}) {
		t.Errorf("an extension that is not allowed: %d %s", a.status, a.body)
	}
}

func contractStop(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepLater+","+stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	got := s.must(nil, "POST", "/api/stop/"+id+"?api_key="+a.Key, "", `{"phone":"+393331234567"}`)
	wantShape(t, json.RawMessage(got.body), "message:string id:array daily_api_cap:number daily_api_used:number daily_api_remaining:number")
	if !strings.HasPrefix(got.body, `{"message":"2 messaggi annullati","id":["`+run.ID[0]+`","`+run.ID[1]+`"],`) {
		t.Error(got.body)
	}
}

func contractResend(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, stepNow+","+stepLater)
	var run started
	s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
	s.end(a, run.ID[0], "+393331234567", sent)
	s.must(nil, "POST", "/api/stop/"+id, a.Key, `{"phone":"3331234567"}`)
	got := s.must(nil, "POST", "/api/messages/reschedule/all?api_key="+a.Key, "", `{"id":["`+run.ID[1]+`","`+run.ID[0]+`"],"date":"2026-11-23"}`)
	wantShape(t, json.RawMessage(got.body), "id:array")
	var again started
	decode(t, got, &again)
	d := s.details(a.Key, append(again.ID, run.ID...)...)
	if len(d) != 4 || d[0].Contenuto != "Tra un'ora: t" || d[0].Planned != "2026-11-23T10:30:00.123456Z" || d[1].Planned != "2026-11-23T09:30:00.123456Z" ||
		d[0].Stato != "PENDING" || d[2].Stato != "COMPLETED" || d[3].Stato != "RESCHEDULED" || *d[0].Sequenza != "Promemoria" || d[0].Richiesta != d[2].Richiesta {
		t.Errorf("%+v", d)
	}
}

func contractBlacklist(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	s.must(nil, "POST", "/api/blacklist", a.Key, `{"phone":"3331234567"}`)
	for _, want := range []string{"Numero di telefono rimosso dalla blacklist", "Numero di telefono non trovato in blacklist"} {
		if got := s.must(nil, "DELETE", "/api/blacklist/remove?api_key="+a.Key, "", `{"phone":"+393331234567"}`); got.body != `{"message":"`+want+`"}` {
			t.Error(got.body)
		}
	}
}

func contractAuthentication(t *testing.T, s *service) {
	// Each operation also accepts the key in the query. TestKeysAndTenants shows which operations need a partner's key
	// or a client's key.
	own := newTenant(s, "own@x", "+393330000001")
	for _, id := range documented(t) {
		op := operations[id]
		own := own
		if id == "startCampaign" || id == "retryCampaign" { // earlier calls of the test changed the campaign, so its check is outdated
			own = newTenant(s, id+"@x", "+393330000001")
		}
		key := own.keyFor(s, op.path, op.partner)
		target := own.fill(op.path)
		separator := map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")]
		if op.last || key == "" || id == "getDelivery" { // the call removes something that later calls need, needs no key, or reads a delivery, and there is none
			continue
		}
		// The business of this tenant has no templates, its account is not known yet, and the service has no public address.
		unready := slices.Contains([]string{"makeLinkingPage", "createNetworkTemplate", "editNetworkTemplate", "unpauseNetworkTemplate", "deleteNetworkTemplate"}, id)
		if a := s.call(op.method, target+separator+"api_key="+key, "", own.fill(op.body)); a.status != 200 && (!unready || a.status != 404 && a.status != 409) {
			t.Errorf("%s: %d %s", id, a.status, a.body)
		}
	}
}

func contractErrors(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	got := s.call("GET", "/api/clients/expiration", s.partner, `{"client_ids":[`+a.ID+`,999999,"x"]}`)
	if got.status != 404 || !slices.Equal(got.locations(), []string{"body.client_ids[1]", "body.client_ids[2]"}) || !strings.Contains(got.body, `"value":999999`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.must(nil, "DELETE", "/api/blacklist/remove", a.Key, `{"phone":"3331234567"}`); got.status != 200 {
		t.Error(got.body)
	}
}

// If a period has more than 1,000 outcomes, they come in pages. No outcome is skipped or repeated. The cursor and the
// link both lead to the next page.
func contractLimits(t *testing.T, s *service) {
	a := s.newAccount("a@x", "full")
	id := s.newSequence(a.Key, strings.TrimPrefix(strings.Repeat(","+stepNow, 50), ","))
	for range 21 {
		var run started
		s.must(&run, "POST", "/api/start/"+id, a.Key, `{"phone":"3331234567","testo":"t"}`)
		items, _ := s.beginAll(a, "+393331234567", run.ID...)
		s.record(sent, items...)
	}
	s.clock.Advance(2 * time.Second) // after this time the outcomes are complete: see TestBehaviour/OutcomesAreComplete
	var page struct {
		Messages []struct {
			ID int64 `json:"message_id"`
		}
		Next string `json:"next_cursor"`
	}
	target := "/api/messages/statusByPeriod?start=20%2F11%2F2026+10%3A30&end=20%2F11%2F2026+10%3A30"
	first := s.must(&page, "GET", target, a.Key, "")
	link := first.header.Get("Link")
	if len(page.Messages) != 1000 || page.Next == "" || !strings.HasSuffix(link, `>; rel="next"`) || strings.Contains(link, "api_key") {
		t.Fatalf("%d, %s, %s", len(page.Messages), page.Next, link)
	}
	named := strings.NewReplacer("start=", "start=&inizio=", "end=", "end=+&to=").Replace(target)
	if other := s.must(nil, "GET", named, a.Key, "").header.Get("Link"); other != link {
		t.Errorf("under other names the link is %s, not %s", other, link)
	}
	last := page.Messages[999].ID
	address := strings.TrimPrefix(strings.TrimSuffix(link, `>; rel="next"`), "<")
	page.Next = ""
	s.must(&page, "GET", address+"&api_key="+a.Key, "", "")
	if len(page.Messages) != 50 || page.Messages[0].ID <= last || page.Next != "" {
		t.Errorf("%d more, %s", len(page.Messages), page.Next)
	}
}

func contractVersion(t *testing.T, s *service) {
	got := s.call("GET", "/openapi.json", "", "")
	if !strings.Contains(got.body, `"version":"1.0.0"`) {
		t.Error("the document is not version 1.0.0")
	}
	for path, item := range loadPaths(t) {
		if strings.Contains(path, "/v1") || item == nil {
			t.Errorf("%s has a version", path)
		}
	}
}
