package media

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"puntuale"
)

// fakeOpener opens a text, or returns an error.
type fakeOpener struct{ err error }

func (f fakeOpener) OpenMedia(ctx context.Context, _ puntuale.Session, _ puntuale.ReplyMedia, _ int64) (*puntuale.ReplyFile, error) {
	if _, bounded := ctx.Deadline(); !bounded {
		return nil, errors.New("there is no end")
	}
	if f.err != nil {
		return nil, f.err
	}
	return &puntuale.ReplyFile{ReadCloser: io.NopCloser(strings.NewReader("file")), Size: 4}, nil
}

// TestOpener: the connector of a session opens the session's files. A client uses only its own slots, and closing a
// file releases the file's slot.
func TestOpener(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		fails := errors.New("the network is silent")
		o := NewOpener(func(s puntuale.Session) puntuale.MediaOpener {
			switch s.Type {
			case puntuale.Official:
				return fakeOpener{}
			case puntuale.Socket:
				return fakeOpener{fails}
			}
			return nil
		})
		open := func(client puntuale.ClientID, connection puntuale.ConnectionType) (*puntuale.ReplyFile, error) {
			return o.OpenMedia(t.Context(), puntuale.Session{Client: client, Type: connection}, puntuale.ReplyMedia{}, 4)
		}
		if _, err := open(1, puntuale.SendApp); puntuale.CodeOf(err) != puntuale.CodeGone {
			t.Errorf("a network without files: %v", err)
		}
		for range 2 * opensAtOnce {
			if _, err := open(1, puntuale.Socket); !errors.Is(err, fails) {
				t.Fatal(err)
			}
		}
		var files []*puntuale.ReplyFile
		for range opensPerClient {
			f, err := open(1, puntuale.Official)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
		}
		if _, err := open(1, puntuale.Official); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Errorf("one too many: %v", err)
		}
		if f, err := open(2, puntuale.Official); err != nil || f.Size != 4 {
			t.Errorf("another client: %v", err)
		}
		for range 2 {
			if err := files[0].Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := open(1, puntuale.Official); err != nil {
			t.Errorf("after a close: %v", err)
		}
		if _, err := open(1, puntuale.Official); puntuale.CodeOf(err) != puntuale.CodeOverloaded {
			t.Errorf("one too many: %v", err)
		}
	})
}
