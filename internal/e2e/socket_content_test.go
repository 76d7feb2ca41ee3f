//go:build e2e && !nosocket

package e2e

import (
	"bytes"
	bin "encoding/binary"
	"image"
	"image/png"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/socket/whatsapptest"
)

// groups writes to a group by its id and by an invitation, and to a person by WhatsApp's hidden id (LID).
func (s *shop) groups(t *testing.T, anna, bert *whatsapptest.Phone) {
	s.t = t
	group := s.net.Group("Clienti", s.account, anna.Account, bert.Account)
	defer group.RevokeCode()
	for _, to := range []string{group.JID().String(), group.Code(), anna.LID().String()} {
		text := "a " + to
		var made struct{ ID []string }
		must(t, "POST", s.base+"/api/messages", s.who.key, map[string]any{"phone": to, "text": text, "id_sessione": s.session}).into(t, &made)
		s.becomes(made.ID[0], 10*time.Second, completed, `"consegnato":"`)
		m := anna.Await(t, whatsapptest.Text(text))
		if inGroup := to != anna.LID().String(); inGroup && m.Chat != group.ID() || !inGroup && m.Chat != shopNumber {
			t.Errorf("to %s: shown as %+v", to, m)
		}
		if m.Chat == group.ID() {
			bert.Await(t, whatsapptest.Text(text))
		}
	}
}

// publicAddress is the address of the files of TestSocketMedia. The server may fetch from it, because it is public. The
// test has a separate network, so no request leaves the machine.
const publicAddress = "11.22.33.44"

// TestSocketMedia sends a file of each kind, from a start in the contract's form to the phone. The server fetches the
// file directly from a public address, and not through the proxy. It encrypts and uploads the file. The phone decrypts
// the file, and the test compares it with the original. The test runs in a separate network, where it can use a public
// address.
func TestSocketMedia(t *testing.T) {
	if os.Getenv(insideNetwork) == "" {
		inOwnNetwork(t)
		return
	}
	for _, args := range [][]string{{"link", "set", "lo", "up"}, {"addr", "add", publicAddress + "/32", "dev", "lo"}} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v %s", args, err, out)
		}
	}
	files := newFileHost(t)
	s := newShop(t, filepath.Join(t.TempDir(), "puntuale.db"))
	anna := s.net.Phone(annaNumber)
	var steps []map[string]any
	for _, f := range files.all {
		one := step("", 0, "seconds")
		delete(one, "text")
		if f.caption != "" {
			one["text"] = f.caption
		}
		one["media"], one["media_name"] = "http://"+publicAddress+"/"+f.name, "mio "+f.name
		steps = append(steps, one)
	}
	var sequence struct{ ID string }
	must(t, "POST", s.base+"/api/sequences", s.who.key, map[string]any{"name": "file", "id_sessione": s.session, "steps": steps}).into(t, &sequence)
	for range 2 { // in the second round, WhatsApp already has the files
		files.send(t, s, anna, sequence.ID)
	}
	for name, n := range files.fetched() {
		if n != 2 {
			t.Errorf("%s was fetched %d times for two runs", name, n)
		}
	}
	// The server must not fetch this file, because its address is not public.
	id := s.start1(t, map[string]any{"phone": "+" + annaNumber, "media": "http://127.0.0.1/foto.png", "id_sessione": s.session})
	s.becomes(id, 20*time.Second, `"stato":"FAILED"`, "non ammesso")
	hosts := s.proxy.Tunnels()
	if hosts[whatsapptest.MediaHost] == 0 || hosts[publicAddress] != 0 {
		t.Errorf("by way of the proxy: %v", hosts)
	}
}

// start1 sends one message and returns its id.
func (s *shop) start1(t *testing.T, body map[string]any) string {
	t.Helper()
	var made struct{ ID []string }
	must(t, "POST", s.base+"/api/messages", s.who.key, body).into(t, &made)
	return made.ID[0]
}

// fileHost is a host at the public address, with a file of each kind. It counts how many times each file is fetched.
type fileHost struct {
	all []sentFile

	mu    sync.Mutex
	times map[string]int
}

type sentFile struct {
	name, kind, mime, caption string
	body                      []byte
}

func newFileHost(t *testing.T) *fileHost {
	t.Helper()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewRGBA(image.Rect(0, 0, 300, 200))); err != nil {
		t.Fatal(err)
	}
	long := bytes.Repeat([]byte("abcdefgh"), 200_000)
	voice := append([]byte("OggS\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00 OpusHead\x01\x01"), make([]byte, 600)...)
	voice = append(append(voice, "OggS\x00\x04"...), bin.LittleEndian.AppendUint64(nil, 3*48_000)...)
	h := &fileHost{times: map[string]int{}, all: []sentFile{
		{"foto.png", "image", "image/png", "guarda", picture.Bytes()},
		{"film.mp4", "video", "video/mp4", "il film", append([]byte("\x00\x00\x00\x18ftypmp42"), long...)},
		{"canzone.mp3", "audio", "audio/mpeg", "", append([]byte("ID3"), long[:50_000]...)},
		{"nota.ogg", "voice", "audio/ogg; codecs=opus", "", append(voice, "the rest"...)},
		{"listino.pdf", "document", "application/pdf", "il listino", append([]byte("%PDF-1.7\n"), long[:100_000]...)},
	}}
	l, err := net.Listen("tcp", publicAddress+":80")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { server.Close() })
	return h
}

func (h *fileHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.times[path.Base(r.URL.Path)]++
	h.mu.Unlock()
	for _, f := range h.all {
		if r.URL.Path == "/"+f.name {
			w.Header().Set("Content-Type", strings.Split(f.mime, ";")[0])
			_, _ = w.Write(f.body)
			return
		}
	}
	http.NotFound(w, r)
}

func (h *fileHost) fetched() map[string]int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.times
}

// send starts the sequence with all files. It compares the files that the phone shows with the files on the host.
func (h *fileHost) send(t *testing.T, s *shop, anna *whatsapptest.Phone, sequence string) {
	t.Helper()
	var made struct{ ID []string }
	must(t, "POST", s.base+"/api/start/"+sequence, s.who.key, map[string]any{"phone": "+" + annaNumber}).into(t, &made)
	if len(made.ID) != len(h.all) {
		t.Fatalf("%d messages of %d steps", len(made.ID), len(h.all))
	}
	for i, f := range h.all {
		id := made.ID[i]
		s.becomes(id, 30*time.Second, completed)
		m := anna.Await(t, func(m whatsapptest.Message) bool { return strings.Contains(s.details(id), m.ID) })
		if m.Kind != f.kind || m.Text != f.caption || m.MimeType != f.mime || f.kind == "document" && m.FileName != "mio "+f.name || f.kind == "voice" && m.Seconds != 3 {
			t.Errorf("%s: shown as %+v", f.name, m)
		}
		got, err := anna.Download(t.Context(), m)
		if err != nil || !bytes.Equal(got, f.body) {
			t.Errorf("%s: %d bytes of %d at the phone: %v", f.name, len(got), len(f.body), err)
		}
	}
}
