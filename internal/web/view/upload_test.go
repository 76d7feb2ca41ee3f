package view_test

import (
	"bytes"
	"strings"
	"testing"

	"puntuale/internal/web/language"
	"puntuale/internal/web/view"
)

// TestUploadKnowsItsLimits: the browser gets a larger limit for documents only where the server takes them.
func TestUploadKnowsItsLimits(t *testing.T) {
	t.Parallel()
	for _, large := range []bool{false, true} {
		var page bytes.Buffer
		ctx := view.With(t.Context(), &view.Frame{Language: language.Named("it"), LargeDocuments: large})
		if err := view.UploadAlone().Render(ctx, &page); err != nil {
			t.Fatal(err)
		}
		if text := page.String(); !strings.Contains(text, `data-most="16777216"`) || strings.Contains(text, `data-most-document="104857600"`) != large || strings.Contains(text, "100 MB") != large {
			t.Errorf("large documents %v: %s", large, text)
		}
	}
}
