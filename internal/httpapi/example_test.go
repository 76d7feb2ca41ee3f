package httpapi_test

import (
	"encoding/json"
	"fmt"
	"testing"
)

// The page offers an example body for each call whose body is JSON. The call succeeds with this example, unless it needs
// ids.
func TestExamplesSucceed(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	needsIDs := map[string]bool{"createNetworkTemplate": true, "editNetworkTemplate": true, "rescheduleMessages": true, "cancelMessages": true, "getClientExpirations": true, "startCampaign": true, "uploadRecipients": true, "importContacts": true, "importBookings": true, "importBlacklist": true, "reconcileBookings": true, "createCalendar": true, "uploadFile": true}
	n := 0
	for _, item := range loadPaths(t) {
		for _, documented := range item.Operations() {
			id := documented.OperationID
			if len(documented.Tags) != 1 || documented.Tags[0] == "" { // the page of the document cannot place it
				t.Errorf("%s has no subject", id)
			}
			if documented.RequestBody == nil || documented.RequestBody.Value.Content["application/json"] == nil { // the body is a file
				continue
			}
			example := documented.RequestBody.Value.Content["application/json"].Example
			if example == nil {
				t.Errorf("%s has no example", id)
			}
			if example == nil || needsIDs[id] {
				continue
			}
			body, err := json.Marshal(example)
			if err != nil {
				t.Fatal(err)
			}
			n++
			own, op := newTenant(s, fmt.Sprintf("example%d@x", n), "+393330000001"), operations[id]
			key := own.keyFor(s, op.path, op.partner)
			if id == "startSequence" { // starts the sequence that another example created
				s.must(nil, "PUT", own.fill("/api/sequences/{sequence}"), key, exampleOf(t, "/api/sequences/{id}"))
			}
			if id == "linkDevice" { // uses a code that another example created
				body = []byte(own.fill(op.body))
			}
			if a := s.call(op.method, own.fill(op.path), key, string(body)); a.status != 200 {
				t.Errorf("%s: %d %s", id, a.status, a.body)
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d examples", n)
	}
}

func exampleOf(t *testing.T, path string) string {
	t.Helper()
	body, err := json.Marshal(loadPaths(t)[path].Put.RequestBody.Value.Content.Get("application/json").Example)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
