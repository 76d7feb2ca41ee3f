package terminal

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"

	"puntuale/internal/clock"
)

// Progress shows how much of a long command is done. On a terminal it draws a moving bar. Elsewhere it writes a line
// every few seconds. Only one goroutine may use it at a time.
type Progress struct {
	w        io.Writer
	terminal bool
	columns  int // width of a line in characters; 0: the terminal's width
	clock    clock.Clock

	stage    string
	begun    time.Time // when the present stage began
	shown    time.Time
	drawn    int  // number of lines of the drawn bar; the cursor is behind the last line
	complete bool // true: the end of the stage was shown
}

const (
	barEvery  = 100 * time.Millisecond
	lineEvery = 5 * time.Second
	barWidth  = 30
	wideLine  = 80 // width of a line if the terminal does not report its width
)

// NewProgress returns a Progress that writes to w. terminal says whether w is a terminal.
func NewProgress(w io.Writer, terminal bool, c clock.Clock) *Progress {
	return &Progress{w: w, terminal: terminal, clock: c}
}

// Count shows how much of a stage is done, how fast, and how long the rest will take.
func (b *Progress) Count(stage string, u Unit, done, total int64) {
	now := b.begin(stage)
	if b.complete || done < total && !b.time(now) {
		return
	}
	b.complete = done >= total
	b.draw(now, done, total, progressText(stage, u, done, total, now.Sub(b.begun)), "")
}

// Show shows how much of a stage is done, with the caller's own texts. The argument text appears beside the bar, and
// the argument below appears under the bar. If force is true, Show draws at once.
func (b *Progress) Show(stage string, done, total int64, text, below string, force bool) {
	if now := b.begin(stage); force || b.time(now) {
		b.draw(now, done, total, fmt.Sprintf("%3d %%%s", percent(done, total), text), below)
	}
}

// begin returns the present time. If the stage's name changed, it begins a new stage.
func (b *Progress) begin(stage string) time.Time {
	now := b.clock.Now()
	if stage != b.stage {
		b.End()
		b.stage, b.begun, b.shown, b.complete = stage, now, now, false
	}
	return now
}

// time reports whether it is time to show the progress again.
func (b *Progress) time(now time.Time) bool {
	every := lineEvery
	if b.terminal {
		every = barEvery
	}
	return now.Sub(b.shown) >= every
}

// draw replaces the earlier drawing. No line is wider than the terminal. Otherwise the line would wrap, and the
// next drawing could not replace all of it.
func (b *Progress) draw(now time.Time, done, total int64, text, below string) {
	b.shown = now
	if !b.terminal {
		if below != "" {
			text += ": " + below
		}
		fmt.Fprintln(b.w, strings.TrimSpace(text))
		return
	}
	start := "\r"
	if b.drawn > 1 {
		start += fmt.Sprintf("\x1b[%dA", b.drawn-1)
	}
	lines := barLines(b.width(), bar(done, total), strings.TrimSpace(text), below)
	fmt.Fprintf(b.w, "\x1b[?7l%s\x1b[J%s\x1b[?7h", start, strings.Join(lines, "\n"))
	b.drawn = len(lines)
}

// width returns how many characters a line may have.
func (b *Progress) width() int {
	width := b.columns
	if f, ok := b.w.(*os.File); ok && width == 0 {
		width, _, _ = term.GetSize(int(f.Fd())) // the result is 0 if the width is not known
	}
	return cmp.Or(width, wideLine)
}

// barLines returns the bar and its text on one line, and the argument below on the next line. If the first line is too
// wide, the bar gets its own line, and the text is broken after commas.
func barLines(width int, bar, text, below string) (lines []string) {
	if joined := bar + "  " + text; utf8.RuneCountInString(joined) <= width {
		lines = []string{joined}
	} else {
		lines = append([]string{bar}, broken(width, text)...)
	}
	if below != "" {
		lines = append(lines, broken(width, below)...)
	}
	return lines
}

// broken breaks a text after commas into lines of at most width characters.
func broken(width int, text string) (lines []string) {
	for i, part := range strings.Split(text, ", ") {
		switch last := len(lines) - 1; {
		case i == 0:
			lines = append(lines, part)
		case utf8.RuneCountInString(lines[last]+part)+len(", ,") <= width:
			lines[last] += ", " + part
		default:
			lines[last] += ","
			lines = append(lines, part)
		}
	}
	return lines
}

// End moves the cursor to a new line after a bar, so that other code can write.
func (b *Progress) End() {
	if b.drawn > 0 {
		fmt.Fprintln(b.w)
		b.drawn = 0
	}
}

// bar returns a bar. It is full only when everything is done.
func bar(done, total int64) string {
	full := barWidth
	if done < total {
		full = int(barWidth * done / total)
	}
	return strings.Repeat("█", full) + strings.Repeat("░", barWidth-full)
}

func percent(done, total int64) int64 {
	if done >= total {
		return 100
	}
	return 100 * done / total
}

// Unit is a unit of the shown amounts, such as rows or MB. size is how many counted items make one unit.
type Unit struct {
	name string
	size float64
}

// Units for items that are counted one by one.
var (
	Rows       = Unit{"rows", 1}
	Recipients = Unit{"recipients", 1}
)

// Bytes returns a readable unit for a file with the given size.
func Bytes(size int64) Unit {
	if size < 1<<20 {
		return Unit{"KiB", 1 << 10}
	}
	return Unit{"MiB", 1 << 20}
}

// text returns an amount in the unit.
func (u Unit) text(amount float64) string {
	if u.size == 1 {
		return fmt.Sprintf("%.0f", amount)
	}
	return fmt.Sprintf("%.1f", amount/u.size)
}

// progressText says how much is done, how fast, and how long the rest will take at that rate.
func progressText(stage string, u Unit, done, total int64, took time.Duration) string {
	text := fmt.Sprintf("%s %3d %%, %s of %s %s", stage, percent(done, total), u.text(float64(done)), u.text(float64(total)), u.name)
	rate := float64(done) / max(took.Seconds(), 0.001)
	if took < time.Second && done == total {
		return text
	}
	text += ", " + u.text(rate) + " a second"
	if done < total && done > 0 {
		left := time.Duration(float64(total-done) / rate * float64(time.Second))
		text += fmt.Sprintf(", %v left", left.Round(time.Second))
	}
	return text
}
