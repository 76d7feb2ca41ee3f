package sendapp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"puntuale"
	"puntuale/internal/outside"
)

// newClient returns a client that follows no redirect. A redirect would send the access token to another server, and
// could send a message twice.
func newClient(t http.RoundTripper) *http.Client {
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// unsentError says that no byte of a request reached the gateway.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "the request did not leave: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// form says how a request contains its parameters. Gateways accept JSON only in the request "send". Requests about the
// account have their parameters in the query, as the gateways' documents require. All other requests have an HTML form.
type form int8

const (
	inQuery form = iota
	inForm
	inJSON
)

// call sends one request of a session with the keys, and returns the gateway's answer. An [*unsentError] means that no byte of the
// request left. After any other error nobody knows what the gateway did. No error contains the address, because its
// query has the token.
func (c *Connector) call(ctx context.Context, a *account, k puntuale.GatewayKeys, name string, encoding form, with map[string]string) (answer, error) {
	values := url.Values{"access_token": {k.AccessToken}}
	if k.InstanceID != "" && name != "create_instance" {
		values.Set("instance_id", k.InstanceID)
	}
	for key, value := range with {
		values.Set(key, value)
	}
	address, kind := k.BaseURL+"/"+name, "application/x-www-form-urlencoded"
	var body []byte
	switch encoding {
	case inQuery:
		address += "?" + values.Encode()
	case inForm:
		body = []byte(values.Encode())
	case inJSON:
		kind, body = "application/json", flat(values)
	}
	var touched atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// If the transport wrote no byte of a request, it may repeat the request on another connection. So each
		// connection first resets touched.
		GetConn: func(string) { touched.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { touched.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return answer{}, &unsentError{bare(err)}
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Content-Type", kind)
	response, err := c.http.Do(r)
	switch {
	case err != nil && !touched.Load():
		return answer{}, &unsentError{bare(err)}
	case err != nil:
		return answer{}, bare(err)
	}
	defer response.Body.Close()
	a.mu.Lock()
	client := a.client
	a.mu.Unlock()
	ctx, done := c.cfg.Memory.Client(ctx, client)
	defer done()
	text, err := outside.Gateway.Read(ctx, response.Body)
	if err != nil {
		return answer{}, &puntuale.ReasonError{Reason: puntuale.Because(reasonUnreadable, err.Error()), Err: err}
	}
	// Gateways answer with status 200 even if they report an error. Any other status comes from another program, such as a
	// proxy.
	if response.StatusCode != http.StatusOK {
		return answer{}, &puntuale.ReasonError{Reason: puntuale.Because(reasonStatus, strconv.Itoa(response.StatusCode))}
	}
	return readAnswer(text)
}

func flat(values url.Values) []byte {
	all := map[string]string{}
	for key := range values {
		all[key] = values.Get(key)
	}
	text, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings can always be encoded
	}
	return text
}

// bare removes the address from an error, because the address contains the token.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// storable changes a text so that every database can store it. It shortens the text to about limit bytes.
func storable(text string, limit int) string {
	text = strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "")
	for i := range text {
		if i > limit {
			return text[:i] + "…"
		}
	}
	return text
}
