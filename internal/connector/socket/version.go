//go:build !nosocket

package socket

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/proto/waWa6"
	"go.mau.fi/whatsmeow/store"

	"puntuale"
)

// Each login announces a version of WhatsApp's web client. The network refuses old versions, and one day it will refuse
// the version that the library announces. Then the connector reads the current version from the page of the web client,
// and announces it from then on. All connections of the process announce the same version.

// announcing guards the library's variable with the version.
var announcing sync.RWMutex

const (
	versionNote    = "web version"         // name of the note with the latest version that the page named
	refusedNote    = "web version refused" // name of the note with the latest version that the network refused
	versionTakes   = 30 * time.Second
	versionSoon    = 15 * time.Second // how long until the next check if the page cannot be read; later waits are longer
	versionAgain   = time.Hour        // how long until the next check if the page names the refused version
	versionLongest = time.Hour        // the longest wait until the next check
)

// errOutdated says that the network already refused the version that this login would announce.
var errOutdated = errors.New("the network refuses this version")

// versions contains the latest version that the network refused, and searches for a later one. It is safe for
// concurrent use.
type versions struct {
	mu         sync.Mutex
	loaded     bool
	refused    store.WAVersionContainer
	looking    bool
	laterKnown chan struct{} // closed when a later version is known
}

func newVersions() *versions { return &versions{laterKnown: make(chan struct{})} }

func present() store.WAVersionContainer {
	announcing.RLock()
	defer announcing.RUnlock()
	return store.GetWAVersion()
}

// announce returns the first frame of a login, and the version in that frame.
func announce(device *store.Device) (*waWa6.ClientPayload, store.WAVersionContainer) {
	announcing.RLock()
	defer announcing.RUnlock()
	return device.GetClientPayload(), store.GetWAVersion()
}

// use makes all later logins announce version, if it is later than the version that they announce now. It returns false
// if version is not later.
func (v *versions) use(version store.WAVersionContainer) bool {
	announcing.Lock()
	defer announcing.Unlock()
	if !store.GetWAVersion().LessThan(version) {
		return false
	}
	store.SetWAVersion(version)
	return true
}

// check returns errOutdated if a login would announce a refused version. The first check loads the notes of earlier
// processes.
func (v *versions) check(ctx context.Context, d *devices) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.loaded {
		for _, note := range []string{versionNote, refusedNote} {
			text, err := d.noted(ctx, note)
			if err != nil {
				return fmt.Errorf("read the version of the network's client: %w", err)
			}
			version, err := store.ParseVersion(text)
			switch {
			case err != nil: // no version is stored
			case note == versionNote:
				v.use(version)
			default:
				v.refused = version
			}
		}
		v.loaded = true
	}
	if !v.refused.LessThan(present()) {
		return errOutdated
	}
	return nil
}

// refuse records that the network refused a version. If new logins would announce a refused version, refuse also starts
// the search for a later one.
func (v *versions) refuse(c *Connector, version store.WAVersionContainer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.refused.LessThan(version) {
		v.refused = version
		c.log().Error("the network refuses the version of its web client that is announced", "version", version.String())
		c.wg.Go(func() { c.noteVersion(refusedNote, version) })
	}
	if !v.refused.LessThan(present()) {
		v.look(c)
	}
}

// look starts the search for a later version, unless a search is under way. The caller holds the lock.
func (v *versions) look(c *Connector) {
	if !v.looking {
		v.looking = true
		c.wg.Go(func() { v.find(c) })
	}
}

// find searches until a later version is known, or until the connector stops.
func (v *versions) find(c *Connector) {
	for wait := versionSoon; ; wait = min(2*wait, versionLongest) {
		ctx, cancel := context.WithTimeout(c.ctx, versionTakes)
		var found *store.WAVersionContainer
		err := puntuale.Recovered(func() (err error) {
			found, err = whatsmeow.GetLatestVersion(ctx, c.httpOf(0))
			return err
		})
		cancel()
		if err == nil && v.take(c, *found) {
			return
		}
		if err == nil {
			wait = versionAgain
			c.log().Error("the network refuses the latest version of its web client; a later version of this program may be needed", "version", found.String())
		} else if c.ctx.Err() == nil {
			c.log().Warn("the version of the network's web client cannot be read", "error", clip(err.Error(), 300))
		}
		if c.cfg.Clock.Sleep(c.ctx, wait) != nil {
			return
		}
	}
}

// take announces the found version if it is later than the refused one. It reports whether the found version is later.
func (v *versions) take(c *Connector, found store.WAVersionContainer) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.refused.LessThan(found) {
		return false
	}
	v.use(found)
	v.looking = false
	close(v.laterKnown)
	v.laterKnown = make(chan struct{})
	c.log().Info("the network's web client has a later version", "version", found.String())
	c.wg.Go(func() { c.noteVersion(versionNote, found) })
	return true
}

// noteVersion stores a version for the next start. If noteVersion fails, the next start must find the version again.
func (c *Connector) noteVersion(name string, version store.WAVersionContainer) {
	ctx, cancel := context.WithTimeout(c.ctx, versionTakes)
	defer cancel()
	devices, err := c.devices(ctx)
	if err == nil {
		err = devices.note(ctx, name, version.String())
	}
	if err != nil && c.ctx.Err() == nil {
		c.log().Warn("the version of the network's web client could not be kept", "error", err)
	}
}

// awaitVersion waits until a later version is known, and then connects the number.
func (n *number) awaitVersion(ctx context.Context, epoch int) {
	v := n.c.versions
	v.mu.Lock()
	later, known := v.laterKnown, v.refused.LessThan(present())
	if !known {
		v.look(n.c)
	}
	v.mu.Unlock()
	if !known {
		select {
		case <-later:
		case <-ctx.Done():
			return
		}
	}
	n.apply(epoch, func(m *linkMachine) { m.connecting(n.c.cfg.Clock.Now()) })
}
