package official

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/outside"
)

// graph sends requests to the Graph API.
type graph struct {
	base   string // the API's address, with the version
	client *http.Client
	memory outside.MemoryGrants
}

func newGraph(base string, t http.RoundTripper, memory outside.MemoryGrants) *graph {
	return &graph{base: base, memory: memory, client: &http.Client{
		Transport: t,
		// A redirect would send the token to another server, and could send a message twice.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		ForceAttemptHTTP2:      true,
		MaxIdleConns:           512,
		MaxIdleConnsPerHost:    128,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}

// unsentError says that no byte of a request reached Meta.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "the request did not leave: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// call sends one request with a client's keys, and decodes Meta's answer into target. The client pays for the answer. A
// [*graphError] means that Meta refused. An [*unsentError] means that no byte of the request left. After any other error
// nobody knows what Meta did.
func (g *graph) call(ctx context.Context, client puntuale.ClientID, k puntuale.OfficialKeys, method, path string, query url.Values, body io.Reader, length int64, kind string, target any) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("appsecret_proof", proof(k))
	r, err := http.NewRequestWithContext(ctx, method, g.base+"/"+path+"?"+query.Encode(), body)
	if err != nil {
		return &unsentError{bare(err)}
	}
	r.Header.Set("Authorization", "Bearer "+k.AccessToken)
	if body != nil {
		r.Header.Set("Content-Type", kind)
		r.ContentLength = length
	}
	return g.do(ctx, client, r, target)
}

// do sends a request. It returns the errors of call.
func (g *graph) do(ctx context.Context, client puntuale.ClientID, r *http.Request, target any) error {
	var touched atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// If the transport wrote no byte of a request, it may repeat the request on another connection. So each
		// connection first resets touched.
		GetConn: func(string) { touched.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { touched.Store(true) },
	})
	r = r.WithContext(ctx)
	r.Header.Set("Accept", "application/json")
	got, err := g.client.Do(r)
	switch {
	case err != nil && !touched.Load():
		return &unsentError{bare(err)}
	case err != nil:
		return bare(err)
	}
	defer got.Body.Close()
	ctx, done := g.memory.Client(ctx, client)
	defer done()
	text, err := outside.Graph.Read(ctx, got.Body)
	if err != nil {
		return fmt.Errorf("read Meta's answer: %w", err)
	}
	err = understand(got.StatusCode, text, target)
	if refusal, ok := errors.AsType[*graphError](err); ok {
		refusal.wait = regainTime(got.Header.Get(quotaHeader))
	}
	return err
}

// post sends a JSON body. It returns the errors of call.
func (g *graph) post(ctx context.Context, client puntuale.ClientID, k puntuale.OfficialKeys, path string, body []byte, target any) error {
	return g.call(ctx, client, k, http.MethodPost, path, nil, bytes.NewReader(body), int64(len(body)), "application/json", target)
}

// understand recognises Meta's own refusals. Such a refusal is definite, with any HTTP status, except an unknown code with
// a status of 500 or more. An answer from another server, such as a proxy, proves nothing.
func understand(status int, text []byte, target any) error {
	var refusal struct {
		Error *struct {
			graphError
			Code *int `json:"code"`
		} `json:"error"`
	}
	if status != http.StatusOK {
		if outside.Graph.Parse(text, &refusal) != nil || refusal.Error == nil || refusal.Error.Code == nil {
			return fmt.Errorf("answer %d, not in Meta's form", status)
		}
		e := refusal.Error.graphError
		e.Code = *refusal.Error.Code
		if _, known := ruleOf(e.Code); !known && status >= http.StatusInternalServerError {
			return fmt.Errorf("answer %d: %s", status, e.detail()) // an internal error of Meta; nobody knows whether Meta forwarded the message
		}
		return &e
	}
	if err := outside.Graph.Parse(text, target); err != nil {
		return fmt.Errorf("answer %d that cannot be read", status)
	}
	return nil
}

// bare removes the address from an error, because the address contains appsecret_proof.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// proof returns appsecret_proof, which shows Meta that the token's owner also has the app's secret.
func proof(k puntuale.OfficialKeys) string {
	mac := hmac.New(sha256.New, []byte(k.AppSecret))
	mac.Write([]byte(k.AccessToken))
	return hex.EncodeToString(mac.Sum(nil))
}

// withCode adds Meta's code to a reason that people read.
func withCode(reason puntuale.Reason, code int) puntuale.Reason {
	return puntuale.Because(reasonWithCode, reason.Stored(), strconv.Itoa(code))
}

// quotaHeader says how much of Meta's quotas is used up.
const quotaHeader = "X-Business-Use-Case-Usage"

// regainTime returns how long the caller must wait until Meta takes calls again, as Meta says in a header. 0: Meta does
// not say it.
func regainTime(header string) (wait time.Duration) {
	var usage map[string][]struct {
		Minutes float64 `json:"estimated_time_to_regain_access"`
	}
	if json.Unmarshal([]byte(header), &usage) != nil {
		return 0
	}
	for _, all := range usage {
		for _, u := range all {
			wait = max(wait, time.Duration(min(u.Minutes, maxQuotaWait.Minutes())*float64(time.Minute)))
		}
	}
	return wait
}

// codeOf returns Meta's code of a refusal, or 0 for another error.
func codeOf(err error) int {
	if e, ok := errors.AsType[*graphError](err); ok {
		return e.Code
	}
	return 0
}
