package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/mattn/go-isatty"
	"rsc.io/qr"

	"puntuale/internal/outside"
)

// linkCommand links a session to a phone. It shows the code in the terminal.
type linkCommand struct {
	Session string `local:"" required:"" placeholder:"ID" help:"The session's id."`
	Phone   string `local:"" placeholder:"NUMBER" help:"Show a code to type into the phone of this number, instead of a QR code to scan."`
	Server  string `local:"" placeholder:"URL" default:"http://127.0.0.1:8080" help:"The address of a running server."`
}

const (
	linkAsks  = time.Second      // how long the command waits between two requests for the next code
	linkTakes = 20 * time.Second // how long one answer may take
)

// linkView is the part of a session's answer that the command uses.
type linkView struct {
	State   string `json:"state"`
	Hint    string `json:"hint"`
	Detail  string `json:"state_detail"`
	Number  string `json:"number"`
	QR      string `json:"qr"`
	Code    string `json:"pairing_code"`
	Problem string `json:"detail"` // the reason, if the answer is a refusal
}

func (c *linkCommand) Run(ctx context.Context, p *program) error {
	if in, ok := p.stdin.(*os.File); ok && isatty.IsTerminal(in.Fd()) {
		fmt.Fprint(p.stderr, "The client's API key: ")
	}
	key, err := p.secret("-")
	if err != nil {
		return fmt.Errorf("read the key from standard input: %w", err)
	}
	order := map[string]string{"method": "qr"}
	if c.Phone != "" {
		order = map[string]string{"method": "code", "phone": c.Phone}
	}
	body, err := json.Marshal(order)
	if err != nil {
		return err
	}
	asker := &http.Client{Timeout: linkTakes}
	session := strings.TrimSuffix(c.Server, "/") + "/api/sessions/" + url.PathEscape(c.Session)
	v, err := askLink(ctx, asker, http.MethodPost, session+"/pair", key, body)
	for shown := ""; err == nil; v, err = askLink(ctx, asker, http.MethodGet, session, key, nil) {
		switch code := v.QR + v.Code; {
		case v.State == "online":
			_, err = fmt.Fprintln(p.stdout, strings.TrimSpace("linked "+v.Number))
			return err
		case v.State != "pairing" && v.State != "connecting":
			return errors.New(cmp.Or(v.Detail, v.Hint, v.State))
		case code != "" && code != shown:
			shown = code
			if err := showCode(p.stdout, v); err != nil {
				return err
			}
		}
		if p.clock.Sleep(ctx, linkAsks) != nil {
			return errors.New("interrupted; the pairing ends by itself")
		}
	}
	return err
}

// askLink sends a request, and returns the session in the server's answer.
func askLink(ctx context.Context, asker *http.Client, method, url, key string, body []byte) (v linkView, err error) {
	request, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return v, err
	}
	request.Header.Set("Authorization", "Bearer "+key)
	response, err := asker.Do(request)
	if err != nil {
		return v, err
	}
	defer response.Body.Close()
	_ = outside.Command.Decode(ctx, response.Body, &v) // if there is no body, the status is enough
	if response.StatusCode != http.StatusOK {
		return v, errors.New(cmp.Or(v.Problem, response.Status))
	}
	return v, nil
}

// showCode draws a QR code with half blocks, dark on light in any terminal. If the phone's user must type the code
// instead, showCode prints the code.
func showCode(w io.Writer, v linkView) error {
	if v.Code != "" {
		_, err := fmt.Fprintf(w, "\n  %s\n\n%s\n", v.Code, v.Hint)
		return err
	}
	drawn, err := qr.Encode(v.QR, qr.L)
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
	_, err = fmt.Fprintf(w, "\n%s\n%s\n", b.String(), v.Hint)
	return err
}
