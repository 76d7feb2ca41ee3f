package official_test

import (
	"io"
	"path/filepath"
	"testing"

	"puntuale"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/official/graphtest"
)

// TestOpenMedia: a reply's file is fetched from Meta by its id. A node on which the session is not open can fetch it,
// too.
func TestOpenMedia(t *testing.T) {
	t.Parallel()
	var h heard
	folder := t.TempDir()
	w := newWorld(t, setup{config: func(c *official.Config) { c.Folder = folder; h.config(c) }})
	of := puntuale.Session{ID: w.session, Client: w.c.ID, Type: puntuale.Official}
	receive := func(body string) puntuale.ReplyMedia {
		t.Helper()
		w.deliver(w.peer.Inbound("101", person, "wamid."+body, w.clock.Now(), "document", w.peer.Attach("101", graphtest.File{Type: "application/pdf", Name: "conto.pdf", Data: []byte(body)})))
		return *h.next()[0].Media
	}
	refused := func(what string, s puntuale.Session, m puntuale.ReplyMedia, code puntuale.Code) {
		t.Helper()
		if _, err := w.conn.OpenMedia(t.Context(), s, m, puntuale.MaxReplyFile); puntuale.CodeOf(err) != code {
			t.Errorf("%s: %v, want %s", what, err, code)
		}
	}
	w.conn.Close(w.within(), w.session)
	m := receive("il conto")
	f, err := w.conn.OpenMedia(t.Context(), of, m, 8)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(f); err != nil || string(body) != "il conto" || f.Size != int64(len(body)) {
		t.Errorf("%q, %v", body, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	other := of
	other.Client++
	refused("another client's session", other, m, puntuale.CodeUnavailable)
	refused("a file without an id", of, puntuale.ReplyMedia{Ref: []byte("{}")}, puntuale.CodeGone)
	refused("an id that is a path", of, puntuale.ReplyMedia{Ref: []byte(`{"id":"101/messages"}`)}, puntuale.CodeGone)
	refused("another file", of, puntuale.ReplyMedia{Ref: []byte(`{"id":"700000001","sha256":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="}`)}, puntuale.CodeUnavailable)
	// A file that the caller would refuse is not fetched: its address here would be refused with another code.
	w.peer.Move("700000001", "https://evil.example/x")
	if _, err := w.conn.OpenMedia(t.Context(), of, m, 7); puntuale.CodeOf(err) != puntuale.CodeTooLarge {
		t.Errorf("a file that is too large: %v", err)
	}
	// Meta's answer may contain any address, but no other host gets a request or the token.
	for _, address := range []string{"https://evil.example/x", "https://facebook.com.evil.example/x", "http://lookaside.fbsbx.com/x", "https://u@lookaside.fbsbx.com/x", "https://lookaside.fbsbx.com:444/x", "https://10.0.0.1/x", "file:///etc/passwd", ":"} {
		w.peer.Move("700000001", address)
		refused(address, of, m, puntuale.CodeUnavailable)
	}
	w.peer.Forget()
	refused("after a week", of, m, puntuale.CodeGone)
	if err := w.w.ForgetKeys(t.Context(), w.session); err != nil {
		t.Fatal(err)
	}
	refused("without keys", of, m, puntuale.CodeUnavailable)
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
