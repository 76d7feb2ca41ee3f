// Package s3test is a small service that understands the part of S3 that backups and files use. It keeps a ledger of what was
// asked of it, so that tests can see what was stored, replaced and removed.
package s3test

import (
	"bufio"
	"bytes"
	"crypto/md5" //nolint:gosec // S3 names objects' versions by MD5
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Server is a service with one bucket for any name. It is safe for concurrent use.
type Server struct {
	URL string

	mu      sync.Mutex
	objects map[string][]byte // by bucket and key
	uploads map[string]*upload
	ledger  []string
	refuse  func(method, key string) bool
	next    int
}

type upload struct {
	key   string
	began time.Time
	parts map[int][]byte
}

// AccessKey is the key that the service accepts. It does not check signatures.
const AccessKey = "AKTEST"

// New starts a service for one test.
func New(t testing.TB) *Server {
	s := &Server{objects: map[string][]byte{}, uploads: map[string]*upload{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Objects returns the names of all objects, sorted: bucket and key.
func (s *Server) Objects() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Object returns the content of an object; nil if there is none.
func (s *Server) Object(name string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[name]
}

// Set stores an object.
func (s *Server) Set(name string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[name] = content
}

// Forget removes an object, as if the service had lost it.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, name)
}

// Uploads returns how many uploads are unfinished.
func (s *Server) Uploads() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.uploads)
}

// Ledger returns what changed objects, in order: "put NAME", "delete NAME", "refused put NAME".
func (s *Server) Ledger() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.ledger)
}

// Refuse makes the service answer 403 to the requests for which refuse returns true.
func (s *Server) Refuse(refuse func(method, key string) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refuse = refuse
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := s.body(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "IncompleteBody")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	name, query := strings.Trim(r.URL.Path, "/"), r.URL.Query()
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/"):
		fail(w, http.StatusForbidden, "AccessDenied")
	case s.refuse != nil && s.refuse(r.Method, name):
		s.ledger = append(s.ledger, "refused "+strings.ToLower(r.Method)+" "+name)
		fail(w, http.StatusForbidden, "AccessDenied")
	case r.Method == http.MethodPost && query.Has("uploads"):
		s.next++
		id := strconv.Itoa(s.next)
		s.uploads[id] = &upload{name, time.Now(), map[int][]byte{}}
		answer(w, struct {
			XMLName  xml.Name `xml:"InitiateMultipartUploadResult"`
			UploadId string
		}{UploadId: id})
	case query.Has("uploadId"):
		s.upload(w, r, name, query.Get("uploadId"), query.Get("partNumber"), body)
	case r.Method == http.MethodPut:
		s.put(w, name, body)
	case r.Method == http.MethodDelete:
		s.ledger = append(s.ledger, "delete "+name)
		delete(s.objects, name)
		w.WriteHeader(http.StatusNoContent)
	case query.Has("location"):
		answer(w, struct {
			XMLName xml.Name `xml:"LocationConstraint"`
		}{})
	case query.Has("uploads"):
		s.listUploads(w, name, query.Get("prefix"))
	case query.Has("list-type"):
		s.list(w, name, query.Get("prefix"))
	default:
		s.get(w, r, name)
	}
}

// body reads a request's body. Over plain HTTP, minio-go sends signed chunks, which are unpacked here.
func (s *Server) body(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var all []byte
	for from := bufio.NewReader(r.Body); ; {
		line, err := from.ReadString('\n')
		if err != nil {
			return nil, err
		}
		size, _, _ := strings.Cut(strings.TrimSpace(line), ";")
		n, err := strconv.ParseInt(size, 16, 32)
		if err != nil || n == 0 {
			return all, err
		}
		chunk := make([]byte, n+2) // with the line break behind it
		if _, err := io.ReadFull(from, chunk); err != nil {
			return nil, err
		}
		all = append(all, chunk[:n]...)
	}
}

func (s *Server) put(w http.ResponseWriter, name string, body []byte) {
	s.ledger = append(s.ledger, "put "+name)
	s.objects[name] = body
	w.Header().Set("ETag", tag(body))
}

// upload answers the requests about one upload in parts.
func (s *Server) upload(w http.ResponseWriter, r *http.Request, name, id, part string, body []byte) {
	u, there := s.uploads[id]
	switch {
	case !there || u.key != name:
		fail(w, http.StatusNotFound, "NoSuchUpload")
	case r.Method == http.MethodPut:
		n, _ := strconv.Atoi(part)
		u.parts[n] = body
		w.Header().Set("ETag", tag(body))
	case r.Method == http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	default: // the end of the upload
		delete(s.uploads, id)
		var all []byte
		for _, n := range slices.Sorted(maps.Keys(u.parts)) {
			all = append(all, u.parts[n]...)
		}
		s.put(httptest.NewRecorder(), name, all)
		answer(w, struct {
			XMLName xml.Name `xml:"CompleteMultipartUploadResult"`
			Bucket  string   // without it, minio-go takes the answer for an error
			ETag    string
		}{Bucket: strings.Split(name, "/")[0], ETag: tag(all)})
	}
}

func (s *Server) get(w http.ResponseWriter, r *http.Request, name string) {
	content, there := s.objects[name]
	if !there {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("ETag", tag(content))
	http.ServeContent(w, r, "", time.Now().Add(-time.Hour), bytes.NewReader(content))
}

type listed struct {
	Key          string
	Size         int
	LastModified string
	ETag         string
}

func (s *Server) list(w http.ResponseWriter, bucket, prefix string) {
	var found []listed
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if key, ok := strings.CutPrefix(name, bucket+"/"); ok && strings.HasPrefix(key, prefix) {
			found = append(found, listed{key, len(s.objects[name]), time.Now().UTC().Format(time.RFC3339), tag(s.objects[name])})
		}
	}
	answer(w, struct {
		XMLName  xml.Name `xml:"ListBucketResult"`
		Name     string
		KeyCount int
		Contents []listed
	}{Name: bucket, KeyCount: len(found), Contents: found})
}

func (s *Server) listUploads(w http.ResponseWriter, bucket, prefix string) {
	type item struct{ Key, UploadId, Initiated string }
	var found []item
	for id, u := range s.uploads {
		if key, ok := strings.CutPrefix(u.key, bucket+"/"); ok && strings.HasPrefix(key, prefix) {
			found = append(found, item{key, id, u.began.UTC().Format(time.RFC3339)})
		}
	}
	answer(w, struct {
		XMLName xml.Name `xml:"ListMultipartUploadsResult"`
		Bucket  string
		Upload  []item
	}{Bucket: bucket, Upload: found})
}

func tag(content []byte) string {
	sum := md5.Sum(content) //nolint:gosec // as above
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(value)
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "%s<Error><Code>%s</Code><Message>%s</Message></Error>", xml.Header, code, code)
}
