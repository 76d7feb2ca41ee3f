//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// web is the HTTP client of the tests. It keeps connections open for many workers that call at the same time.
var web = &http.Client{Timeout: 15 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 256}}

// answer is a response whose body was read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
}

func (a answer) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal(a.body, v); err != nil {
		t.Fatalf("%d %s: %v", a.status, a.body, err)
	}
}

// call sends one request. If it returns an error, nobody knows what the server did.
func call(method, address, key string, body any, header ...string) (answer, error) {
	return callWith(web, method, address, key, body, header...)
}

func callWith(client *http.Client, method, address, key string, body any, header ...string) (answer, error) {
	var content io.Reader
	var encoded []byte
	if body != nil {
		var err error
		if encoded, err = json.Marshal(body); err != nil {
			return answer{}, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequest(method, address, content)
	if err != nil {
		return answer{}, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	query := request.URL.Query()
	if key != "" {
		query.Set("api_key", key)
	}
	request.URL.RawQuery = query.Encode()
	for i := 0; i+1 < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	a := answer{response.StatusCode, response.Header, read}
	if err == nil {
		document.compare(request, encoded, a)
	}
	return a, err
}

// must does the same as call, but fails the test on an error, or if the status is not 200.
func must(t *testing.T, method, address, key string, body any, header ...string) answer {
	t.Helper()
	a, err := call(method, address, key, body, header...)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, address, a.status, a.body)
	}
	return a
}

// tenant is one client of the service, with one sequence.
type tenant struct {
	id, key, sequence string
}

// createTenant makes a client, and a sequence with the given steps.
func createTenant(t *testing.T, base, partnerKey, accountType string, steps ...any) tenant {
	t.Helper()
	var created struct {
		ID  string `json:"id_client"`
		Key string `json:"api_key"`
	}
	must(t, "POST", base+"/api/client/create", partnerKey, map[string]any{
		"name": "Studio Bianchi", "email": fmt.Sprintf("c%d@example.com", time.Now().UnixNano()), "password": "segreto",
		"phone": "+390212345678", "account_type": accountType}).into(t, &created)
	var sequence struct {
		ID string `json:"id"`
	}
	must(t, "POST", base+"/api/sequences", created.Key, map[string]any{"name": "Promemoria", "steps": steps}).into(t, &sequence)
	if sequence.ID == "" {
		t.Fatal("the sequence has no id")
	}
	return tenant{created.ID, created.Key, sequence.ID}
}

// step returns a step with a text, which leaves at the given time after the call.
func step(text string, amount int, unit string) map[string]any {
	offset := map[string]any{"amount": amount, "direction": "after"}
	if unit != "" {
		offset["unit"] = unit
	}
	timing := map[string]any{"anchor": "start", "offset": offset}
	return map[string]any{"text": text, "timing": timing}
}

// String lists a message's state and the times of its history.
func (d detail) String() string {
	left := "never"
	if d.Left != nil {
		left = *d.Left
	}
	return fmt.Sprintf("%s, accepted %s, planned %s, left %s, %q", d.State, d.Accepted, d.Planned, left, d.Text)
}

type detail struct {
	Phone    string  `json:"telefono"`
	State    string  `json:"stato"`
	Text     string  `json:"contenuto"`
	Response string  `json:"risposta"`
	Detail   *string `json:"dettaglio_risposta"`
	Left     *string `json:"invio_effettivo"`
	Planned  string  `json:"invio_previsto"`
	Accepted string  `json:"ricezione"`
}

// details reads messages by id, in chunks.
func details(t *testing.T, base, key string, ids []string) map[string]detail {
	t.Helper()
	all := make(map[string]detail, len(ids))
	for len(ids) > 0 {
		n := min(len(ids), 200)
		var page struct {
			Messages []detail `json:"messages"`
		}
		must(t, "GET", base+"/api/messages/details?"+url.Values{"message_ids[]": {strings.Join(ids[:n], ",")}}.Encode(), key, nil).into(t, &page)
		if len(page.Messages) != n {
			t.Fatalf("asked for %d messages that were acknowledged, found %d", n, len(page.Messages))
		}
		for i, m := range page.Messages {
			all[ids[i]] = m
		}
		ids = ids[n:]
	}
	return all
}

type received struct {
	ID       int64  `json:"message_id"`
	Phone    string `json:"phone"`
	Text     string `json:"text"`
	Received string `json:"received_at"`
}

// ledger returns everything that the simulated network received from the client.
func ledger(t *testing.T, base, key string) []received {
	t.Helper()
	var all []received
	for cursor := ""; ; {
		var page struct {
			Messages []received `json:"messages"`
			Next     *string    `json:"next_cursor"`
		}
		address := base + "/api/sandbox/messages?limit=1000"
		if cursor != "" {
			address += "&cursor=" + url.QueryEscape(cursor)
		}
		must(t, "GET", address, key, nil).into(t, &page)
		all = append(all, page.Messages...)
		if page.Next == nil || *page.Next == "" {
			return all
		}
		cursor = *page.Next
	}
}
