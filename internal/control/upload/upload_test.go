package upload

import (
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"puntuale"
	"puntuale/internal/semaphore"
)

// Workbooks wait for a processor, and only one workbook of each partner uses one at a time. Therefore, a partner with many
// workbooks does not delay other partners. CSV lists do not wait. A workbook that waits too long is refused.
func TestWorkbooksWaitForEachOther(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		u := New(1)
		const workbook = "PK and so on"
		var order []string
		read := func(name string, partner puntuale.PartnerID, file string) (*Upload, chan error) {
			t.Helper()
			x, err := u.Begin(semaphore.Holder{Key: partner}, semaphore.Holder{Key: name})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := io.ReadAll(x.Reader(t.Context(), strings.NewReader(file)))
				if err == nil {
					order = append(order, name)
				}
				done <- err
			}()
			synctest.Wait()
			return x, done
		}
		all := make([]*Upload, 5)
		all[0], _ = read("first of one", 1, workbook)
		all[2], _ = read("second of one", 1, workbook)
		all[1], _ = read("first of two", 2, workbook)
		all[3], _ = read("list of one", 1, "phone\n333\n")
		for _, x := range all[:2] {
			x.End()
			synctest.Wait()
		}
		if want := []string{"first of one", "list of one", "first of two", "second of one"}; !slices.Equal(order, want) {
			t.Fatalf("%q, want %q", order, want)
		}
		var done chan error
		all[4], done = read("late", 3, workbook)
		if err := <-done; puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Errorf("late: %v", err)
		}
		for _, x := range all[2:] {
			x.End()
		}
		if _, free := u.processors.TryEnter(); !free {
			t.Error("no processor is free in the end")
		}
		for range maxUploads {
			if _, free := u.all.TryEnter(); !free {
				t.Fatal("an upload is left in the end")
			}
		}
	})
}
