package logging

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"puntuale/internal/clock"
)

// quietFor is how long a warning is suppressed if it equals an earlier one.
const quietFor = time.Minute

// repeats suppresses warnings and errors whose text was written a short time ago. For example, while a disk is full,
// several parts of a server fail twice a second. The next written line contains the number of suppressed lines.
type repeats struct {
	slog.Handler
	prefix string // attributes that an earlier With added
	seen   *seen
}

type seen struct {
	clock clock.Clock
	mu    sync.Mutex
	lines map[string]*repeated
}

type repeated struct {
	written time.Time
	held    int
}

// maxSeen bounds the lines in memory. Further lines are always written.
const maxSeen = 1000

// WithoutRepeats returns a logger that writes the same warning or error at most once a minute. It is safe for
// concurrent use.
func WithoutRepeats(logger *slog.Logger, c clock.Clock) *slog.Logger {
	return slog.New(repeats{Handler: logger.Handler(), seen: &seen{clock: c, lines: map[string]*repeated{}}})
}

func (h repeats) Handle(ctx context.Context, r slog.Record) error {
	if r.Level < slog.LevelWarn {
		return h.Handler.Handle(ctx, r)
	}
	line := h.prefix + r.Message
	r.Attrs(func(a slog.Attr) bool {
		line += "\x00" + a.String()
		return true
	})
	held, write := h.seen.write(line)
	if !write {
		return nil
	}
	if held > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("repeated", held))
	}
	return h.Handler.Handle(ctx, r)
}

// write reports whether to write a line. held is how many equal lines were suppressed after the last written one.
func (s *seen) write(line string) (held int, write bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if before := s.lines[line]; before != nil {
		if age := now.Sub(before.written); age >= 0 && age < quietFor {
			before.held++
			return 0, false
		}
		held, before.held, before.written = before.held, 0, now
		return held, true
	}
	if len(s.lines) >= maxSeen {
		for line, before := range s.lines {
			if now.Sub(before.written) >= quietFor {
				delete(s.lines, line)
			}
		}
	}
	if len(s.lines) < maxSeen {
		s.lines[line] = &repeated{written: now}
	}
	return 0, true
}

func (h repeats) WithAttrs(attrs []slog.Attr) slog.Handler {
	prefix := h.prefix
	for _, a := range attrs {
		prefix += a.String() + "\x00"
	}
	return repeats{h.Handler.WithAttrs(attrs), prefix, h.seen}
}

func (h repeats) WithGroup(name string) slog.Handler {
	return repeats{h.Handler.WithGroup(name), h.prefix + name + "\x00", h.seen}
}
