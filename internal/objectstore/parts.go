package objectstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
)

// Bounds of what one server asks of the storage of parts.
const (
	partTakes   = 20 * time.Second // how long storing one part may take
	readTakes   = 10 * time.Second // how long reading one part may take: a message waits for it
	removeTakes = time.Minute      // how long removing all parts of a file may take
	partsAtOnce = 64               // each has at most 1 MiB in memory
	silence     = 10 * time.Second // how long nothing is asked of a storage that did not answer
)

// ErrSilent is the error while the storage does not answer.
var ErrSilent = errors.New("the storage of files does not answer")

// Parts keeps the parts of files in a storage. Every call ends after a time, even if the storage never answers. After such
// a call, the others fail at once, so that they do not keep seats that others need, until one that asks now and then got an
// answer. It is safe for concurrent use.
type Parts struct {
	storage Storage
	clock   clock.Clock
	slots   chan struct{} // a call that hangs keeps its slot
	failed  func()        // counts a request that failed

	mu     sync.Mutex
	silent time.Time // until then nothing is asked; zero: the storage answers
	marker string    // what the storage must have; "": nobody knows
	seen   time.Time // until then nobody looks for the marker before storing a part
}

// NewParts returns the parts in a storage. failed is called for each request that failed; it may be nil.
func NewParts(s Storage, c clock.Clock, failed func()) *Parts {
	if failed == nil {
		failed = func() {}
	}
	return &Parts{storage: s, clock: c, slots: make(chan struct{}, partsAtOnce), failed: failed}
}

// PutPart stores part n of a file. It replaces the part if it exists.
func (p *Parts) PutPart(ctx context.Context, folder string, n int, content []byte) error {
	if err := p.check(ctx, true); err != nil {
		return err
	}
	return p.put(ctx, folder, n, content)
}

func (p *Parts) put(ctx context.Context, folder string, n int, content []byte) error {
	_, err := p.within(ctx, partTakes, func(ctx context.Context) ([]byte, error) {
		return nil, p.storage.Replace(ctx, folder, n, content)
	})
	return err
}

// Part returns part n of a file. If the part is longer than most, Part returns most+1 bytes. The error is fs.ErrNotExist if
// the storage has no such part.
func (p *Parts) Part(ctx context.Context, folder string, n int, most int64) ([]byte, error) {
	content, err := p.read(ctx, folder, n, most)
	if errors.Is(err, fs.ErrNotExist) {
		err = cmp.Or(p.check(ctx, false), err)
	}
	return content, err
}

func (p *Parts) read(ctx context.Context, folder string, n int, most int64) ([]byte, error) {
	return p.within(ctx, readTakes, func(ctx context.Context) ([]byte, error) { return p.storage.Read(ctx, folder, n, most) })
}

// RemoveParts removes the parts 0 to n-1 of a file, as far as they are there.
func (p *Parts) RemoveParts(ctx context.Context, folder string, n int) error {
	if err := p.check(ctx, false); err != nil {
		return err
	}
	_, err := p.within(ctx, removeTakes, func(ctx context.Context) ([]byte, error) { return nil, p.storage.RemoveFolder(ctx, folder, n) })
	return err
}

const (
	markerFolder = "marker"        // no file's parts are there
	maxMarker    = 64              // bytes
	markerSeen   = 5 * time.Second // how long parts are stored without another look at the marker
)

// errElsewhere is the error while the storage is not the one that has the files: its folder is not mounted, for example.
var errElsewhere = errors.New("this place does not have the marker of the installation's files: another folder or bucket, or a folder that is not mounted")

// Mark returns the marker of the storage. If it has none, Mark stores this one, unless it is empty.
func (p *Parts) Mark(ctx context.Context, marker string) (there string, err error) {
	content, err := p.read(ctx, markerFolder, 0, maxMarker)
	if errors.Is(err, fs.ErrNotExist) {
		content, err = []byte(marker), nil
		if marker != "" {
			err = p.put(ctx, markerFolder, 0, content)
		}
	}
	return string(content), err
}

// Expect makes the calls fail while the storage does not have this marker.
func (p *Parts) Expect(marker string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marker, p.seen = marker, time.Time{}
}

// check looks whether the storage has the marker. With recently, it is enough that it had it a moment ago.
func (p *Parts) check(ctx context.Context, recently bool) error {
	p.mu.Lock()
	marker, known := p.marker, recently && p.clock.Now().Before(p.seen)
	p.mu.Unlock()
	if marker == "" || known {
		return nil
	}
	there, err := p.Mark(ctx, "")
	if err == nil && there != marker {
		p.failed()
		err = errElsewhere
	}
	if err == nil {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.seen = p.clock.Now().Add(markerSeen)
	}
	return err
}

// within calls do, and does not wait longer than a time for it. A folder of another machine may hang without an end.
func (p *Parts) within(ctx context.Context, takes time.Duration, do func(context.Context) ([]byte, error)) ([]byte, error) {
	if !p.mayAsk() {
		return nil, ErrSilent
	}
	within, cancel := context.WithTimeout(ctx, takes)
	defer cancel()
	select {
	case p.slots <- struct{}{}:
	case <-within.Done():
		return nil, p.ended(ctx, takes)
	}
	type result struct {
		content []byte
		err     error
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-p.slots }()
		var r result
		r.err = puntuale.Recovered(func() (err error) {
			r.content, err = do(within)
			return err
		})
		done <- r
	}()
	select {
	case r := <-done:
		if r.err != nil && within.Err() != nil {
			return nil, p.ended(ctx, takes)
		}
		p.answered()
		if r.err != nil && !errors.Is(r.err, fs.ErrNotExist) {
			p.failed()
		}
		return r.content, r.err
	case <-within.Done():
		return nil, p.ended(ctx, takes)
	}
}

// ended returns the error of a call whose time is over. If the caller itself did not give up, the storage is silent. Only the
// removal of many parts may need more than its time although the storage answers.
func (p *Parts) ended(ctx context.Context, takes time.Duration) error {
	if ctx.Err() != nil {
		return fmt.Errorf("ask the storage of files: %w", context.Cause(ctx))
	}
	p.failed()
	if takes != removeTakes {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.silent = p.clock.Now().Add(silence)
	}
	return ErrSilent
}

// mayAsk reports whether a call may ask the storage. After a silence, one call may, and the others wait for what it learns.
func (p *Parts) mayAsk() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.silent.IsZero() {
		return true
	}
	now := p.clock.Now()
	if now.Before(p.silent) {
		return false
	}
	p.silent = now.Add(partTakes)
	return true
}

func (p *Parts) answered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = time.Time{}
}

// probeFolder is where Probe stores a part. No file's parts are there.
const probeFolder = "probe"

// errNoAbsence is the error of a storage that refuses to say that an object is missing, as S3 does to whoever may not list. Then
// a deleted object looks like a storage that refuses everything.
var errNoAbsence = errors.New("it does not say that an object is missing; on S3, the key needs the right to list the bucket, s3:ListBucket")

var errFound = errors.New("it returned an object that nobody stored")

// Probe stores a part, reads it and removes it. It also reads one that is not there.
func (p *Parts) Probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	const content = "Puntuale looks whether it can use this storage."
	folder := probeFolder + "-" + p.clock.Now().UTC().Format("20060102T150405.000000000")
	if err := p.PutPart(ctx, folder, 0, []byte(content)); err != nil {
		return err
	}
	got, err := p.Part(ctx, folder, 0, int64(len(content)))
	if err == nil && string(got) != content {
		err = errors.New("it returned other bytes than it got")
	}
	if _, absent := p.Part(ctx, folder, 1, 1); err == nil && !errors.Is(absent, fs.ErrNotExist) {
		err = fmt.Errorf("%w: %w", errNoAbsence, cmp.Or(absent, errFound))
	}
	return errors.Join(err, p.RemoveParts(ctx, folder, 1))
}
