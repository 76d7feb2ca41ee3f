package httpapi_test

import (
	"net/http"
	"testing"
)

// TestLastDayOfLeapYear: a call may name the last day of a leap year far in the future. For that day, the time package
// returns a wrong end of the zone's present offset. A search for the right offset must end nevertheless.
func TestLastDayOfLeapYear(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true}, func(t *testing.T, s *service) {
		key := s.newClient("a@x", "full")
		id := s.newSequence(key, stepDate)
		s.refusedAt(http.StatusUnprocessableEntity, "POST", "/api/start/"+id, key, `{"phone":"3331234567","quando":"2040-12-31T10:00"}`, "steps[0].timing")
		s.must(nil, "GET", "/api/messages/statusByPeriod?start=31/12/2040%2000:00&end=01/01/2041%2000:00", key, "")
	})
}
