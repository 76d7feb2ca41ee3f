package main

import (
	"errors"
	"mime"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/logging"
	"puntuale/internal/media"
	"puntuale/internal/metrics"
	"puntuale/internal/semaphore"
)

// filesFrom is an address with a port from which the server may fetch files, although the address is not public. It is
// no setting. Only a build for tests sets it, with the linker flag -ldflags "-X main.filesFrom=127.0.0.1:8080".
var filesFrom = ""

// filesAsBuilt returns how this build fetches files.
func filesAsBuilt() media.Config {
	from, err := netip.ParseAddrPort(filesFrom)
	if err != nil {
		return media.Config{}
	}
	return media.Config{Ports: []uint16{from.Port()}, Exempt: func(to netip.AddrPort) bool { return to == from }}
}

// files returns the part that reads the files of messages: uploaded files in the store, all others at their addresses. If
// the server fetches no files, it only reads uploaded ones.
func (s *server) files() puntuale.MediaSource {
	u := media.UploadedSource{Files: func(client puntuale.ClientID) media.FileReader { return s.store.Sent(client) }}
	if s.media != nil {
		u.Next = s.media
	}
	return u
}

// fetched returns the part with which pages test whether there is a file at an address. It returns nil if the server
// fetches no files.
func (s *server) fetched() puntuale.MediaSource {
	if s.media == nil {
		return nil
	}
	return s.files()
}

// fileRoute is the name of all requests for uploaded files in logs and figures, because the path is a secret.
const fileRoute = "GET " + control.FilePath + "{secret}"

// Limits of sending uploaded files to gateways and phones.
const (
	filesAtOnce  = 32
	filesPerName = 8 // of one file
	fileTakes    = 5 * time.Minute
	fileRetry    = 10 * time.Second
)

// uploaded returns the handler of the addresses of uploaded files. It is nil if this server does not have the server role
// api. Browsers run nothing in a file, and no page of others may show it.
func (s *server) uploaded(cfg serverConfig, m *metrics.Meter) http.Handler {
	if !cfg.has(roleAPI) {
		return nil
	}
	slots := semaphore.New(filesAtOnce)
	logger := s.outage.Watching(logging.Sampled(cfg.Logger, cfg.AccessLog))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpkit.Matched(r.Context(), fileRoute)
		if err := s.sendUploaded(w, r, slots); err != nil {
			httpkit.NewProblem(r.Context(), logger, err).Write(w)
		}
	})
	return httpkit.Wrap(readOnly(handler, logger), httpkit.Config{Logger: logger, Now: cfg.Clock.Now, Proxies: cfg.proxies(), Observe: m.Request})
}

func (s *server) sendUploaded(w http.ResponseWriter, r *http.Request, slots *semaphore.Semaphore) error {
	f, err := s.control.OpenFileAddress(r.Context(), r.URL.Path)
	if err != nil {
		return err
	}
	leave, ok := slots.TryEnter(append(f.Holders, semaphore.Holder{Key: f.ID, Slots: filesPerName})...)
	if !ok {
		return &puntuale.Error{Code: puntuale.CodeOverloaded, RetryAfter: fileRetry, Err: errors.New("too many files are being sent")}
	}
	defer leave()
	if err := f.Load(); err != nil {
		return err
	}
	disposition := "attachment"
	if puntuale.MediaKind(string(f.ID)) == "image" {
		disposition = "inline"
	}
	h := w.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "private, no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(s.clock.Now().Add(fileTakes))
	if strings.Contains(r.Header.Get("Range"), ",") { // the answer to many small ranges would be longer than the file
		r.Header.Del("Range")
	}
	http.ServeContent(w, r, "", f.Created, f.Content)
	return nil
}
