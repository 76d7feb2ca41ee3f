//go:build e2e

package e2e

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// insideNetwork is the name of an environment variable. It is set in the test's second process, which has a separate
// network.
const insideNetwork = "PUNTUALE_E2E_NETWORK"

// inOwnNetwork runs the test again in a process with a separate network and separate mounts. If the test fails in the
// second process, it fails here, too.
func inOwnNetwork(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("ip"); err != nil {
		t.Skip("there is no program ip here to set a network up with")
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=3m")
	cmd.Env = append(os.Environ(), insideNetwork+"=1", "PUNTUALE_BINARY="+binary, "PUNTUALE_TEST_POSTGRES=")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Skipf("no network of its own can be had here: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	} else {
		t.Log(out.String())
	}
}

// TestHostProvenByDNS: the built server finds a partner's record through the machine's DNS, and serves the host name.
func TestHostProvenByDNS(t *testing.T) {
	if os.Getenv(insideNetwork) == "" {
		inOwnNetwork(t)
		return
	}
	zone := serveDNS(t)
	database := filepath.Join(t.TempDir(), "puntuale.db")
	s := serve(t, database, "--public-url", "http://app.example")
	createPartner(t, database)
	p := &reader{t: t, base: s.base}
	p.post(http.StatusSeeOther, "/login", url.Values{"email": {"rossi@example.com"}, "password": {"una frase lunga 42"}})
	const host = "messaggi.rossi.example"
	p.post(http.StatusSeeOther, "/partner/brand", url.Values{"name": {"Messaggi Rossi"}, "host": {host}})
	record := regexp.MustCompile(`puntuale=[0-9A-Za-z_~-]+`).FindString(p.get("/partner/brand", ""))
	if record == "" {
		t.Fatal("the page shows no record")
	}
	served := func() bool { return strings.Contains(p.get("/login", host), "Messaggi Rossi") }
	p.post(http.StatusUnprocessableEntity, "/partner/brand/host", nil)
	zone.set("_puntuale."+host+".", "v=spf1 -all", "puntuale=another")
	p.post(http.StatusUnprocessableEntity, "/partner/brand/host", nil)
	if served() {
		t.Error("the name is served without a proof")
	}
	zone.set("_puntuale."+host+".", "v=spf1 -all", record)
	p.post(http.StatusSeeOther, "/partner/brand/host", nil)
	if !served() {
		t.Error("the name is not served although its record is there")
	}
}

// zone contains the TXT records of the test's DNS, by name.
type zone struct {
	mu    sync.Mutex
	texts map[string][]string
}

func (z *zone) set(name string, texts ...string) {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.texts[name] = texts
}

// serveDNS starts a DNS server on the loopback address of this network. After that, this process and its children send
// their DNS questions to the new server.
func serveDNS(t *testing.T) *zone {
	t.Helper()
	if out, err := exec.Command("ip", "link", "set", "lo", "up").CombinedOutput(); err != nil {
		t.Fatalf("ip: %v %s", err, out)
	}
	settings := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(settings, []byte("nameserver 127.0.0.1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(settings, "/etc/resolv.conf", "", syscall.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	conn, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	z := &zone{texts: map[string][]string{}}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for question := make([]byte, 1500); ; {
			n, from, err := conn.ReadFrom(question)
			if err != nil {
				return // the connection was closed
			}
			if answer := z.answer(question[:n]); answer != nil {
				_, _ = conn.WriteTo(answer, from)
			}
		}
	}()
	t.Cleanup(func() {
		conn.Close()
		<-done
	})
	return z
}

// answer returns the DNS answer to a question, or nil if the bytes are not a question.
func (z *zone) answer(question []byte) []byte {
	var m dnsmessage.Message
	if m.Unpack(question) != nil || len(m.Questions) != 1 {
		return nil
	}
	z.mu.Lock()
	defer z.mu.Unlock()
	asked := m.Questions[0]
	texts, found := z.texts[asked.Name.String()]
	reply := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionAvailable: true}, Questions: m.Questions}
	if !found {
		reply.RCode = dnsmessage.RCodeNameError
	}
	for _, text := range texts {
		if asked.Type == dnsmessage.TypeTXT {
			reply.Answers = append(reply.Answers, dnsmessage.Resource{
				Header: dnsmessage.ResourceHeader{Name: asked.Name, Class: dnsmessage.ClassINET, TTL: 1}, Body: &dnsmessage.TXTResource{TXT: []string{text}},
			})
		}
	}
	answer, err := reply.Pack()
	if err != nil {
		return nil
	}
	return answer
}

// reader is a person with a browser that keeps cookies.
type reader struct {
	t    *testing.T
	base string
	jar  http.CookieJar
}

// get returns a page. host is the host name in the request; "" means the address itself.
func (r *reader) get(path, host string) string {
	r.t.Helper()
	_, body := r.do(http.MethodGet, path, host, nil)
	return body
}

// post sends a form. The answer must have the status want.
func (r *reader) post(want int, path string, form url.Values) {
	r.t.Helper()
	if status, body := r.do(http.MethodPost, path, "", form); status != want {
		r.t.Fatalf("%s: %d, want %d\n%s", path, status, want, body)
	}
}

func (r *reader) do(method, path, host string, form url.Values) (status int, body string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), method, r.base+path, strings.NewReader(form.Encode()))
	if err != nil {
		r.t.Fatal(err)
	}
	request.Host = host
	if method == http.MethodPost {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		request.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	if r.jar == nil {
		if r.jar, err = cookiejar.New(nil); err != nil {
			r.t.Fatal(err)
		}
	}
	client := &http.Client{Jar: r.jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
