package page

import (
	"errors"
	"io"
	"net/http"
	"net/url"

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
