package media

import (
	"context"
	"errors"

	"puntuale"
	content "puntuale/internal/file"
)

// FileReader reads the files that a client uploaded; see [puntuale.Tenant].
type FileReader interface {
	File(ctx context.Context, id puntuale.FileID) (puntuale.File, error)
	FilePart(ctx context.Context, id puntuale.FileID, n int) ([]byte, error)
}

// UploadedSource is a [puntuale.MediaSource]. It reads uploaded files in the store, and fetches all other files from Next.
type UploadedSource struct {
	Next  puntuale.MediaSource // nil: only uploaded files are read
	Files func(puntuale.ClientID) FileReader
}

// reasonDeleted says that an uploaded file is no longer there.
const reasonDeleted puntuale.ReasonCode = "media.deleted"

// Fetch returns the file at the address; see [puntuale.MediaSource].
func (u UploadedSource) Fetch(ctx context.Context, r puntuale.MediaRequest) (*puntuale.Media, error) {
	id, named := puntuale.UploadedFile(r.URL)
	switch {
	case !named && u.Next == nil:
		return nil, transient(reasonLater, reasonNotStored, errNotFetched)
	case !named:
		return u.Next.Fetch(ctx, r)
	case id == "":
		return nil, final(puntuale.ReasonFileAddress, reasonNoAddress, nil)
	}
	files := u.Files(r.Client)
	f, err := files.File(ctx, id)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return nil, final(reasonMissing, reasonDeleted, err)
	case err != nil:
		return nil, transient(reasonLater, reasonNotStored, err)
	case r.MaxBytes > 0 && f.Size > r.MaxBytes:
		return nil, tooBig(r.MaxBytes)
	}
	return &puntuale.Media{
		ReadSeekCloser: content.NewReader(f.Size, func(n int) ([]byte, error) { return files.FilePart(ctx, id, n) }),
		Size:           f.Size, ContentType: f.Type, Name: f.Name, Hash: f.Hash,
	}, nil
}

var errNotFetched = errors.New("this server fetches no files")
