package media

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"os"
	"time"

	"puntuale"
)

// key identifies a file. Callers with the same key share the file.
type key struct {
	client puntuale.ClientID
	run    puntuale.RunID
	url    string
	limit  int64
}

// file is one fetch and its result. The fetcher's lock guards the fields above data. The fields from data on are used
// only by the fetch until done is closed. After that they do not change.
type file struct {
	key       key
	ctx       context.Context // the context of the fetch; it ends when no caller waits any more
	cancel    context.CancelCauseFunc
	users     int           // callers that wait for the file or read it
	done      chan struct{} // closed when the fetch has ended
	failed    *puntuale.SendError
	keptUntil time.Time // the file is stored until this time
	listed    bool      // true: the file is in the fetcher's files
	room      int64     // bytes of the budget that the file uses
	dropped   bool      // true: the file was dropped

	data *os.File
	name string // the file's name in the fetcher's folder; removed when the file is open, if the system allows this
	size int64
	kind string
}

// take finds the file or begins to fetch it, and adds one user.
func (f *Fetcher) take(k key, u *url.URL) (*file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return nil, gaveUp(errClosed)
	}
	m := f.files[k]
	if m != nil && m.ended() && !f.cfg.Clock.Now().Before(m.keptUntil) {
		f.forget(m)
		f.release(m)
		m = nil
	}
	if m == nil {
		for len(f.files) >= f.cfg.Files {
			if !f.evict() {
				return nil, transient(reasonLater, reasonManyFiles, errFull)
			}
		}
		m = &file{key: k, done: make(chan struct{}), listed: true}
		m.ctx, m.cancel = context.WithCancelCause(f.ctx)
		f.files[k] = m
		f.wg.Go(func() { f.run(m, u) })
	}
	m.users++
	return m, nil
}

func (m *file) ended() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// leave removes one user. It cancels a fetch that no caller waits for any more.
func (f *Fetcher) leave(m *file) {
	f.mu.Lock()
	defer f.mu.Unlock()
	m.users--
	if m.users == 0 && !m.ended() {
		f.forget(m)
		m.cancel(context.Canceled)
	}
	f.release(m)
}

// forget removes the file from the files that callers can find. Current users can still read it. The caller must hold
// the fetcher's lock. This also applies to release, drop and evict.
func (f *Fetcher) forget(m *file) {
	if m.listed {
		m.listed = false
		delete(f.files, m.key)
	}
}

// release drops a file that no caller can find or uses.
func (f *Fetcher) release(m *file) {
	if !m.listed && m.users == 0 && m.ended() {
		f.drop(m)
	}
}

func (f *Fetcher) drop(m *file) {
	f.forget(m)
	if m.dropped {
		return
	}
	m.dropped = true
	if m.data != nil {
		_ = m.data.Close()
		_ = f.root.Remove(m.name) // fails if create has already removed the name
	}
	f.stored -= m.room
}

// evict drops the unused file that would expire first. It returns false if there is no unused file.
func (f *Fetcher) evict() bool {
	var oldest *file
	for _, m := range f.files {
		if m.users == 0 && m.ended() && (oldest == nil || m.keptUntil.Before(oldest.keptUntil)) {
			oldest = m
		}
	}
	if oldest == nil {
		return false
	}
	f.drop(oldest)
	return true
}

// grow reserves n more bytes of the budget for a file. If necessary, it drops unused files.
func (f *Fetcher) grow(m *file, n int64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.stored+n > f.cfg.Budget {
		if !f.evict() {
			return transient(reasonLater, reasonNoRoom, errFull)
		}
	}
	f.stored += n
	m.room += n
	return nil
}

// create creates the file on disk, and removes its name if the system allows this.
func (f *Fetcher) create(m *file) error {
	name := rand.Text()
	data, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a file for media: %w", err)
	}
	m.data, m.name = data, name
	_ = f.root.Remove(name) // if the system refuses this, the name remains until the file is dropped
	return nil
}

// age drops expired files periodically.
func (f *Fetcher) age() {
	for f.cfg.Clock.Sleep(f.ctx, f.cfg.Age/4) == nil {
		f.expire(f.cfg.Clock.Now())
	}
}

func (f *Fetcher) expire(now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.files {
		if m.ended() && !now.Before(m.keptUntil) {
			f.forget(m)
			f.release(m)
		}
	}
}
