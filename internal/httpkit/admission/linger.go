package admission

import (
	"context"
	"io"
	"net/http"
	"time"
)

// What is taken in, and thrown away, of a refused body.
const (
	lingerBytes = 32 << 20
	lingerTime  = 2 * time.Second
)

// longAgo is a deadline that ends a read at once.
var longAgo = time.Unix(1, 0)

// Linger reads on, for a bounded time, what a caller is still sending although the call was refused. A usual client
// looks for an answer only once it has sent everything. If the connection were closed before, it would see a broken one
// and no answer. A caller who looks earlier has the whole answer already.
func Linger(w http.ResponseWriter, r *http.Request) {
	if w.Header().Get("Connection") != "close" || r.ContentLength == 0 || r.Header.Get("Expect") != "" {
		return // read, or the caller asked first whether to send it
	}
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), lingerTime)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = out.SetReadDeadline(longAgo) })() // fails only when the caller is gone
	_, _ = io.CopyN(io.Discard, r.Body, lingerBytes)
}
