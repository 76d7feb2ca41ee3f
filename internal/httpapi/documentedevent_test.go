package httpapi_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"puntuale"
)

// The document describes every type of event. Each example, and each body of package eventjson's golden file, fits the
// schema of its type, with no member that the schema does not name.
func TestEventsAreDocumented(t *testing.T) {
	t.Parallel()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Webhooks map[string]struct {
			Post struct {
				Summary, Description string
				RequestBody          struct {
					Content map[string]struct{ Example json.RawMessage }
				}
			}
		}
	}
	if err := json.Unmarshal(d.raw, &document); err != nil {
		t.Fatal(err)
	}
	types := append(puntuale.AllEvents.Types(), puntuale.EventWebhookTest)
	if len(document.Webhooks) != len(types) {
		t.Errorf("%d webhooks are described, of %d types of events", len(document.Webhooks), len(types))
	}
	fits := func(kind string, body []byte) {
		schema, err := d.answers.compile(documentAddress + "#/webhooks/" + kind + "/post/requestBody/content/application~1json/schema")
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %s: %v", kind, body, err)
		}
	}
	for _, of := range types {
		hook, ok := document.Webhooks[of.String()]
		if !ok || hook.Post.Summary == "" {
			t.Errorf("%s is not described: it needs a row in documentedEvents", of)
			continue
		}
		fits(of.String(), hook.Post.RequestBody.Content["application/json"].Example)
	}
	bodies, err := os.ReadFile("../eventjson/testdata/bodies.golden")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for line := range strings.Lines(string(bodies)) {
		var event struct{ Type string }
		if json.Unmarshal([]byte(line), &event) != nil || strings.HasPrefix(line, `{"seq"`) { // an id, or an entry of the feed
			continue
		}
		seen++
		fits(event.Type, []byte(line))
	}
	if seen < len(types) {
		t.Errorf("only %d bodies", seen)
	}
}
