package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/media"
)

// shelf is a host of files. It counts how many times each file is fetched.
type shelf struct {
	*httptest.Server
	files media.Config // settings with which a server may fetch from the shelf

	mu      sync.Mutex
	fetched map[string]int
}

// shelfKinds are the media types that Meta accepts, by extension, each with the first bytes of a file.
var shelfKinds = []struct{ extension, kind, begins string }{
	{"jpg", "image/jpeg", "\xff\xd8\xff"}, {"png", "image/png", "\x89PNG\r\n\x1a\n"},
	{"mp4", "video/mp4", "\x00\x00\x00\x18ftypmp42"}, {"3gp", "video/3gpp", "\x00\x00\x00\x18ftyp3gp4"},
	{"mp3", "audio/mpeg", "ID3"}, {"ogg", "audio/ogg", "OggS\x00\x02OpusHead"}, {"aac", "audio/aac", "\xff\xf1"}, {"amr", "audio/amr", "#!AMR\n"}, {"m4a", "audio/mp4", "\x00\x00\x00\x18ftypM4A "},
	{"pdf", "application/pdf", "%PDF-1.7"}, {"txt", "text/plain", "testo"}, {"doc", "application/msword", "\xd0\xcf\x11\xe0"},
	{"docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document", "PK\x03\x04"},
	{"xls", "application/vnd.ms-excel", "\xd0\xcf\x11\xe0"}, {"xlsx", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "PK\x03\x04"},
	{"ppt", "application/vnd.ms-powerpoint", "\xd0\xcf\x11\xe0"}, {"pptx", "application/vnd.openxmlformats-officedocument.presentationml.presentation", "PK\x03\x04"},
}

func newShelf(t *testing.T) *shelf {
	s := &shelf{fetched: map[string]int{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.fetched[r.URL.Path]++
		s.mu.Unlock()
		for _, k := range shelfKinds {
			if strings.HasSuffix(r.URL.Path, "."+k.extension) {
				w.Header().Set("Content-Type", k.kind)
				fmt.Fprint(w, k.begins, " ", r.URL.Path)
				return
			}
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	s.files = media.Config{Ports: []uint16{uint16(port)}, Exempt: func(to netip.AddrPort) bool { return to.Addr().IsLoopback() }}
	return s
}

// TestOfficialMedia sends a file of every kind through the whole program, also as a template's header. The server
// fetches each file once for a run, and uploads it once, in Meta's form. At the end all messages have been read.
func TestOfficialMedia(t *testing.T) {
	t.Parallel()
	peer, files := graphtest.New(t, graphtest.NewNumber("101")), newShelf(t)
	term := newConsole(t, nil)
	term.program.files = files.files
	args := []string{"serve", "--addr", "127.0.0.1:0", "--data", "data", "--official-api-url", peer.URL}
	server := start(t, term, args...)
	r := newOfficial(t, peer, term, []string{"--data", "data"}, server)
	r.connect(graphtest.NewNumber("101"))

	const now = `"timing": {"anchor": "start", "offset": {"amount": 0}}`
	var steps, kinds []string
	for _, k := range shelfKinds {
		caption := `"text": "ecco",`
		if strings.HasPrefix(k.kind, "audio/") {
			caption = "" // a message of this type has no caption
		}
		steps = append(steps, `{`+caption+`"media": "`+files.URL+`/a.`+k.extension+`", "media_name": "mio.`+k.extension+`", `+now+`}`)
		kinds = append(kinds, strings.Replace(strings.Replace(strings.Split(k.kind, "/")[0], "application", "document", 1), "text", "document", 1))
	}
	r.must("POST", "/api/templates", `{"name": "T", "text": "t", "media": "`+files.URL+`/a.png", "official": {"name": "promo", "language": "it", "body": [{"text": "{{nome}}"}], "buttons": [{"index": 0, "type": "url", "text": "{{nome}}"}]}}`)
	steps, kinds = append(steps, `{"template": "T", `+now+`}`), append(kinds, "template")
	sequence := field(t, r.must("POST", "/api/sequences", `{"name": "s", "id_sessione": "`+r.session+`", "steps": [`+strings.Join(steps, ",")+`]}`), "id")

	send := func(phone string) {
		t.Helper()
		before := len(peer.Taken())
		r.deliver(peer.Wrote("101", phone, time.Now()))
		ids := r.ids("/api/start/"+sequence, `{"phone": "`+phone+`", "nome": "Ada"}`)
		eventually(t, "all are with Meta", func() bool { return len(peer.Taken()) == before+len(steps) })
		for i, m := range peer.Taken()[before:] {
			if m.Message.Type != kinds[i] {
				t.Errorf("message %d is %s, want %s", i, m.Message.Type, kinds[i])
			}
			if i < len(shelfKinds) {
				r.checkFile(m.Message, shelfKinds[i].extension, shelfKinds[i].kind)
			}
			for _, status := range []string{"read", "delivered", "sent"} {
				r.deliver(peer.Status(m, status, time.Now()))
			}
		}
		for _, id := range ids {
			if state, text := r.state(id); state != "COMPLETED" || !strings.Contains(text, `"letto":"`) {
				t.Errorf("message %s: %s", id, text)
			}
		}
	}
	send("+393331234567")
	send("+393331234568")
	if code := server.end(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	r.server = start(t, restarted(t, term), args...)
	r.restarted(r.server)
	send("+393331234569")
	if n := peer.Uploads(); n != len(shelfKinds) {
		t.Errorf("%d uploads of %d files", n, len(shelfKinds))
	}
	files.mu.Lock()
	defer files.mu.Unlock()
	for path, n := range files.fetched {
		if n > 3 {
			t.Errorf("%s was fetched %d times by three runs", path, n)
		}
	}
}

// checkFile compares the file that Meta got with the file on the shelf.
func (r *officialRig) checkFile(m graphtest.Message, extension, kind string) {
	r.t.Helper()
	parts := []*graphtest.Media{m.Image, m.Video, m.Audio, m.Document}
	i := slices.IndexFunc(parts, func(p *graphtest.Media) bool { return p != nil })
	if i < 0 {
		r.t.Errorf("%s: no file in %+v", extension, m)
		return
	}
	p := parts[i]
	file := r.peer.File(p.ID)
	if file.Type != kind || !strings.HasSuffix(string(file.Data), "/a."+extension) {
		r.t.Errorf("%s: uploaded as %s, %q", extension, file.Type, file.Data)
	}
	if voice := extension == "ogg"; p.Voice != voice {
		r.t.Errorf("%s is a voice message: %v", extension, p.Voice)
	}
	if caption := p.Caption; (caption == "ecco") == (m.Audio != nil) {
		r.t.Errorf("%s with the caption %q", extension, caption)
	}
	if name := p.Filename; name != "" && name != "mio."+extension || (name == "") == (m.Document != nil) {
		r.t.Errorf("%s is called %q", extension, name)
	}
}

// restarted returns the terminal of the new server.
func restarted(t *testing.T, term *console) *console {
	t.Helper()
	again := newConsole(t, nil)
	again.program.lookupEnv, again.dir, again.program.files = term.program.lookupEnv, term.dir, term.program.files
	return again
}

// restarted makes the rig use a new server, which replaced the previous one.
func (r *officialRig) restarted(server *running) {
	r.t.Helper()
	base := server.logged.waitFor(r.t, `"url":"([^"]+)"`)
	r.webhook, r.base = base+strings.TrimPrefix(r.webhook, r.base), base
	eventually(r.t, "the session is online again", func() bool {
		return strings.Contains(r.must("GET", "/api/sessions/"+r.session, ""), `"state":"online"`)
	})
}
