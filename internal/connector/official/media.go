package official

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"puntuale"
)

// mediaKind says how Meta shows files of certain content types, and how large such files may be.
type mediaKind struct {
	kind     string // "image", "video", "audio" or "document"
	maxBytes int64
	voice    bool
	name     string // of an uploaded file
}

const mega = 1 << 20

// Limits by kind. (Meta, business-phone-numbers/media.)
var (
	imageKind    = mediaKind{kind: "image", maxBytes: 5 * mega}
	videoKind    = mediaKind{kind: "video", maxBytes: 16 * mega}
	audioKind    = mediaKind{kind: "audio", maxBytes: 16 * mega}
	documentKind = mediaKind{kind: "document", maxBytes: 100 * mega}
)

// mediaKinds are the content types that Meta accepts.
var mediaKinds = map[string]mediaKind{
	"image/jpeg": imageKind, "image/png": imageKind,
	"video/mp4": videoKind, "video/3gpp": videoKind,
	"audio/aac": audioKind, "audio/amr": audioKind, "audio/mpeg": audioKind, "audio/mp4": audioKind, "audio/ogg": audioKind,
	"text/plain": documentKind, "application/pdf": documentKind, "application/msword": documentKind,
	"application/vnd.ms-excel": documentKind, "application/vnd.ms-powerpoint": documentKind,
	"application/vnd.openxmlformats-officedocument.wordprocessingml.document":   documentKind,
	"application/vnd.openxmlformats-officedocument.spreadsheetml.sheet":         documentKind,
	"application/vnd.openxmlformats-officedocument.presentationml.presentation": documentKind,
}

// kindsByExtension gives the kind of a file by the extension in its address. Until the file's content type is known,
// this kind limits how many bytes are fetched.
var kindsByExtension = map[string]mediaKind{
	".jpg": imageKind, ".jpeg": imageKind, ".png": imageKind, ".mp4": videoKind, ".3gp": videoKind,
	".mp3": audioKind, ".ogg": audioKind, ".aac": audioKind, ".amr": audioKind, ".m4a": audioKind,
}

// uploadLife is how long an upload is used. Meta stores uploads for 30 days.
const uploadLife = 29 * 24 * time.Hour

// upload sends a message's file to Meta, unless Meta has it already. It returns the file's id at Meta.
func (c *Connector) upload(ctx context.Context, a *account, k puntuale.OfficialKeys, e puntuale.Envelope) (mediaKind, string, *puntuale.Upload, error) {
	if c.cfg.Media == nil {
		return mediaKind{}, "", nil, final(puntuale.ReasonNoFiles, puntuale.Because(puntuale.ReasonNoFetcher))
	}
	file, err := c.cfg.Media.Fetch(ctx, puntuale.MediaRequest{Client: e.Client, Run: e.Run, URL: e.Content.MediaURL, MaxBytes: worthFetching(e.Content)})
	if err != nil {
		return mediaKind{}, "", nil, err
	}
	defer file.Close()
	kind, err := checkFile(file)
	if err != nil {
		return mediaKind{}, "", nil, err
	}
	hash, err := hashOf(file)
	if err != nil {
		return mediaKind{}, "", nil, err
	}
	kind.name = file.Name
	e.Content.MediaName = cmp.Or(e.Content.MediaName, file.Name)
	u := puntuale.Upload{Client: e.Client, Session: e.Session, Number: k.PhoneNumberID, Hash: hash}
	id, err := c.uploads.uploadOnce(ctx, u, func() (string, error) { return c.uploadOnce(ctx, a, k, u, file, fileName(e.Content)) })
	return kind, id, &u, err
}

func (c *Connector) uploadOnce(ctx context.Context, a *account, k puntuale.OfficialKeys, u puntuale.Upload, file *puntuale.Media, name string) (string, error) {
	now := c.cfg.Clock.Now()
	id, err := c.cfg.Store.Upload(ctx, u, now)
	if err != nil || id != "" {
		return id, err
	}
	if err := file.CheckReadable(); err != nil {
		return "", err
	}
	body, length, kind, err := form(file, name)
	if err != nil {
		return "", err
	}
	var answer struct {
		ID string `json:"id"`
	}
	err = c.graph.call(ctx, u.Client, k, http.MethodPost, url.PathEscape(k.PhoneNumberID)+"/media", nil, body, length, kind, &answer)
	if refusal, ok := errors.AsType[*graphError](err); ok {
		return "", c.refuse(ctx, a, refusal, "", "")
	}
	if err == nil && answer.ID == "" {
		err = errors.New("the answer has no id")
	}
	if err != nil { // an upload may be repeated after any error, because no person sees it
		return "", &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because(puntuale.ReasonNotUploaded), Detail: notUploaded(err), Err: err}
	}
	return answer.ID, c.cfg.Store.KeepUpload(ctx, u, answer.ID, now.Add(uploadLife))
}

func worthFetching(c puntuale.Content) int64 {
	extension := path.Ext(c.MediaName)
	if u, err := url.Parse(c.MediaURL); err == nil && path.Ext(u.Path) != "" {
		extension = path.Ext(u.Path)
	}
	if k, ok := kindsByExtension[strings.ToLower(extension)]; ok {
		return k.maxBytes
	}
	return documentKind.maxBytes
}

// opusLook is how many bytes at the start of a file are searched for the codec's name.
const opusLook = 512

// notUploaded returns the reason of a refusal after an upload failed.
func notUploaded(err error) puntuale.Reason {
	if unsent, ok := errors.AsType[*unsentError](err); ok {
		return puntuale.Because(puntuale.ReasonUnsent, storable(unsent.err.Error()))
	}
	return puntuale.Quoted(storable(err.Error()))
}

// checkFile refuses a file that Meta would refuse. It runs before the upload.
func checkFile(file *puntuale.Media) (mediaKind, error) {
	k, ok := mediaKinds[file.ContentType]
	switch {
	case !ok:
		return k, final(puntuale.ReasonFileType, puntuale.Quoted(storable(clip(file.ContentType, 100))))
	case file.Size > k.maxBytes:
		return k, final(puntuale.ReasonTooLarge, puntuale.Because(puntuale.ReasonBeyondBytes, k.kind, strconv.FormatInt(k.maxBytes, 10)))
	case file.ContentType != "audio/ogg":
		return k, nil
	case len(file.Hash) > 0: // an uploaded file was looked at when it arrived
		k.voice = true
		return k, nil
	}
	head := make([]byte, opusLook)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return k, fmt.Errorf("read a file: %w", err)
	}
	if !bytes.Contains(head[:n], []byte("OpusHead")) {
		return k, final(puntuale.ReasonOnlyOpus, puntuale.Because(puntuale.ReasonNoOpus))
	}
	k.voice = true
	return k, nil
}

func hashOf(file *puntuale.Media) (string, error) {
	sum := sha256.New()
	_, _ = io.WriteString(sum, file.ContentType+"\x00")
	if len(file.Hash) > 0 {
		_, _ = sum.Write(file.Hash)
		return "stored " + hex.EncodeToString(sum.Sum(nil)), nil
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// form returns the body of an upload and its length. The length is known before the file is read.
func form(file *puntuale.Media, name string) (body io.Reader, length int64, kind string, err error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, 0, "", fmt.Errorf("read a file: %w", err)
	}
	var multipartBody bytes.Buffer
	w := multipart.NewWriter(&multipartBody)
	header := textproto.MIMEHeader{}
	header.Set("Content-Disposition", multipart.FileContentDisposition("file", name))
	header.Set("Content-Type", file.ContentType)
	if err := errors.Join(w.WriteField("messaging_product", "whatsapp"), w.WriteField("type", file.ContentType)); err != nil {
		return nil, 0, "", err
	}
	if _, err := w.CreatePart(header); err != nil {
		return nil, 0, "", err
	}
	head := bytes.Clone(multipartBody.Bytes())
	if err := w.Close(); err != nil {
		return nil, 0, "", err
	}
	tail := multipartBody.Bytes()[len(head):]
	return io.MultiReader(bytes.NewReader(head), file, bytes.NewReader(tail)), int64(multipartBody.Len()) + file.Size, w.FormDataContentType(), nil
}

// uploads joins uploads of the same file, so that several messages wait for one upload.
type uploads struct {
	mu  sync.Mutex
	all map[puntuale.Upload]*underWay
}

type underWay struct {
	done chan struct{}
	id   string
	err  error
}

// uploadOnce runs do. If another goroutine is uploading the same file, uploadOnce instead waits for the result of that
// upload.
func (u *uploads) uploadOnce(ctx context.Context, upload puntuale.Upload, do func() (string, error)) (string, error) {
	u.mu.Lock()
	if u.all == nil {
		u.all = map[puntuale.Upload]*underWay{}
	}
	if w := u.all[upload]; w != nil {
		u.mu.Unlock()
		select {
		case <-w.done:
			return w.id, w.err
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	w := &underWay{done: make(chan struct{}), err: errors.New("the upload ended without an answer")}
	u.all[upload] = w
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		delete(u.all, upload)
		u.mu.Unlock()
		close(w.done)
	}()
	w.id, w.err = do()
	return w.id, w.err
}
