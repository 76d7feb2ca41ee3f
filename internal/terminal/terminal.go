// Package terminal writes texts and progress for people, and reads their answers.
package terminal

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
)

// Wrap breaks text at blanks into lines of at most width characters. Each line begins with prefix.
func Wrap(text, prefix string, width int) string {
	var b strings.Builder
	line := prefix
	for i, word := range strings.Fields(text) {
		if i > 0 && len(line)+1+len(word) > width {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = prefix
		} else if i > 0 {
			line += " "
		}
		line += word
	}
	b.WriteString(line)
	return b.String()
}

// Lines reads lines that a person types, or lines of a file.
type Lines struct{ from *bufio.Reader }

// NewLines returns a Lines that reads from the stream.
func NewLines(from io.Reader) *Lines { return &Lines{bufio.NewReader(from)} }

// Next returns the next line without blanks around it, or "" at the end. It returns early when ctx ends; after that,
// nobody may call Next again.
func (l *Lines) Next(ctx context.Context) (string, error) {
	type result struct {
		text string
		err  error
	}
	read := make(chan result, 1)
	go func() {
		text, err := l.from.ReadString('\n')
		if errors.Is(err, io.EOF) {
			err = nil
		}
		read <- result{strings.TrimSpace(text), err}
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
