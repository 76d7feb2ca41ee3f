package client

import (
	"context"
	"net/http"
	"net/url"
)

// Session is what the server says about a session while it is linked to a phone.
type Session struct {
	State  string `json:"state"`
	Hint   string `json:"hint"`
	Detail string `json:"state_detail"`
	Number string `json:"number"`
	QR     string `json:"qr"`
	Code   string `json:"pairing_code"`
}

func sessionPath(id string) string { return "/api/sessions/" + url.PathEscape(id) }

// PairSession begins to link a session. If phone is not "", the person types a code into the phone with this number,
// and otherwise scans a QR code. Errors: a [*Refusal].
func (c *Client) PairSession(ctx context.Context, id, phone string) (s Session, err error) {
	order := map[string]string{"method": "qr"}
	if phone != "" {
		order = map[string]string{"method": "code", "phone": phone}
	}
	return s, c.call(ctx, http.MethodPost, sessionPath(id)+"/pair", order, &s)
}

// Session returns a session. Errors: a [*Refusal].
func (c *Client) Session(ctx context.Context, id string) (s Session, err error) {
	return s, c.call(ctx, http.MethodGet, sessionPath(id), nil, &s)
}

// Ready returns nil if the server is ready to work, and otherwise the reason.
func (c *Client) Ready(ctx context.Context) error {
	return c.call(ctx, http.MethodGet, "/readyz", nil, nil)
}
