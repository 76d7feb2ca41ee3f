package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image"
	"image/png"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/connector/official/graphtest"
	"puntuale/internal/control"
	"puntuale/internal/logging"
	"puntuale/internal/metrics"
	"puntuale/internal/objectstore/s3test"
	"puntuale/internal/store/storetest"
)

// largeDocument returns a document of so many bytes, without keeping it in memory.
func largeDocument(size int64) io.Reader {
	const begins = "%PDF-1.7\n"
	return io.MultiReader(strings.NewReader(begins), io.LimitReader(rand.NewChaCha8([32]byte{1}), size-int64(len(begins))))
}

func sumOf(t *testing.T, from io.Reader) (sum [32]byte) {
	t.Helper()
	hash := sha256.New()
	if _, err := io.Copy(hash, from); err != nil {
		t.Fatal(err)
	}
	return [32]byte(hash.Sum(nil))
}

// upload uploads a file, and returns the answer.
func (r *officialRig) upload(name string, size int64, content io.Reader) (status int, answer string) {
	r.t.Helper()
	request, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.base+"/api/files?name="+name, content)
	if err != nil {
		r.t.Fatal(err)
	}
	request.ContentLength = size
	request.Header.Set("Authorization", "Bearer "+r.key)
	request.Header.Set("Content-Type", "application/pdf")
	got, err := http.DefaultClient.Do(request)
	if err != nil {
		r.t.Fatal(err)
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return got.StatusCode, string(text)
}

// TestFilesInBucket: with files-to, a document of 100 MB goes through the bucket to Meta, byte by byte. Every other file has at
// most 16 MB, and so have all files of a client without an Official number. A backup has the bytes, and restore stores them in
// another place. If the bucket refuses, the doctor says so, and a message without a file leaves.
func TestFilesInBucket(t *testing.T) {
	t.Parallel()
	bucket, peer := s3test.New(t), graphtest.New(t, graphtest.NewNumber("101"))
	env := map[string]string{
		"PUNTUALE_FILES_TO": "s3://bucket/files", "PUNTUALE_S3_ENDPOINT": bucket.URL, "PUNTUALE_S3_ACCESS_KEY": s3test.AccessKey, "PUNTUALE_S3_SECRET_KEY": "segreta",
	}
	term := newConsole(t, env)
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data", "--official-api-url", peer.URL)
	r := newOfficial(t, peer, term, []string{"--data", "data"}, server)
	const most = puntuale.MaxDocumentBytes
	if status, text := r.upload("a.pdf", 17<<20, largeDocument(17<<20)); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "16 MB") {
		t.Errorf("without an Official number: %d %s", status, text)
	}
	r.connect(graphtest.NewNumber("101"))
	picture := append([]byte("\xff\xd8\xff"), make([]byte, 17<<20)...)
	if status, text := r.upload("a.jpg", int64(len(picture)), bytes.NewReader(picture)); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "16 MB") {
		t.Errorf("an image: %d %s", status, text)
	}
	if status, text := r.upload("a.pdf", most+1, largeDocument(most+1)); status != http.StatusRequestEntityTooLarge || !strings.Contains(text, "100 MB") {
		t.Errorf("a byte too many: %d %s", status, text)
	}
	status, text := r.upload("listino.pdf", most, largeDocument(most))
	if status != http.StatusOK {
		t.Fatalf("100 MB: %d %s", status, text)
	}
	if n := len(bucket.Objects()); n != 101 {
		t.Errorf("%d objects, want 100 and the marker", n)
	}
	want := sumOf(t, largeDocument(most))

	gateway := field(t, r.must("POST", "/api/sessions", `{"name": "gateway", "connection_type": "Send_app", "sandbox": true}`), "id")
	if status, answer := call(t, "POST", r.base+"/api/messages", r.key, `{"phone": "+393331234567", "media": "`+field(t, text, "media")+`", "id_sessione": "`+gateway+`"}`); status != http.StatusUnprocessableEntity || !strings.Contains(answer, "16 MB") {
		t.Errorf("by a number of another kind: %d %s", status, answer)
	}
	r.deliver(peer.Wrote("101", "+393331234567", time.Now()))
	r.must("POST", "/api/messages", `{"phone": "+393331234567", "media": "`+field(t, text, "media")+`", "id_sessione": "`+r.session+`"}`)
	eventually(t, "Meta has the document", func() bool { return len(peer.Taken()) == 1 })
	m := peer.Taken()[0].Message
	if m.Document == nil || m.Document.Filename != "listino.pdf" {
		t.Fatalf("Meta got %+v", m)
	}
	if got := peer.File(m.Document.ID); sha256.Sum256(got.Data) != want || got.Type != "application/pdf" {
		t.Errorf("Meta got %d bytes, %s", len(got.Data), got.Type)
	}

	status, other := r.upload("orari.pdf", 9<<20, largeDocument(9<<20))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, other)
	}
	bucket.Refuse(func(_, name string) bool { return strings.HasPrefix(name, "bucket/files/") })
	if status, answer := r.upload("c.pdf", 1<<20, largeDocument(1<<20)); status != http.StatusServiceUnavailable || !strings.Contains(answer, "storage of files does not answer") {
		t.Errorf("an upload without the bucket: %d %s", status, answer)
	}
	if status, answer := call(t, "GET", r.base+"/api/files/"+field(t, other, "id")+"/content", r.key, ""); status != http.StatusServiceUnavailable || !strings.Contains(answer, "storage of files does not answer") {
		t.Errorf("a download without the bucket: %d %.200s", status, answer)
	}
	held := r.ids("/api/messages", `{"phone": "+393331234567", "media": "`+field(t, other, "media")+`", "id_sessione": "`+r.session+`"}`)
	r.deliver(peer.Wrote("101", "+393331234568", time.Now()))
	r.must("POST", "/api/messages", `{"phone": "+393331234568", "text": "ciao", "id_sessione": "`+r.session+`"}`)
	eventually(t, "a text leaves", func() bool { return len(peer.Taken()) == 2 })
	if got := peer.Taken()[1].Message; got.Type != "text" {
		t.Errorf("Meta got %+v", got)
	}
	if state, answer := r.state(held[0]); state == "COMPLETED" {
		t.Errorf("a message left without its file: %s", answer)
	}
	eventually(t, "the message says why it waits", func() bool {
		_, answer := r.state(held[0])
		return strings.Contains(answer, "memoria dei file non risponde")
	})
	if code, out, errs := term.runs("", "doctor", "--data", "data"); code != exitFailed || !strings.Contains(out, "The storage of uploaded files cannot be used") || strings.Contains(out+errs, "segreta") {
		t.Errorf("the doctor: exit code %d\n%s", code, out)
	}
	bucket.Refuse(nil)
	first := bucket.Objects()[0]
	content := bucket.Object(first)
	bucket.Forget(first)
	if code, _, errs := term.runs("", "backup", "--data", "data", "--to", "broken.zip"); code != exitFailed || !strings.Contains(errs, ".pdf of client 1 cannot be read: ") || !strings.Contains(errs, "does not have them any more") {
		t.Errorf("a backup without the bytes: exit code %d, %s", code, errs)
	}
	before := len(bucket.Ledger())
	for _, size := range []int64{most, 9 << 20} { // one of the two lost a part
		if status, text := r.upload("ancora.pdf", size, largeDocument(size)); status != http.StatusOK {
			t.Errorf("again: %d %s", status, text)
		}
	}
	if stored := bucket.Ledger()[before:]; len(stored) != 1 || stored[0] != "put "+first || !bytes.Equal(bucket.Object(first), content) {
		t.Errorf("the same files again stored %v, want only the lost part %s", stored, first)
	}
	if _, out, _ := term.runs("", "doctor", "--data", "data"); !strings.Contains(out, "takes, returns and removes a file") {
		t.Errorf("the doctor:\n%s", out)
	}
	if code, _, errs := term.runs("", "backup", "--data", "data", "--to", "whole.zip"); code != exitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	server.end()

	if code, _, errs := term.runs("", "restore", "--from", "whole.zip", "--data", "two", "--files-to", "files"); code != exitDone || !strings.Contains(errs, "2 uploaded files are in ") {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	folders, err := os.ReadDir(filepath.Join(term.dir, "files"))
	if err != nil || len(folders) != 3 { // and the marker
		t.Fatalf("%v, %v", folders, err)
	}
	sums := map[[32]byte]bool{}
	for _, f := range folders {
		var parts []io.Reader
		for n := 0; ; n++ {
			content, err := os.ReadFile(filepath.Join(term.dir, "files", f.Name(), fmt.Sprint(n)))
			if err != nil {
				break
			}
			parts = append(parts, bytes.NewReader(content))
		}
		sums[sumOf(t, io.MultiReader(parts...))] = true
	}
	if !sums[want] || !sums[sumOf(t, largeDocument(9<<20))] {
		t.Error("the folder has other bytes")
	}
}

// TestFilesSettings: a server does not start with a wrong place of files, and says what is wrong.
func TestFilesSettings(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{"--files-to s3://": "s3://bucket/folder", "--files-to s3://b": "needs s3-access-key", "--files-to x --backup-to x/": "must be another place than backup-to"} {
		term := newConsole(t, nil)
		if code, _, errs := term.runs("", append([]string{"config"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(errs, want) {
			t.Errorf("%s: exit code %d, %s", args, code, errs)
		}
	}
}

// TestFileAddressEnds: the address of an uploaded file shows the file for a week, in a way that browsers run nothing in it. Then,
// and with any part changed, it is a page that is not there.
func TestFileAddressEnds(t *testing.T) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := storetest.NewWorld(t, driver(t))
			vault, err := auth.NewVault(make([]byte, auth.DataKeySize))
			if err != nil {
				t.Fatal(err)
			}
			logger := slog.New(slog.DiscardHandler)
			cfg := serverConfig{serveSettings: serveSettings{Roles: []string{roleAPI}}, Clock: w.DB.Clock, Logger: logger}
			s := &server{clock: w.DB.Clock, outage: logging.NewOutage(w.DB.Clock, logger), control: control.New(control.Config{
				Tenants: w.Store, Devices: w.Store, Maintenance: w.Store, Clock: w.DB.Clock, Vault: vault, Public: "https://app.example",
			})}
			id := w.Client(puntuale.AccountFull).ID
			client, err := s.control.OfNetwork(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			handler := s.uploaded(cfg, metrics.New("", w.DB.Clock))
			get := func(path string) *httptest.ResponseRecorder {
				answer := httptest.NewRecorder()
				handler.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody))
				return answer
			}
			var picture bytes.Buffer
			if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 1, 1))); err != nil {
				t.Fatal(err)
			}
			for _, c := range []struct{ content, name, disposition, kind string }{
				{"%PDF-1.7\n<script>", "listino.pdf", `attachment; filename=listino.pdf`, "application/pdf"},
				{picture.String(), "foto.png", `inline; filename=foto.png`, "image/png"},
			} {
				f, err := client.UploadFile(t.Context(), control.FileUpload{Name: c.name, Content: strings.NewReader(c.content)})
				if err != nil {
					t.Fatal(err)
				}
				begun := w.DB.Clock.Now()
				path := strings.TrimPrefix(s.control.FileAddress(id, f.ID), "https://app.example")
				got := get(path)
				if got.Code != http.StatusOK || got.Body.String() != c.content {
					t.Errorf("%s: %d %q", path, got.Code, got.Body)
				}
				for header, want := range map[string]string{
					"Content-Type": c.kind, "Content-Disposition": c.disposition, "X-Content-Type-Options": "nosniff", "Content-Security-Policy": "default-src 'none'; sandbox",
					"Referrer-Policy": "no-referrer", "Cache-Control": "private, no-store", "X-Robots-Tag": "noindex, nofollow", "Cross-Origin-Resource-Policy": "same-origin", "Set-Cookie": "",
				} {
					if value := got.Header().Get(header); value != want {
						t.Errorf("%s: %s is %q, want %q", c.name, header, value, want)
					}
				}
				parts := strings.Split(path, "/") // the client, the end, the mark and the file
				for i := 2; i < len(parts); i++ {
					changed := slices.Clone(parts)
					changed[i] = "1" + changed[i]
					if got := get(strings.Join(changed, "/")); got.Code != http.StatusNotFound {
						t.Errorf("with another part %d: %d", i, got.Code)
					}
				}
				for days, status := range map[time.Duration]int{7: http.StatusOK, 8: http.StatusNotFound} {
					w.DB.Clock.Set(begun.Add(days * 24 * time.Hour))
					if got := get(path); got.Code != status {
						t.Errorf("after %d days: %d", days, got.Code)
					}
				}
				w.DB.Clock.Set(begun)
			}
		})
	}
}
