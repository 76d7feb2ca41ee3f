package chatwoot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/outside"
)

// server is an account of a Chatwoot server, with its access token.
type server struct {
	http    http.RoundTripper
	base    string // the server's address, without a slash at its end
	account int64
	token   string
}

func (b *Bridge) server(address string, account int64, token string) *server {
	return &server{b.cfg.HTTP, strings.TrimRight(address, "/"), account, token}
}

// refusal is an answer with a status other than 2xx.
type refusal struct{ puntuale.ChatwootAnswer }

func (r *refusal) Error() string { return "Chatwoot answered " + strconv.Itoa(r.Status) }

// body is the body of a request.
type body struct {
	kind string
	data io.Reader
	size int64 // -1: the size is not known in advance
}

func jsonBody(v any) (body, error) {
	text, err := json.Marshal(v)
	return body{"application/json", bytes.NewReader(text), int64(len(text))}, err
}

// call sends a request to a path below the account's path, and decodes the answer into out. If the status is not 2xx,
// the error is a refusal.
func (s *server) call(ctx context.Context, method, path string, in, out any) error {
	var send body
	if in != nil {
		var err error
		if send, err = jsonBody(in); err != nil {
			return fmt.Errorf("write a call to Chatwoot: %w", err)
		}
	}
	return s.send(ctx, method, path, send, out)
}

func (s *server) send(ctx context.Context, method, path string, in body, out any) error {
	r, err := http.NewRequestWithContext(ctx, method, s.base+"/api/v1/accounts/"+strconv.FormatInt(s.account, 10)+path, in.data) //nolint:gosec // the client names its server; the transport checks the address before each connection
	if err != nil {
		return fmt.Errorf("call Chatwoot: %w", err)
	}
	if in.data != nil {
		r.Header.Set("Content-Type", in.kind)
		r.ContentLength = in.size
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("User-Agent", "Puntuale")
	r.Header.Set("Api_access_token", s.token)
	got, err := s.http.RoundTrip(r) // http.Client would follow a redirect, and send the token to the new address
	if err != nil {
		return err //nolint:wrapcheck // the caller reads its kind
	}
	defer got.Body.Close()
	if out == nil || got.StatusCode < 200 || got.StatusCode > 299 {
		text := outside.Chatwoot.Beginning(ctx, got.Body, puntuale.MaxWebhookAnswer)
		if got.StatusCode < 200 || got.StatusCode > 299 {
			return &refusal{puntuale.ChatwootAnswer{Status: got.StatusCode, Text: string(text), RetryAfter: got.Header.Get("Retry-After")}}
		}
		return nil
	}
	text, err := outside.Chatwoot.Read(ctx, got.Body)
	if err != nil {
		return err //nolint:wrapcheck // the caller reads its kind
	}
	err = outside.Chatwoot.Parse(text, out)
	if _, large := errors.AsType[*outside.TooLargeError](err); large {
		return err //nolint:wrapcheck // the caller reads its kind
	}
	if err != nil { // a program other than Chatwoot answers at this address
		return &refusal{puntuale.ChatwootAnswer{Status: http.StatusBadGateway, Text: string(text[:min(len(text), puntuale.MaxWebhookAnswer)])}}
	}
	return nil
}
