package page

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/a-h/templ"

	"puntuale/internal/clock"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/view"
)

// streamLife is the longest time of one stream of events. After it the browser connects again, and the server checks
// the reader's rights again. A server that stops waits at most this long for its streams.
const streamLife = 25 * time.Second

// streamAllows is the longest time for sending one event.
const streamAllows = 10 * time.Second

// streamBytes is the memory that the budget counts for one waiting stream.
const streamBytes = 64 << 10

// Stream sends a part of a page each time that the client's messages or bookings have changed, compared with the version that the
// browser shows. If the request does not accept events, Stream redirects to the first page of the client's dashboard.
func (v *Request) Stream(part func() (string, error)) error {
	return v.stream(0, func(bool) (string, error) { return part() })
}

// rarely is how often a stream reads what is dear to read.
const rarely = 10 * time.Second

// owing ends the version of a part whose dear contents are older than the rest. A browser that connects again with such a
// version gets the part again.
const owing = "~"

// StreamRarely is Stream for a part with contents that are dear to read, such as counts. The part reads them only if its
// argument is true: at first, then at most every ten seconds, and once after the last change.
func (v *Request) StreamRarely(part func(dear bool) (string, error)) error {
	return v.stream(rarely, part)
}

func (v *Request) stream(every time.Duration, part func(dear bool) (string, error)) error {
	if !v.WantsEvents() {
		return v.Redirect(v.Frame.Place.Base)
	}
	following, err := v.Client.Follow(v.KnownVersion("version"))
	if err != nil {
		return err
	}
	defer following.Stop()
	var shown string // the version of the last part
	var read time.Time
	owed := false // the last part's dear contents were older
	return v.Events(func(ctx context.Context) (version, content string, err error) {
		wait, stop := ctx, func() {}
		if owed {
			wait, stop = context.WithDeadline(ctx, read.Add(every))
		}
		version, err = following.Next(wait)
		stop()
		if err != nil && owed && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
			version, err = shown, nil
		}
		if err != nil {
			return "", "", err
		}
		shown = version
		now := Deadline(0)
		dear := now.Sub(read) >= every
		if owed = !dear; dear {
			read = now
		}
		v.Memory.Close() // returns the memory of the part that was sent
		if err = v.Memory.Take(streamBytes); err != nil {
			return "", "", err
		}
		if _, err = v.Pass.Return(ctx); err != nil {
			return "", "", err
		}
		defer v.Pass.LeaveSeat()
		v.Frame.Now = v.Site.Control.Now()
		if content, err = part(dear); err != nil {
			return "", "", err
		}
		if v.Frame.Unread, err = v.Client.UnreadReplies(ctx); err != nil {
			return "", "", err
		}
		if v.Frame.Notices, err = v.Person.UnreadNotices(ctx, view.MaxUnread); err != nil {
			return "", "", err
		}
		if owed {
			version += owing
		}
		unread, err := v.Rendered(view.UnreadNow())
		return version, content + unread, err
	})
}

func (v *Request) WantsEvents() bool {
	return strings.Contains(v.HTTP.Header.Get("Accept"), "text/event-stream")
}

// KnownVersion returns the version that the browser shows: the version of the last event, or the version that the page
// named in the query.
func (v *Request) KnownVersion(name string) string {
	if last := v.HTTP.Header.Get("Last-Event-ID"); last != "" {
		return last
	}
	return v.Query(name)
}

// ErrShown means that a stream has nothing more to show. An element with hx-sse:close="shown" then does not connect again.
var ErrShown = errors.New("the stream has shown everything")

// Events calls the function next again and again, and sends each result with its version. next must wait until the
// version changes. If next fails, the stream ends. The browser then connects again, and gets the error; see ErrShown.
func (v *Request) Events(next func(ctx context.Context) (version, content string, err error)) error {
	httpkit.Quieten(v.Ctx())
	if err := v.Memory.Take(streamBytes); err != nil {
		return err
	}
	v.Pass.LeaveSeat()
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	connection := http.NewResponseController(v.Writer)
	ctx, end := context.WithTimeout(v.Ctx(), streamLife)
	defer end()
	event := ": here\n\n"
	for {
		_ = connection.SetWriteDeadline(Deadline(streamAllows))
		if _, err := v.Writer.Write([]byte(event)); err != nil {
			return nil // the browser closed the connection
		}
		_ = connection.Flush()
		_ = connection.SetWriteDeadline(Deadline(streamLife + streamAllows))
		version, content, err := next(ctx)
		if errors.Is(err, ErrShown) {
			_, _ = v.Writer.Write([]byte("event: shown\ndata: shown\n\n")) // this fails only if the browser closed the connection
			return nil
		}
		if err != nil {
			return nil // the stream's time is over, or next failed; the browser connects again
		}
		event = "id: " + version + "\ndata: " + strings.Join(strings.Split(strings.ReplaceAll(content, "\r", ""), "\n"), "\ndata: ") + "\n\n"
	}
}

// Rendered returns the HTML of a component.
func (v *Request) Rendered(c templ.Component) (string, error) {
	var b bytes.Buffer
	err := c.Render(view.With(v.Ctx(), v.Frame), &b)
	return b.String(), err
}

// Deadline returns the machine's present time plus d. Connections use the machine's clock, not the service's clock.
func Deadline(d time.Duration) time.Time { return clock.System().Now().Add(d) }
