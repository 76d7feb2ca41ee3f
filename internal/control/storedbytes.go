package control

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"slices"
	"strconv"
	"sync"
	"time"

	"puntuale"
	"puntuale/internal/control/upload"
	"puntuale/internal/file"
)

// MaxStoredBytes is how many bytes the calls of one client may store on one day. The bytes are those of the calls'
// bodies. The store keeps most of them: a start's body stays as it is.
const MaxStoredBytes = 512 << 20

// The store counts bytes in portions, so that usual calls need no further transaction. Each node gives a client
// portionBytes a day that the store does not count.
const (
	portionBytes   = 1 << 20
	maxKeptClients = 10_000 // if the node counts more clients, it forgets those of other days
)

// storedBytes counts the bytes that this node's calls have stored today, for each client.
type storedBytes struct {
	mu      sync.Mutex
	clients map[puntuale.ClientID]*clientBytes
}

type clientBytes struct {
	day         puntuale.Date
	used, taken int64 // taken is how many bytes this node may use: those that the store has counted, and a portion
}

const faultCallerBytesReached puntuale.ReasonCode = "caller.bytes_reached"

// Spend counts n bytes that a call of the client wants to store. refund takes them back, if the call stores nothing.
// Codes: rate_limited, if the client's calls have stored [MaxStoredBytes] today.
func (c *Client) Spend(ctx context.Context, n int64) (refund func(), err error) {
	day, err := c.today(c.control.clock.Now())
	if err != nil {
		return nil, err
	}
	b := &c.control.bytes
	missing := b.use(c.ID(), day, n)
	if missing > 0 {
		more := (missing + portionBytes - 1) / portionBytes * portionBytes
		ok, err := c.tenant.AddBytes(ctx, day, more, MaxStoredBytes)
		if err != nil {
			return nil, fmt.Errorf("count stored bytes: %w", err)
		}
		if !ok {
			return nil, &puntuale.Error{
				Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultCallerBytesReached, strconv.Itoa(MaxStoredBytes>>20)), RetryAfter: time.Hour,
			}
		}
		b.add(c.ID(), day, more, n)
	}
	return func() { b.add(c.ID(), day, 0, -n) }, nil
}

// use counts n bytes if the node may use them, and returns 0. Otherwise it returns how many bytes are missing.
func (b *storedBytes) use(client puntuale.ClientID, day puntuale.Date, n int64) (missing int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.clients[client]
	if c == nil || c.day != day {
		b.forget(day)
		c = &clientBytes{day: day, taken: portionBytes}
		b.clients[client] = c
	}
	if missing = c.used + n - c.taken; missing > 0 {
		return missing
	}
	c.used += n
	return 0
}

// add adds bytes that the node may use, and bytes that it has used.
func (b *storedBytes) add(client puntuale.ClientID, day puntuale.Date, taken, used int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.clients[client]; c != nil && c.day == day {
		c.taken += taken
		c.used += used
	}
}

// forget forgets clients of other days, if there are many. The caller has locked b.mu.
func (b *storedBytes) forget(day puntuale.Date) {
	if b.clients == nil {
		b.clients = map[puntuale.ClientID]*clientBytes{}
	}
	if len(b.clients) < maxKeptClients {
		return
	}
	for id, c := range b.clients {
		if c.day != day {
			delete(b.clients, id)
		}
	}
}

// MostStored calls report for the at most n clients whose calls have stored the most bytes today through this node.
func (c *Control) MostStored(n int, report func(client, bytes int64)) {
	c.bytes.mu.Lock()
	defer c.bytes.mu.Unlock()
	all := slices.Collect(maps.Keys(c.bytes.clients))
	slices.SortFunc(all, func(x, y puntuale.ClientID) int {
		return cmp.Or(cmp.Compare(c.bytes.clients[y].used, c.bytes.clients[x].used), cmp.Compare(x, y))
	})
	for _, id := range all[:min(n, len(all))] {
		report(int64(id), c.bytes.clients[id].used)
	}
}

// spentUpload counts the bytes of a file while they arrive.
type spentUpload struct {
	ctx    context.Context //nolint:containedctx // of the call that reads the file
	client *Client
	from   io.Reader
	back   []func()
	n      int64 // bytes that arrived and are not counted yet
}

// uploadPiece is how many bytes of an upload are counted together.
const uploadPiece = 256 << 10

func (u *spentUpload) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	u.n += int64(n)
	if u.n < uploadPiece && err == nil {
		return n, nil
	}
	refund, refused := u.client.Spend(u.ctx, u.n)
	if refused != nil {
		return n, refused
	}
	u.n, u.back = 0, append(u.back, refund)
	return n, err //nolint:wrapcheck // the error of the body
}

// ended takes the bytes back if nothing of the file was stored.
func (u *spentUpload) ended(stored bool) {
	for _, refund := range u.back {
		if !stored {
			refund()
		}
	}
}

// MaxUploadedBytes is how many bytes of files one client may upload to this process within 24 hours, whatever becomes of
// them. They do not count among [MaxStoredBytes], so that uploads never keep starts back.
const MaxUploadedBytes = 4 << 30

const faultFileManyBytes puntuale.ReasonCode = "file.many_bytes" // {1}: the most, in MB

// uploadedBytes counts the bytes of a file while they arrive.
type uploadedBytes struct {
	ctx    context.Context //nolint:containedctx // of the call that reads the file
	client *Client
	from   io.Reader
}

func (u *uploadedBytes) Read(p []byte) (int, error) {
	n, err := u.from.Read(p)
	c := u.client.control
	if wait := c.arrived.add(u.client.account.ID, int64(n), c.clock.Now()); wait > 0 {
		return n, &puntuale.Error{Code: puntuale.CodeRateLimited, Reason: puntuale.Because(faultFileManyBytes, strconv.Itoa(MaxUploadedBytes>>20)), RetryAfter: wait}
	}
	return n, err //nolint:wrapcheck // the error of the body
}

// arrivedBytes counts the bytes that clients upload. It is safe for concurrent use.
type arrivedBytes struct {
	mu      sync.Mutex
	clients map[puntuale.ClientID]*byteWindow
}

type byteWindow struct {
	begun time.Time
	bytes int64
}

const uploadSpan = 24 * time.Hour

// add counts bytes that a client uploads. If there are too many, it returns how long the client must wait.
func (b *arrivedBytes) add(client puntuale.ClientID, n int64, now time.Time) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	own := b.clients[client]
	if own == nil || now.Sub(own.begun) >= uploadSpan {
		maps.DeleteFunc(b.clients, func(_ puntuale.ClientID, old *byteWindow) bool { return now.Sub(old.begun) >= uploadSpan })
		if b.clients == nil {
			b.clients = map[puntuale.ClientID]*byteWindow{}
		}
		own = &byteWindow{begun: now}
		b.clients[client] = own
	}
	if own.bytes += n; own.bytes > MaxUploadedBytes {
		return own.begun.Add(uploadSpan).Sub(now)
	}
	return 0
}

// MostUploaded returns the most bytes that any upload of a file may have. Most files may have only
// [puntuale.MaxFileBytes].
func (c *Control) MostUploaded() int64 {
	if c.lists.documents {
		return puntuale.MaxDocumentBytes
	}
	return puntuale.MaxFileBytes
}

// takesLarge reports whether the client has a number whose network takes large documents.
func (c *Client) takesLarge(ctx context.Context) (bool, error) {
	if !c.control.lists.documents {
		return false, nil
	}
	sessions, err := c.allSessions(ctx)
	for _, s := range sessions {
		if s.Type == puntuale.Official {
			return true, nil
		}
	}
	return false, err
}

// scratchFile is where an upload is until its type is known.
type scratchFile interface {
	io.Writer
	io.ReaderAt
}

// receive keeps the bytes of an upload on disk. It returns the file's name and size.
func (c *Client) receive(ctx context.Context, r FileUpload, spool scratchFile) (name string, size int64, err error) {
	body := io.LimitReader(r.Content, c.control.MostUploaded()+MaxFileForm+1)
	name = r.Name
	if r.Boundary != "" {
		part, err := upload.FirstFile(multipart.NewReader(body, r.Boundary))
		if err != nil {
			return "", 0, err
		}
		body, name = part, cmp.Or(name, part.FileName())
	}
	size, most, err := c.keep(ctx, spool, body)
	switch {
	case err == nil && size > most:
		// The reader of the answer must see why. Without large documents, nobody sends much more.
		_, _ = io.Copy(io.Discard, io.LimitReader(body, c.control.MostUploaded()-most))
		return name, size, &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: file.TooLarge(most)}
	case r.Boundary != "" && errors.Is(err, io.ErrUnexpectedEOF):
		return name, size, upload.FormFault(err)
	case err != nil:
		return name, size, fmt.Errorf("receive a file: %w", err)
	case size == 0:
		return name, size, puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: faultFileEmpty})
	}
	return name, size, nil
}

// keep copies a file to disk, and returns the most bytes that this file may have. It stops at the first byte beyond them.
func (c *Client) keep(ctx context.Context, spool scratchFile, body io.Reader) (size, most int64, err error) {
	most = puntuale.MaxFileBytes
	size, err = io.Copy(spool, io.LimitReader(body, most+1))
	if err != nil || size <= most || !file.MayBeDocument(spool) {
		return size, most, err
	}
	large, err := c.takesLarge(ctx)
	if err != nil || !large {
		return size, most, err
	}
	most = puntuale.MaxDocumentBytes
	more, err := io.Copy(spool, io.LimitReader(body, most+1-size))
	return size + more, most, err
}
