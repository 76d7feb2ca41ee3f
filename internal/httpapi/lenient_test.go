package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// TestStartIsLenient shows the ways in which callers may write a start. All of these calls mean the same.
func TestStartIsLenient(t *testing.T) {
	t.Parallel()
	databases(t, options{}, startIsLenientTest)
}

func startIsLenientTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	id := s.newSequence(key, stepNow)
	query := "?api_key=" + key
	for name, c := range map[string]struct {
		target, body string
		header       []string
	}{
		"as documented":    {"/api/start/" + id, `{"phone":"+393331234567"}`, []string{"Content-Type", "application/json", "Authorization", "Bearer " + key}},
		"key in the query": {"/api/start/" + id + query, `{"phone":"+393331234567"}`, nil},
		"the same key in both": {"/api/start/" + id + query, `{"phone":"+393331234567"}`,
			[]string{"Authorization", "bearer  " + key + " "}},
		"another kind of authorization": {"/api/start/" + id + query, `{"phone":"+393331234567"}`, []string{"Authorization", "Basic eDp5"}},
		"trailing slash":                {"/api/start/" + id + "/" + query, `{"phone":"+393331234567"}`, nil},
		"a number":                      {"/api/start/" + id + query, `{"phone":393331234567}`, nil},
		"null for absent":               {"/api/start/" + id + query, `{"phone":"3331234567","nome":null,"timezone":null,"media":null}`, nil},
		"empty parameters":              {"/api/start/" + id + query + "&timezone=&if_running=", `{"phone":"3331234567"}`, nil},
		"a byte order mark":             {"/api/start/" + id + query, "\ufeff" + ` {"phone":"3331234567"}` + "\n", nil},
		"form content type":             {"/api/start/" + id + query, `{"phone":"3331234567"}`, []string{"Content-Type", "application/x-www-form-urlencoded"}},
		"text content type":             {"/api/start/" + id + query, `{"phone":"3331234567"}`, []string{"Content-Type", "text/plain; charset=utf-8"}},
		"a broken content type":         {"/api/start/" + id + query, `{"phone":"3331234567"}`, []string{"Content-Type", ";;+"}},
		"another accept":                {"/api/start/" + id + query, `{"phone":"3331234567"}`, []string{"Accept", "text/html;q=0.9, application/cbor"}},
		"unused fields of any kind":     {"/api/start/" + id + query, `{"phone":"3331234567","a":[{}],"b":true,"Phone":{}}`, nil},
		"an empty idempotency key":      {"/api/start/" + id + query, `{"phone":"3331234567"}`, []string{"Idempotency-Key", ""}},
	} {
		a := s.call("POST", c.target, "", c.body, c.header...)
		var got started
		if a.status != 200 || json.Unmarshal([]byte(a.body), &got) != nil || len(got.ID) != 1 {
			t.Errorf("%s: %d %s", name, a.status, a.body)
			continue
		}
		if got := a.header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: content type %q", name, got)
		}
		// The body is stored byte for byte, except the byte order mark.
		var details struct {
			Messages []struct {
				Phone   string `json:"telefono"`
				Request string `json:"richiesta"`
			}
		}
		s.must(&details, "GET", "/api/messages/details?message_ids[]="+got.ID[0], key, "")
		if m := details.Messages[0]; m.Phone != "+393331234567" || m.Request != strings.TrimPrefix(c.body, "\ufeff") {
			t.Errorf("%s: kept %+v", name, m)
		}
	}
	for _, q := range []string{"", "?api_key=", "?api_key", "?api_key=" + key + "&api_key=" + s.partner} {
		if a := s.call("POST", "/api/start/"+id+q, "", `{"phone":"3331234567"}`); a.status != 401 {
			t.Errorf("%s: %d %s", q, a.status, a.body)
		}
	}
}

func TestDetailsAreLenient(t *testing.T) {
	t.Parallel()
	databases(t, options{}, detailsAreLenientTest)
}

func detailsAreLenientTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	id := s.newSequence(key, stepNow+","+stepLater+","+stepDate)
	var got started
	s.must(&got, "POST", "/api/start/"+id, key, `{"phone":"3331234567","testo":"t","quando":"01/12/2026 10:00"}`)
	a, b, c := got.ID[0], got.ID[1], got.ID[2]
	want := s.must(nil, "GET", "/api/messages/details?message_ids[]="+c+"&message_ids[]="+a+"&message_ids[]="+b, key, "").body
	if strings.Count(want, `"tipologia"`) != 3 || strings.Index(want, "Ciao") < strings.Index(want, "alle ") {
		t.Fatalf("not three in the order asked: %s", want)
	}
	for _, query := range []string{
		"message_ids%5B%5D=" + c + "&message_ids%5b%5d=" + a + "&message_ids%5B%5D=" + b,
		"message_ids[0]=" + c + "&message_ids[1]=" + a + "&message_ids[2]=" + b,
		"message_ids[5]=" + c + "&message_ids[0]=" + a + "&message_ids[1]=" + b,
		"message_ids=" + c + "&message_ids=" + a + "&message_ids=" + b,
		"message_ids=" + c + "," + a + "," + b,
		"message_ids[]=" + c + "%2C" + a + ",," + b + ",",
		"message_ids[]=&message_ids[]=" + c + "," + a + "&message_ids=" + b + "&other=1",
		"message_ids=" + c + "," + a + "," + b + "," + a + ",9,9007199254740991",
	} {
		if got := s.must(nil, "GET", "/api/messages/details/?"+query, key, "").body; got != want {
			t.Errorf("%s:\n%s\nwant\n%s", query, got, want)
		}
	}
	many := strings.Repeat(",1", 1001)
	if a := s.call("GET", "/api/messages/details?message_ids="+many, key, ""); a.status != 422 || len(a.body) > 1000 {
		t.Errorf("1001 ids: %d %s", a.status, a.body)
	}
}

// If any part of a cancellation cannot be understood, nothing is cancelled.
func TestCancelIsStrict(t *testing.T) {
	t.Parallel()
	databases(t, options{}, cancelIsStrictTest)
}

func cancelIsStrictTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	id := s.newSequence(key, stepLater)
	for _, phone := range []string{"3331234567", "3337654321", "3330000000"} {
		s.must(nil, "POST", "/api/start/"+id, key, `{"testo":"t","phone":"`+phone+`"}`)
	}
	const path = "/api/messages/cancel/pending"
	for _, c := range []struct {
		query, body string
		status      int
		at          string
	}{
		{"", `{"phone":"3331234567"}`, 422, "body.phone"},
		{"", `{"Phones":["3331234567"]}`, 422, "body.Phones"},
		{"", `{"phones":["3331234567"],"x":1}`, 422, "body.x"},
		{"", `{"phones":null}`, 422, "body.phones"},
		{"", `{"phones":["3331234567"],"phones":["3337654321"]}`, 400, "body.phones"},
		{"", `{"phones":["3331234567",-3337654321]}`, 422, "body.phones[1]"},
		{"", `{"phones":["3331234567",333765432.1]}`, 422, "body.phones[1]"},
		{"", `{"phones":["3331234567","x"]}`, 422, "body.phones[1]"},
		{"", `{"phones":["3331234567",""]}`, 422, "body.phones[1]"},
		{"", `{"phones":["3331234567",null]}`, 400, "body.phones[1]"},
		{"", `{"phones":"3331234567"}`, 400, "body.phones"},
		{"", `{"phones":{}}`, 400, "body.phones"},
		{"", `{"phones":[` + strings.TrimPrefix(strings.Repeat(`,"3331234567"`, 1001), ",") + `]}`, 422, "body.phones"},
		{"", `null`, 400, "body"},
		{"", `[]`, 400, "body"},
		{"", ` `, 400, "body"},
		{"", "\ufeff", 400, "body"},
		{"", `phones[]=3331234567`, 400, "body"},
		{"?phone=3331234567", "", 422, "query.phone"},
		{"?phones[]=3331234567&force", "", 422, "query.force"},
		{"?phones[]=", "", 422, "query.phones[0]"},
		{"?phones", "", 422, "query.phones[0]"},
		{"?phones[a]=3331234567", "", 422, "query.phones[a]"},
		{"?phones[]=x", `{}`, 422, "query.phones[0]"},
		{"?phones[]=3331234567", `{"phones":["3337654321"]}`, 422, "query.phones"},
		{"?phones[]=%zz", "", 400, "query"},
	} {
		a := s.call("POST", path+c.query, key, c.body)
		if a.status != c.status || !slices.Equal(a.locations(), []string{c.at}) {
			t.Errorf("%s %.60s: %d %s, want %d at %s", c.query, c.body, a.status, a.body, c.status, c.at)
		}
	}
	for _, c := range []struct {
		query, body string
		cancelled   int
	}{
		{"", `{"phones":[]}`, 0},
		{"", `{"phones":["3339999999"]}`, 0},
		{"?phones[]=%2B393331234567", "", 1},
		{"?phones=+393331234567,3337654321", "{}", 1},
		{"?api_key=" + key, `{}`, 1},
	} {
		var got struct {
			Message  string
			Messages []struct{ ID int64 }
		}
		s.must(&got, "POST", path+c.query, key, c.body)
		words := map[int]string{0: "Nessun messaggio annullato", 1: "1 messaggio annullato"}
		if got.Messages == nil || len(got.Messages) != c.cancelled || got.Message != words[c.cancelled] {
			t.Errorf("%s %s: %+v, want %d", c.query, c.body, got, c.cancelled)
		}
	}
}

// No request gets a 5xx status, on either database, even if the request makes no sense.
func TestOddInput(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		id := s.newSequence(key, `{"text":"{{testo|x}}","timing":{"anchor":"start","offset":{"amount":0}}}`)
		texts := []string{
			`"\u0000"`, `"\ud800"`, `"\udc00\ud800"`, `"\u202e\u2066"`, `"a\u0000b"`, `1e999999999`, `-0`, `123456789012345678901234567890`,
			`true`, `[]`, `{}`, `null`, `""`, `"'; drop table client; --"`, `"{{testo}}{{"`, `"` + strings.Repeat("è", 5000) + `"`,
			strings.Repeat("[", 9000) + strings.Repeat("]", 9000), strings.Repeat("[", 100_000), `"\uD83D\uDE00"`, `"%00%n\\"`,
		}
		paths := []struct{ method, path, body string }{
			{"POST", "/api/start/" + id, `{"phone":"3331234567","testo":%s}`},
			{"POST", "/api/start/" + id, `{"phone":%s}`},
			{"POST", "/api/start/" + id, `{"phone":"3331234567","timezone":%s}`},
			{"POST", "/api/start/" + id, `{"phone":"3331234567","unused":%s}`},
			{"POST", "/api/stop/" + id, `{"phone":%s}`},
			{"POST", "/api/messages/cancel/pending", `{"phones":[%s]}`},
			{"POST", "/api/sequences", `{"name":%s,"steps":[{"text":"x","timing":{"anchor":"start","offset":{"amount":0}}}]}`},
			{"POST", "/api/sequences", `{"name":"x","steps":[{"text":%s,"timing":{"anchor":"start","offset":{"amount":0}}}]}`},
			{"POST", "/api/sequences", `{"name":"x","steps":[{"text":"x","timing":{"anchor":%s}}]}`},
			{"POST", "/api/sequences", `{"name":"x","id_sessione":%s,"steps":[{"text":"x","timing":{"at":%[1]s}}]}`},
			{"POST", "/api/sequences", `{"name":"x","steps":%s}`},
			{"POST", "/api/sequences", `{"name":"x","steps":[{"latitude":%s,"longitude":%[1]s,"timing":{"window":{"weekdays":[%[1]s],"from":%[1]s}}}]}`},
			{"POST", "/api/sequences", `{"name":"x","steps":[{"text":"x","timing":{"offset":{"amount":%s,"unit":%[1]s},"jitter":%[1]s}}]}`},
			{"POST", "/api/sessions", `{"name":%s,"connection_type":"Socket"}`},
			{"POST", "/api/sessions", `{"name":"x","connection_type":%s,"sandbox":%[1]s}`},
			{"POST", "/api/blacklist", `{"phone":"3331234567","reason":%s}`},
			{"DELETE", "/api/blacklist/remove", `{"phone":%s}`},
		}
		for _, p := range paths {
			for _, text := range texts {
				if a := s.call(p.method, p.path, key, fmt.Sprintf(p.body, text)); a.status >= 500 {
					t.Errorf("%s %s %.200s: %d %s", p.method, p.path, fmt.Sprintf(p.body, text), a.status, a.body)
				}
			}
		}
		for _, text := range []string{"\x00", "\xff", "a\x00b", "'", "%", strings.Repeat("9", 5000), "0x10", "1e3", "-1", " 1", "٣", "local", "../../etc/passwd"} {
			escaped := url.QueryEscape(text)
			for _, target := range []string{
				"/api/sequences?limit=" + escaped, "/api/sequences?cursor=" + escaped, "/api/sandbox/messages?cursor=" + escaped,
				"/api/messages?sequence=" + escaped, "/api/sequences/" + url.PathEscape(text), "/api/sessions/" + url.PathEscape(text),
			} {
				if a := s.call("GET", target, key, ""); a.status < 400 || a.status >= 500 {
					t.Errorf("%s: %d %s", target, a.status, a.body)
				}
			}
			if a := s.call("GET", "/api/messages/details?message_ids="+escaped, key, ""); a.status >= 500 {
				t.Errorf("details of %q: %d %s", text, a.status, a.body)
			}
			for _, name := range []string{"timezone", "if_running", "dry_run", "unknown"} {
				if a := s.call("POST", "/api/start/"+id+"?"+name+"="+escaped, key, `{"phone":"3331234567"}`); a.status >= 500 {
					t.Errorf("%s=%q: %d %s", name, text, a.status, a.body)
				}
			}
			if !strings.ContainsAny(text, "\x00") { // an HTTP header cannot contain these characters
				if a := s.call("POST", "/api/start/"+id, key, `{"phone":"3331234567"}`, "Idempotency-Key", text); a.status >= 500 {
					t.Errorf("idempotency key %q: %d %s", text, a.status, a.body)
				}
			}
		}
		for _, member := range []string{"name", "email", "password", "phone", "account_type"} {
			for _, text := range texts {
				fields := map[string]string{"name": `"x"`, "email": `"z@` + member + `"`, "password": `"p"`, "phone": `"1"`, "account_type": `"test"`}
				if member == "password" && text == `""` {
					continue
				}
				fields[member] = text
				body := fmt.Sprintf(`{"name":%s,"email":%s,"password":%s,"phone":%s,"account_type":%s}`,
					fields["name"], fields["email"], fields["password"], fields["phone"], fields["account_type"])
				if a := s.call("POST", "/api/client/create", s.partner, body); a.status >= 500 {
					t.Errorf("%.200s: %d %s", body, a.status, a.body)
				}
			}
		}
	})
}
