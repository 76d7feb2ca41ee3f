package puntuale

import (
	"context"
	"io"
	"path"
	"strings"
)

// MediaSource gets what a message's media address leads to. Connectors ask it in Prepare; its methods may be called by
// many goroutines at once.
type MediaSource interface {
	// Fetch returns the file. The steps of a run, and their retries, share one fetch of an address, for as long as the
	// source keeps files. It returns when the context ends; the fetch goes on while others wait for it.
	//
	// Every error is a [*SendError]. It is Final when trying again would not help: a forbidden address, a refusal, a
	// file too large or of the wrong kind. Else it is Transient. Its words are safe to show to the caller: they tell
	// nothing of our own network.
	Fetch(ctx context.Context, r MediaRequest) (*Media, error)
}

// MediaRequest names one file of one run.
type MediaRequest struct {
	Client   ClientID
	Run      RunID
	URL      string
	MaxBytes int64 // the most that the connector can carry of this kind; 0: the source's own limit
}

// Media is one fetched file. Each Fetch returns a reader of its own, which must be closed.
type Media struct {
	io.ReadSeekCloser
	Size        int64  // bytes, at least 1
	ContentType string // a media type without parameters, "image/jpeg"; "application/octet-stream" when nobody knows
}

// MediaKind is what WhatsApp makes of a file, by the extension of its name or address: image, video, audio or document.
func MediaKind(name string) string {
	name, _, _ = strings.Cut(name, "?")
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return "image"
	case ".mp4", ".3gp":
		return "video"
	case ".mp3", ".ogg", ".aac", ".amr", ".m4a":
		return "audio"
	}
	return "document"
}
