package admission

import (
	"log"
	"net/http"
	"time"
)

// Deadlines of a connection. Bodies are small ([MaxBody]) and answers are quick. So a deadline
// ends only the connections of slow or hostile peers.
const (
	readHeaderTimeout = 5 * time.Second
	readTimeout       = 30 * time.Second
	writeTimeout      = 60 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 32 << 10
)

// NewServer returns a server with time limits for its connections. The header of a request must arrive within 5 s, and
// the whole request within 30 s. The answer must be written within 60 s. The next request must arrive within 2 minutes.
// A header may have 32 KiB. [ReadWithin] and [ReadOn] set other limits. errors logs errors of broken connections; it
// may be nil.
func NewServer(h http.Handler, errors *log.Logger) *http.Server {
	return &http.Server{
		Handler: h, ErrorLog: errors,
		ReadHeaderTimeout: readHeaderTimeout, ReadTimeout: readTimeout, WriteTimeout: writeTimeout, IdleTimeout: idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
	}
}
