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

// MemoryGrants opens the memory grant of a client or a partner, for work that no call waits for. done gives the memory
// back. A nil MemoryGrants has no limit.
type MemoryGrants func(side puntuale.Side, id int64) (grant puntuale.MemoryGrant, done func())

// Client returns a context in which answers are charged to the client; 0 is for work of the server itself. The caller
// must call done when it no longer uses the answers. If the context has a grant already, a call waits for the answers,
// and this call pays.
func (m MemoryGrants) Client(ctx context.Context, client puntuale.ClientID) (_ context.Context, done func()) {
	return m.charge(ctx, puntuale.ClientSide, int64(client))
}

// Partner is like Client, for work of a partner. 0 is an unknown partner.
func (m MemoryGrants) Partner(ctx context.Context, partner puntuale.PartnerID) (_ context.Context, done func()) {
	return m.charge(ctx, puntuale.PartnerSide, int64(partner))
}

func (m MemoryGrants) charge(ctx context.Context, side puntuale.Side, id int64) (_ context.Context, done func()) {
	switch {
	case puntuale.HasMemoryGrant(ctx):
		return ctx, func() {}
	case m == nil:
		return puntuale.WithMemoryGrant(ctx, noLimit{}), func() {}
	}
	grant, done := m(side, id)
	return puntuale.WithMemoryGrant(ctx, grant), done
}

type noLimit struct{}

func (noLimit) Take(int64) error { return nil }

// errNoPayer is a fault of this program: nobody pays for an answer.
var errNoPayer = errors.New("nobody pays for the memory of an answer")

// payment takes the memory of one answer from its payer.
type payment struct {
	ctx  context.Context //nolint:containedctx // it contains the grant
	kind *Kind
	free int64
}

func (k *Kind) pay(ctx context.Context) *payment { return &payment{ctx, k, k.Free} }

// owned returns errNoPayer if the answer needs a payer and has none.
func (p *payment) owned() error {
	if p.kind.Payer == PayOwner && !puntuale.HasMemoryGrant(p.ctx) {
		return errNoPayer
	}
	return nil
}

// take takes memory. It takes the first bytes also if the payer has no memory left; see [Kind].Free.
func (p *payment) take(n int64) error {
	if p.kind.Payer != PayOwner {
		return nil
	}
	p.free -= n
	if err := puntuale.TakeMemory(p.ctx, n); err != nil && p.free < 0 {
		return err
	}
	return nil
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
	return ReadAll(b, k.pay(ctx).take)
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

// Beginning returns the first n bytes of an answer, and closes the answer. It ignores errors: an answer whose payer has
// no memory left is empty. It also reads the rest, up to the kind's bound, so that the connection can be used again.
func (k *Kind) Beginning(ctx context.Context, from io.ReadCloser, n int) []byte {
	b := k.Body(ctx, from)
	defer b.Close()
	if k.pay(ctx).take(int64(n)*workTimes+discardBytes) != nil {
		return nil
	}
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
	if err := errors.Join(b.ctx.Err(), b.kind.pay(b.ctx).owned()); err != nil {
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

	discardBytes = 8 << 10 // [io.Discard] reads into a buffer of this size
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

// Transport bounds all answers of a transport, for libraries that read answers themselves. Each answer is charged until
// it is closed: to the call that waits for it, else to the client.
func (k *Kind) Transport(next http.RoundTripper, memory MemoryGrants, client puntuale.ClientID) http.RoundTripper {
	return boundedTransport{k, next, memory, client}
}

type boundedTransport struct {
	kind   *Kind
	next   http.RoundTripper
	memory MemoryGrants
	client puntuale.ClientID
}

func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	got, err := t.next.RoundTrip(r)
	if err == nil && got.StatusCode != http.StatusSwitchingProtocols { // the connection itself follows such an answer
		ctx, done := t.memory.Client(r.Context(), t.client)
		got.Body = &chargedBody{ReadCloser: t.kind.Body(ctx, got.Body), pay: t.kind.pay(ctx), done: done}
	}
	return got, err
}

// chargedBody charges what a library reads, until the library closes it.
type chargedBody struct {
	io.ReadCloser
	pay  *payment
	done func()
}

func (b *chargedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if refused := b.pay.take(int64(n) * workTimes); refused != nil {
		return 0, refused
	}
	return n, err
}

func (b *chargedBody) Close() error {
	b.done()
	return b.ReadCloser.Close()
}

// CloseIdleConnections closes idle connections.
func (t boundedTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

// Conn bounds and charges all bytes that arrive on a connection. The connection's own deadlines bound its time.
func (k *Kind) Conn(ctx context.Context, c net.Conn) net.Conn {
	return &boundedConn{c, k, k.MaxBytes, k.pay(ctx)}
}

type boundedConn struct {
	net.Conn
	kind *Kind
	left int64
	pay  *payment
}

func (c *boundedConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, &TooLargeError{c.kind}
	}
	if err := c.pay.owned(); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	if refused := c.pay.take(int64(n)); refused != nil {
		return 0, refused
	}
	return n, err
}
