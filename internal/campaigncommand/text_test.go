package campaigncommand

import (
	"encoding/json"
	"strings"
	"testing"

	"puntuale/internal/client"
)

// The summary has a text for every member of a check.
func TestCheckInWords(t *testing.T) {
	t.Parallel()
	const answer = `{"digest":"d","recipients":10,"valid":8,"messages":8,"credits_needed":8,"credits_left":"5","longest_text":40,
 "first":"2026-11-23T10:00:00Z","last":"2026-11-25T10:00:00Z","refused":[{"reason":"no_window","count":2}],
 "samples":[],"limit":{"code":"cold_per_minute","per_minute":6},"warnings":[{"code":"no_opt_out","step":1}],
 "cost":{"currency":"EUR","amount":"0.5264","date":"2026-07-01","rows":[],"unknown":1}}`
	var check client.Check
	if err := json.Unmarshal([]byte(answer), &check); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := writeCheck(&out, check); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"8 of 10 recipients", "2: the 24 hours after their last message are over", "8 needed, 5 left", "about 0.5264 EUR, by the prices of 2026-07-01",
		"without 1 message whose price is not known", "new people a minute: 6", "message 2: the text does not say how to get no more",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
}
