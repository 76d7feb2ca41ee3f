package httpapi_test

import (
	"strings"
	"testing"
)

// A list shows each number as it is written and as it is stored, before anything is sent or imported.
func TestListShowsStoredNumbers(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		a := s.newAccount("a@x", "full")
		var made campaignOf
		s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","sequence":"`+s.newSequence(a.Key, stepNow)+`","canary":0}`)
		const list = "telefono\n34612345678\n333 123 45678\n3331234567.0\n3.33E+09\n"
		const numbers = `"numbers":[{"written":"34612345678","phone":"+34612345678"},{"written":"333 123 45678","phone":null},` +
			`{"written":"3331234567.0","phone":"+393331234567"},{"written":"3.33E+09","phone":null}]`
		if got := s.upload(a.Key, made.ID, "", "text/csv", list); !strings.Contains(got.body, numbers) {
			t.Errorf("uploaded: %s", got.body)
		}
		checked := s.must(nil, "POST", "/api/campaigns/"+made.ID+"/check", a.Key, "").body
		for _, want := range []string{`"written":"34612345678","phone":"+34612345678"`, `"written":"3331234567.0","phone":"+393331234567"`, `{"reason":"invalid_phone","count":2}`} {
			if !strings.Contains(checked, want) {
				t.Errorf("%s is missing: %s", want, checked)
			}
		}
		if got := s.importContacts(a.Key, "?check=true", list); !strings.Contains(got.body, numbers) || !strings.Contains(got.body, `"added":2`) {
			t.Errorf("imported: %s", got.body)
		}
	})
}

// In a list, a cell of digits and hyphens is a number or a fault. It is never the id of a group, even if it has an id's
// 22 characters.
func TestListedHyphensAreNoGroup(t *testing.T) {
	t.Parallel()
	s := newService(t, options{sandbox: true})
	a := s.newAccount("hyphens@x", "full")
	const list = "phone\n0039-3-3-3-1-2-3-45-67\n333-1234567-333-123456\nAbCdEfGhIjKlMnOpQr_-12\n"
	const first = `{"written":"0039-3-3-3-1-2-3-45-67","phone":"+393331234567"},{"written":"333-1234567-333-123456","phone":null}`
	var made campaignOf
	s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"x","sequence":"`+s.newSequence(a.Key, stepNow)+`","canary":0}`)
	if got := s.upload(a.Key, made.ID, "", "text/csv", list); !strings.Contains(got.body, first+`,{"written":"AbCdEfGhIjKlMnOpQr_-12","phone":"AbCdEfGhIjKlMnOpQr_-12"}`) {
		t.Errorf("uploaded: %s", got.body)
	}
	if got := s.importContacts(a.Key, "?check=true", list); !strings.Contains(got.body, first) || !strings.Contains(got.body, `"added":1`) {
		t.Errorf("imported: %s", got.body)
	}
	s.must(&made, "POST", "/api/campaigns", a.Key, `{"name":"y","sequence":"`+s.newSequence(a.Key, stepNow)+`","canary":0}`)
	got := s.must(nil, "POST", "/api/campaigns/"+made.ID+"/recipients", a.Key, `{"recipients":[{"phone":"0039-3-3-3-1-2-3-45-67"},{"phone":"333-1234567-333-123456"}]}`)
	if !strings.Contains(got.body, first) {
		t.Errorf("added: %s", got.body)
	}
}
