package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"puntuale/internal/clock"
	"puntuale/internal/store"
)

// progress shows how far moving has come: a bar that is drawn again and again on a terminal, elsewhere a line each few
// seconds. One goroutine uses it.
type progress struct {
	w        io.Writer
	terminal bool
	clock    clock.Clock

	stage store.Stage
	begun time.Time // of the stage
	shown time.Time
	drawn bool // the cursor stands behind a bar
	whole bool // all of the stage was shown
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
	barWidth  = 30
)

// tell is a [store.Progress].
func (b *progress) tell(stage store.Stage, done, total int64) {
	now := b.clock.Now()
	if stage != b.stage {
		b.end()
		b.stage, b.begun, b.shown, b.whole = stage, now, now, false
	}
	every := lineEvery
	if b.terminal {
		every = barEvery
	}
	if b.whole || done < total && now.Sub(b.shown) < every {
		return
	}
	b.shown, b.whole = now, done >= total
	text := progressText(stage, done, total, now.Sub(b.begun))
	if b.terminal {
		fmt.Fprintf(b.w, "\r\x1b[K%s  %s", bar(done, total), text)
		b.drawn = true
		return
	}
	fmt.Fprintln(b.w, text)
}

// end leaves the line of a bar, so that others can write.
func (b *progress) end() {
	if b.drawn {
		fmt.Fprintln(b.w)
		b.drawn = false
	}
}

// bar is full when all is done.
func bar(done, total int64) string {
	full := barWidth
	if done < total {
		full = int(barWidth * done / total)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

// progressText says how much is done, how fast, and how long the rest takes at that rate.
func progressText(stage store.Stage, done, total int64, took time.Duration) string {
	percent := int64(100)
	if done < total {
		percent = 100 * done / total
	}
	text := fmt.Sprintf("%s %3d %%, %d of %d rows", stage, percent, done, total)
	rate := float64(done) / max(took.Seconds(), 0.001)
	if took < time.Second && done == total {
		return text
	}
	text += fmt.Sprintf(", %.0f a second", rate)
	if done < total && done > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}
