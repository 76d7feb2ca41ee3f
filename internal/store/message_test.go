package store_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestLongRequests checks that one read returns a limited number of bytes, even if the stored requests are long.
func TestLongRequests(t *testing.T) {
	t.Parallel()
	both(t, func(t *testing.T, w *storetest.World) {
		c := w.Client(puntuale.AccountFull)
		run := c.Run(someone, storetest.Begin, puntuale.MaxSteps)
		run.Run.Request = bytes.Repeat([]byte("x"), 1<<20)
		run.Messages[1].Window = &puntuale.Window{}
		started, err := c.Start(t.Context(), run)
		if err != nil {
			t.Fatal(err)
		}
		ids := started.IDs
		_, err = c.Details(t.Context(), ids)
		if e, ok := errors.AsType[*puntuale.Error](err); !ok || e.Code != puntuale.CodeInvalid || len(e.Faults) != 1 || e.Faults[0].Location != "query.message_ids" {
			t.Errorf("all at once: %v", err)
		}
		some, err := c.Details(t.Context(), ids[:7])
		if err != nil || len(some) != 7 || len(some[0].Request) != 1<<20 || &some[0].Request[0] != &some[6].Request[0] || some[6].Content.Text != "testo 6" {
			t.Errorf("some: %d, %v", len(some), err)
		}
		var listed []puntuale.MessageID
		pages := 0
		for p := (puntuale.Page{Limit: 100}); pages == 0 || p.Cursor != ""; pages++ {
			var part []puntuale.MessageDetail
			if part, p.Cursor, err = c.Messages(t.Context(), puntuale.MessageFilter{}, p); err != nil {
				t.Fatal(err)
			}
			for _, m := range part {
				listed = append(listed, m.ID)
			}
		}
		slices.Reverse(listed)
		if pages != 8 || !slices.Equal(listed, ids) {
			t.Errorf("%d messages on %d pages", len(listed), pages)
		}
		outlines, err := c.Outlines(t.Context(), []puntuale.MessageID{ids[1], ids[0], 12345, ids[1]})
		if err != nil || len(outlines) != 2 || outlines[0].ID != ids[1] || outlines[0].Window == nil || outlines[1].Window != nil || len(outlines[0].Request) != 0 {
			t.Errorf("outlines = %+v, %v", outlines, err)
		}
		if all, err := c.Outlines(t.Context(), ids); err != nil || len(all) != len(ids) {
			t.Errorf("%d outlines, %v", len(all), err)
		}
	})
}
