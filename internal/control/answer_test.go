package control_test

import (
	"encoding/json"
	"testing"

	"puntuale/internal/control"
	"puntuale/internal/store/storetest"
)

// TestRefusedAnswerSilencesNoRule: an answer that is refused did not happen, so automations still act for the person. An
// accepted answer silences them.
func TestRefusedAnswerSilencesNoRule(t *testing.T) {
	t.Parallel()
	w := newLimited(t, storetest.SQLite(t))
	const phone = "+393331234567"
	answers := func(text string) (bool, error) {
		words, _ := json.Marshal(text)
		_, err := w.client.Answer(t.Context(), control.SingleCall{Phone: phone, Fields: map[string]json.RawMessage{"text": words}})
		talk, found := w.client.Conversation(t.Context(), phone)
		if found != nil {
			t.Fatal(found)
		}
		return !talk.Answered.IsZero(), err
	}
	if silenced, err := answers(long + long); err == nil || silenced {
		t.Errorf("a refused answer: silenced %v, %v", silenced, err)
	}
	if silenced, err := answers("Arriviamo"); err != nil || !silenced {
		t.Errorf("an answer: silenced %v, %v", silenced, err)
	}
}
