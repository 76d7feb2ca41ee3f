package campaignclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
)

// MaxFile is the largest file that a server accepts, in bytes.
const MaxFile = 100 << 20

// File is a list that the client uploads.
type File struct {
	From io.ReaderAt
	Size int64 // bytes
}

// Upload replaces the campaign's list by a file. columns may say which column is which field, such as
// "phone:Telefono,nome:Nome". Upload calls report with the number of bytes that were sent, but never after Upload
// returned. Errors: a [*Refusal]; errors of the file.
func (c *Client) Upload(ctx context.Context, id string, f File, columns string, report func(sent int64)) (put List, err error) {
	path := campaignPath(id) + "/recipients"
	if columns != "" {
		path += "?columns=" + url.QueryEscape(columns)
	}
	return put, c.persist(ctx, func() error {
		return c.within(ctx, fileTakes, func(ctx context.Context, moved func()) error {
			body := &countingReader{r: io.NewSectionReader(f.From, 0, f.Size), tell: func(sent int64) { moved(); report(sent) }}
			defer func() { _ = body.Close() }()                                               // an error while closing a file after reading does not matter
			return c.tryOnce(ctx, http.MethodPut, path, body, &put, "Expect", "100-continue") // with this header the server can refuse before the file is sent
		})
	})
}

// countingReader reports how much of a file was read. The transport may continue to read for a short time after the
// call ended.
type countingReader struct {
	r *io.SectionReader

	mu   sync.Mutex
	read int64
	tell func(int64) // nil: the upload has returned
}

func (f *countingReader) Read(p []byte) (int, error) {
	n, err := f.r.Read(p)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.read += int64(n); f.tell != nil {
		f.tell(f.read)
	}
	switch {
	case err == nil:
	case !errors.Is(err, io.EOF):
		err = localError{err}
	case f.read < f.r.Size():
		err = localError{errors.New("the list became shorter while it was read")}
	}
	return n, err
}

func (f *countingReader) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = nil
	return nil
}
