package file

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

var fileRoutes = []page.Route{
	page.Post("/c/{client}/files", page.ClientSide, puntuale.Staff, "file.upload", upload),
	page.Get("/c/{client}/files/{id}", page.ClientSide, puntuale.Reader, show),
}

// uploadAnswer is what the form's script needs.
type uploadAnswer struct {
	Media string `json:"media,omitempty"` // for the field with the address
	Name  string `json:"name,omitempty"`
	Says  string `json:"says"` // what the person reads
}

// upload stores a file, and tells the form's script. A refusal says why.
func upload(v *page.Request) error {
	var f puntuale.File
	err := v.UploadList(&view.Form{Values: map[string][]string{}}, func(ctx context.Context, content io.Reader, _ string) (err error) {
		f, err = v.Client.UploadFile(ctx, fileName(content), content)
		return err
	})
	if e, status := page.Refusal(err); e != nil {
		return answer(v, status, uploadAnswer{Says: v.Frame.Language.Fault(page.FirstFault(e))})
	}
	if e, ok := errors.AsType[*puntuale.Error](err); ok && (e.Code == puntuale.CodeTooLarge || e.Code == puntuale.CodeOverloaded) {
		return answer(v, httpkit.Status(e.Code), uploadAnswer{Says: v.Frame.Language.Fault(e.Reason)})
	}
	if err != nil {
		return err
	}
	v.SetAuditTarget(string(f.ID))
	return answer(v, http.StatusOK, uploadAnswer{f.ID.Address(), f.Name, v.T("file.uploaded", "Name", f.Name, "KB", (f.Size+1023)/1024)})
}

// fileName returns the name that the browser sent with a part of a form.
func fileName(part io.Reader) string {
	if named, ok := part.(interface{ FileName() string }); ok {
		return named.FileName()
	}
	return ""
}

func answer(v *page.Request, status int, body uploadAnswer) error {
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	v.Writer.WriteHeader(status)
	_ = json.NewEncoder(v.Writer).Encode(body) // this fails only if the browser has disconnected
	return nil
}

// show sends a file to the browser, which runs nothing in it. The browser shows images, and saves everything else.
func show(v *page.Request) error {
	f, err := v.Client.File(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the request has no seat while it waits and while the answer is sent, because the reader may be slow
	content, err := v.Client.OpenFile(v.Ctx(), f)
	if err != nil {
		return err
	}
	defer func() { _ = content.Close() }()
	v.Answered = true
	disposition := "attachment"
	if puntuale.MediaKind(string(f.ID)) == "image" {
		disposition = "inline"
	}
	h := v.Writer.Header()
	h.Set("Content-Type", f.Type)
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	_ = http.NewResponseController(v.Writer).SetWriteDeadline(page.Deadline(10 * httpkit.ExportWriteTime))
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.Writer, content) // after a failure the browser notices that bytes are missing, because it knows the length
	return nil
}
