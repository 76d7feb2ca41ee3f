package httpapi_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// TestVersionsCoverSettings: a change with If-Match is refused if settings or quotas changed after the caller read the
// client, whoever changed them.
func TestVersionsCoverSettings(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		a := s.newAccount("versions@x", "full")
		one := "/api/client/" + a.ID
		tag := func(target, key string) string {
			t.Helper()
			tag := s.must(nil, "GET", target, key, "").header.Get("ETag")
			if tag == "" {
				t.Fatalf("%s has no ETag", target)
			}
			return tag
		}
		account := func() string { return tag(one+"/snapshot", s.partner) }
		settings := func() string { return tag("/api/settings", a.Key) }
		stale := func(target, key, body, version string) {
			t.Helper()
			if got := s.call("PATCH", target, key, body, "If-Match", version); got.status != 412 {
				t.Errorf("%s with an old version: %d %s", body, got.status, got.body)
			}
		}
		for _, change := range []struct{ method, target, key, body string }{
			{"PATCH", "/api/settings", a.Key, `{"takeover_hours":3}`},
			{"PATCH", one, s.partner, `{"automated_most":7}`},
			{"PATCH", one, s.partner, `{"quotas":{"sessions":4}}`},
		} {
			before, own := account(), settings()
			got := s.must(nil, change.method, change.target, change.key, change.body, "If-Match", map[bool]string{true: own, false: before}[change.key == a.Key])
			if account() == before {
				t.Errorf("%s changes no version of the client", change.body)
			}
			if now := map[bool]string{true: settings(), false: account()}[change.key == a.Key]; got.header.Get("ETag") != now {
				t.Errorf("%s answers %s, want %s", change.body, got.header.Get("ETag"), now)
			}
			if changed := !strings.Contains(change.body, "quotas"); (settings() != own) != changed {
				t.Errorf("%s: the settings' version changed: %v", change.body, !changed)
			}
			stale(one, s.partner, `{"name":"Altro"}`, before)
		}
		old := settings()
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"remember":true}`)
		stale("/api/settings", a.Key, `{"remember":false}`, old)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"remember":false}`, "If-Match", settings())
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"opt_out_words":[]}`, "If-Match", settings())

		var document struct {
			Components struct {
				Schemas map[string]struct{ Properties map[string]any }
			}
		}
		if err := json.Unmarshal([]byte(s.must(nil, "GET", "/openapi.json", "", "").body), &document); err != nil {
			t.Fatal(err)
		}
		all := document.Components.Schemas
		for name := range maps.Keys(all["SettingsBody"].Properties) {
			if all["ChangeBody"].Properties[name] == nil {
				t.Errorf("the document of the client's change lacks %s", name)
			}
		}
		if len(all["SettingsBody"].Properties) < 7 {
			t.Errorf("settings: %v", slices.Sorted(maps.Keys(all["SettingsBody"].Properties)))
		}
	})
}

// TestEmbeddedTypesAreExported: the OpenAPI document leaves out the members of an embedded type that is not exported.
func TestEmbeddedTypesAreExported(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), f.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			fields, ok := n.(*ast.StructType)
			if !ok {
				return true
			}
			tagged := slices.ContainsFunc(fields.Fields.List, func(f *ast.Field) bool { return f.Tag != nil && strings.Contains(f.Tag.Value, "json:") })
			for _, field := range fields.Fields.List {
				if name, ok := field.Type.(*ast.Ident); ok && tagged && len(field.Names) == 0 && !name.IsExported() {
					t.Errorf("%s: the embedded type %s is not exported", f.Name(), name.Name)
				}
			}
			return true
		})
	}
}
