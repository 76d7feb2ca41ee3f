package httpapi_test

import (
	"slices"
	"testing"
)

// A step must contain its timing. A step without timing is refused, because otherwise it would be sent immediately.
func TestStepsNeedTiming(t *testing.T) {
	t.Parallel()
	databases(t, options{}, stepsNeedTimingTest)
}

func stepsNeedTimingTest(t *testing.T, s *service) {
	key := s.newClient("a@x", "full")
	for _, c := range []struct {
		timing string
		at     []string
	}{
		{``, []string{"body.steps[1].timing"}},
		{`,"timing":null`, []string{"body.steps[1].timing"}},
		{`,"timing":{}`, []string{"body.steps[1].timing.anchor", "body.steps[1].timing.offset"}},
		{`,"timing":{"anchor":" ","offset":null}`, []string{"body.steps[1].timing.anchor", "body.steps[1].timing.offset"}},
		{`,"timing":{"offset":{"amount":1,"unit":"days"}}`, []string{"body.steps[1].timing.anchor"}},
		{`,"timing":{"anchor":"start","offset":{}}`, []string{"body.steps[1].timing.offset.amount"}},
		{`,"timing":{"anchor":"start","offset":{"unit":"days"}}`, []string{"body.steps[1].timing.offset.amount"}},
		{`,"timing":{"anchor":"start","offset":{"amount":1}}`, []string{"body.steps[1].timing.offset.unit"}},
		{`,"timing":{"anchor":"start","offset":{"amount":0}}`, nil},
		{`,"timing":{"anchor":"start","offset":{"amount":1,"unit":"hours"}}`, nil},
	} {
		a := s.call("POST", "/api/sequences", key, `{"name":"x","steps":[`+stepNow+`,{"text":"x"`+c.timing+`}]}`)
		if status := map[bool]int{true: 200, false: 422}[c.at == nil]; a.status != status || !slices.Equal(a.locations(), c.at) && c.at != nil {
			t.Errorf("%s: %d %s", c.timing, a.status, a.body)
		}
	}
	if a := s.call("POST", "/api/sequences", key, `{"name":"x","steps":[{"text":"x","timing":[]}]}`); a.status != 400 {
		t.Errorf("%d %s", a.status, a.body)
	}
}
