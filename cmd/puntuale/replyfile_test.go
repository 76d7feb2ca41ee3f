package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale/internal/clamd/clamdtest"
	"puntuale/internal/connector/official/graphtest"
)

// keptReply is what the API says about the file of a reply.
type keptReply struct {
	ID    string `json:"id"`
	Text  string `json:"text"`
	File  string `json:"file"`
	Fault string `json:"file_fault"`
	Waits bool   `json:"file_waits"`
}

// sent returns the only reply of a person, after the server decided about its file.
func (r *officialRig) sent(phone string) (y keptReply) {
	r.t.Helper()
	eventually(r.t, "the file of "+phone+" is kept or refused", func() bool {
		var list struct{ Replies []keptReply }
		if err := json.Unmarshal([]byte(r.must("GET", "/api/replies?phone="+url.QueryEscape(phone), "")), &list); err != nil || len(list.Replies) != 1 {
			r.t.Fatalf("%d replies, %v", len(list.Replies), err)
		}
		y = list.Replies[0]
		return !y.Waits
	})
	return y
}

func photo(t *testing.T, side int) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := jpeg.Encode(&out, image.NewGray(image.Rect(0, 0, side, side)), nil); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestRepliesKeepFiles sends hostile and harmless files through Meta's webhooks and the whole program. The server keeps what
// is harmless, and says why it keeps nothing else. It keeps nothing that the scanner did not see.
func TestRepliesKeepFiles(t *testing.T) {
	t.Parallel()
	peer, scanner := graphtest.New(t, graphtest.NewNumber("101")), clamdtest.New(t, "127.0.0.1:0")
	term := newConsole(t, nil)
	args := []string{"serve", "--addr", "127.0.0.1:0", "--data", "data", "--official-api-url", peer.URL, "--clamd", scanner.Address}
	server := start(t, term, args...)
	r := newOfficial(t, peer, term, []string{"--data", "data"}, server)
	r.connect(graphtest.NewNumber("101"))
	arrives := func(phone, kind string, f graphtest.File) {
		t.Helper()
		r.deliver(peer.Inbound("101", phone, "wamid."+phone, time.Now(), kind, peer.Attach("101", f)))
	}
	r.must("PATCH", "/api/settings", `{"keep_replies": "all"}`)
	arrives("+393331230000", "image", graphtest.File{Type: "image/jpeg", Data: photo(t, 10)})
	if y := r.sent("+393331230000"); y.File != "" || y.Fault != "" || len(scanner.Scanned()) != 0 {
		t.Errorf("nobody asked to keep it: %+v", y)
	}
	arrives("+393331230001", "document", graphtest.File{Type: "application/pdf", Data: []byte("%PDF-1.7 " + clamdtest.Virus)})
	for phone, want := range map[string]int{"+393331230000": http.StatusOK, "+393331230001": http.StatusGone} {
		if status, body := call(t, "GET", r.base+"/api/replies/"+r.sent(phone).ID+"/media", r.key, ""); status != want {
			t.Errorf("opened at its network: %d %.200s", status, body)
		}
	}
	r.must("PATCH", "/api/settings", `{"keep_media": true}`)

	r.must("GET", "/api/events", "") // from now on there is a feed
	pdf := []byte("%PDF-1.7 conto")
	all := []struct {
		kind  string
		file  graphtest.File
		ends  string // of the kept file's id
		name  string
		fault string
	}{
		{"image", graphtest.File{Type: "image/jpeg", Data: photo(t, 200)}, ".jpg", "image.jpg", ""},
		{"document", graphtest.File{Type: "application/pdf", Name: "../../etc/\u202efdp.exe", Data: pdf}, ".pdf", "fdp.exe.pdf", ""},
		{"sticker", graphtest.File{Type: "image/webp", Data: []byte("RIFF\x10\x00\x00\x00WEBPVP8 \x04\x00\x00\x00abcd")}, ".webp", "sticker.webp", ""},
		{"audio", graphtest.File{Type: "audio/ogg; codecs=opus", Data: []byte("OggS\x00\x02xxxxOpusHead")}, ".ogg", "audio.ogg", ""},
		{"document", graphtest.File{Type: "application/pdf", Name: "conto.pdf", Data: []byte("%PDF-1.7 " + clamdtest.Virus)}, "", "", "virus: " + clamdtest.Finding},
		{"document", graphtest.File{Type: "image/svg+xml", Name: "x.svg", Data: []byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>`)}, "", "", "tipo di file non è ammesso"},
		{"document", graphtest.File{Type: "application/pdf", Name: "x.pdf", Data: []byte("<!doctype html><script>alert(1)</script>")}, "", "", "tipo di file non è ammesso"},
		{"image", graphtest.File{Type: "image/jpeg", Data: []byte("MZ\x90\x00 program")}, "", "", "tipo di file non è ammesso"},
		{"image", graphtest.File{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR\x7f\xff\xff\xff\x7f\xff\xff\xff\x08\x02\x00\x00\x00\x00\x00\x00\x00")}, "", "", ""},
		{"document", graphtest.File{Type: "application/zip", Name: "a.zip", Data: []byte("PK\x03\x04\x14\x00 bomb")}, "", "", ""},
		{"video", graphtest.File{Type: "video/mp4", Data: append([]byte("\x00\x00\x00\x18ftypmp42"), make([]byte, 17<<20)...)}, "", "", "16 MB"},
	}
	phoneOf := func(i int) string { return fmt.Sprintf("+3933312340%02d", i) }
	for i, test := range all {
		arrives(phoneOf(i), test.kind, test.file)
	}
	for i, test := range all {
		y := r.sent(phoneOf(i))
		if test.ends == "" {
			if y.File != "" || y.Fault == "" || !strings.Contains(y.Fault, test.fault) {
				t.Errorf("%s %q: %+v, want %q", test.kind, test.file.Name, y, test.fault)
			}
			continue
		}
		if !strings.HasSuffix(y.File, test.ends) || y.Fault != "" {
			t.Errorf("%s: %+v", test.kind, y)
			continue
		}
		about := r.must("GET", "/api/files/"+y.File, "")
		if got := field(t, about, "name"); got != test.name {
			t.Errorf("the name %q became %q", test.file.Name, got)
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.base+"/api/replies/"+y.ID+"/media", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+r.key)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		if d := answer.Header.Get("Content-Disposition"); answer.StatusCode != http.StatusOK || !strings.HasPrefix(d, "attachment") || !strings.Contains(d, test.name) || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %s", test.kind, answer.StatusCode, d)
		}
	}

	for phone, want := range map[string]string{phoneOf(1): `"kept":{"file":"` + r.sent(phoneOf(1)).File + `","name":"fdp.exe.pdf","type":"application/pdf","size":14}`, phoneOf(4): `"kept":{"code":"file.infected","args":["` + clamdtest.Finding + `"]}`} {
		if all := r.must("POST", "/api/contacts/everything", `{"phone": "`+phone+`"}`); !strings.Contains(all, want) {
			t.Errorf("the document about %s does not have %s: %s", phone, want, all)
		}
	}

	// The same virus is not opened from the network either, and not uploaded. Without the scanner nothing enters.
	infected := r.sent("+393331234004")
	if status, body := call(t, "GET", r.base+"/api/replies/"+infected.ID+"/media", r.key, ""); status != http.StatusGone {
		t.Errorf("a virus is opened: %d %s", status, body)
	}
	if status, body := call(t, "POST", r.base+"/api/files?name=a.pdf", r.key, "%PDF-1.7 "+clamdtest.Virus); status != http.StatusUnprocessableEntity || !strings.Contains(body, clamdtest.Finding) {
		t.Errorf("a virus is uploaded: %d %s", status, body)
	}
	scanner.Change(func(s *clamdtest.Server) { s.Answer = "stream: Engine is loading ERROR\x00" })
	if status, body := call(t, "POST", r.base+"/api/files?name=a.pdf", r.key, "%PDF-1.7 b"); status != http.StatusServiceUnavailable || !strings.Contains(body, "antivirus") && !strings.Contains(body, "scanner") {
		t.Errorf("an upload without the scanner: %d %s", status, body)
	}
	arrives("+393331235000", "image", graphtest.File{Type: "image/jpeg", Data: photo(t, 30)})
	seen := len(scanner.Scanned())
	eventually(t, "the scanner is asked", func() bool { return len(scanner.Scanned()) > seen })
	if text := r.must("GET", "/api/replies?phone=%2B393331235000", ""); !strings.Contains(text, `"file_waits":true`) || strings.Contains(text, `"file":`) {
		t.Errorf("it waits for the scanner: %s", text)
	}
	peer.Forget()
	first := r.sent("+393331234000")
	if code := server.end(); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	scanner.Change(func(s *clamdtest.Server) { s.Answer = "" })
	r.server = start(t, restarted(t, term), args...)
	r.restarted(r.server)
	if again := r.sent("+393331234000"); again.File != first.File {
		t.Errorf("after a restart: %+v", again)
	}
	if status, _ := call(t, "GET", r.base+"/api/replies/"+first.ID+"/media", r.key, ""); status != http.StatusOK {
		t.Errorf("the kept file is not opened after Meta removed it: %d", status)
	}
	arrives("+393331235001", "image", graphtest.File{Type: "image/jpeg", Data: photo(t, 40)})
	if y := r.sent("+393331235001"); y.File == "" {
		t.Errorf("the scanner is back: %+v", y)
	}
	eventually(t, "the event names the file", func() bool {
		return strings.Contains(r.must("GET", "/api/events?after=0", ""), `"file":"`+first.File+`"`)
	})
	told := map[string][]string{} // by phone
	eventually(t, "events tell what became of the files", func() bool {
		clear(told)
		var feed struct {
			Events []struct {
				Type string
				Data struct {
					Reply, Phone, File, Name, Reason string
					Bytes                            int
				}
			}
		}
		if err := json.Unmarshal([]byte(r.must("GET", "/api/events?after=0&types=file.kept,file.failed", "")), &feed); err != nil {
			t.Fatal(err)
		}
		for _, e := range feed.Events {
			told[e.Data.Phone] = append(told[e.Data.Phone], fmt.Sprint(e.Type, " ", e.Data.Reply, " ", e.Data.File, e.Data.Reason))
			if (e.Type == "file.kept") != (e.Data.Bytes > 0 && e.Data.Name != "") {
				t.Errorf("%+v", e)
			}
		}
		return len(told["+393331235001"]) > 0
	})
	for i := range all {
		y := r.sent(phoneOf(i))
		kind := "file.kept "
		if y.File == "" {
			kind = "file.failed "
		}
		if got, want := told[phoneOf(i)], []string{kind + y.ID + " " + y.File + y.Fault}; !slices.Equal(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	if left, err := os.ReadDir(term.dir + "/data/replies"); err != nil || len(left) > 0 {
		t.Errorf("%v are left, %v", left, err)
	}
}
