package control

import (
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"puntuale"
)

// Bounds of the lists that one server reads at the same time. A list takes up to 1.2 GB of disk while it is read, and a
// hostile workbook up to two minutes of one processor.
const (
	mostUploads        = 16
	mostPartnerUploads = mostUploads / 2 // so that no partner's clients take all
	uploadWaits        = 5 * time.Minute // for a processor
	uploadRetry        = 10 * time.Second
)

// uploads bounds the lists that are read at the same time. The zero value is ready. Many goroutines may use it at once.
type uploads struct {
	mu      sync.Mutex
	all     int
	partner map[puntuale.PartnerID]int

	once       sync.Once
	processors *semaphore.Weighted
}

// begin takes a place for one list. On success the caller calls the upload's end. Codes: overloaded.
func (u *uploads) begin(ctx context.Context, partner puntuale.PartnerID) (*upload, error) {
	u.once.Do(func() {
		u.partner = map[puntuale.PartnerID]int{}
		u.processors = semaphore.NewWeighted(int64(max(1, runtime.GOMAXPROCS(0)/2))) // calls and messages keep the others
	})
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all >= mostUploads || u.partner[partner] >= mostPartnerUploads {
		return nil, puntuale.Overloaded(uploadRetry)
	}
	u.all++
	u.partner[partner]++
	return &upload{ctx: ctx, of: u, partner: partner}, nil
}

// upload is one list on its way. One goroutine uses it.
type upload struct {
	ctx     context.Context //nolint:containedctx // it lives as long as one call
	of      *uploads
	partner puntuale.PartnerID
	working bool
}

// work waits for a processor, and keeps it until the end. Codes: overloaded.
func (u *upload) work() error {
	if u.working {
		return nil
	}
	ctx, cancel := context.WithTimeout(u.ctx, uploadWaits)
	defer cancel()
	if err := u.of.processors.Acquire(ctx, 1); err != nil {
		if u.ctx.Err() != nil {
			return u.ctx.Err() //nolint:wrapcheck // the caller went away
		}
		return puntuale.Overloaded(uploadRetry)
	}
	u.working = true
	return nil
}

func (u *upload) end() {
	if u.working {
		u.of.processors.Release(1)
	}
	u.of.mu.Lock()
	defer u.of.mu.Unlock()
	u.of.all--
	if u.of.partner[u.partner]--; u.of.partner[u.partner] == 0 {
		delete(u.of.partner, u.partner)
	}
}

// uploadReader waits for a processor once the whole file has come: a workbook is unpacked only then. A CSV list was read
// with it, as fast as it came.
type uploadReader struct {
	*upload
	r io.Reader
}

func (u *uploadReader) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if errors.Is(err, io.EOF) {
		if waited := u.work(); waited != nil {
			return n, waited
		}
	}
	return n, err //nolint:wrapcheck // it is the reader's own
}
