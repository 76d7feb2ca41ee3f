// Package link answers calls of tracked links, and counts them without keeping the caller waiting.
package link

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/clock"
)

// Store contains the links.
type Store interface {
	// LinkOf finds a link by its code. Codes: not_found.
	LinkOf(ctx context.Context, code string) (puntuale.LinkRef, string, error)
	// RecordClicks counts clicks. If it fails, it returns those that must be counted later.
	RecordClicks(ctx context.Context, now time.Time, all []puntuale.Click) (left []puntuale.Click, err error)
}

// FlushEvery is how often clicks are written. Those of this time are lost if the server is killed.
const FlushEvery = time.Second

// maxWaiting is how many clicks wait in memory at most. Each takes less than 100 bytes.
const maxWaiting = 50_000

// maxCode is the longest text that is looked up, in bytes.
const maxCode = 32

// Links answers calls of tracked links. It is safe for concurrent use.
type Links struct {
	store Store
	clock clock.Clock

	writing sync.Mutex // held while clicks are written
	mu      sync.Mutex
	waiting []puntuale.Click
	dropped int // clicks for which there was no room
}

// New returns the links of a store.
func New(store Store, c clock.Clock) *Links { return &Links{store: store, clock: c} }

// Follow returns where a link leads, and notes the click. agent is the caller's name of itself. asked is false if the
// caller wants only the answer's headers. Codes: not_found (also a link that has ended).
func (l *Links) Follow(ctx context.Context, code, agent string, asked bool) (address string, err error) {
	code = strings.TrimRight(code, "*_~.,;:!?)]'") // readers take what follows an address for a part of it
	if len(code) > maxCode || !utf8.ValidString(code) || strings.ContainsRune(code, 0) {
		return "", puntuale.NotFound(puntuale.NoPage)
	}
	ref, address, err := l.store.LinkOf(ctx, code)
	if err != nil {
		return "", fmt.Errorf("look for a link: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) >= maxWaiting {
		l.dropped++
		return address, nil
	}
	l.waiting = append(l.waiting, puntuale.Click{LinkRef: ref, At: l.clock.Now(), Machine: !asked || isMachine(agent)})
	return address, nil
}

// machines are parts of the names of programs that open links although nobody followed them: previews of chats, search
// engines, and scanners of mails. All are in small letters.
var machines = []string{
	"whatsapp/", "facebookexternalhit", "facebot", "meta-externalagent", "slackbot", "telegrambot", "twitterbot", "linkedinbot", "discordbot",
	"skypeuripreview", "applebot", "googlebot", "google-", "googleother", "bingbot", "bingpreview", "duckduckbot", "baiduspider", "ahrefsbot",
	"barracuda", "proofpoint", "mimecast", "safelinks", "urlscan", "bot/", "bot;", "spider", "crawler", "preview", "curl/", "wget/",
	"python-", "go-http-client", "okhttp", "java/", "headlesschrome",
}

// isMachine reports whether no person uses a program with this name. A program without a name is a machine.
func isMachine(agent string) bool {
	agent = strings.ToLower(agent[:min(len(agent), 512)])
	for _, part := range machines {
		if strings.Contains(agent, part) {
			return true
		}
	}
	return strings.TrimSpace(agent) == ""
}

// ErrDropped says that there were more clicks than memory may hold. The calls were answered, but not counted.
var ErrDropped = errors.New("clicks of links were not counted")

// Flush writes the clicks that wait. If it fails, those that are not written wait for the next call.
func (l *Links) Flush(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	all, dropped := l.waiting, l.dropped
	l.waiting, l.dropped = nil, 0
	l.mu.Unlock()
	if len(all) == 0 {
		return droppedError(dropped)
	}
	if left, err := l.store.RecordClicks(ctx, l.clock.Now(), all); err != nil {
		l.mu.Lock()
		room := max(0, maxWaiting-len(l.waiting))
		l.waiting, l.dropped = append(left[:min(len(left), room):min(len(left), room)], l.waiting...), l.dropped+max(0, len(left)-room)
		l.mu.Unlock()
		return errors.Join(fmt.Errorf("count clicks: %w", err), droppedError(dropped))
	}
	return droppedError(dropped)
}

func droppedError(n int) error {
	if n == 0 {
		return nil
	}
	return fmt.Errorf("%d %w", n, ErrDropped)
}
