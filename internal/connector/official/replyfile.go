package official

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"puntuale"
	"puntuale/internal/connector/replyfile"
)

// fileHosts are the endings of the names of hosts where Meta keeps files. The connector sends no request to any other
// host. It sends the token only to hosts in tokenHosts.
var (
	fileHosts  = []string{".facebook.com", ".fbsbx.com", ".fbcdn.net", ".whatsapp.net"}
	tokenHosts = []string{".facebook.com", ".fbsbx.com"}
)

// fileID is the form of a file's id, usually a number. It becomes part of an address.
var fileID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,200}$`)

// noFile is Meta's code for an object that does not exist, or that the token may not see.
const noFile = 100

// OpenMedia asks Meta where a file is, and fetches it. The session need not be open on this node. Codes: gone,
// unavailable, too_large.
func (c *Connector) OpenMedia(ctx context.Context, s puntuale.Session, m puntuale.ReplyMedia) (*puntuale.ReplyFile, error) {
	var ref fileRef
	if json.Unmarshal(m.Ref, &ref) != nil || !fileID.MatchString(ref.ID) {
		return nil, replyfile.IsGone(errors.New("the message did not tell how to fetch the file"))
	}
	client, sealed, err := c.cfg.Store.SealedKeys(ctx, s.ID)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read a session's keys: %w", err)
	case client != s.Client || sealed == nil:
		return nil, replyfile.Unavailable(errors.New("the session has no keys"))
	}
	keys, err := c.unseal(s.ID, sealed)
	if err != nil {
		return nil, err
	}
	var answer struct {
		URL string `json:"url"`
	}
	err = c.graph.call(ctx, *keys, http.MethodGet, url.PathEscape(ref.ID), url.Values{"phone_number_id": {keys.PhoneNumberID}}, nil, 0, "", &answer)
	if refusal, ok := errors.AsType[*graphError](err); ok && refusal.Code == noFile {
		return nil, replyfile.IsGone(refusal)
	}
	if err != nil {
		return nil, replyfile.Unavailable(fmt.Errorf("ask Meta for a file: %w", err))
	}
	r, err := c.fileRequest(ctx, answer.URL, keys.AccessToken)
	if err != nil {
		return nil, err
	}
	return replyfile.Fetch(c.cfg.Transport, r, c.cfg.Folder, hashOfRef(ref.SHA256))
}

// fileRequest makes the request for a file. The request has the token only if the host may get it.
func (c *Connector) fileRequest(ctx context.Context, address, token string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, replyfile.Unavailable(errors.New("the address of the file cannot be read"))
	}
	api, err := url.Parse(c.cfg.API)
	operators := err == nil && api.Scheme == r.URL.Scheme && api.Host == r.URL.Host // the host that the operator's settings name as Meta's API
	if r.URL.User != nil || !operators && (r.URL.Scheme != "https" || r.URL.Port() != "" || !endsIn(r.URL.Hostname(), fileHosts)) {
		return nil, replyfile.Unavailable(errors.New("the file is not at one of Meta's hosts"))
	}
	if operators || endsIn(r.URL.Hostname(), tokenHosts) {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("User-Agent", "Puntuale") // Meta refuses requests without one
	return r, nil
}

func endsIn(host string, ends []string) bool {
	for _, end := range ends {
		if strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// hashOfRef is the hash of a file as the webhook wrote it, nil for none. Webhooks write it in base64.
func hashOfRef(text string) []byte {
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}
