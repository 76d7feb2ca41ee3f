package official

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"puntuale"
)

// sampleTypes are the content types that Meta takes as samples of templates, by the kind of the header.
var sampleTypes = map[string][]string{"image": {"image/jpeg", "image/png"}, "video": {"video/mp4"}, "document": {"application/pdf"}}

// sample uploads the sample of a draft's header, and returns Meta's handle of it. An interrupted upload continues where
// it stopped. A reason says why the sample cannot be used.
func (c *Connector) sample(ctx context.Context, k puntuale.OfficialKeys, r *puntuale.TemplateRequest) (handle string, refusal puntuale.Reason, err error) {
	if k.AppID == "" {
		return "", puntuale.Because(reasonNoApp), nil
	}
	if c.cfg.Media == nil {
		return "", puntuale.Because(puntuale.ReasonNoFiles), nil
	}
	header := r.Draft.Header
	file, err := c.cfg.Media.Fetch(ctx, puntuale.MediaRequest{Client: r.Client, URL: header.Media, MaxBytes: documentKind.maxBytes})
	if err != nil {
		if e := puntuale.AsSendError(err); e != nil && e.Kind == puntuale.Final {
			return "", puntuale.Because(reasonMetaSays, puntuale.Because(reasonSample).Stored(), e.Reason.Stored()), nil
		}
		return "", puntuale.Reason{}, &unsentError{err}
	}
	defer file.Close()
	if kind := mediaKinds[file.ContentType]; !slices.Contains(sampleTypes[header.Kind], file.ContentType) || file.Size > kind.maxBytes {
		return "", puntuale.Because(reasonSample), nil
	}
	for range 2 {
		if handle, err = c.uploadSample(ctx, k, r, file, cmp.Or(file.Name, path.Base(header.Media))); err == nil {
			return handle, puntuale.Reason{}, nil
		}
		if refused, ok := errors.AsType[*graphError](err); !ok || refused.Subcode != missingObject || r.Upload == "" {
			break
		}
		r.Upload = "" // Meta forgot the upload
	}
	if _, refused := errors.AsType[*graphError](err); !refused {
		err = &unsentError{err} // an upload may be repeated after any error, because no person sees it
	}
	return "", puntuale.Reason{}, err
}

func (c *Connector) uploadSample(ctx context.Context, k puntuale.OfficialKeys, r *puntuale.TemplateRequest, file *puntuale.Media, name string) (string, error) {
	offset := int64(0)
	if r.Upload == "" {
		var begun struct {
			ID string `json:"id"`
		}
		query := url.Values{"file_name": {name}, "file_length": {strconv.FormatInt(file.Size, 10)}, "file_type": {file.ContentType}}
		if err := c.graph.call(ctx, r.Client, k, http.MethodPost, url.PathEscape(k.AppID)+"/uploads", query, nil, 0, "", &begun); err != nil {
			return "", err
		}
		if begun.ID == "" {
			return "", errors.New("the answer has no id")
		}
		r.Upload = begun.ID
		if _, err := c.cfg.Store.ProgressTemplateRequest(ctx, *r, r.State); err != nil {
			return "", fmt.Errorf("store an upload: %w", err)
		}
	} else {
		var stands struct {
			Offset int64 `json:"file_offset"`
		}
		if err := c.graph.piece(ctx, r.Client, k, http.MethodGet, r.Upload, 0, nil, 0, &stands); err != nil {
			return "", err
		}
		offset = max(0, min(stands.Offset, file.Size))
	}
	if _, err := file.Seek(offset, io.SeekStart); err != nil {
		return "", fmt.Errorf("read a file: %w", err)
	}
	var done struct {
		Handle string `json:"h"`
	}
	if err := c.graph.piece(ctx, r.Client, k, http.MethodPost, r.Upload, offset, io.LimitReader(file, file.Size-offset), file.Size-offset, &done); err != nil {
		return "", err
	}
	if done.Handle == "" {
		return "", errors.New("the answer has no handle")
	}
	return done.Handle, nil
}

// piece reads where an upload stands, or sends the rest of its file.
func (g *graph) piece(ctx context.Context, client puntuale.ClientID, k puntuale.OfficialKeys, method, upload string, offset int64, body io.Reader, length int64, target any) error {
	sep := "?" // Meta's id of an upload may contain a query
	if strings.Contains(upload, "?") {
		sep = "&"
	}
	r, err := http.NewRequestWithContext(ctx, method, g.base+"/"+upload+sep+"appsecret_proof="+proof(k), body)
	if err != nil {
		return &unsentError{bare(err)}
	}
	r.Header.Set("Authorization", "OAuth "+k.AccessToken)
	if body != nil {
		r.Header.Set("file_offset", strconv.FormatInt(offset, 10)) //nolint:canonicalheader // Meta's own name
		r.ContentLength = length
	}
	return g.do(ctx, client, r, target)
}
