package page

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/view"
)

// Upload reads a form with one file, part by part. If the file is larger than limit, Upload returns its first limit+1
// bytes, so that the caller can refuse it. In this case it reads nothing after the file, so the form has only the
// fields before the file. The file is nil if the person chose none. Codes: too_large, unreadable.
func (v *Request) Upload(name string, limit int64) (f *view.Form, file []byte, err error) {
	parts, err := v.HTTP.MultipartReader()
	if errors.Is(err, http.ErrNotMultipart) {
		f, err = v.Form()
		return f, nil, err
	}
	values := url.Values{}
	for err == nil && int64(len(file)) <= limit {
		part, next := parts.NextPart()
		if errors.Is(next, io.EOF) {
			break
		}
		if err = next; err != nil {
			break
		}
		var content []byte
		if part.FormName() == name {
			file, err = io.ReadAll(io.LimitReader(part, limit+1))
		} else if content, err = io.ReadAll(part); err == nil {
			values.Add(part.FormName(), string(content))
		}
	}
	if err != nil {
		return nil, nil, Unreadable(err)
	}
	if len(file) == 0 {
		file = nil
	}
	return &view.Form{Values: clean(values)}, file, nil
}

// maxListFile is the largest upload of a list in bytes: the file and the fields before it. maxListText is the largest size
// of each of these fields. maxListTexts is that of all of them with their names, because they stay in memory.
const (
	maxListFile  = 100<<20 + maxListTexts
	maxListText  = 64 << 10
	maxListTexts = 1 << 20
)

// partBytes is what a part of a form takes in memory at least.
const partBytes = 256

// UploadBody returns the body of an upload of at most this many bytes, while it arrives. The request has no seat any more.
// Codes: too_large.
func (v *Request) UploadBody(most int64) (io.Reader, error) {
	if err := admission.CheckLength(v.HTTP, most); err != nil {
		return nil, err
	}
	v.Pass.LeaveSeat() // each transaction of the upload waits for its own seat
	v.HTTP.Body = http.MaxBytesReader(v.Writer, struct {
		io.Reader
		io.Closer
	}{admission.ReadOn(v.Writer, v.HTTP, clock.System().Now), v.HTTP.Body}, most)
	return v.HTTP.Body, nil
}

// Unhurried returns a context in which the time that an upload takes does not count as waiting for the server.
func (v *Request) Unhurried() context.Context {
	return puntuale.WithAdmissionDeadline(v.Ctx(), puntuale.NewAdmissionDeadline(nil, false))
}

// UploadList reads a form whose last part is a list in a file. It puts the parts before the file into the form, and calls
// read with the file while the file arrives.
func (v *Request) UploadList(f *view.Form, read func(ctx context.Context, file io.Reader, kind string) error) error {
	if _, err := v.UploadBody(maxListFile); err != nil {
		return err
	}
	none := puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: puntuale.FaultRequired})
	parts, err := v.HTTP.MultipartReader()
	if err != nil {
		return none
	}
	for texts := 0; ; {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return none
		}
		if err != nil {
			return Unreadable(err)
		}
		content, kind := io.Reader(part), part.Header.Get("Content-Type")
		switch name := part.FormName(); {
		case name == "pasted": // rows in the place of a file
			first := make([]byte, 1)
			if n, _ := io.ReadFull(part, first); n == 0 {
				continue
			}
			content, kind = io.MultiReader(bytes.NewReader(first), part), "text/csv; charset=utf-8"
		case name != "file":
			text, err := io.ReadAll(io.LimitReader(part, maxListText))
			if err != nil {
				return Unreadable(err)
			}
			if texts += partBytes + len(part.FormName()) + len(text); texts > maxListTexts {
				return &puntuale.Error{Code: puntuale.CodeTooLarge, Reason: puntuale.Because(faultFormTooLarge)}
			}
			f.Values.Add(part.FormName(), strings.ToValidUTF8(string(text), "\uFFFD"))
			continue
		case part.FileName() == "":
			continue
		}
		f.Values.Set("file_name", cmp.Or(part.FileName(), part.FormName()))
		err = read(v.Unhurried(), content, kind)
		if _, returned := v.Pass.Return(v.Ctx()); returned != nil && err == nil {
			err = returned
		}
		return err
	}
}
