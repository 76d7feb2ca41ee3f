package admission

import (
	"log"
	"net/http"
	"time"
)

// What a connection may cost before it is given up. Bodies are small ([MaxBody]) and answers quick, so these only meet a slow
// or a hostile peer.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// NewServer returns a server that bounds how long its connections may take. The header of a request has 5 s, all of it 30 s, and the answer
// 60 s. The next request must come within 2 minutes. A header has 32 KiB at most. [ReadWithin] and [ReadOn] set other bounds. errors gets
// the errors of broken connections. It may be nil.
func NewServer(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: errors,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}
