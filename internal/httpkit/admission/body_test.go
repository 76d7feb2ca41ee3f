package admission_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"puntuale"
	"puntuale/internal/httpkit/admission"
)

// endless is a body without a length and without an end. It counts the bytes that were read.
type endless struct{ read int }

func (e *endless) Read(p []byte) (int, error) {
	e.read += len(p)
	return len(p), nil
}

func TestReadBody(t *testing.T) {
	t.Parallel()
	read := func(body io.Reader, length int64) ([]byte, error) {
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.ContentLength = length
		return admission.ReadBody(httptest.NewRecorder(), r, admission.MaxBody, nil)
	}
	if got, err := read(strings.NewReader(strings.Repeat("x", admission.MaxBody)), -1); err != nil || len(got) != admission.MaxBody {
		t.Errorf("the largest body: %d, %v", len(got), err)
	}
	if got, err := read(http.NoBody, 0); err != nil || len(got) != 0 {
		t.Errorf("no body: %q, %v", got, err)
	}
	unread := &endless{}
	if _, err := read(unread, admission.MaxBody+1); puntuale.CodeOf(err) != puntuale.CodeTooLarge || unread.read != 0 {
		t.Errorf("announced as too large: %v, %d bytes read", err, unread.read)
	}
	if _, err := read(unread, -1); puntuale.CodeOf(err) != puntuale.CodeTooLarge || unread.read > 2*admission.MaxBody {
		t.Errorf("found to be too large: %v, %d bytes read", err, unread.read)
	}
	broken := io.MultiReader(strings.NewReader(`{"a":`), brokenReader{})
	if _, err := read(broken, -1); puntuale.CodeOf(err) != puntuale.CodeUnreadable {
		t.Errorf("broken off: %v", err)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// Bytes of a body are counted as they arrive; an announced length alone is not counted. After the body has arrived, the
// values decoded from it are also counted.
func TestBodiesCountAsTheyCome(t *testing.T) {
	t.Parallel()
	b := admission.NewMemoryBudget(64<<20, nil)
	read := func(body io.Reader, length, limit int64) (int, *admission.MemoryGrant, error) {
		r := httptest.NewRequest(http.MethodPost, "/", body)
		r.ContentLength = length
		a := b.Open(greedy)
		got, err := admission.ReadBody(httptest.NewRecorder(), r, limit, a)
		return len(got), a, err
	}
	slow, pipe := io.Pipe()
	done := make(chan error)
	go func() {
		_, a, err := read(slow, admission.MaxBody, admission.MaxBody)
		a.Close()
		done <- err
	}()
	if _, err := pipe.Write([]byte("x")); err != nil || b.Taken() != 0 {
		t.Errorf("one byte of many holds %d, %v", b.Taken(), err)
	}
	pipe.CloseWithError(io.ErrUnexpectedEOF)
	if err := <-done; puntuale.CodeOf(err) != puntuale.CodeUnreadable {
		t.Errorf("a body that broke off: %v", err)
	}
	n, a, err := read(strings.NewReader(strings.Repeat("x", admission.MaxBody)), admission.MaxBody, admission.MaxBody)
	if err != nil || n != admission.MaxBody || b.Taken() < 3*admission.MaxBody {
		t.Errorf("%d bytes hold %d, %v", n, b.Taken(), err)
	}
	a.Close()
	for _, length := range []int64{-1, 101} {
		if _, a, err := read(strings.NewReader(strings.Repeat("x", 101)), length, 100); puntuale.CodeOf(err) != puntuale.CodeTooLarge {
			t.Errorf("announced as %d: %v", length, err)
		} else {
			a.Close()
		}
	}
	if b.Taken() != 0 {
		t.Errorf("%d bytes are still held", b.Taken())
	}
}
