package delivery_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/delivery"
	"puntuale/internal/httpkit/admission"
)

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// unseal replaces the vault: a sealed secret is "sealed:" followed by the key.
func unseal(_ *puntuale.Webhook, sealed []byte) ([]byte, error) {
	key, ok := bytes.CutPrefix(sealed, []byte("sealed:"))
	if !ok {
		return nil, errors.New("not sealed here")
	}
	return key, nil
}

func newCaller(set func(*delivery.CallerConfig)) *delivery.Caller {
	cfg := delivery.CallerConfig{Unseal: unseal, Clock: clock.System(), Allow: loopback, Within: 5 * time.Second}
	if set != nil {
		set(&cfg)
	}
	return delivery.NewCaller(cfg)
}

var key = bytes.Repeat([]byte{7}, 32)

func target(url string) puntuale.WebhookTarget {
	return puntuale.WebhookTarget{Webhook: puntuale.Webhook{ID: 5, Client: 7, URL: url}, Secret: puntuale.WebhookSecret{Present: append([]byte("sealed:"), key...)}}
}

var sent = puntuale.Event{Client: 7, Seq: 41, Type: puntuale.EventCampaignDone, At: time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC), Subject: 3, Detail: `{"name":"Natale"}`}

// raw starts a receiver that reads a request and then calls answer to write the answer.
func raw(t *testing.T, answer func(net.Conn)) (url string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int64)
	var all sync.WaitGroup
	over := make(chan struct{})
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			all.Go(func() {
				go func() { <-over; c.Close() }()
				defer c.Close()
				r, err := http.ReadRequest(bufio.NewReader(c))
				if err != nil {
					return
				}
				_, _ = io.Copy(io.Discard, r.Body)
				answer(c)
			})
		}
	})
	t.Cleanup(func() { close(over); l.Close(); all.Wait() })
	return "http://" + l.Addr().String() + "/hook", connections
}

// TestSignature checks signatures with the published library of Standard Webhooks. It checks them with the present
// secret, and also with the earlier secret until that secret expires.
func TestSignature(t *testing.T) {
	t.Parallel()
	var headers http.Header
	var body []byte
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		headers = r.Header.Clone()
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(http.StatusNoContent)
	}))
	defer h.Close()
	old := bytes.Repeat([]byte{9}, 32)
	verify := func(secret []byte) error {
		library, err := standardwebhooks.NewWebhookRaw(secret)
		if err != nil {
			t.Fatal(err)
		}
		return library.Verify(body, headers)
	}
	c := newCaller(nil)
	to := target(h.URL)
	if got := c.Call(t.Context(), to, sent); got.State != puntuale.DeliveryDone || got.Status != 204 || got.Webhook != 5 || got.Seq != 41 {
		t.Fatalf("%+v", got)
	}
	if err := verify(key); err != nil {
		t.Error(err)
	}
	if verify(old) == nil {
		t.Error("another secret is taken")
	}
	if headers.Get("webhook-id") != "evt_7_41" || headers.Get("Content-Type") != "application/json" {
		t.Errorf("headers: %v", headers)
	}
	if want := `{"type":"campaign.done","timestamp":"2026-11-25T09:00:00.000000Z","data":{"campaign":"3","name":"Natale","seq":41}}`; string(body) != want {
		t.Errorf("body: %s", body)
	}
	to.Secret.FormerSecret, to.Secret.Until = append([]byte("sealed:"), old...), time.Now().Add(time.Hour)
	c.Call(t.Context(), to, sent)
	if err := errors.Join(verify(key), verify(old)); err != nil {
		t.Errorf("while both sign: %v", err)
	}
	to.Secret.Until = time.Now().Add(-time.Second)
	c.Call(t.Context(), to, sent)
	if verify(key) != nil || verify(old) == nil {
		t.Error("after the overlap")
	}
	to.Secret.Present = []byte("another vault's")
	if got := c.Call(t.Context(), to, sent); puntuale.ParseReason(got.Answer).Code != puntuale.ReasonWebhookSecret {
		t.Errorf("%+v", got)
	}
	to = target(h.URL)
	to.Client = 0 // a webhook of a partner: the body contains the client
	c.Call(t.Context(), to, sent)
	if !strings.Contains(string(body), `"data":{"id_client":"7",`) || headers.Get("webhook-id") != "evt_7_41" {
		t.Errorf("a partner's: %s", body)
	}
}

// TestReceivers sends to receivers that fail in different ways.
func TestReceivers(t *testing.T) {
	t.Parallel()
	says := func(text string) func(net.Conn) { return func(c net.Conn) { _, _ = io.WriteString(c, text) } }
	then := func(c net.Conn, text string, wait time.Duration, times int) {
		for range times {
			if _, err := io.WriteString(c, text); err != nil {
				return
			}
			<-time.After(wait)
		}
	}
	long := strings.Repeat("è", 3000)
	for name, test := range map[string]struct {
		answer func(net.Conn)
		status int
		reason puntuale.ReasonCode
		done   bool
		gone   bool
		text   string // the first part of the stored answer
	}{
		"200":          {answer: says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"), status: 200, done: true, text: "ok"},
		"500":          {answer: says("HTTP/1.1 500 Oh\r\nContent-Length: 4\r\n\r\nboom"), status: 500, text: "boom"},
		"410":          {answer: says("HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"), status: 410, gone: true},
		"101":          {answer: says("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n"), status: 101},
		"black hole":   {answer: func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, reason: puntuale.ReasonWebhookTimeout},
		"slow headers": {answer: func(c net.Conn) { then(c, "HTTP/1.1 200 OK\r\nX: 1\r\n"[:1], 50*time.Millisecond, 200) }, reason: puntuale.ReasonWebhookTimeout},
		"slow body": {answer: func(c net.Conn) {
			says("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n")(c)
			then(c, "a", 50*time.Millisecond, 200)
		}, status: 200, done: true, text: "aaa"},
		"slow failure": {answer: func(c net.Conn) {
			says("HTTP/1.1 503 No\r\nContent-Length: 500\r\n\r\n")(c)
			then(c, "a", 50*time.Millisecond, 200)
		}, status: 503, text: "aaa"},
		"endless body": {answer: func(c net.Conn) { says("HTTP/1.1 200 OK\r\n\r\n")(c); then(c, long, 0, 1<<20) }, status: 200, done: true, text: "èèè"},
		"endless headers": {answer: func(c net.Conn) {
			says("HTTP/1.1 200 OK\r\n")(c)
			then(c, "X: "+strings.Repeat("y", 1000)+"\r\n", 0, 1<<20)
		}, reason: puntuale.ReasonWebhookGarbage},
		"garbage":           {answer: says("SSH-2.0-OpenSSH_9.6\r\n\r\n"), reason: puntuale.ReasonWebhookGarbage},
		"binary":            {answer: says("\x00\xff\x16\x03\x01\r\n\r\n"), reason: puntuale.ReasonWebhookGarbage},
		"binary body":       {answer: says("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n\x00\xffab"), status: 200, done: true, text: "??ab"},
		"closes early":      {answer: func(net.Conn) {}, reason: puntuale.ReasonWebhookClosed},
		"closes in headers": {answer: says("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"), reason: puntuale.ReasonWebhookClosed},
		"closes in body":    {answer: says("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nok"), status: 200, done: true, text: "ok"},
		"resets":            {answer: func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() }, reason: puntuale.ReasonWebhookClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := raw(t, test.answer)
			c := newCaller(func(cfg *delivery.CallerConfig) { cfg.Within = 700 * time.Millisecond })
			began := time.Now()
			got := c.Call(t.Context(), target(url), sent)
			if took := time.Since(began); took > 4*time.Second {
				t.Errorf("it took %v", took)
			}
			if got.Status != test.status || (got.State == puntuale.DeliveryDone) != test.done || got.ReceiverGone != test.gone || len(got.Answer) > puntuale.MaxWebhookAnswer {
				t.Errorf("%+v", got)
			}
			if reason := puntuale.ParseReason(got.Answer).Code; test.status == 0 && reason != test.reason || test.status != 0 && !strings.HasPrefix(got.Answer, test.text) {
				t.Errorf("the answer is %q", got.Answer)
			}
		})
	}
}

// TestRedirects checks that no redirect is followed, in particular none to a private address.
func TestRedirects(t *testing.T) {
	t.Parallel()
	victim, reached := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		url, _ := raw(t, func(c net.Conn) {
			fmt.Fprintf(c, "HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n", status, victim)
		})
		if got := newCaller(nil).Call(t.Context(), target(url), sent); got.Status != status || got.State == puntuale.DeliveryDone {
			t.Errorf("%d: %+v", status, got)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d redirects were followed", n)
	}
}

// TestAddresses checks that private addresses and plain http work only in networks that the operator allows. The result
// does not show a caller what is at a refused address.
func TestAddresses(t *testing.T) {
	t.Parallel()
	url, reached := raw(t, func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") })
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ":")
	for _, address := range []string{
		url, "https://127.0.0.1:" + port, "http://localhost:" + port, "http://[::ffff:127.0.0.1]:" + port, "http://0.0.0.0:" + port, "http://127.1:" + port,
		"http://nessuno.invalid/", "https://10.0.0.1/", "https://169.254.169.254/latest", "http://192.0.2.1/", "http://1.1.1.1/", "https://[fd00::1]/",
	} {
		c := newCaller(func(cfg *delivery.CallerConfig) { cfg.Allow = []netip.Prefix{netip.MustParsePrefix("10.9.0.0/16")} })
		got := c.Call(t.Context(), target(address), sent)
		code := puntuale.ParseReason(got.Answer).Code
		if got.Status != 0 || code != puntuale.ReasonWebhookAddress && (code != puntuale.ReasonWebhookUnreachable || !strings.Contains(address, "invalid") && !strings.Contains(address, "127.1:")) {
			t.Errorf("%s: %+v", address, got)
		}
	}
	if n := reached.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // now no program listens on the port
	if got := newCaller(nil).Call(t.Context(), target("http://"+l.Addr().String()), sent); puntuale.ParseReason(got.Answer).Code != puntuale.ReasonWebhookUnreachable {
		t.Errorf("refused: %+v", got)
	}
}

// TestRefuses: an address is refused immediately if its text shows that no attempt is allowed. Refuses never refuses an
// address that an attempt would accept.
func TestRefuses(t *testing.T) {
	t.Parallel()
	plain, allowing := newCaller(func(cfg *delivery.CallerConfig) { cfg.Allow = nil }), newCaller(func(cfg *delivery.CallerConfig) {
		cfg.Allow = []netip.Prefix{netip.MustParsePrefix("10.1.2.0/24")}
		cfg.Lookup = func(_ context.Context, _, host string) ([]netip.Addr, error) {
			public, private := netip.MustParseAddr("93.184.215.14"), netip.MustParseAddr("10.1.2.3")
			all, known := map[string][]netip.Addr{"crm.example": {public}, "crm.lan": {private}, "both.example": {public, private}}[host]
			if !known {
				return nil, errors.New("no such host")
			}
			return all, nil
		}
	})
	// For each address: the results without an allowed network, and with the network 10.1.2.0/24.
	for address, want := range map[string][2]puntuale.ReasonCode{
		"https://crm.example/hook":        {},
		"https://93.184.215.14/hook":      {},
		"https://[2606:4700:4700::1111]/": {},
		"http://crm.example/hook":         {puntuale.FaultWebhookNotHTTPS, puntuale.FaultWebhookNotHTTPS},
		"http://crm.lan/hook":             {puntuale.FaultWebhookNotHTTPS, ""},
		"http://both.example/hook":        {puntuale.FaultWebhookNotHTTPS, ""}, // an attempt tries each address
		"http://unknown.example/hook":     {puntuale.FaultWebhookNotHTTPS, ""}, // DNS may know it later
		"http://93.184.215.14/hook":       {puntuale.FaultWebhookNotHTTPS, puntuale.FaultWebhookNotHTTPS},
		"https://10.1.2.3/hook":           {puntuale.FaultWebhookPrivate, ""},
		"http://10.1.2.3:8080/hook":       {puntuale.FaultWebhookPrivate, ""},
		"http://[::ffff:10.1.2.3]/hook":   {puntuale.FaultWebhookPrivate, ""},
		"https://10.1.3.3/hook":           {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://localhost/":              {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://crm.LOCALHOST.:8443/":    {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://169.254.169.254/latest":  {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://[fd00::1]/":              {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://[fe80::1%25eth0]/":       {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
		"https://[64:ff9b::1.1.1.1]/":     {puntuale.FaultWebhookPrivate, puntuale.FaultWebhookPrivate},
	} {
		for i, c := range []*delivery.Caller{plain, allowing} {
			if got := c.Refuses(t.Context(), address); got != want[i] {
				t.Errorf("%s: %q, want %q", address, got, want[i])
			}
		}
	}
}

// TestCertificates checks that a certificate from an unknown authority, or with another name, is refused. A correct
// certificate is accepted.
func TestCertificates(t *testing.T) {
	t.Parallel()
	var taken atomic.Int64
	h := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken.Add(1) }))
	h.Config.ErrorLog = log.New(io.Discard, "", 0)
	h.StartTLS()
	defer h.Close()
	roots := x509.NewCertPool()
	roots.AddCert(h.Certificate())
	trusting := newCaller(func(cfg *delivery.CallerConfig) { cfg.Roots = roots })
	_, port, _ := net.SplitHostPort(h.Listener.Addr().String())
	for _, wrong := range []puntuale.DeliveryResult{
		newCaller(nil).Call(t.Context(), target(h.URL), sent),                                // the authority is unknown
		trusting.Call(t.Context(), target("https://127.0.0.2:"+port), sent),                  // the certificate is not for this address
		trusting.Call(t.Context(), target(strings.Replace(h.URL, "https", "http", 1)), sent), // the request is not encrypted, so the receiver answers 400
	} {
		if code := puntuale.ParseReason(wrong.Answer).Code; wrong.State == puntuale.DeliveryDone || wrong.Status != 400 && code != puntuale.ReasonWebhookCertificate && code != puntuale.ReasonWebhookUnreachable {
			t.Errorf("%+v", wrong)
		}
	}
	if n := taken.Load(); n != 0 {
		t.Errorf("%d bodies were told", n)
	}
	if got := trusting.Call(t.Context(), target(h.URL), sent); got.State != puntuale.DeliveryDone {
		t.Errorf("%+v", got)
	}
	url, _ := raw(t, func(net.Conn) {})
	if got := newCaller(nil).Call(t.Context(), target(strings.Replace(url, "http", "https", 1)), sent); got.Status != 0 || got.State == puntuale.DeliveryDone {
		t.Errorf("no TLS: %+v", got)
	}
}

// TestPanicIsAFailure: if an attempt panics, it counts as failed, and the server goes on.
func TestPanicIsAFailure(t *testing.T) {
	t.Parallel()
	c := newCaller(func(cfg *delivery.CallerConfig) {
		cfg.Logger = slog.New(slog.DiscardHandler)
		cfg.Unseal = func(*puntuale.Webhook, []byte) ([]byte, error) { panic("broken") }
	})
	if r := c.Call(t.Context(), target("https://example.com/"), sent); r.State != puntuale.DeliveryFailed || r.Answer == "" {
		t.Errorf("%+v", r)
	}
}

// refusing is a memory grant of a payer that has no memory left.
type refusing struct{}

func (refusing) Take(int64) error { return puntuale.Overloaded(0) }

// TestOwnerPaysForAnswer: the owner of a webhook pays for the answers of its receiver. If the owner has no memory left,
// the answer is not read, and its status still says that the event arrived.
func TestOwnerPaysForAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pays   string
		client puntuale.ClientID // 0: a webhook of partner 3
		status int
		state  puntuale.DeliveryState
	}{
		{"client 7", 7, http.StatusOK, puntuale.DeliveryDone},
		{"client 7", 7, http.StatusTeapot, puntuale.DeliveryFailed},
		{"partner 3", 0, http.StatusOK, puntuale.DeliveryDone},
	} {
		h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, strings.Repeat("x", 20_000))
		}))
		to := target(h.URL)
		to.Client, to.Partner = c.client, 3
		for _, poor := range []bool{false, true} {
			var opened []string
			closed := 0
			caller := newCaller(func(cfg *delivery.CallerConfig) {
				cfg.Memory = func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
					opened = append(opened, fmt.Sprint(side, " ", id))
					if poor {
						return refusing{}, func() { closed++ }
					}
					return admission.NewMemoryBudget(1<<20, nil).Open(admission.CallerKey{Side: side, ID: id}), func() { closed++ }
				}
			})
			got := caller.Call(t.Context(), to, sent)
			if !slices.Equal(opened, []string{c.pays}) || closed != 1 {
				t.Errorf("%v pay, want %s; %d are given back", opened, c.pays, closed)
			}
			if got.State != c.state || got.Status != c.status || (got.Answer == "") != poor {
				t.Errorf("without memory %t: %+v", poor, got)
			}
		}
		h.Close()
	}
}
