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
	"sync/atomic"
	"time"

	"puntuale"
)

// graph makes calls to the Graph API.
type graph struct {
	base   string // with the version
	client *http.Client
}

func newGraph(base string, t http.RoundTripper) *graph {
	return &graph{base: base, client: &http.Client{
		Transport: t,
		// A token must not travel on, and a message must not be sent twice.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func newTransport() *http.Transport {
	return &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        512,
		MaxIdleConnsPerHost: 128,
		IdleConnTimeout:     90 * time.Second,
		TLSHandshakeTimeout: 10 * time.Second,
	}
}

const answerMost = 1 << 20 // bytes

// unsentError says that nothing of a request reached Meta.
type unsentError struct{ err error }

func (e *unsentError) Error() string { return "la richiesta non è partita: " + e.err.Error() }
func (e *unsentError) Unwrap() error { return e.err }

// call makes one call and decodes Meta's answer into into. Errors: a [*graphError] when Meta refused; an [*unsentError]
// when nothing of the request left; any other when nobody knows what Meta did.
func (g *graph) call(ctx context.Context, k puntuale.OfficialKeys, method, path string, query url.Values, body io.Reader, length int64, kind string, into any) error {
	if query == nil {
		query = url.Values{}
	}
	query.Set("appsecret_proof", proof(k))
	var touched atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		// The transport tries again by itself only what no byte was written of: each attempt begins anew.
		GetConn: func(string) { touched.Store(false) },
		GotConn: func(httptrace.GotConnInfo) { touched.Store(true) },
	})
	r, err := http.NewRequestWithContext(ctx, method, g.base+"/"+path+"?"+query.Encode(), body)
	if err != nil {
		return &unsentError{bare(err)}
	}
	r.Header.Set("Authorization", "Bearer "+k.AccessToken)
	r.Header.Set("Accept", "application/json")
	if body != nil {
		r.Header.Set("Content-Type", kind)
		r.ContentLength = length
	}
	answer, err := g.client.Do(r)
	switch {
	case err != nil && (silenceIsEvidence || !touched.Load()):
		return &unsentError{bare(err)}
	case err != nil:
		return bare(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, answerMost))
	if err != nil {
		return fmt.Errorf("read Meta's answer: %w", err)
	}
	return understand(answer.StatusCode, text, into)
}

// post sends JSON.
func (g *graph) post(ctx context.Context, k puntuale.OfficialKeys, path string, body []byte, into any) error {
	return g.call(ctx, k, http.MethodPost, path, nil, bytes.NewReader(body), int64(len(body)), "application/json", into)
}

// understand tells Meta's own refusals, which are definite whatever their status, from answers of others on the way,
// which say nothing.
func understand(status int, text []byte, into any) error {
	var refusal struct {
		Error *struct {
			graphError
			Code *int `json:"code"`
		} `json:"error"`
	}
	if status != http.StatusOK {
		if json.Unmarshal(text, &refusal) != nil || refusal.Error == nil || refusal.Error.Code == nil {
			return fmt.Errorf("answer %d, not in Meta's form", status)
		}
		e := refusal.Error.graphError
		e.Code = *refusal.Error.Code
		if _, known := ruleOf(e.Code); !known && status >= http.StatusInternalServerError {
			return fmt.Errorf("answer %d: %s", status, e.detail()) // it failed at Meta, nobody knows how far it came
		}
		return &e
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("answer %d that cannot be read", status)
	}
	return nil
}

// bare takes the address, which holds the proof, out of an error.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

// proof shows that whoever has the token has the app's secret, too.
func proof(k puntuale.OfficialKeys) string {
	mac := hmac.New(sha256.New, []byte(k.AppSecret))
	mac.Write([]byte(k.AccessToken))
	return hex.EncodeToString(mac.Sum(nil))
}

// code names a refusal for people.
func (e *graphError) code() string { return fmt.Sprintf("codice Meta %d", e.Code) }
