package httpapi

import (
	"context"
	"io"
	"net/http"

	"puntuale/internal/control"
)

// spend counts the bytes of a client's call that may store its body; see [control.MaxStoredBytes]. refund takes them
// back. The bytes of an upload count while they arrive. Calls that prevent sends are never refused, so they do not
// count. Codes: rate_limited.
func (c *call) spend(ctx context.Context, op operation) (refund func(), err error) {
	none := func() {}
	if dry, _ := wantsDry(c.query); dry || c.client == nil || op.prevents || op.method == http.MethodGet {
		return none, nil
	}
	if c.file != nil {
		u := &spentUpload{ctx: ctx, client: c.client, from: c.file}
		c.file = u
		return u.refund, nil
	}
	if len(c.body) == 0 {
		return none, nil
	}
	return c.client.Spend(ctx, int64(len(c.body)))
}

// spentUpload counts the bytes of an upload.
type spentUpload struct {
	ctx    context.Context //nolint:containedctx // of the call whose body this is
	client *control.Client
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

func (u *spentUpload) refund() {
	for _, back := range u.back {
		back()
	}
}
