package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"puntuale/internal/httpapi/docs"
)

func TestDocument(t *testing.T) {
	t.Parallel()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, d.raw, "", "  "); err != nil {
		t.Fatal(err)
	}
	golden(t, "openapi.json", pretty.String()+"\n")
	if strings.Contains(pretty.String(), "$schema") {
		t.Error("$schema is in the document")
	}
	s := newService(t, options{})
	r := httptest.NewRequest(http.MethodGet, docs.DocumentPath, nil)
	if a := s.send(r); a.status != 200 || a.body != string(d.raw) || a.header.Get("Content-Type") != "application/json" {
		t.Errorf("%d %s", a.status, a.header)
	}
}

// transcript records calls and their answers. It replaces values that are different in each execution of the test with
// fixed names.
type transcript struct {
	*service
	names []string // pairs: a text, and the name that replaces the text
	text  strings.Builder
}

func (s *transcript) nameAll(name string, ids []string) {
	for i, id := range ids {
		s.names = append(s.names, id, fmt.Sprintf("{%s%d}", name, i+1))
	}
}

var prefixes = regexp.MustCompile(`"prefix":"(ck_)[0-9a-z]{8}"`)

var keys = regexp.MustCompile(`([cp]k_)[0-9a-z]{58}`)

// do makes a call, and writes the call and the answer into the transcript.
func (s *transcript) do(note, method, target, key, body string, header ...string) response {
	s.t.Helper()
	a := s.call(method, target, key, body, header...)
	fmt.Fprintf(&s.text, "# %s\n%s %s", note, method, target)
	for i := 0; i+1 < len(header); i += 2 {
		fmt.Fprintf(&s.text, "\n%s: %s", header[i], header[i+1])
	}
	if body != "" {
		fmt.Fprintf(&s.text, "\n%s", body)
	}
	fmt.Fprintf(&s.text, "\n\n%d %s", a.status, a.header.Get("Content-Type"))
	for _, name := range []string{"Allow", "Idempotent-Replayed", "Retry-After", "WWW-Authenticate"} {
		if value := a.header.Get(name); value != "" {
			fmt.Fprintf(&s.text, "\n%s: %s", name, value)
		}
	}
	fmt.Fprintf(&s.text, "\n%s\n\n\n", a.body)
	return a
}

// end compares the transcript with a golden file.
func (s *transcript) end(file string) {
	s.t.Helper()
	text := strings.NewReplacer(s.names...).Replace(s.text.String())
	text = prefixes.ReplaceAllString(text, `"prefix":"$1…"`)
	golden(s.t, file, keys.ReplaceAllString(text, "$1…"))
}

// TestGoldenAnswers records the answers of all operations as an integrator sees them, with every member in order.
func TestGoldenAnswers(t *testing.T) {
	t.Parallel()
	s := &transcript{service: newService(t, options{sandbox: true})}
	var client struct {
		ID      string `json:"id_client"`
		Session string `json:"id_sessione"`
		Key     string `json:"api_key"`
	}
	a := s.do("create a client", "POST", "/api/client/create", s.partner,
		`{"name":"Studio Bianchi","email":"info@bianchi.example","password":"segreto","phone":"02 1234 5678","account_type":"test"}`)
	decode(t, a, &client)
	key := client.Key

	s.do("list sessions", "GET", "/api/sessions", key, "")
	s.do("get a session", "GET", "/api/sessions/"+client.Session, key, "")
	s.do("create a session", "POST", "/api/sessions", key, `{"name":"Seconda","connection_type":"Official","sandbox":false}`)

	var sequence struct{ ID string }
	a = s.do("create a sequence", "POST", "/api/sequences", key, `{"name":"Promemoria","id_sessione":`+client.Session+`,
 "if_running":"restart","stop_on_reply":true,"steps":[`+stepNow+`,
 {"media":"{{file}}","media_name":"listino.pdf","text":"Ecco","timing":{"anchor":"start","offset":{"amount":2,"unit":"hours","direction":"after"},
  "window":{"weekdays":[1,2,3,4,5],"from":"09:00","to":"18:00","holidays":"avoid"},"valid_for":{"amount":6,"unit":"hours"}}},
 {"latitude":45.4642,"longitude":9.19,"timing":{"anchor":"quando","offset":{"amount":1,"unit":"days","direction":"before"},"at":"18:00","if_past":"skip"}}]}`)
	decode(t, a, &sequence)
	one := "/api/sequences/" + sequence.ID
	s.do("get a sequence", "GET", one, key, "")
	s.do("list sequences", "GET", "/api/sequences?limit=1", key, "")

	fields := `{"phone":"333 123 4567","nome":"Anna <3","file":"https://example.com/a/listino%202026.PDF?x=1","quando":"25/11/2026 15:30","unused":{"a":[1]}}`
	jittered := s.newSequence(key, strings.Replace(stepDate, `"at"`, `"jitter":600,"at"`, 1))
	s.do("dry run with jitter", "POST", "/api/start/"+jittered+"?dry_run=true", key, `{"phone":"3331234567","quando":"25/11/2026 15:30"}`)
	s.do("dry run", "POST", "/api/start/"+sequence.ID+"?dry_run=true", key, fields)
	var first started
	a = s.do("start", "POST", "/api/start/"+sequence.ID, key, fields)
	decode(t, a, &first)
	s.nameAll("m", first.ID)
	var second started
	a = s.do("start, with a step left out", "POST", "/api/start/"+sequence.ID+"?if_running=allow", key,
		strings.Replace(fields, "25/11/2026", "20/11/2026", 1))
	decode(t, a, &second)
	s.nameAll("o", second.ID)
	s.do("details", "GET", "/api/messages/details?message_ids[]="+strings.Join(first.ID, ",")+",1", key, "")
	s.do("cancel for a recipient without messages", "POST", "/api/messages/cancel/pending", key, `{"phones":["+393339999999"]}`)
	s.do("stop", "POST", "/api/stop/"+sequence.ID, key, `{"phone":"+393331234567"}`)
	s.do("details after the stop", "GET", "/api/messages/details?message_ids[]="+first.ID[0], key, "")
	s.do("stop again", "POST", "/api/stop/"+sequence.ID, key, `{"phone":"+393331234567"}`)
	a = s.do("start again", "POST", "/api/start/"+sequence.ID, key, fields)
	decode(t, a, &first)
	s.nameAll("n", first.ID)
	s.do("cancel all pending messages", "POST", "/api/messages/cancel/pending", key, "")

	s.do("replace a sequence", "PUT", one, key, `{"name":"Altro","steps":[{"text":"Fisso","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	s.do("delete a sequence", "DELETE", one, key, "")
	s.do("add to the blacklist", "POST", "/api/blacklist", key, `{"phone":3331234567,"reason":"STOP"}`)
	s.do("list the blacklist", "GET", "/api/blacklist", key, "")
	s.do("remove from the blacklist", "DELETE", "/api/blacklist/remove", key, `{"phone":"3331234567"}`)
	s.do("remove again", "DELETE", "/api/blacklist/remove", key, `{"phone":"3331234567"}`)
	s.do("sandbox messages", "GET", "/api/sandbox/messages", key, "")
	s.end("answers.golden")
}

// TestGoldenMore records the answers of the operations on messages, templates and accounts.
func TestGoldenMore(t *testing.T) {
	t.Parallel()
	s := &transcript{service: newService(t, options{sandbox: true})}
	a := s.newAccount("info@bianchi.example", "test")
	key := a.Key
	s.do("create a template", "POST", "/api/templates", key, `{"name":"Visita","text":"Ciao {{nome}}, a {{quando:giorno}}","media":"{{foto|}}","media_name":"foto.jpg"}`)
	s.do("list templates", "GET", "/api/templates", key, "")
	s.do("get a template", "GET", "/api/templates/1", key, "")
	s.do("replace a template", "PUT", "/api/templates/1", key, `{"name":"Visita","text":"Ciao {{nome}}"}`)
	a2 := s.do("create a sequence with a template", "POST", "/api/sequences", key, `{"name":"Visite","steps":[{"template":"Visita","timing":{"anchor":"start","offset":{"amount":0}}}]}`)
	var sequence struct{ ID string }
	decode(t, a2, &sequence)
	var run, again started
	got := s.do("send one message", "POST", "/api/messages", key, `{"phone":"3331234567","text":"Ciao","date":"21/11/2026 10:00","name":"Avviso"}`)
	decode(t, got, &run)
	s.nameAll("m", run.ID)
	got = s.do("send one from a template, once", "POST", "/api/messages", key, `{"phone":"3331234567","template":"Visita","nome":"Anna"}`, "Idempotency-Key", "k")
	decode(t, got, &again)
	s.nameAll("o", again.ID)
	s.do("the same call again", "POST", "/api/messages", key, `{"phone":"3331234567","template":"Visita","nome":"Anna"}`, "Idempotency-Key", "k")
	s.service.end(a, again.ID[0], "+393331234567", refused)
	s.do("list messages", "GET", "/api/messages?origin=SINGLE&state=FAILED", key, "")
	s.do("outcomes of a period", "GET", "/api/messages/statusByPeriod?start=20/11/2026%2010:30&end=20/11/2026%2010:30", key, "")
	got = s.do("send again", "POST", "/api/messages/reschedule/all", key, `{"id":["`+again.ID[0]+`"],"date":"2026-11-23","time":"09:00"}`)
	decode(t, got, &run)
	s.nameAll("n", run.ID)
	s.do("send again what was", "POST", "/api/messages/reschedule/all", key, `{"id":["`+again.ID[0]+`"]}`)
	s.do("send again what is not there", "POST", "/api/messages/reschedule/all", key, `{"id":["1","x"]}`)
	s.do("cancel by id", "POST", "/api/messages/cancel", key, `{"id":["`+run.ID[0]+`"]}`)
	s.do("the default sequences", "GET", "/api/session/"+a.Session+"/defaultSequence", key, "")
	s.do("set them", "PUT", "/api/session/"+a.Session+"/defaultSequence", key, `{"start":"`+sequence.ID+`","stop":null}`)
	s.do("delete the default session", "DELETE", "/api/sessions/"+a.Session, key, "")
	s.do("delete a template in use", "DELETE", "/api/templates/1", key, "")
	s.do("a single send with faults", "POST", "/api/messages", key, `{"phone":3.5,"text":"x","latitude":91,"date":"ieri","id_sessione":"9","template":"no"}`)
	s.do("list messages with faults", "GET", "/api/messages?stato=x&state=x&end=x", key, "")
	s.do("outcomes without a period", "GET", "/api/messages/statusByPeriod", key, "")

	one := "/api/client/" + a.ID
	s.do("expiration dates", "GET", "/api/clients/expiration", s.partner, `{"client_ids":[`+a.ID+`]}`)
	s.do("expiration dates of others", "GET", "/api/clients/expiration", s.partner, `{"client_ids":[`+a.ID+`,77]}`)
	s.do("a snapshot", "GET", one+"/snapshot", s.partner, "")
	s.do("list clients", "GET", "/api/clients", s.partner, "")
	s.do("change a client", "PATCH", one, s.partner, `{"credits_add":-20,"daily_api_cap":500,"refill_period":"Mensile","expiration_date":null,"active_features":["crm"],"holidays":["2026-12-07"]}`)
	s.do("change a client with faults", "PATCH", one, s.partner, `{"credits":"x","profile":"x","refill_period":"x","expiration_date":"x","timezone":"x","region":"x","holidays":["x"]}`)
	s.do("list keys", "GET", one+"/keys", s.partner, "")
	s.do("make a key", "POST", one+"/keys", s.partner, `{"name":"gestionale"}`)
	s.do("rotate a key", "POST", one+"/keys/2/rotate", s.partner, `{"grace":3600}`)
	s.do("revoke a key", "DELETE", one+"/keys/2", s.partner, "")
	s.do("delete a client", "DELETE", one, s.partner, "")
	s.end("more.golden")
}

// TestGoldenRefusals records an answer of each class of refusal.
func TestGoldenRefusals(t *testing.T) {
	t.Parallel()
	s := &transcript{service: newService(t, options{})}
	key := s.newClient("info@bianchi.example", "test")
	id := s.newSequence(key, stepNow+","+stepLater+","+stepDate)
	start := "/api/start/" + id

	s.do("401: no key", "POST", start, "", `{}`)
	s.do("401: an unknown key", "POST", start, strings.Repeat("x", 61), `{}`)
	s.do("401: two keys", "GET", "/api/sequences?api_key="+s.partner, key, "")
	s.do("403: a partner's key", "POST", start, s.partner, `{}`)
	s.do("403: a client's key", "POST", "/api/client/create", key, `{}`)
	s.do("404: an unknown path", "GET", "/api/nothing", key, "")
	s.do("405: a known path", "GET", start, key, "")
	s.do("400: not JSON", "POST", start, key, `{"phone":"+393331234567",}`)
	s.do("400: an empty body", "POST", start, key, "")
	s.do("400: an array", "POST", start, key, "[]")
	s.do("400: wrong types", "POST", "/api/sequences", key, `{"name":1,"steps":[{"text":[],"timing":{"offset":{"amount":"1"}}},7]}`)
	s.do("404: an unknown sequence, whatever the body", "POST", "/api/start/999999", key, `{"phone":"x"}`)
	s.do("422: a start with every fault", "POST", start+"?timezone=Europe/Roma&if_running=never&dry_run=perhaps", key,
		`{"phone":"899123456","nome":{},"quando":"domani"}`, "Idempotency-Key", strings.Repeat("k", 256))
	s.do("422: a sequence with every fault", "POST", "/api/sequences", key,
		`{"name":" ","if_running":"x","steps":[{"timing":{"at":"25:00","jitter":-1}},{"text":"{{1}}","timing":{"anchor":"a b","if_past":"x","valid_for":{"amount":0,"unit":"x"}}}]}`)
	s.do("422: a client with every fault", "POST", "/api/client/create", s.partner, `{"email":"nowhere","phone":null,"account_type":"gold"}`)
	s.do("422: a session with every fault", "POST", "/api/sessions", key, `{"connection_type":"Pigeon"}`)
	s.do("422: a list with every fault", "GET", "/api/sessions?limit=1001&state=online&page=2", key, "")
	s.do("422: a cursor of another list", "GET", "/api/sessions?cursor=abc", key, "")
	s.do("422: no message ids", "GET", "/api/messages/details", key, "")
	s.do("message ids that are none", "GET", "/api/messages/details?message_ids=12,x,-1,007", key, "")
	s.do("422: a cancellation with every slip", "POST", "/api/messages/cancel/pending?telefono=1", key, `{"phone":"+393331234567","phones":null}`)
	s.do("422: a cancellation with bad numbers", "POST", "/api/messages/cancel/pending?phones[]=1&phones[]=", key, "")
	s.do("409: the login exists", "POST", "/api/client/create", s.partner,
		`{"name":"x","email":"info@bianchi.example","password":"p","phone":"1"}`)
	fields := `{"phone":"3331234567","testo":"t","quando":"2026-12-01T10:00"}`
	s.must(nil, "POST", start, key, fields, "Idempotency-Key", "k1")
	s.do("409: the idempotency key with another body", "POST", start, key, fields+" ", "Idempotency-Key", "k1")
	s.do("409: the sequence runs", "POST", start+"?if_running=reject", key, fields)
	s.do("409: a sequence with pending messages", "DELETE", "/api/sequences/"+id, key, "")
	s.do("422: a word for pending", "DELETE", "/api/sequences/"+id+"?pending=drop", key, "")
	for range 99 {
		s.must(nil, "POST", start, key, fields)
	}
	s.do("429: the cap is used up", "POST", start, key, fields)
	s.end("refusals.golden")
}

func decode(t *testing.T, a response, v any) {
	t.Helper()
	if a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.body)
	}
	if err := json.Unmarshal([]byte(a.body), v); err != nil {
		t.Fatal(err)
	}
}
