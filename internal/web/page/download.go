package page

import (
	"net/http"
	"time"
)

// ExportAllows is the longest time for sending one part of a file.
const ExportAllows = 30 * time.Second

// ReadOn takes a seat again before the handler reads the next part of a file. Call it after the previous part was sent.
func (v *Request) ReadOn() error {
	v.Memory.Close()
	_, err := v.Pass.Return(v.Ctx())
	return err
}

// BreakOff ends a file early, so that the file does not look complete.
func (v *Request) BreakOff(err error) {
	if v.Ctx().Err() == nil { // if the context has ended, the reader closed the connection
		v.Site.logger.ErrorContext(v.Ctx(), "an export broke off", "request_id", v.Frame.Request, "error", err)
	}
	panic(http.ErrAbortHandler)
}
