package person

import (
	"errors"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
)

// mediaRoutes open the files that people sent.
var mediaRoutes = []page.Route{
	page.Get("/c/{client}/replies/{id}/media", page.ClientSide, puntuale.Reader, openMedia),
}

// shownTypes are the types of images that a browser may show, because they cannot contain a script. All other files are
// sent as downloads.
var shownTypes = map[string]string{"image/jpeg": ".jpg", "image/png": ".png", "image/webp": ".webp", "image/gif": ".gif"}

// openMedia fetches the file of a reply from its network and sends the file to the browser. The browser runs nothing in
// the file.
func openMedia(v *page.Request) error {
	y, err := v.Client.Reply(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if y.Media == nil || y.Blanked {
		return page.ErrNoPage
	}
	v.Pass.LeaveSeat() // the network may need a long time
	f, err := v.Client.OpenMedia(v.Ctx(), y)
	if _, returnErr := v.Pass.Return(v.Ctx()); returnErr != nil && err == nil {
		_ = f.Close()
		err = returnErr
	}
	if e, ok := errors.AsType[*puntuale.Error](err); ok && (e.Code == puntuale.CodeGone || e.Code == puntuale.CodeUnavailable || e.Code == puntuale.CodeTooLarge || e.Code == puntuale.CodeNotFound) {
		return v.ShowAs(http.StatusNotFound, MediaGone(y.Phone, v.Frame.Language.Fault(e.Reason)))
	}
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	v.Answered = true
	kind, disposition, name := mediaKind(y)
	h := v.Writer.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.FormatInt(f.Size, 10))
	h.Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": name}))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	_ = http.NewResponseController(v.Writer).SetWriteDeadline(page.Deadline(10 * httpkit.ExportWriteTime))
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = io.Copy(v.Writer, f) // after a failure the browser notices that bytes are missing, because it knows the length
	return nil
}

// mediaKind returns how a reply's file is sent: the content type, whether the browser shows or saves the file, and the
// file's name.
func mediaKind(y puntuale.Reply) (kind, disposition, name string) {
	kind, disposition = "application/octet-stream", "attachment"
	if k := y.Kept; k != nil && k.File != "" { // its content decided about type and name
		if kind, disposition = k.Type, "attachment"; puntuale.MediaKind(string(k.File)) == "image" {
			disposition = "inline"
		}
		return kind, disposition, k.Name
	}
	declared, _, err := mime.ParseMediaType(y.Media.Type)
	if name = path.Base(strings.ReplaceAll(y.Media.Name, "\\", "/")); name == "." || name == "/" {
		name = "file-" + y.ID.String()
	}
	if extension := shownTypes[declared]; err == nil && extension != "" {
		kind, disposition = declared, "inline"
		if path.Ext(name) == "" {
			name += extension
		}
	}
	return kind, disposition, name
}
