package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"

	"puntuale"
	"puntuale/internal/connector/replyfile"
	"puntuale/internal/media"
)

// replyFolder is the folder for the files of replies while they are open.
func (s *baseSettings) replyFolder() string { return filepath.Join(s.Data, "replies") }

// openReplies makes the opener, which fetches the files of replies. Every node has one, because it can fetch any file
// without the session's connection.
func (s *server) openReplies(cfg *serverConfig) (puntuale.MediaOpener, error) {
	if err := os.MkdirAll(cfg.replyFolder(), 0o700); err != nil {
		return nil, fmt.Errorf("make the folder for files of replies: %w", err)
	}
	bounded := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library sets this type
	bounded.MaxResponseHeaderBytes = 64 << 10
	var via http.RoundTripper = bounded
	if cfg.WhatsApp != nil {
		via = cfg.WhatsApp.Transport
	}
	whatsapp := replyfile.Opener{Via: via, Folder: cfg.replyFolder()}
	return media.NewOpener(func(session puntuale.Session) puntuale.MediaOpener {
		switch {
		case session.Sandbox || session.ByDevice():
			return nil
		case session.Type == puntuale.Official:
			return s.networks.official
		}
		return whatsapp
	}), nil
}
