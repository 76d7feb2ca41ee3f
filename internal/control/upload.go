package control

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"puntuale"
	"puntuale/internal/roster"
)

// Bounds of the lists that one server reads at the same time. A list takes up to 1.2 GB of disk while it is read. A
// hostile workbook takes up to two minutes of one processor.
const (
	mostUploads        = 16
	mostPartnerUploads = mostUploads / 2 // so that the clients of one partner cannot take all places
	uploadWaits        = 5 * time.Minute // how long a workbook waits for a processor
	uploadRetry        = 10 * time.Second
)

// uploads counts and bounds the lists that are read at the same time. Many goroutines may use it at once.
type uploads struct {
	mu         sync.Mutex
	all        int
	partners   map[puntuale.PartnerID]*partnerUploads
	processors *semaphore.Weighted
}

// partnerUploads are the uploads of one partner's clients.
type partnerUploads struct {
	all  int
	slot *semaphore.Weighted // one of the uploads waits for a processor, or uses it
}

func newUploads(processors int) *uploads {
	return &uploads{partners: map[puntuale.PartnerID]*partnerUploads{}, processors: semaphore.NewWeighted(int64(processors))}
}

// begin counts one more list that is being read. After a success, the caller must call the upload's method end. Codes:
// overloaded.
func (u *uploads) begin(partner puntuale.PartnerID) (*upload, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p := u.partners[partner]
	if p == nil {
		p = &partnerUploads{slot: semaphore.NewWeighted(1)}
	}
	if u.all >= mostUploads || p.all >= mostPartnerUploads {
		return nil, puntuale.Overloaded(uploadRetry)
	}
	u.partners[partner] = p
	u.all++
	p.all++
	return &upload{uploads: u, partner: partner, slot: p.slot}, nil
}

// upload is one list that is being read. Only one goroutine may use it.
type upload struct {
	uploads *uploads
	partner puntuale.PartnerID
	slot    *semaphore.Weighted
	working bool
}

// work waits for a processor. The upload keeps the processor until it ends. Only one upload of a partner waits at a
// time, so that many uploads of one partner do not delay other partners. Codes: overloaded.
func (u *upload) work(ctx context.Context) error {
	if u.working {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, uploadWaits)
	defer cancel()
	err := u.slot.Acquire(within, 1)
	if err == nil {
		if err = u.uploads.processors.Acquire(within, 1); err != nil {
			u.slot.Release(1)
		}
	}
	switch {
	case err == nil:
		u.working = true
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("wait for a processor: %w", ctx.Err())
	}
	return puntuale.Overloaded(uploadRetry)
}

func (u *upload) end() {
	if u.working {
		u.uploads.processors.Release(1)
		u.slot.Release(1)
	}
	u.uploads.mu.Lock()
	defer u.uploads.mu.Unlock()
	u.uploads.all--
	if p := u.uploads.partners[u.partner]; p.all > 1 {
		p.all--
	} else {
		delete(u.uploads.partners, u.partner)
	}
}

// uploadReader waits for a processor once a whole workbook has arrived, because the workbook is unpacked only then. A
// CSV list is read while it arrives, and does not wait.
type uploadReader struct {
	*upload
	ctx   context.Context //nolint:containedctx // it lives as long as one call
	r     io.Reader
	first []byte
}

// archiveMark is how a zip archive begins. A workbook is a zip archive.
var archiveMark = []byte("PK")

func (u *uploadReader) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if left := len(archiveMark) - len(u.first); left > 0 {
		u.first = append(u.first, p[:min(n, left)]...)
	}
	if errors.Is(err, io.EOF) && bytes.Equal(u.first, archiveMark) {
		if waited := u.work(u.ctx); waited != nil {
			return n, waited
		}
	}
	return n, err //nolint:wrapcheck // the reader's own error
}

// mappingFault turns an error of the caller's mapping into a fault.
func mappingFault(err error, mapping string) error {
	e, ok := errors.AsType[*roster.MappingError](err)
	if !ok {
		return fmt.Errorf("read a mapping: %w", err)
	}
	return puntuale.Invalid(e.Reason().At("query.columns", mapping))
}

// fileFault turns an error of a file as a whole into a fault.
func fileFault(err error) error {
	e, ok := errors.AsType[*roster.FileError](err)
	switch {
	case !ok:
		return fmt.Errorf("read a list: %w", err)
	case e.TooLarge():
		return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: e.Reason()}
	}
	return puntuale.Invalid(e.Reason().At("body", nil))
}
