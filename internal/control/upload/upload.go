package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"puntuale"
	"puntuale/internal/roster"
	"puntuale/internal/semaphore"
)

// Limits of the lists that one server reads at the same time. A list needs up to 1.2 GB of disk while the server reads
// it. A hostile workbook uses one processor for up to two minutes.
const (
	maxUploads  = 16
	maxFiles    = 12              // uploads of files; a storage that does not answer must leave room for lists
	uploadWaits = 5 * time.Minute // how long a workbook waits for a processor
	uploadRetry = 10 * time.Second
)

// ClientUploads is how many lists of one client the server reads at the same time.
const ClientUploads = 4

// Uploads bounds the lists that the server reads at the same time. It is safe for concurrent use.
type Uploads struct{ all, files, processors *semaphore.Semaphore }

// New returns Uploads. processors is how many workbooks the server may unpack at the same time.
func New(processors int) *Uploads {
	return &Uploads{semaphore.New(maxUploads), semaphore.New(maxFiles), semaphore.New(processors)}
}

// Begin counts one more list of a partner's client. After a success, the caller must call End of the returned upload.
// Codes: overloaded.
func (u *Uploads) Begin(partner, client semaphore.Holder) (*Upload, error) {
	leave, ok := u.all.TryEnter(partner, client)
	if !ok {
		return nil, puntuale.Overloaded(uploadRetry)
	}
	return &Upload{uploads: u, partner: semaphore.Holder{Key: partner.Key, Slots: 1}, client: client, leave: leave}, nil
}

// BeginFile does the same as Begin for a file that a message will have.
func (u *Uploads) BeginFile(partner, client semaphore.Holder) (*Upload, error) {
	leave, ok := u.files.TryEnter(partner, client)
	if !ok {
		return nil, puntuale.Overloaded(uploadRetry)
	}
	x, err := u.Begin(partner, client)
	if err != nil {
		leave()
		return nil, err
	}
	first := x.leave
	x.leave = func() { first(); leave() }
	return x, nil
}

// Upload is one list that the server is reading. It is not safe for concurrent use.
type Upload struct {
	uploads         *Uploads
	partner, client semaphore.Holder // in the queue for a processor
	leave           func()
	done            func() // returns the processor; nil: the upload has none
}

// Work waits for a processor. The upload keeps the processor until End. Only one upload of a partner uses a processor,
// and the partners take turns. So a partner with many uploads does not delay other partners. Codes: overloaded.
func (u *Upload) Work(ctx context.Context) (err error) {
	if u.done != nil {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, uploadWaits)
	defer cancel()
	u.done, err = u.uploads.processors.Enter(within, u.partner, u.client)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
	return puntuale.Overloaded(uploadRetry)
}

// End releases the processor and the count of the upload. Call it once.
func (u *Upload) End() {
	if u.done != nil {
		u.done()
	}
	u.leave()
}

// Reader returns a reader of the list. The reader waits for a processor after it has received a whole workbook, because
// the server unpacks the workbook only then. A CSV list is read while it arrives, and does not wait.
func (u *Upload) Reader(ctx context.Context, r io.Reader) io.Reader {
	return &uploadReader{Upload: u, ctx: ctx, r: r}
}

type uploadReader struct {
	*Upload
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	r     io.Reader
	first []byte
}

// archiveMark is the beginning of a zip archive. A workbook is a zip archive.
var archiveMark = []byte("PK")

func (u *uploadReader) Read(p []byte) (int, error) {
	runtime.Gosched() // short calls run first: reading a list may keep a processor busy for seconds
	n, err := u.r.Read(p)
	if left := len(archiveMark) - len(u.first); left > 0 {
		u.first = append(u.first, p[:min(n, left)]...)
	}
	if errors.Is(err, io.EOF) && bytes.Equal(u.first, archiveMark) {
		if waited := u.Work(u.ctx); waited != nil {
			return n, waited
		}
	}
	return n, err //nolint:wrapcheck // the reader's own error
}

// MappingFault converts an error of the caller's mapping into a fault.
func MappingFault(err error, mapping string) error {
	e, ok := errors.AsType[*roster.MappingError](err)
	if !ok {
		return fmt.Errorf("read a mapping: %w", err)
	}
	return puntuale.Invalid(e.Reason().At("query.columns", mapping))
}

// FileFault converts an error of a whole file into a fault.
func FileFault(err error) error {
	e, ok := errors.AsType[*roster.FileError](err)
	switch {
	case !ok:
		return fmt.Errorf("read a list: %w", err)
	case e.TooLarge():
		return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: e.Reason()}
	}
	return puntuale.Invalid(e.Reason().At("body", nil))
}
