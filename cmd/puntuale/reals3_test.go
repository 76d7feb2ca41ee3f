//go:build s3

package main

import (
	"crypto/sha256"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"puntuale/internal/connector/official/graphtest"
)

// TestRealS3Files does with a real service what TestFilesInBucket does with our own one: an upload goes through the bucket to Meta,
// a backup has its bytes, restore puts them into another folder of the bucket, and a server reads them there. An upload with wrong
// keys is refused. scripts/with-s3 starts the service; "make s3" runs the test.
func TestRealS3Files(t *testing.T) {
	address := os.Getenv("PUNTUALE_TEST_S3")
	if address == "" {
		t.Fatal("PUNTUALE_TEST_S3 is not set; run with scripts/with-s3")
	}
	peer := graphtest.New(t, graphtest.NewNumber("101"))
	env := map[string]string{
		"PUNTUALE_FILES_TO": "s3://puntuale/files", "PUNTUALE_S3_ENDPOINT": address,
		"PUNTUALE_S3_ACCESS_KEY": os.Getenv("PUNTUALE_TEST_S3_ACCESS_KEY"), "PUNTUALE_S3_SECRET_KEY": os.Getenv("PUNTUALE_TEST_S3_SECRET_KEY"),
	}
	term := newConsole(t, env)
	server := start(t, term, "serve", "--addr", "127.0.0.1:0", "--data", "data", "--official-api-url", peer.URL)
	r := newOfficial(t, peer, term, []string{"--data", "data"}, server)
	r.connect(graphtest.NewNumber("101"))
	const size = 20<<20 + 5
	want := sumOf(t, largeDocument(size))
	status, text := r.upload("listino.pdf", size, largeDocument(size))
	if status != http.StatusOK {
		t.Fatalf("%d %s", status, text)
	}
	r.deliver(peer.Wrote("101", "+393331234567", time.Now()))
	r.must("POST", "/api/messages", `{"phone": "+393331234567", "media": "`+field(t, text, "media")+`", "id_sessione": "`+r.session+`"}`)
	eventually(t, "Meta has the document", func() bool { return len(peer.Taken()) == 1 })
	if m := peer.Taken()[0].Message; m.Document == nil || sha256.Sum256(peer.File(m.Document.ID).Data) != want {
		t.Errorf("Meta got %+v", m)
	}
	if code, out, errs := term.runs("", "doctor", "--data", "data"); !strings.Contains(out, "takes, returns and removes a file") {
		t.Errorf("the doctor: exit code %d\n%s%s", code, out, errs)
	}
	if code, _, errs := term.runs("", "backup", "--data", "data", "--to", "whole.zip"); code != exitDone {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	server.end()

	if code, _, errs := term.runs("", "restore", "--from", "whole.zip", "--data", "two", "--files-to", "s3://puntuale/restored"); code != exitDone || !strings.Contains(errs, "s3://puntuale/restored") {
		t.Fatalf("exit code %d, %s", code, errs)
	}
	read := func(keys string) (int, string) {
		env["PUNTUALE_FILES_TO"], env["PUNTUALE_S3_SECRET_KEY"] = "s3://puntuale/restored", keys
		console := newConsole(t, env)
		console.dir = term.dir
		again := start(t, console, "serve", "--addr", "127.0.0.1:0", "--data", "two", "--official-api-url", peer.URL)
		defer again.end()
		return call(t, "GET", again.logged.waitFor(t, `"url":"([^"]+)"`)+"/api/files/"+field(t, text, "id")+"/content", r.key, "")
	}
	if status, body := read(os.Getenv("PUNTUALE_TEST_S3_SECRET_KEY")); status != http.StatusOK || sha256.Sum256([]byte(body)) != want {
		t.Errorf("after the restore: %d, %d bytes", status, len(body))
	}
	if status, body := read("other"); status != http.StatusServiceUnavailable || !strings.Contains(body, "storage of files does not answer") {
		t.Errorf("with wrong keys: %d %.200s", status, body)
	}
}
