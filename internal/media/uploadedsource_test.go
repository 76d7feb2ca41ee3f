package media

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"puntuale"
)

// oneFile is a client's store with one file.
type oneFile struct{ failed error }

const ownFile = puntuale.FileID("aaaaaaaaaaaaaaaaaaaaaaaaaa.pdf")

func (o oneFile) File(_ context.Context, id puntuale.FileID) (puntuale.File, error) {
	if id != ownFile {
		return puntuale.File{}, puntuale.NotFound(puntuale.NoFile)
	}
	return puntuale.File{ID: id, Name: "Listino.pdf", Type: "application/pdf", Hash: []byte{7}, Size: 5}, o.failed
}

func (oneFile) FilePart(context.Context, puntuale.FileID, int) ([]byte, error) {
	return []byte("%PDF-"), nil
}

// Uploaded files come from the client's own store, and never from the network. A file that is gone is final; a store that
// does not answer is not.
func TestUploadedSource(t *testing.T) {
	t.Parallel()
	var asked puntuale.ClientID
	u := UploadedSource{Files: func(id puntuale.ClientID) FileReader { asked = id; return oneFile{} }}
	m, err := u.Fetch(t.Context(), puntuale.MediaRequest{Client: 7, URL: ownFile.Address()})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(m); err != nil || string(got) != "%PDF-" || m.Size != 5 || m.ContentType != "application/pdf" || m.Name != "Listino.pdf" || string(m.Hash) != "\a" || asked != 7 {
		t.Errorf("%q, %v, %+v, client %d", got, err, m, asked)
	}
	broken := UploadedSource{Files: func(puntuale.ClientID) FileReader { return oneFile{errors.New("no answer")} }}
	for name, c := range map[string]struct {
		source UploadedSource
		r      puntuale.MediaRequest
		kind   puntuale.SendErrorKind
	}{
		"gone":        {u, puntuale.MediaRequest{URL: "file:" + strings.Repeat("b", 26) + ".pdf"}, puntuale.Final},
		"no id":       {u, puntuale.MediaRequest{URL: "file:///etc/passwd"}, puntuale.Final},
		"too large":   {u, puntuale.MediaRequest{URL: ownFile.Address(), MaxBytes: 4}, puntuale.Final},
		"no store":    {broken, puntuale.MediaRequest{URL: ownFile.Address()}, puntuale.Transient},
		"no fetching": {u, puntuale.MediaRequest{URL: "https://example.com/a.pdf"}, puntuale.Transient},
	} {
		_, err := c.source.Fetch(t.Context(), c.r)
		if e := puntuale.AsSendError(err); e == nil || e.Kind != c.kind {
			t.Errorf("%s: %v", name, err)
		}
	}
}
