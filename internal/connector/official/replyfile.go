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

// fileHosts are suffixes of host names. The hosts with these names store files for Meta, and the connector requests
// files from no other host. It sends the token only to hosts whose names end with an entry of tokenHosts.
var (
	fileHosts  = []string{".facebook.com", ".fbsbx.com", ".fbcdn.net", ".whatsapp.net"}
	tokenHosts = []string{".facebook.com", ".fbsbx.com"}
)

// fileID matches a file's id, which becomes part of an address. An id is usually a number.
var fileID = regexp.MustCompile(`^[0-9A-Za-z_-]{1,200}$`)

// noFile is Meta's error code if an object does not exist or the token may not see it.
const noFile = 100

// OpenMedia requests a file's address from Meta, and fetches the file. The session need not be open on this node.
// Codes: gone, unavailable, too_large.
func (c *Connector) OpenMedia(ctx context.Context, s puntuale.Session, m puntuale.ReplyMedia, maxBytes int64) (*puntuale.ReplyFile, error) {
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
		URL  string `json:"url"`
		Size int64  `json:"file_size"` // bytes; 0: Meta does not say it
	}
	err = c.graph.call(ctx, client, *keys, http.MethodGet, url.PathEscape(ref.ID), url.Values{"phone_number_id": {keys.PhoneNumberID}}, nil, 0, "", &answer)
	if refusal, ok := errors.AsType[*graphError](err); ok && refusal.Code == noFile {
		return nil, replyfile.IsGone(refusal)
	}
	if err != nil {
		return nil, replyfile.Unavailable(fmt.Errorf("ask Meta for a file: %w", err))
	}
	if answer.Size > maxBytes {
		return nil, replyfile.TooLarge()
	}
	r, err := c.fileRequest(ctx, answer.URL, keys.AccessToken)
	if err != nil {
		return nil, err
	}
	return replyfile.Fetch(c.cfg.Transport, r, c.cfg.Folder, hashOfRef(ref.SHA256), maxBytes)
}

// fileRequest returns the request for a file. It contains the token only if the host may get the token.
func (c *Connector) fileRequest(ctx context.Context, address, token string) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, replyfile.Unavailable(errors.New("the address of the file cannot be read"))
	}
	api, err := url.Parse(c.cfg.API)
	operators := err == nil && api.Scheme == r.URL.Scheme && api.Host == r.URL.Host // true: the file is at the API's host, which the operator set
	if r.URL.User != nil || !operators && (r.URL.Scheme != "https" || r.URL.Port() != "" || !endsIn(r.URL.Hostname(), fileHosts)) {
		return nil, replyfile.Unavailable(errors.New("the file is not at one of Meta's hosts"))
	}
	if operators || endsIn(r.URL.Hostname(), tokenHosts) {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	r.Header.Set("User-Agent", "Puntuale") // Meta refuses requests without a User-Agent
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

// hashOfRef decodes the hash of a file, which webhooks write in base64. It returns nil if there is none.
func hashOfRef(text string) []byte {
	sum, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(sum) != sha256.Size {
		return nil
	}
	return sum
}
