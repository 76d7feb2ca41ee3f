package media

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/semaphore"
)

// Config contains the settings of [New]. Folder and Clock must be set. Zero means the default.
type Config struct {
	Folder string // the folder of the fetcher's files; created if it is missing
	Clock  clock.Clock

	MaxBytes int64         // the most bytes of one file; default 100 MiB
	Budget   int64         // the most bytes of all files, including files that are being fetched; default 1 GiB
	Files    int           // the most files that are stored at the same time; default 500
	Age      time.Duration // how long a file is stored after it was fetched; default 1 h

	MaxConcurrent int      // the most fetches at the same time; default 32
	PerHost       int      // the most fetches from one host at the same time; default 2
	PerClient     int      // the most fetches for one client at the same time; default 8
	Ports         []uint16 // ports that may be reached; default 80 and 443

	Connect time.Duration // time limit for resolving and connecting, and again for TLS; default 5 s
	Header  time.Duration // time limit from the request to the end of the answer's headers; default 10 s
	Total   time.Duration // time limit for all redirects and the body, not including the wait for slots; default 60 s
	Rate    int64         // the lowest rate at which a host must send, in bytes a second; default 10,000
	Grace   time.Duration // the interval over which the rate is measured; default 5 s

	Resolver *net.Resolver             // nil: the system's resolver
	Exempt   func(netip.AddrPort) bool // for tests: addresses that are allowed although they are not public; nil: none
}

// Fetcher is a [puntuale.MediaSource] that fetches files from their hosts.
type Fetcher struct {
	cfg       Config
	root      *os.Root
	transport *http.Transport
	all       *semaphore.Semaphore // requests, which the clients make in rotation
	hosts     *semaphore.Semaphore // requests to each host, which the clients make in rotation
	clients   *semaphore.Semaphore // downloads of each client

	ctx   context.Context
	close context.CancelCauseFunc
	wg    sync.WaitGroup

	mu     sync.Mutex
	files  map[key]*file
	stored int64 // number of bytes on disk
}

// New returns a fetcher. If the system allows this, the fetcher removes a file's name as soon as the file is open. So no
// file remains after a crash.
func New(cfg Config) (*Fetcher, error) {
	cfg = cfg.withDefaults()
	if err := os.MkdirAll(cfg.Folder, 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for media: %w", err)
	}
	root, err := os.OpenRoot(cfg.Folder)
	if err != nil {
		return nil, fmt.Errorf("open the folder for media: %w", err)
	}
	f := &Fetcher{
		cfg: cfg, root: root, files: map[key]*file{},
		all: semaphore.New(cfg.MaxConcurrent), hosts: semaphore.New(0), clients: semaphore.New(0),
		transport: &http.Transport{
			Proxy:                  nil, // no proxy, because a proxy would make connections without a check
			DialContext:            newDialer(cfg).dial,
			DisableKeepAlives:      true,
			DisableCompression:     true,
			TLSHandshakeTimeout:    cfg.Connect,
			ResponseHeaderTimeout:  cfg.Header,
			MaxResponseHeaderBytes: 64 << 10,
		},
	}
	f.ctx, f.close = context.WithCancelCause(context.Background())
	f.wg.Go(f.age)
	return f, nil
}

func (cfg Config) withDefaults() Config {
	defaults(&cfg.MaxBytes, 100<<20)
	defaults(&cfg.Budget, 1<<30)
	cfg.MaxBytes = min(cfg.MaxBytes, cfg.Budget)
	defaults(&cfg.Files, 500)
	defaults(&cfg.Age, time.Hour)
	defaults(&cfg.MaxConcurrent, 32)
	defaults(&cfg.PerHost, 2)
	defaults(&cfg.PerClient, 8)
	defaults(&cfg.Connect, 5*time.Second)
	defaults(&cfg.Header, 10*time.Second)
	defaults(&cfg.Total, time.Minute)
	defaults(&cfg.Rate, 10_000)
	defaults(&cfg.Grace, 5*time.Second)
	if len(cfg.Ports) == 0 {
		cfg.Ports = []uint16{80, 443}
	}
	return cfg
}

func defaults[T comparable](value *T, to T) {
	var zero T
	if *value == zero {
		*value = to
	}
}

// Fetch returns the file at the address; see [puntuale.MediaSource]. Callers that request the same file of the same run
// with the same limit share one fetch.
func (f *Fetcher) Fetch(ctx context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	u, err := url.Parse(r.URL)
	if err != nil {
		return nil, final(puntuale.ReasonFileAddress, reasonNoAddress, err)
	}
	if refusal := forbidden(u, f.cfg.Ports); refusal != "" {
		return nil, final(puntuale.ReasonFileAddress, refusal, nil)
	}
	if ctx.Err() != nil {
		return nil, gaveUp(context.Cause(ctx))
	}
	k := key{r.Client, r.Run, r.URL, f.cfg.MaxBytes}
	if r.MaxBytes > 0 {
		k.limit = min(r.MaxBytes, k.limit)
	}
	m, err := f.take(k, u)
	if err != nil {
		return nil, err
	}
	select {
	case <-m.done:
	case <-ctx.Done():
		f.leave(m)
		return nil, gaveUp(context.Cause(ctx))
	}
	if m.failed != nil {
		f.leave(m)
		return nil, m.failed
	}
	return &puntuale.Media{
		ReadSeekCloser: &reader{SectionReader: io.NewSectionReader(m.data, 0, m.size), leave: sync.OnceFunc(func() { f.leave(m) })},
		Size:           m.size, ContentType: m.kind,
	}, nil
}

// reader is one caller's reader of a file.
type reader struct {
	*io.SectionReader
	leave func()
}

func (r *reader) Close() error {
	r.leave()
	return nil
}

// Close ends the running fetches and drops all files, even files that callers still read.
func (f *Fetcher) Close() error {
	f.mu.Lock()
	f.close(errClosed)
	f.mu.Unlock()
	f.wg.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.files {
		f.drop(m)
	}
	if err := f.root.Close(); err != nil {
		return fmt.Errorf("close the folder for media: %w", err)
	}
	return nil
}

// run fetches one file, informs the waiting callers, and then stores the file in the cache or drops it.
func (f *Fetcher) run(m *file, u *url.URL) {
	err := puntuale.Recovered(func() error { return f.download(m, u) })
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		m.failed = asSendError(m.ctx, err)
		f.forget(m)
	}
	m.keptUntil = f.cfg.Clock.Now().Add(f.cfg.Age)
	m.cancel(nil)
	close(m.done)
	f.release(m)
}
