package httpapi_test

import (
	"context"
	"io"
	"strings"
	"testing"

	"puntuale"
)

// files is a network that stores one file. The reference in the reply's media names this file.
type files struct{}

func (files) OpenMedia(_ context.Context, _ puntuale.Session, m puntuale.ReplyMedia, _ int64) (*puntuale.ReplyFile, error) {
	if string(m.Ref) != "there" {
		return nil, &puntuale.Error{Code: puntuale.CodeGone, Reason: puntuale.Because(puntuale.FaultMediaGone)}
	}
	return &puntuale.ReplyFile{ReadCloser: io.NopCloser(strings.NewReader("<script>")), Size: 8}, nil
}

// TestReplyMedia: a reply's file is sent as a download, so that no browser runs it. If the network no longer has the
// file, the status is 410.
func TestReplyMedia(t *testing.T) {
	t.Parallel()
	databases(t, options{sandbox: true, opener: files{}}, func(t *testing.T, s *service) {
		a, other := s.newAccount("media@x", "full"), s.newAccount("other@x", "full")
		client, session := idsOf(t, a, a.Session)
		s.must(nil, "PATCH", "/api/settings", a.Key, `{"keep_replies":"all"}`)
		for id, media := range map[string]*puntuale.ReplyMedia{
			"there": {Type: "text/html; charset=utf-8", Name: "pagina \"uno\".html", Size: 8, Ref: []byte("there")}, "gone": {Type: "?", Ref: []byte("no")}, "none": nil,
		} {
			if err := s.intake.Take(t.Context(), session, puntuale.InboundBatch{Messages: []puntuale.InboundMessage{{
				Client: client, Session: session, Phone: "+393331234567", At: s.clock.Now(), ID: id, Kind: puntuale.ReplyDocument, Text: id, Media: media,
			}}}); err != nil {
				t.Fatal(err)
			}
		}
		var list struct{ Replies []struct{ ID, Text string } }
		s.must(&list, "GET", "/api/replies", a.Key, "")
		for _, y := range list.Replies {
			path := "/api/replies/" + y.ID + "/media"
			got := s.call("GET", path, a.Key, "")
			if y.Text != "there" {
				if got.status != 410 {
					t.Errorf("%s: %d %s", y.Text, got.status, got.body)
				}
				continue
			}
			h := got.header
			if got.status != 200 || got.body != "<script>" || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment;") ||
				h.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(h.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%d %q %v", got.status, got.body, h)
			}
			if got := s.call("GET", path, other.Key, ""); got.status != 404 {
				t.Errorf("another client's file: %d %s", got.status, got.body)
			}
		}
		if len(list.Replies) != 3 {
			t.Errorf("replies: %+v", list.Replies)
		}
	})
}
