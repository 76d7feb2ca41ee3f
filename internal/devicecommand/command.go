package devicecommand

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"puntuale/internal/client"
)

// Exit codes of a command. 65 and 75 have the meaning of sysexits.h (EX_DATAERR, EX_TEMPFAIL). Any other code means an
// unknown outcome.
const (
	exitSent     = 0
	exitRefused  = 65
	exitReturned = 75

	exitNotRunnable = 126 // the shell's code for a command that the shell cannot run
	exitNotFound    = 127
)

const (
	maxDetail  = 300             // length of a detail, in characters
	maxCapture = 4 << 10         // bytes of a command's output that are searched for the detail
	leftOver   = 2 * time.Second // how long the command's output may stay open after the command's end, because a program that the command started still uses it
)

// Command returns a function for [Config].Do that runs a shell command for each message. The command gets the message
// on its standard input. Its exit code is the outcome. The detail is the first line of the standard output, or of the
// standard error if the standard output is empty. The standard error is also copied to errs. After the timeout, the
// command and its children are killed.
func Command(text string, timeout time.Duration, errs io.Writer) func(json.RawMessage) (client.Outcome, string, error) {
	return func(message json.RawMessage) (client.Outcome, string, error) {
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		defer cancel()
		cmd := shell(ctx, text)
		var out, said firstBytes
		cmd.Stdin = bytes.NewReader(append(bytes.Clone(message), '\n'))
		cmd.Stdout, cmd.Stderr = &out, io.MultiWriter(&said, errs)
		cmd.WaitDelay = leftOver
		if err := cmd.Start(); err != nil {
			return client.Returned, "", fmt.Errorf("start the command: %w", err)
		}
		_ = cmd.Wait() // the process state contains more information than this error
		detail := firstLine(out.text, said.text)
		code := cmd.ProcessState.ExitCode()
		switch {
		case code == exitSent:
			return client.Sent, detail, nil
		case code == exitRefused:
			return client.Refused, detail, nil
		case code == exitReturned:
			return client.Returned, detail, nil
		case ctx.Err() != nil:
			detail = strings.TrimSuffix(fmt.Sprintf("killed after %s: %s", timeout, detail), ": ")
		case detail == "":
			detail = "the command ended with " + cmd.ProcessState.String()
		}
		if code == exitNotRunnable || code == exitNotFound {
			return client.Unknown, cut(detail), fmt.Errorf("the command cannot be run: %s", detail)
		}
		return client.Unknown, cut(detail), nil
	}
}

// firstBytes stores the first bytes that are written to it.
type firstBytes struct{ text []byte }

func (b *firstBytes) Write(text []byte) (int, error) {
	b.text = append(b.text, text[:min(len(text), maxCapture-len(b.text))]...)
	return len(text), nil
}

// firstLine returns the first line in the texts that is not blank.
func firstLine(texts ...[]byte) string {
	for _, text := range texts {
		for line := range strings.Lines(strings.ToValidUTF8(string(text), "")) {
			if line = strings.TrimSpace(line); line != "" {
				return cut(line)
			}
		}
	}
	return ""
}

func cut(text string) string {
	if utf8.RuneCountInString(text) <= maxDetail {
		return text
	}
	return string([]rune(text)[:maxDetail])
}
