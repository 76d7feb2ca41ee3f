//go:build !nosocket

package socket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.mau.fi/whatsmeow"
	"golang.org/x/sync/singleflight"

	"puntuale"
	content "puntuale/internal/file"
)

// file is a file that was uploaded to the network. Each file is encrypted with a new key.
type file struct {
	response whatsmeow.UploadResponse
	kind     whatsmeow.MediaType
	mime     string
	voice    bool

	thumbnail     []byte // an image's thumbnail
	width, height int
	seconds       int // a voice note's length
	validUntil    time.Time
}

const mega = 1 << 20

// maxBytes is the largest size of each kind of file that WhatsApp's own apps accept. For documents only the fetcher
// has a limit.
var maxBytes = map[whatsmeow.MediaType]int64{
	whatsmeow.MediaImage: 16 * mega, whatsmeow.MediaVideo: 64 * mega, whatsmeow.MediaAudio: 16 * mega,
}

// kindOf returns how phones show a file of a content type. Every type without a case is a document.
func kindOf(contentType string) whatsmeow.MediaType {
	switch contentType {
	case "image/jpeg", "image/png", "image/webp":
		return whatsmeow.MediaImage
	case "video/mp4", "video/3gpp":
		return whatsmeow.MediaVideo
	case "audio/aac", "audio/amr", "audio/mpeg", "audio/mp4", "audio/ogg":
		return whatsmeow.MediaAudio
	}
	return whatsmeow.MediaDocument
}

// kindsByExtension gives the kind of a file by the extension in its address. Until the file's content type is known,
// this kind limits how many bytes are fetched.
var kindsByExtension = map[string]whatsmeow.MediaType{
	".jpg": whatsmeow.MediaImage, ".jpeg": whatsmeow.MediaImage, ".png": whatsmeow.MediaImage, ".webp": whatsmeow.MediaImage,
	".mp4": whatsmeow.MediaVideo, ".3gp": whatsmeow.MediaVideo,
	".mp3": whatsmeow.MediaAudio, ".ogg": whatsmeow.MediaAudio, ".aac": whatsmeow.MediaAudio, ".amr": whatsmeow.MediaAudio, ".m4a": whatsmeow.MediaAudio,
}

func worthFetching(c puntuale.Content) int64 {
	u, err := url.Parse(c.MediaURL)
	if err != nil {
		return 0
	}
	return maxBytes[kindsByExtension[strings.ToLower(path.Ext(u.Path))]]
}

const (
	fileKept = 6 * time.Hour // after this time a file is uploaded again; the network stores files for days
	maxFiles = 200
)

// files are the files that one number uploaded recently. Their key is a hash of the content.
type files struct {
	uploadOnce singleflight.Group
	mu         sync.Mutex
	all        map[string]*file
}

func newFiles() *files { return &files{all: map[string]*file{}} }

func (f *files) get(hash string, now time.Time) *file {
	f.mu.Lock()
	defer f.mu.Unlock()
	if found := f.all[hash]; found != nil && now.Before(found.validUntil) {
		return found
	}
	return nil
}

func (f *files) keep(hash string, one *file, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) >= maxFiles {
		for old, other := range f.all {
			if !now.Before(other.validUntil) {
				delete(f.all, old)
			}
		}
		if len(f.all) >= maxFiles {
			clear(f.all)
		}
	}
	one.validUntil = now.Add(fileKept)
	f.all[hash] = one
}

// upload sends a message's file to the network, unless it was uploaded recently. No person sees an upload, so it may be
// repeated. name is the name of a file that the client uploaded.
func (n *number) upload(ctx context.Context, cli *whatsmeow.Client, e puntuale.Envelope) (f *file, name string, err error) {
	source := n.c.cfg.Media
	if source == nil {
		return nil, "", final(puntuale.ReasonNoFiles, puntuale.Because(puntuale.ReasonNoFetcher))
	}
	got, err := source.Fetch(ctx, puntuale.MediaRequest{Client: e.Client, Run: e.Run, URL: e.Content.MediaURL, MaxBytes: worthFetching(e.Content)})
	if err != nil {
		return nil, "", err
	}
	defer got.Close()
	kind := kindOf(got.ContentType)
	if limit := maxBytes[kind]; limit > 0 && got.Size > limit {
		return nil, "", final(puntuale.ReasonTooLarge, puntuale.Because(reasonOverLimit, strconv.FormatInt(limit, 10)))
	}
	hash, err := hashOf(got)
	if err != nil {
		return nil, "", err
	}
	now := n.c.cfg.Clock.Now()
	if found := n.files.get(hash, now); found != nil {
		return found, got.Name, nil
	}
	made, err, _ := n.files.uploadOnce.Do(hash, func() (any, error) {
		one, err := uploadNow(ctx, cli, kind, got)
		if err == nil {
			n.files.keep(hash, one, now)
		}
		return one, err
	})
	if err != nil {
		return nil, "", err
	}
	one, _ := made.(*file)
	return one, got.Name, nil
}

func hashOf(m *puntuale.Media) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, m.ContentType+"\x00")
	if len(m.Hash) > 0 {
		_, _ = sum.Write(m.Hash)
		return "stored " + hex.EncodeToString(sum.Sum(nil)), nil
	}
	if _, err := io.Copy(sum, m); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func uploadNow(ctx context.Context, cli *whatsmeow.Client, kind whatsmeow.MediaType, m *puntuale.Media) (*file, error) {
	f := &file{kind: kind, mime: m.ContentType}
	if err := f.look(m); err != nil {
		return nil, err
	}
	if _, err := m.Seek(0, io.SeekStart); err != nil {
		return nil, fmt.Errorf("read a file: %w", err)
	}
	up, err := cli.UploadReader(ctx, m, nil, kind)
	if err != nil {
		return nil, &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonNotUploaded), Detail: puntuale.Quoted(clip(err.Error(), 200)), Err: err}
	}
	f.response = up
	return f, nil
}

// look reads from the file what phones show before a person opens it: a thumbnail, or the length of a voice note.
func (f *file) look(m *puntuale.Media) error {
	if _, err := m.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("read a file: %w", err)
	}
	switch {
	case f.kind == whatsmeow.MediaImage:
		f.thumbnail, f.width, f.height = content.Small(func() io.Reader {
			_, _ = m.Seek(0, io.SeekStart) // if this fails, so does the next read
			return m
		}, thumbnailSide)
	case f.mime == "audio/ogg":
		head := make([]byte, oggLook)
		k, err := io.ReadFull(m, head)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("read a file: %w", err)
		}
		if !bytes.Contains(head[:k], []byte("OpusHead")) {
			return final(puntuale.ReasonOnlyOpus, puntuale.Because(puntuale.ReasonNoOpus))
		}
		f.voice, f.mime = true, "audio/ogg; codecs=opus"
		f.seconds = opusSeconds(m, m.Size)
	}
	return nil
}
