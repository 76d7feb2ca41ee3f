package outside

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"

	"puntuale"
	"puntuale/internal/payload"
)

// MemoryGrants opens a client's memory grant, for work that no call waits for. done gives the memory back. A nil
// MemoryGrants has no limit.
type MemoryGrants func(client puntuale.ClientID) (grant puntuale.MemoryGrant, done func())

// Charge returns a context in which answers are charged to the client. The caller must call done when it no longer uses
// the answers. If the context has a grant already, a call waits for the answers, and this call pays.
func (m MemoryGrants) Charge(ctx context.Context, client puntuale.ClientID) (_ context.Context, done func()) {
	if m == nil || puntuale.HasMemoryGrant(ctx) {
		return ctx, func() {}
	}
	grant, done := m(client)
	return puntuale.WithMemoryGrant(ctx, grant), done
}

// TooLargeError says that an answer exceeds the bounds of its kind.
type TooLargeError struct{ Kind *Kind }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("answer too large: %s may have %d bytes and %d values", e.Kind.Name, e.Kind.MaxBytes, e.Kind.MaxJSON)
}

// errUnreadable says that an answer is not JSON of the expected form.
var errUnreadable = errors.New("an answer that cannot be read")

// Read reads a whole answer, and closes it. The memory is charged while the bytes arrive. The error is a
// [*TooLargeError], the error of the context, or the error of the connection. Codes: overloaded and rate_limited, if the
// payer has no memory left.
func (k *Kind) Read(ctx context.Context, from io.ReadCloser) ([]byte, error) {
	b := k.Body(ctx, from)
	defer b.Close()
	free := k.Free
	return ReadAll(b, func(n int64) error {
		free -= n
		if free >= 0 {
			return nil
		}
		return puntuale.TakeMemory(ctx, n)
	})
}

// Decode reads a whole answer, decodes its JSON into target, and closes the answer. The errors are those of Read and
// Parse.
func (k *Kind) Decode(ctx context.Context, from io.ReadCloser, target any) error {
	text, err := k.Read(ctx, from)
	if err != nil {
		return err
	}
	return k.Parse(text, target)
}

// Parse decodes the JSON of an answer that was read. It first counts the values, because a value of two bytes takes far
// more memory after decoding.
func (k *Kind) Parse(text []byte, target any) error {
	if payload.Exceeds(text, k.MaxJSON, maxDepth) {
		return &TooLargeError{k}
	}
	if err := json.Unmarshal(text, target); err != nil {
		return fmt.Errorf("%w: %w", errUnreadable, err)
	}
	return nil
}

// Beginning returns the first n bytes of an answer, and closes the answer. It ignores errors. It also reads the rest, up
// to the kind's bound, so that the connection can be used again.
func (k *Kind) Beginning(ctx context.Context, from io.ReadCloser, n int) []byte {
	b := k.Body(ctx, from)
	defer b.Close()
	text := make([]byte, n)
	read, err := io.ReadFull(b, text)
	if err == nil {
		_, _ = io.Copy(io.Discard, b)
	}
	return text[:read]
}

// Body returns a reader of an answer within the kind's bounds in bytes and in time. It is for data that nobody keeps in
// memory. Its Close closes the answer.
func (k *Kind) Body(ctx context.Context, from io.ReadCloser) io.ReadCloser {
	ctx, cancel := context.WithTimeout(ctx, k.Within)
	stop := context.AfterFunc(ctx, func() { _ = from.Close() }) // ends a Read that waits
	return &boundedBody{ctx: ctx, kind: k, from: from, left: k.MaxBytes, end: func() { stop(); cancel() }}
}

type boundedBody struct {
	ctx  context.Context //nolint:containedctx // the deadline of the whole body
	kind *Kind
	from io.ReadCloser
	left int64
	end  func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1] // one byte more than allowed, to find an answer that is too long
	}
	n, err := b.from.Read(p)
	if b.left -= int64(n); b.left < 0 {
		b.left = 0
		return n - 1, &TooLargeError{b.kind}
	}
	if err != nil && !errors.Is(err, io.EOF) && b.ctx.Err() != nil {
		err = b.ctx.Err()
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.end()
	return b.from.Close()
}

// Memory that data from outside need.
const (
	firstBytes = 512 // the size of the first buffer in bytes; it doubles each time that more bytes arrive
	workTimes  = 4   // data that were read and decoded need this many times their length
)

// ReadAll reads to the end. It asks take for memory before it uses it, and at the end for the memory of the decoded
// data. The errors are those of the reader and of take.
func ReadAll(from io.Reader, take func(bytes int64) error) ([]byte, error) {
	var text []byte
	for {
		if len(text) == cap(text) {
			more := max(firstBytes, cap(text))
			if err := take(int64(more)); err != nil {
				return nil, err
			}
			text = slices.Grow(text, more)
		}
		n, err := from.Read(text[len(text):cap(text)])
		text = text[:len(text)+n]
		if errors.Is(err, io.EOF) {
			return text, take(int64(len(text)) * (workTimes - 1))
		}
		if err != nil {
			return text, err
		}
	}
}

// Transport bounds all answers of a transport, for libraries that read answers themselves.
func (k *Kind) Transport(next http.RoundTripper) http.RoundTripper { return boundedTransport{k, next} }

type boundedTransport struct {
	kind *Kind
	next http.RoundTripper
}

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := t.next.RoundTrip(r)
	if err == nil && got.StatusCode != http.StatusSwitchingProtocols { // the connection itself follows such an answer
		got.Body = t.kind.Body(r.Context(), got.Body)
	}
	return got, err
}

// CloseIdleConnections closes idle connections.
func (t boundedTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// Conn bounds all bytes that arrive on a connection. The connection's own deadlines bound its time.
func (k *Kind) Conn(c net.Conn) net.Conn { return &boundedConn{c, k, k.MaxBytes} }

type boundedConn struct {
	net.Conn
	kind *Kind
	left int64
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &TooLargeError{c.kind}
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	return n, err
}
