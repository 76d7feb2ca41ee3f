//go:build !nosocket

package whatsapptest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"go.mau.fi/whatsmeow/socket"
)

// maxMedia is the largest accepted upload, in bytes.
const maxMedia = 256 << 20

// mediaKinds are the kinds of media in the paths of uploads and downloads.
var mediaKinds = []string{"image", "video", "audio", "document", "sticker", "thumbnail-link", "md-msg-hist", "md-app-state"}

// mediaHosts answers which host stores media.
func (c *connection) mediaHosts(s stanza) {
	c.result(s, element("media_conn", attrs{"auth": mediaAuth, "ttl": "300", "auth_ttl": "21600", "max_buckets": "12"},
		element("host", attrs{"hostname": MediaHost})))
}

const mediaAuth = "loopback"

// media handles the requests to the media host, which stores encrypted blobs by their hash.
func (n *Network) media(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Origin") != socket.Origin {
		n.refuseMedia(w, r, http.StatusForbidden)
		return
	}
	switch r.Method {
	case http.MethodPost:
		n.upload(w, r)
	case http.MethodGet:
		n.mu.Lock()
		blob, found := n.blobs[r.URL.Path]
		failing := n.mediaFailure()
		n.mu.Unlock()
		switch {
		case failing != 0:
			http.Error(w, "failing", failing)
		case !found:
			http.NotFound(w, r)
		case !r.URL.Query().Has("hash") || !r.URL.Query().Has("mms-type"):
			n.refuseMedia(w, r, http.StatusBadRequest)
		default:
			_, _ = w.Write(blob)
		}
	case http.MethodDelete: // clients delete a history after they have read it
		w.WriteHeader(http.StatusNoContent)
	default:
		n.refuseMedia(w, r, http.StatusMethodNotAllowed)
	}
}

func (n *Network) upload(w http.ResponseWriter, r *http.Request) {
	parts := strings.Split(strings.TrimPrefix(r.URL.Path, "/mms/"), "/")
	body, err := io.ReadAll(io.LimitReader(r.Body, maxMedia))
	if err != nil {
		return // the client disconnected
	}
	sum := sha256.Sum256(body)
	token := base64.URLEncoding.EncodeToString(sum[:])
	query := r.URL.Query()
	if len(parts) != 2 || !slices.Contains(mediaKinds, parts[0]) || parts[1] != token || query.Get("token") != token || query.Get("auth") != mediaAuth {
		n.refuseMedia(w, r, http.StatusBadRequest)
		return
	}
	path := "/v/t62/" + parts[0] + "/" + base64.RawURLEncoding.EncodeToString(sum[:]) + ".enc"
	n.mu.Lock()
	failing := n.mediaFailure()
	if failing == 0 {
		n.blobs[path] = body
	}
	n.mu.Unlock()
	if failing != 0 {
		http.Error(w, "failing", failing)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]string{"url": "https://" + MediaHost + path + "?ccb=11-4", "direct_path": path + "?ccb=11-4"})
}

func (n *Network) refuseMedia(w http.ResponseWriter, r *http.Request, status int) {
	n.mu.Lock()
	n.misunderstood("%s https://%s%s from %q", r.Method, r.Host, r.URL.Path, r.Header.Get("Origin"))
	n.mu.Unlock()
	http.Error(w, "not understood", status)
}

// FailMedia answers the next uploads and downloads with an HTTP status. If times is 0, they fail until FailMedia(0, 0).
func (n *Network) FailMedia(status, times int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if times == 0 {
		times = -1
	}
	n.mediaStatus, n.mediaTimes = status, times
}

// mediaFailure returns the HTTP status with which the next media request fails, or 0. The caller holds n.mu.
func (n *Network) mediaFailure() int {
	if n.mediaStatus == 0 || n.mediaTimes == 0 {
		return 0
	}
	if n.mediaTimes > 0 {
		n.mediaTimes--
	}
	return n.mediaStatus
}

// ForgetMedia deletes all uploads, as the service does after some weeks.
func (n *Network) ForgetMedia() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.blobs)
}
