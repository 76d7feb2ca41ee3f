// Package clamd lets clamd, the daemon of ClamAV, look for viruses in files. It speaks the commands INSTREAM and PING, so
// clamd may be on another machine, and sees no folder of this one.
package clamd

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"puntuale"
)

// Limits of one call. An answer is one short line.
const (
	within     = time.Minute
	chunkBytes = 64 << 10
	maxAnswer  = 4 << 10
	maxFinding = 100 // characters of the name of a finding
	tryAgain   = 30 * time.Second
)

// Codes of the faults of a scan.
const (
	faultAway  puntuale.ReasonCode = "file.scanner_away"
	faultLimit puntuale.ReasonCode = "file.scanner_limit" // the file exceeds clamd's StreamMaxLength
)

// Scanner asks one clamd. It is safe for concurrent use; each call has a connection of its own.
type Scanner struct {
	Address string // host:port, or the path of a unix socket, which begins with a slash
}

// Scan sends a file, and returns the name of what was found in it, or "". Codes: unavailable (clamd does not answer, or fails),
// too_large (the file exceeds clamd's StreamMaxLength).
func (s Scanner) Scan(ctx context.Context, content io.Reader) (finding string, err error) {
	answer, err := s.ask(ctx, "zINSTREAM\x00", content)
	if err != nil {
		return "", away(err)
	}
	found, infected := strings.CutSuffix(strings.TrimPrefix(answer, "stream: "), " FOUND")
	switch {
	case answer == "stream: OK":
		return "", nil
	case infected:
		return shown(found), nil
	case strings.HasPrefix(answer, "INSTREAM size limit exceeded"):
		return "", &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultLimit)}
	}
	return "", away(fmt.Errorf("clamd answered %q", shown(answer)))
}

// Ping asks clamd whether it is there.
func (s Scanner) Ping(ctx context.Context) error {
	answer, err := s.ask(ctx, "zPING\x00", nil)
	if err == nil && answer != "PONG" {
		err = fmt.Errorf("clamd answered %q", shown(answer))
	}
	return err
}

func away(err error) error {
	return &puntuale.Error{Code: puntuale.CodeUnavailable, Reason: puntuale.Because(faultAway), RetryAfter: tryAgain, Err: err}
}

// shown returns a text of clamd for people: printable, and not long.
func shown(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), maxFinding)]
}

// ask sends a command, with a file in chunks if there is one, and returns the answer.
func (s Scanner) ask(ctx context.Context, command string, content io.Reader) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	network := "tcp"
	if strings.HasPrefix(s.Address, "/") {
		network = "unix"
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, network, s.Address)
	if err != nil {
		return "", fmt.Errorf("reach clamd: %w", err)
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })() // both ends of the call end it: its deadline, and its caller
	sent := send(conn, command, content)
	if read := (*contentError)(nil); errors.As(sent, &read) {
		return "", read.error
	}
	answer, err := receive(conn) // also after a failure to send: clamd may have refused the file in its middle
	if err != nil {
		return "", errors.Join(sent, err)
	}
	return answer, nil
}

// contentError is an error of the file, not of clamd.
type contentError struct{ error }

// send writes the command, and then each chunk of the file after its length. A chunk of the length 0 ends the file.
func send(conn io.Writer, command string, content io.Reader) error {
	if _, err := io.WriteString(conn, command); err != nil {
		return fmt.Errorf("write to clamd: %w", err)
	}
	if content == nil {
		return nil
	}
	chunk := make([]byte, 4+chunkBytes)
	for {
		n, err := io.ReadFull(content, chunk[4:])
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			return &contentError{fmt.Errorf("read a file: %w", err)}
		}
		binary.BigEndian.PutUint32(chunk, uint32(n))
		if _, failed := conn.Write(chunk[:4+n]); failed != nil {
			return fmt.Errorf("write to clamd: %w", failed)
		}
		if n == 0 {
			return nil
		}
	}
}

var errAnswer = errors.New("clamd's answer has no end")

// receive reads one answer, which ends with a zero byte.
func receive(conn io.Reader) (string, error) {
	answer := make([]byte, 0, maxAnswer)
	for len(answer) < maxAnswer {
		n, err := conn.Read(answer[len(answer):maxAnswer])
		answer = answer[:len(answer)+n]
		if text, _, ended := strings.Cut(string(answer), "\x00"); ended {
			return text, nil
		}
		if err != nil {
			return "", fmt.Errorf("read clamd's answer: %w", err)
		}
	}
	return "", errAnswer
}
