package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"

	"puntuale"
	"puntuale/internal/clamd"
	"puntuale/internal/connector/replyfile"
	"puntuale/internal/intake"
	"puntuale/internal/media"
)

// replyFolder is the folder for the files of replies while they are open.
func (s *baseSettings) replyFolder() string { return filepath.Join(s.Data, "replies") }

// scan returns the function that looks for viruses in a file; nil if the operator set no scanner.
func (s *networkSettings) scan() func(context.Context, io.Reader) (string, error) {
	if s.Clamd == "" {
		return nil
	}
	return clamd.Scanner{Address: s.Clamd}.Scan
}

// fileFetcher returns the part that keeps the files of replies.
func (s *server) fileFetcher(cfg *serverConfig) *intake.FileFetcher {
	return &intake.FileFetcher{Store: s.store, Clock: cfg.Clock, Logger: cfg.Logger, Keep: func(ctx context.Context, x puntuale.IncomingFile) error {
		c, err := s.control.OfNetwork(ctx, x.Client)
		if err != nil {
			return err
		}
		return c.KeepFile(ctx, x)
	}}
}

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
