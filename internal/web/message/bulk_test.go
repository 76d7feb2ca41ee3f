package message

import (
	"fmt"
	"puntuale/internal/web/view"
	"reflect"
	"strings"
	"testing"
)

// TestBulkKeepsTheSearch: the form for all messages of a search must contain every part of the search. If a part were
// missing, the action would change messages that the person did not choose.
func TestBulkKeepsTheSearch(t *testing.T) {
	t.Parallel()
	b := Bulk{Form: view.NewForm(), Verb: "cancel", Total: 3}
	search := reflect.ValueOf(&b.Search).Elem()
	for i := range search.NumField() {
		search.Field(i).SetString(fmt.Sprintf("part-%d", i))
	}
	var page strings.Builder
	if err := BulkForm(b).Render(t.Context(), &page); err != nil {
		t.Fatal(err)
	}
	for i := range search.NumField() {
		name := strings.ToLower(search.Type().Field(i).Name)
		if field := fmt.Sprintf(`<input type="hidden" name="%s" value="part-%d">`, name, i); !strings.Contains(page.String(), field) {
			t.Errorf("the form does not send on %s", name)
		}
		if name != "cursor" && !strings.Contains(b.Search.Query(""), fmt.Sprintf("%s=part-%d", name, i)) {
			t.Errorf("an address does not hold %s", name)
		}
	}
}
