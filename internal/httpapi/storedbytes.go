package httpapi

import (
	"context"
	"net/http"
)

// spend counts the bytes of a client's call that may store its body; see [control.MaxStoredBytes]. refund takes them
// back. The verbs that read uploads count them. Calls that prevent sends are never refused, so they do not count.
// Codes: rate_limited.
func (c *call) spend(ctx context.Context, op operation) (refund func(), err error) {
	none := func() {}
	if dry, _ := wantsDry(c.query); dry || c.client == nil || op.prevents || op.method == http.MethodGet || len(c.body) == 0 {
		return none, nil
	}
	return c.client.Spend(ctx, int64(len(c.body)))
}
