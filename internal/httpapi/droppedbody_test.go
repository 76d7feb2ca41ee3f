package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// A proxy may drop the body of a DELETE. Then the number in the query counts. A body comes before the query.
func TestDeleteWithoutBody(t *testing.T) {
	t.Parallel()
	s := newService(t, options{})
	key := s.newClient("a@x", "full")
	for _, c := range []struct {
		query, body string
		status      int
	}{
		{"?phone=%2B393331234567", "", http.StatusOK},
		{"?phone=+393331234567", "", http.StatusOK},
		{"?phone=1", `{"phone":"+393331234567"}`, http.StatusOK},
		{"?phone=x", "", http.StatusUnprocessableEntity},
		{"?phone=%2B393331234567&phone=%2B393331234568", "", http.StatusUnprocessableEntity},
	} {
		s.must(nil, "POST", "/api/blacklist", key, `{"phone":"+393331234567"}`)
		a := s.call("DELETE", "/api/blacklist/remove"+c.query, key, c.body)
		if a.status != c.status {
			t.Errorf("%+v: %d %s", c, a.status, a.body)
		}
		left := s.must(nil, "GET", "/api/blacklist", key, "").body
		if removed := left == `{"blacklist":[],"next_cursor":null}`; removed != (c.status == http.StatusOK) {
			t.Errorf("%+v left %s", c, left)
		}
	}
	if a := s.call("DELETE", "/api/blacklist/remove", key, ""); a.status != http.StatusBadRequest {
		t.Errorf("without a number: %d %s", a.status, a.body)
	}
}

// A list of month-first dates is read as it is meant, and a list with dates of both orders is refused.
func TestCampaignDates(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("dates@x", "full")
	var made campaignOf
	s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","sequence":"`+s.newSequence(a.Key, stepDate)+`"}`)
	got := s.upload(a.Key, made.ID, "", "text/csv", "phone,quando\n+393331234561,12/28/2026\n+393331234562,12/03/2026\n")
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	want := `"preview":[["+393331234561","28/12/2026"],["+393331234562","03/12/2026"]]`
	if list := got.body; !strings.Contains(list, want) {
		t.Errorf("the list: %s", list)
	}
	if got := s.upload(a.Key, made.ID, "", "text/csv", "phone,quando\n+393331234561,12/28/2026\n+393331234562,28/12/2026\n"); got.status != 422 || !strings.Contains(got.body, "line 3 has the day first") {
		t.Errorf("both orders: %d %s", got.status, got.body)
	}
}
