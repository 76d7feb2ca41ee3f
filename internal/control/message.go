package control

import (
	"context"
	"fmt"
	"net/url"
	"path"

	"puntuale"
)

// Details returns the messages found, in the order asked, each once; unknown and foreign ids are left out. Codes:
// invalid.
func (c *Client) Details(ctx context.Context, ids []string) ([]puntuale.MessageDetail, error) {
	const location = "query.message_ids"
	var f faults
	switch {
	case len(ids) == 0:
		f.add(location, "is required", nil)
	case len(ids) > puntuale.MaxRequestIDs:
		f.add(location, "has more than 1000 entries", nil)
		ids = nil
	}
	wanted := make([]puntuale.MessageID, len(ids))
	for i, text := range ids {
		id, err := puntuale.ParseID[puntuale.MessageID](text)
		if err != nil {
			f.add(at(location, i), "is not a message id", text)
		}
		wanted[i] = id
	}
	if err := f.err(); err != nil {
		return nil, err
	}
	found, err := c.tenant.Details(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("read message details: %w", err)
	}
	return found, nil
}

// MediaName is the name that a message's media goes by: the one given, else the last part of its address; "" without
// media.
func MediaName(c puntuale.Content) string {
	if c.MediaURL == "" || c.MediaName != "" {
		return c.MediaName
	}
	u, err := url.Parse(c.MediaURL)
	if err != nil {
		return path.Base(c.MediaURL)
	}
	if last := path.Base(u.Path); last != "." && last != "/" {
		return last
	}
	return u.Host
}
