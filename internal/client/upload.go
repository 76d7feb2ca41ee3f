package client

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// fileTakes is the longest time for each piece of an uploaded list, and for the answer after the last piece.
const fileTakes = 10 * time.Minute

// MaxFile is the largest file that a server accepts, in bytes.
const MaxFile = 100 << 20

// File is a list that the client uploads.
type File struct {
	From io.ReaderAt
	Size int64 // bytes
}

// UploadList replaces the campaign's list by a file. columns may say which column is which field, such as
// "phone:Telefono,nome:Nome". UploadList calls report with the number of bytes that were sent, but never after it
// returned. Errors: a [*Refusal]; errors of the file.
func (c *Client) UploadList(ctx context.Context, id string, f File, columns string, report func(sent int64)) (put List, err error) {
	path := campaignPath(id) + "/recipients"
	if columns != "" {
		path += "?columns=" + url.QueryEscape(columns)
	}
	return put, c.Repeat(ctx, func() error {
		return c.within(ctx, fileTakes, func(ctx context.Context, moved func()) error {
			body := &countingReader{r: io.NewSectionReader(f.From, 0, f.Size), tell: func(sent int64) { moved(); report(sent) }}
			defer func() { _ = body.Close() }()                                            // an error while closing a file after reading does not matter
			return c.send(ctx, http.MethodPut, path, body, &put, "Expect", "100-continue") // with this header the server can refuse before the file is sent
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
		err = finalError{err}
	case f.read < f.r.Size():
		err = finalError{errors.New("the list became shorter while it was read")}
	}
	return n, err
}

func (f *countingReader) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tell = nil
	return nil
}
