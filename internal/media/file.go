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

// key decides which callers share a file: those with the same key.
type key struct {
	client puntuale.ClientID
	run    puntuale.RunID
	url    string
	limit  int64
}

// file is one fetch and its result. The fetcher's lock guards the fields above data. Only the fetch uses the others
// until done is closed, and they do not change afterwards.
type file struct {
	key       key
	ctx       context.Context // the context of the fetch; it ends when no caller waits any more
	cancel    context.CancelCauseFunc
	users     int           // callers who wait or read
	done      chan struct{} // closed when the fetch has ended
	failed    *puntuale.SendError
	keptUntil time.Time // the file is kept until then
	listed    bool      // the file is in the fetcher's files
	room      int64     // bytes taken of the budget
	gone      bool      // the file was dropped

	data *os.File
	name string // the name of data in the fetcher's folder
	size int64
	kind string
}

// take finds the file or begins to fetch it, and counts one more user.
func (f *Fetcher) take(k key, u *url.URL) (*file, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ctx.Err() != nil {
		return nil, given(errClosed)
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

// leave counts one user fewer. A fetch that nobody waits for any more is given up.
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

// forget takes the file out of what callers find; present users keep it. The fetcher is locked, as below.
func (f *Fetcher) forget(m *file) {
	if m.listed {
		m.listed = false
		delete(f.files, m.key)
	}
}

// release frees what a file takes once nobody can find or use it.
func (f *Fetcher) release(m *file) {
	if !m.listed && m.users == 0 && m.ended() {
		f.drop(m)
	}
}

func (f *Fetcher) drop(m *file) {
	f.forget(m)
	if m.gone {
		return
	}
	m.gone = true
	if m.data != nil {
		_ = m.data.Close()
		_ = f.root.Remove(m.name) // fails if create has already removed the name
	}
	f.stored -= m.room
}

// evict drops one file that nobody uses: the one that would expire first. It reports whether there was one.
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

// grow takes n more bytes of the budget for a file, from files that nobody uses if need be.
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

// create opens the file on disk, and takes its name away where the system allows that.
func (f *Fetcher) create(m *file) error {
	name := rand.Text()
	data, err := f.root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("make a file for media: %w", err)
	}
	m.data, m.name = data, name
	_ = f.root.Remove(name) // if the operating system refuses this, the name stays until the file is dropped
	return nil
}

// age drops what has been kept long enough.
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
