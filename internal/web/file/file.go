package file

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
)

var fileRoutes = []page.Route{
	page.Get("/c/{client}/files", page.ClientSide, puntuale.Reader, files),
	page.Post("/c/{client}/files", page.ClientSide, puntuale.Staff, "file.upload", upload),
	page.Get("/c/{client}/files/{id}", page.ClientSide, puntuale.Reader, show),
	page.Get("/c/{client}/files/{id}/small", page.ClientSide, puntuale.Reader, showSmall),
	page.Get("/c/{client}/files/{id}/delete", page.ClientSide, puntuale.Staff, askDelete),
	page.Post("/c/{client}/files/{id}/delete", page.ClientSide, puntuale.Staff, "file.delete", deleteFile),
}

// uploadAnswer is what the form's script needs.
type uploadAnswer struct {
	Media string `json:"media,omitempty"` // for the field with the address
	Name  string `json:"name,omitempty"`
	Says  string `json:"says"` // what the person reads
}

// refusals are the codes of refusals that the form's script shows.
var refusals = map[puntuale.Code]bool{
	puntuale.CodeInvalid: true, puntuale.CodeUnreadable: true, puntuale.CodeTooLarge: true, puntuale.CodeQuotaReached: true, puntuale.CodeRateLimited: true,
	puntuale.CodeOverloaded: true, puntuale.CodeUnavailable: true,
}

// upload stores a file, and tells the form's script. A refusal says why.
func upload(v *page.Request) error {
	f, err := receive(v)
	if e, ok := errors.AsType[*puntuale.Error](err); ok && refusals[e.Code] {
		says := v.Frame.Language.Fault(e.Reason)
		if len(e.Faults) > 0 {
			says = v.Frame.Language.Fault(page.FirstFault(e))
		}
		return answer(v, httpkit.Status(e.Code), uploadAnswer{Says: says})
	}
	if err != nil {
		return err
	}
	v.SetAuditTarget(string(f.ID))
	return answer(v, http.StatusOK, uploadAnswer{f.ID.Address(), f.Name, v.T("file.uploaded", "Name", f.Name, "KB", (f.Size+1023)/1024)})
}

// receive stores the file of a form.
func receive(v *page.Request) (f puntuale.File, err error) {
	kind, parameters, err := mime.ParseMediaType(v.HTTP.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || parameters["boundary"] == "" {
		return f, puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: puntuale.FaultRequired})
	}
	body, err := v.UploadBody(v.Site.Control.MostUploaded() + control.MaxFileForm)
	if err != nil {
		return f, err
	}
	f, err = v.Client.UploadFile(v.Unhurried(), control.FileUpload{Content: body, Boundary: parameters["boundary"]})
	if _, returned := v.Pass.Return(v.Ctx()); returned != nil && err == nil {
		err = returned
	}
	return f, err
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
