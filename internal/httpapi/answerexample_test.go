package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"puntuale/internal/httpapi/docs"
)

// Each operation with a JSON answer has an example of the answer, which fits the answer's schema. With UPDATE=1 the test
// calls every operation and writes the answers as examples.
func TestAnswersHaveExamples(t *testing.T) {
	t.Parallel()
	d, err := loadDocument()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("docs", docs.AnswersFile)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, recordAnswers(t), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var examples map[string]json.RawMessage
	if err := json.Unmarshal(content, &examples); err != nil {
		t.Fatal(err)
	}
	for path, item := range loadPaths(t) {
		for method, op := range item.Operations() {
			example := examples[op.OperationID]
			delete(examples, op.OperationID)
			if op.Responses.Value("200").Value.Content.Get("application/json") == nil {
				continue // a file
			}
			if example == nil {
				t.Errorf("%s has no example of its answer", op.OperationID)
				continue
			}
			place := strings.NewReplacer("~", "~0", "/", "~1", "{", "%7B", "}", "%7D").Replace(path)
			schema, err := d.answers.compile(documentAddress + "#/paths/" + place + "/" + strings.ToLower(method) + "/responses/200/content/application~1json/schema")
			if err != nil {
				t.Fatal(err)
			}
			value, err := jsonschema.UnmarshalJSON(bytes.NewReader(example))
			if err != nil {
				t.Fatal(err)
			}
			if err := schema.Validate(value); err != nil {
				t.Errorf("%s: %v", op.OperationID, err)
			}
		}
	}
	for id := range examples {
		t.Errorf("the example of %s belongs to no operation", id)
	}
}

// Parts of recorded answers that an example must not show: secrets, and names that only tests use.
var unshown = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`([cpd]k_)[0-9a-z]{8,}`), "$1…"},
	{regexp.MustCompile(`whsec_[0-9A-Za-z+/=]+`), "whsec_…"},
	{regexp.MustCompile(`(/(?:hooks|webhooks)/[a-z]*/?)[0-9A-Za-z_-]{16,}`), "$1…"},
	{regexp.MustCompile(`[a-z2-7]{26}\.txt`), "kq3x7mvodw5hztr2nsiygb4ael.txt"},
	{regexp.MustCompile(`own\d+@x`), "anna@example.com"},
	{regexp.MustCompile(`https://127\.0\.0\.1`), "https://crm.example.com"},
	{regexp.MustCompile(`"examples":\s*\[[^\]]*\]`), `"examples":[]`}, // huma would write it otherwise in the document of OpenAPI 3.0, as if it were a schema's
}

// recordAnswers calls each operation with a tenant of its own, and returns the answers.
func recordAnswers(t *testing.T) []byte {
	t.Helper()
	s := newService(t, options{public: "https://app.example"})
	examples := map[string]json.RawMessage{ // no tenant of these tests has a delivery
		"getDelivery": json.RawMessage(`{"type":"webhook.disabled","timestamp":"2026-11-25T09:30:00.123456Z","data":{"webhook":"6","reason":"Nessuna risposta in tempo","seq":41}}`),

		// Nor has it templates at Meta.
		"createNetworkTemplate":  json.RawMessage(`{"id":"1689556908129832","status":"PENDING","category":"UTILITY"}`),
		"editNetworkTemplate":    json.RawMessage(`{"id":"1689556908129832","status":"PENDING","category":"UTILITY"}`),
		"unpauseNetworkTemplate": json.RawMessage(`{"id":"1689556908129832","status":"APPROVED","category":"UTILITY"}`),
		"deleteNetworkTemplate":  json.RawMessage(`{"id":"1689556908129832","status":"DELETED","category":"UTILITY"}`),
	}
	for i, id := range documented(t) {
		op := operations[id]
		own := newTenant(s, fmt.Sprintf("own%d@x", i), "+393330000001")
		a := s.call(op.method, own.fill(op.path), own.keyFor(s, op.path, op.partner), own.fill(op.body), "Content-Type", contentTypeOf(id))
		if a.status != http.StatusOK || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			continue
		}
		text := a.body
		for _, u := range unshown {
			text = u.what.ReplaceAllString(text, u.as)
		}
		var value any
		decoder := json.NewDecoder(strings.NewReader(text))
		decoder.UseNumber()
		if err := decoder.Decode(&value); err != nil {
			t.Fatal(err)
		}
		short, err := json.Marshal(shortened(value))
		if err != nil {
			t.Fatal(err)
		}
		examples[id] = short
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(examples); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// shortened returns a value whose lists have at most two entries.
func shortened(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Collect(maps.Keys(v)) {
			v[name] = shortened(v[name])
		}
	case []any:
		for i := range v {
			v[i] = shortened(v[i])
		}
		return v[:min(len(v), 2)]
	}
	return v
}
