//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"puntuale/internal/doctor"
)

// frontName is the host name in the blocks of docs/operate.md.
const frontName = "messages.example.com"

// TestFrontProxies runs the blocks of docs/operate.md with nginx and Caddy. Cookies are Secure, and a browser without
// Sec-Fetch-Site can sign in. Large lists pass, callers keep their addresses, and nothing that is awaited stays in a
// buffer.
func TestFrontProxies(t *testing.T) {
	t.Run("nginx", func(t *testing.T) {
		beside(t)
		testFrontProxy(t, nginxFront)
	})
	t.Run("caddy", func(t *testing.T) {
		beside(t)
		testFrontProxy(t, caddyFront)
	})
	t.Run("bare nginx", func(t *testing.T) {
		beside(t)
		testBareProxy(t)
	})
}

// operateBlock returns a block of docs/operate.md.
func operateBlock(t *testing.T, language string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operate.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(page), "```"+language+"\n")
	block, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatalf("docs/operate.md has no block of %s", language)
	}
	return block
}

// replaceIn replaces parts of a block. Each part must be there.
func replaceIn(t *testing.T, block string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(block, pairs[i]) {
			t.Fatalf("the block has no %q", pairs[i])
		}
		block = strings.ReplaceAll(block, pairs[i], pairs[i+1])
	}
	return block
}

// runFront starts a proxy's program, which ends with the test.
func runFront(t *testing.T, port, name string, arguments ...string) {
	t.Helper()
	program, err := exec.LookPath(name)
	if err != nil {
		program, err = exec.LookPath("/usr/sbin/" + name)
	}
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	said := &strings.Builder{}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = said, said
	command.Env = append(os.Environ(), "HOME="+t.TempDir())
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	t.Cleanup(func() {
		_ = command.Process.Kill()
		<-ended
		if t.Failed() {
			t.Log(said)
		}
	})
	eventually(t, 20*time.Second, name+" listens", func() bool {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
}

// front is a proxy before a server. It returns the proxy's port.
type front func(t *testing.T, server, certificate, key string) (port string)

func freePort(t *testing.T) string {
	t.Helper()
	_, port, err := net.SplitHostPort(freeAddr(t))
	if err != nil {
		t.Fatal(err)
	}
	return port
}

func nginxFront(t *testing.T, server, certificate, key string) string {
	t.Helper()
	port, plain, folder := freePort(t), freePort(t), t.TempDir()
	block := replaceIn(t, operateBlock(t, "nginx"), "listen 80;", "listen 127.0.0.1:"+plain+";", "listen 443 ssl;", "listen 127.0.0.1:"+port+" ssl;",
		"/etc/letsencrypt/live/"+frontName+"/fullchain.pem", certificate, "/etc/letsencrypt/live/"+frontName+"/privkey.pem", key,
		"127.0.0.1:8080", server, "/var/log/nginx/", folder+"/")
	runNginx(t, port, folder, block)
	return port
}

func runNginx(t *testing.T, port, folder, block string) {
	t.Helper()
	file := filepath.Join(folder, "nginx.conf")
	all := "daemon off;\nmaster_process off;\npid " + folder + "/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\n"
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		all += kind + "_temp_path " + filepath.Join(folder, kind) + ";\n"
	}
	if err := os.WriteFile(file, []byte(all+block+"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runFront(t, port, "nginx", "-p", folder, "-e", "stderr", "-c", file)
}

func caddyFront(t *testing.T, server, certificate, key string) string {
	t.Helper()
	port := freePort(t)
	block := replaceIn(t, operateBlock(t, "caddy"), frontName+" {", "https://"+frontName+":"+port+" {\n\ttls "+certificate+" "+key, "127.0.0.1:8080", server)
	file := filepath.Join(t.TempDir(), "Caddyfile")
	if err := os.WriteFile(file, []byte("{\n\tadmin off\n\tauto_https disable_redirects\n}\n"+block), 0o600); err != nil {
		t.Fatal(err)
	}
	runFront(t, port, "caddy", "run", "--config", file, "--adapter", "caddyfile")
	return port
}

// certify writes a certificate for frontName, and returns its files.
func certify(t *testing.T) (certificate, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: frontName}, DNSNames: []string{frontName},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true}
	made, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	certificate, key = filepath.Join(folder, "fullchain.pem"), filepath.Join(folder, "privkey.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made})
	if err := os.WriteFile(certificate, public, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600); err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return certificate, key, pool
}

// frontCaller calls a server through its proxy, from an address of this machine.
type frontCaller struct {
	t      *testing.T
	client *http.Client
	port   string
}

func newFrontCaller(t *testing.T, port string, pool *x509.CertPool) *frontCaller {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	from := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return from.DialContext(ctx, "tcp", "127.0.0.1:"+port)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	return &frontCaller{t, &http.Client{Jar: jar, Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, port}
}

func (c *frontCaller) do(method, path string, body io.Reader, header ...string) *http.Response {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), method, "https://"+frontName+":"+c.port+path, body)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	a, err := c.client.Do(r)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	c.t.Cleanup(func() { a.Body.Close() })
	return a
}

func testFrontProxy(t *testing.T, run front) {
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--trusted-proxies", "127.0.0.1/32")
	who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, ""))
	certificate, key, pool := certify(t)
	port := run(t, strings.TrimPrefix(s.base, "http://"), certificate, key)
	c := newFrontCaller(t, port, pool)

	form := url.Values{"email": {"rossi@example.com"}, "password": {"una frase lunga 42"}}.Encode()
	const formKind = "application/x-www-form-urlencoded"
	if a := c.do("POST", "/login", strings.NewReader(form), "Content-Type", formKind, "Sec-Fetch-Site", "cross-site"); a.StatusCode != http.StatusForbidden {
		t.Errorf("another site's form was answered with %d", a.StatusCode)
	}
	// A browser without Sec-Fetch-Site is judged by its Origin, which must name the host that the proxy passes on.
	a := c.do("POST", "/login", strings.NewReader(form), "Content-Type", formKind, "Origin", "https://"+frontName+":"+port, "X-Forwarded-For", "198.51.100.7")
	if a.StatusCode != http.StatusSeeOther || len(a.Cookies()) == 0 {
		t.Fatalf("sign-in: %d %s", a.StatusCode, a.Header)
	}
	for _, cookie := range a.Cookies() {
		if !cookie.Secure {
			t.Errorf("the cookie %s is not Secure", cookie.Name)
		}
	}
	if a.Header.Get("Strict-Transport-Security") == "" {
		t.Errorf("no HSTS: %s", a.Header)
	}
	audit, _ := io.ReadAll(c.do("GET", "/partner/audit", nil).Body)
	if !strings.Contains(string(audit), "127.0.0.2") || strings.Contains(string(audit), "198.51.100.7") {
		t.Errorf("the audit log does not show the caller's address:\n%.2000s", audit)
	}
	if a := c.do("GET", "/metrics", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("/metrics: %d", a.StatusCode)
	}
	found := map[string]doctor.Level{}
	for _, f := range doctor.Look(t.Context(), &doctor.Config{PublicURL: "https://" + frontName + ":" + port, Roots: pool, Now: time.Now(), Dial: c.client.Transport.(*http.Transport).DialContext}) {
		found[f.Subject] = f.Level
	}
	// The certificate of this test ends in a day.
	if found["public address"] != doctor.OK || found["proxy"] != doctor.OK || found["TLS"] != doctor.Warning || found["metrics"] != "" {
		t.Errorf("the doctor found %v", found)
	}

	bearer := []string{"Authorization", "Bearer " + who.key, "Content-Type", "text/csv"}
	list := "phone,nota\n" + strings.Repeat("3331234567,"+strings.Repeat("x", 900)+"\n", 5000) // 4.5 MB
	if a := c.do("PUT", "/api/contacts/import", strings.NewReader(list), bearer...); a.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(a.Body)
		t.Errorf("a list of %d bytes: %d %.500s", len(list), a.StatusCode, text)
	}

	// A live page begins to arrive at once, and a call that waits is answered when the event is there.
	c.do("POST", "/partner/clients/"+who.id+"/enter", nil, "Sec-Fetch-Site", "same-origin")
	live := c.do("GET", "/c/"+who.id+"/messages/live", nil, "Accept", "text/event-stream")
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(live.Body).ReadString('\n')
		first <- line
	}()
	waited := make(chan string, 1)
	c.do("GET", "/api/events", nil, bearer...) // from now on the feed is collected
	go func() {
		a := c.do("GET", "/api/events?wait=30", nil, bearer...)
		text, _ := io.ReadAll(a.Body)
		waited <- fmt.Sprint(a.StatusCode, string(text))
	}()
	time.Sleep(300 * time.Millisecond)
	must(t, "POST", s.base+"/api/start/"+who.sequence, who.key, map[string]any{"phone": "+393331234567"})
	for what, arrived := range map[string]chan string{"live page": first, "waiting call": waited} {
		select {
		case got := <-arrived:
			if what == "waiting call" && !strings.Contains(got, "message.sent") || got == "" {
				t.Errorf("%s: %q", what, got)
			}
		case <-time.After(15 * time.Second):
			t.Errorf("nothing of the %s arrived", what)
		}
	}
}

// testBareProxy uploads a list through an nginx that has only proxy_pass. The command says that the proxy refuses it.
func testBareProxy(t *testing.T) {
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database)
	who := createTenant(t, s.base, createPartner(t, database), "full", step("ciao", 0, ""))
	port, folder := freePort(t), t.TempDir()
	runNginx(t, port, folder, "server { listen 127.0.0.1:"+port+"; location / { proxy_pass "+s.base+"; } }\n")
	list := filepath.Join(folder, "list.csv")
	if err := os.WriteFile(list, []byte("phone,nota\n"+strings.Repeat("3331234567,"+strings.Repeat("x", 900)+"\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command(binary, "campaign", "--server", "http://127.0.0.1:"+port, "--text", "Ciao", "--yes", "--file", list)
	command.Env = append(os.Environ(), "PUNTUALE_API_KEY="+who.key)
	out, err := command.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "client_max_body_size") {
		t.Errorf("%v: %s", err, out)
	}
}
