package httpapi

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/danielgtaylor/huma/v2"
)

// writtenBytes is an answer that the verb itself writes, because the answer may be too long for memory.
type writtenBytes = func(huma.Context)

// spoolMemory is the largest number of bytes that a spool holds in memory.
const spoolMemory = 64 << 10

// spool stores the bytes of an answer until the answer is sent. At most spoolMemory bytes are in memory. All other
// bytes are in a file without a name.
type spool struct {
	folder string
	memory bytes.Buffer
	file   *os.File // nil: all bytes are in memory so far
}

func (s *spool) Write(p []byte) (int, error) {
	if s.memory.Len()+len(p) > spoolMemory {
		if err := s.flush(); err != nil {
			return 0, err
		}
	}
	return s.memory.Write(p)
}

// flush moves the bytes in memory into the file.
func (s *spool) flush() error {
	if s.file == nil {
		if err := os.MkdirAll(s.folder, 0o700); err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
		f, err := os.CreateTemp(s.folder, "answer-*")
		if err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
		s.file = f
		if err := os.Remove(f.Name()); err != nil {
			return fmt.Errorf("keep an answer on disk: %w", err)
		}
	}
	if _, err := s.memory.WriteTo(s.file); err != nil {
		return fmt.Errorf("keep an answer on disk: %w", err)
	}
	return nil
}

// answer writes begin, then the stored bytes, and then end.
func (s *spool) answer(to io.Writer, begin, end []byte) error {
	parts := []io.Reader{bytes.NewReader(begin), &s.memory, bytes.NewReader(end)}
	if s.file != nil {
		if _, err := s.file.Seek(0, io.SeekStart); err != nil {
			return fmt.Errorf("read an answer from disk: %w", err)
		}
		parts = []io.Reader{parts[0], s.file, parts[1], parts[2]}
	}
	for _, part := range parts {
		if _, err := io.CopyBuffer(plainWriter{to}, part, make([]byte, 32<<10)); err != nil {
			return err
		}
	}
	return nil
}

// plainWriter hides a writer's method ReadFrom, because ReadFrom would bypass the time limits for slow readers.
type plainWriter struct{ io.Writer }

func (s *spool) close() error {
	if s.file == nil {
		return nil
	}
	return s.file.Close()
}

// listWriter writes the entries of a JSON list, separated by commas and without the brackets.
type listWriter struct {
	to   io.Writer
	more bool
}

func (l *listWriter) add(entry any) error {
	text, err := render(entry)
	if err != nil {
		return err
	}
	if l.more {
		text = append([]byte{','}, text...)
	}
	l.more = true
	_, err = l.to.Write(text)
	return err
}
