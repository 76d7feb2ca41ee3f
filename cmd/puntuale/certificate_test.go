package main

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/certificate/acmetest"
	"puntuale/internal/clock"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
)

// TestCertificates: servers end TLS with certificates of an authority, for the installation's host and for a partner's
// confirmed host. The second server answers the challenges of the first, and both show the same certificate, also after a
// restart. Any other host name is refused, without an order.
func TestCertificates(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("", "partner", "create", "--name", "Agenzia", "--email", "a@example.com", "--password", "una frase lunga 42"); code != exitDone {
		t.Fatal(said)
	}
	opened, err := store.Open(context.Background(), engine.Config{Data: filepath.Join(term.dir, "puntuale-data"), Clock: clock.System()})
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Partner(1).SetBrand(context.Background(), puntuale.Brand{Host: "msg.agency.example"}); err != nil {
		t.Fatal(err)
	}
	if err := opened.Partner(1).ConfirmHost(context.Background(), "msg.agency.example"); err != nil {
		t.Fatal(err)
	}
	if err := opened.Close(); err != nil {
		t.Fatal(err)
	}
	first, second := unusedAddr(t), unusedAddr(t)
	authority := acmetest.New(t, func() string { return second })
	args := []string{"serve", "--addr", "127.0.0.1:0", "--public-url", "https://Messages.example.com", "--acme-url", authority.URL, "--acme-email", "a@example.com"}
	server := start(t, term, append(slices.Clone(args), "--tls-addr", first)...)
	server.logged.waitFor(t, `"serving"`)
	other := newConsole(t, nil)
	other.dir = term.dir
	start(t, other, append(slices.Clone(args), "--tls-addr", second, "--roles", "api,web")...).logged.waitFor(t, `"serving"`)

	serial := func(addr, host string) string {
		client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{
			TLSClientConfig: &tls.Config{RootCAs: authority.Roots}, DisableKeepAlives: true, ForceAttemptHTTP2: true,
			DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, addr)
			},
		}}
		answer, err := client.Get("https://" + host + "/login")
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK || answer.ProtoMajor != 1 {
			t.Errorf("%s answers %s by %s", host, answer.Status, answer.Proto)
		}
		return answer.TLS.PeerCertificates[0].SerialNumber.String()
	}
	made := map[string]string{}
	for _, host := range []string{"messages.example.com", "msg.agency.example"} {
		made[host] = serial(first, host)
		if strings.Contains(made[host], " ") || serial(second, host) != made[host] {
			t.Errorf("%s: %s, and on the second server %s", host, made[host], serial(second, host))
		}
	}
	if refused := serial(first, "evil.example.com"); !strings.Contains(refused, " ") {
		t.Errorf("another host name gets the certificate %s", refused)
	}
	if code := server.end(); code != exitDone {
		t.Fatalf("exit code %d", code)
	}
	again := newConsole(t, nil)
	again.dir = term.dir
	start(t, again, append(slices.Clone(args), "--tls-addr", first)...).logged.waitFor(t, `"serving"`)
	if got := serial(first, "messages.example.com"); got != made["messages.example.com"] {
		t.Errorf("after a restart: %s, want %s", got, made["messages.example.com"])
	}
	if got, want := authority.Orders(), []string{"messages.example.com", "msg.agency.example"}; !slices.Equal(got, want) {
		t.Errorf("orders: %v, want %v", got, want)
	}
}

// TestTLSNeedsAName: without the public address nobody knows for which host the certificate is.
func TestTLSNeedsAName(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--tls-addr", ":443"}, {"--tls-addr", ":443", "--public-url", "http://a.example"}, {"--tls-addr", "443", "--public-url", "https://a.example"}} {
		if code, _, said := newConsole(t, nil).runs("", append([]string{"config"}, args...)...); code != exitUsage || !strings.Contains(said, "--tls-addr") {
			t.Errorf("%v: %d: %s", args, code, said)
		}
	}
}

// unusedAddr returns a loopback address that nobody uses now.
func unusedAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
