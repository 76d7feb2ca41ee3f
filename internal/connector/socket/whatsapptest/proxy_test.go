//go:build !nosocket

package whatsapptest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.mau.fi/whatsmeow"
	"go.mau.fi/whatsmeow/store/sqlstore"
	"go.mau.fi/whatsmeow/types/events"

	"puntuale/internal/connector/socket/whatsapptest"
)

// asProgram names an environment variable. If it is set, this test binary acts as the program under test.
const asProgram = "WHATSAPPTEST_SENDS_TO"

// TestProgram runs a patched copy of this test binary behind the proxy. Except for its root key and the proxy's
// settings, the copy is an ordinary program.
func TestProgram(t *testing.T) {
	if to := os.Getenv(asProgram); to != "" {
		program(t, to)
		return
	}
	t.Parallel()
	net := whatsapptest.New(t)
	proxy := net.Proxy()
	anna, shop := net.Phone("393330000002"), net.Account("393330000001")
	own, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	patched := filepath.Join(t.TempDir(), "patched")
	if err := whatsapptest.PatchRoot(own, patched); err != nil {
		t.Fatal(err)
	}
	codes, written, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer codes.Close()
	cmd := exec.CommandContext(t.Context(), patched, "-test.run=^TestProgram$")
	cmd.Env = append(append(os.Environ(), proxy.Env()...), asProgram+"="+anna.Number())
	cmd.ExtraFiles = []*os.File{written}
	var said strings.Builder
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	written.Close()
	var code string
	if _, err := fmt.Fscanln(codes, &code); err != nil {
		t.Fatalf("no code: %v: %s", err, &said)
	}
	if err := shop.ScanQR(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	message := anna.Await(t, nil)
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, &said)
	}
	if content, err := anna.Download(t.Context(), message); message.Kind != "image" || err != nil || string(content) != picture {
		t.Errorf("the phone shows %+v, with %q: %v", message, content, err)
	}
	if tunnels := proxy.Tunnels(); tunnels[whatsapptest.Host] == 0 || tunnels[whatsapptest.MediaHost] == 0 {
		t.Errorf("tunnels: %v", tunnels)
	}
}

// program links itself and sends a picture. It writes the pairing code to file descriptor 3.
func program(t *testing.T, to string) {
	whatsapptest.TrustShipped()
	container, err := sqlstore.New(t.Context(), "sqlite", "file:"+filepath.Join(t.TempDir(), "p.db")+"?_pragma=foreign_keys(1)&_pragma=synchronous(0)", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer container.Close()
	c := &client{Client: whatsmeow.NewClient(container.NewDevice(), nil), t: t, changed: make(chan struct{})}
	c.AddEventHandler(c.handle)
	defer c.Disconnect()
	if err := c.Connect(); err != nil {
		t.Fatal(err)
	}
	out := os.NewFile(3, "codes")
	_, _ = fmt.Fprintln(out, await[*events.QR](c, 0, nil).Codes[0])
	out.Close()
	await[*events.Connected](c, 0, nil)
	c.sendImage(number(to), picture)
}

// TestUnknownHosts shows that a tunnel to an unknown host is refused and counted.
func TestUnknownHosts(t *testing.T) {
	t.Parallel()
	net := whatsapptest.New(t)
	proxy := net.Proxy()
	transport := &http.Transport{Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }}
	defer transport.CloseIdleConnections()
	if response, err := (&http.Client{Transport: transport}).Get("https://example.com/"); err == nil {
		response.Body.Close()
		t.Error("example.com answered")
	}
	if unknown := net.Forgive(); len(unknown) != 1 || !strings.Contains(unknown[0], "example.com") {
		t.Errorf("unknown: %q", unknown)
	}
}
