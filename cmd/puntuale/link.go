package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"rsc.io/qr"

	"puntuale/internal/client"
)

// linkCommand links a session to a phone. It shows the code in the terminal.
type linkCommand struct {
	Session string `local:"" required:"" placeholder:"ID" help:"The session's id."`
	Phone   string `local:"" placeholder:"NUMBER" help:"Show a code to type into the phone of this number, instead of a QR code to scan."`
	Server  string `local:"" placeholder:"URL" default:"http://127.0.0.1:8080" help:"The address of a running server."`
}

const linkAsks = time.Second // how long the command waits between two requests for the next code

func (c *linkCommand) Run(ctx context.Context, p *program) error {
	key, err := p.secret("-", "The client's API key: ")
	if err != nil {
		return fmt.Errorf("read the key from standard input: %w", err)
	}
	asker := client.New(c.Server, key, p.clock)
	s, err := asker.PairSession(ctx, c.Session, c.Phone)
	for shown := ""; err == nil; s, err = asker.Session(ctx, c.Session) {
		switch code := s.QR + s.Code; {
		case s.State == "online":
			_, err = fmt.Fprintln(p.stdout, strings.TrimSpace("linked "+s.Number))
			return err
		case s.State != "pairing" && s.State != "connecting":
			return errors.New(cmp.Or(s.Detail, s.Hint, s.State))
		case code != "" && code != shown:
			shown = code
			if err := showCode(p.stdout, s); err != nil {
				return err
			}
		}
		if p.clock.Sleep(ctx, linkAsks) != nil {
			return errors.New("interrupted; the pairing ends by itself")
		}
	}
	return err
}

// showCode draws a QR code with half blocks, dark on light in any terminal. If the phone's user must type the code
// instead, showCode prints the code.
func showCode(w io.Writer, s client.Session) error {
	if s.Code != "" {
		_, err := fmt.Fprintf(w, "\n  %s\n\n%s\n", s.Code, s.Hint)
		return err
	}
	drawn, err := qr.Encode(s.QR, qr.L)
	if err != nil {
		return fmt.Errorf("draw the code: %w", err)
	}
	var b strings.Builder
	const margin = 2
	for y := -margin; y < drawn.Size+margin; y += 2 {
		b.WriteString("\x1b[30;107m")
		for x := -margin; x < drawn.Size+margin; x++ {
			b.WriteString(map[[2]bool]string{{false, false}: " ", {true, false}: "▀", {false, true}: "▄", {true, true}: "█"}[[2]bool{drawn.Black(x, y), drawn.Black(x, y+1)}])
		}
		b.WriteString("\x1b[0m\n")
	}
	_, err = fmt.Fprintf(w, "\n%s\n%s\n", b.String(), s.Hint)
	return err
}
