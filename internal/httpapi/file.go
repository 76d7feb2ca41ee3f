package httpapi

import (
	"cmp"
	"context"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"puntuale"
	"puntuale/internal/control"
)

func registerFiles(a *api) {
	const all, one = "/api/files", "/api/files/{id}"
	missing, clash := http.StatusNotFound, http.StatusConflict
	client(a, operation{id: "listFiles", method: http.MethodGet, path: all, strict: true,
		summary: "List the uploaded files, the newest first", description: "A client has at most 1000."}, listFiles)
	client(a, operation{id: "uploadFile", method: http.MethodPost, path: all, upload: a.control.MostUploaded() + control.MaxFileForm, strict: true, creates: createsAlways,
		summary: "Upload a file",
		description: "The body is the file itself, with its name in the query, or a form (multipart/form-data) whose first file is taken. At most 16 MB; documents for Official numbers at most 100 MB, if the operator keeps files outside of the database. " +
			"The type follows from the content: jpg, png, mp4, 3gp, mp3, ogg (Opus), aac, amr, m4a, pdf, docx, xlsx, pptx or txt. " +
			"Images lose place, time and device. The same bytes give the same file. `media` is what steps, templates, campaigns and messages name in `media`.",
		refusals: []int{clash}}, uploadFile)
	documentFile(a, all)
	client(a, operation{id: "getFile", method: http.MethodGet, path: one, strict: true, summary: "Get what is known about a file", refusals: []int{missing}}, getFile)
	content := operation{id: "getFileContent", method: http.MethodGet, path: one + "/content", strict: true, summary: "Download a file", refusals: []int{missing, http.StatusGone}}
	client(a, content, a.fileContent)
	a.documented(content).Responses["200"].Content = map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: "string"}}}
	client(a, operation{id: "deleteFile", method: http.MethodDelete, path: one, strict: true,
		summary: "Delete a file", description: "Refused while a sequence, template, rule or campaign names it, or a message with it may still leave.", refusals: []int{missing, clash}}, deleteFile)
}

type fileAnswer struct {
	ID      string `json:"id"`
	Media   string `json:"media" doc:"What steps, templates and messages name in media"`
	Name    string `json:"name" doc:"With the extension of the type"`
	Type    string `json:"type" doc:"Media type of the content"`
	Bytes   int64  `json:"bytes"`
	Width   int    `json:"width,omitempty" doc:"Pixels of an image, or points (1/72 inch) of the first page that a PDF describes in plain text"`
	Height  int    `json:"height,omitempty"`
	Created string `json:"created_at" format:"date-time"`
}

type filesAnswer struct {
	Files []fileAnswer `json:"files"`
}

type fileInput struct {
	Name string `query:"name" maxLength:"255" doc:"Name of the file. Its extension is replaced if it does not fit the content"`
}

func fileOf(f puntuale.File) fileAnswer {
	return fileAnswer{ID: string(f.ID), Media: f.ID.Address(), Name: f.Name, Type: f.Type, Bytes: f.Size, Width: f.Width, Height: f.Height, Created: stamp(f.Created)}
}

func listFiles(ctx context.Context, c *control.Client, in *call, _ *struct{}) (filesAnswer, error) {
	if len(in.unknown) > 0 {
		return filesAnswer{}, puntuale.Invalid(in.unknown...)
	}
	all, err := c.Files(ctx)
	return filesAnswer{each(all, fileOf)}, err
}

func uploadFile(ctx context.Context, c *control.Client, in *call, p *fileInput) (fileAnswer, error) {
	if len(in.unknown) > 0 {
		return fileAnswer{}, puntuale.Invalid(in.unknown...)
	}
	upload := control.FileUpload{Name: p.Name, Content: in.file}
	if kind, parameters, err := mime.ParseMediaType(in.kind); err == nil && kind == "multipart/form-data" {
		upload.Boundary = cmp.Or(parameters["boundary"], "-") // a form without a boundary has no parts
	}
	f, err := c.UploadFile(ctx, upload)
	if err != nil {
		return fileAnswer{}, err
	}
	return fileOf(f), nil
}

func getFile(ctx context.Context, c *control.Client, in *call, p *oneInput) (fileAnswer, error) {
	f, err := c.File(ctx, p.ID)
	if err == nil && len(in.unknown) > 0 {
		err = puntuale.Invalid(in.unknown...)
	}
	if err != nil {
		return fileAnswer{}, err
	}
	return fileOf(f), nil
}

// fileContent sends a file as a download. A browser that opens the address runs nothing in the file.
func (a *api) fileContent(ctx context.Context, c *control.Client, in *call, p *oneInput) (writtenBytes, error) {
	f, err := c.File(ctx, p.ID)
	if err == nil && len(in.unknown) > 0 {
		err = puntuale.Invalid(in.unknown...)
	}
	if err != nil {
		return nil, err
	}
	in.pass.LeaveSeat() // others may be sent files first
	content, err := c.OpenFile(ctx, f)
	if err != nil {
		return nil, err
	}
	return func(out huma.Context) {
		defer content.Close()
		out.SetHeader("Content-Type", "application/octet-stream") // the list of files shows the type
		out.SetHeader("Content-Length", strconv.FormatInt(f.Size, 10))
		out.SetHeader("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": f.Name}))
		out.SetHeader("X-Content-Type-Options", "nosniff")
		out.SetHeader("Content-Security-Policy", "sandbox; default-src 'none'")
		_, writer := humago.Unwrap(out)
		_ = http.NewResponseController(writer).SetWriteDeadline(a.now().Add(mediaAllows))
		if _, err := io.Copy(out.BodyWriter(), content); err != nil {
			panic(http.ErrAbortHandler) // the status was sent already, so nothing else can show that bytes are missing
		}
	}, nil
}

func deleteFile(ctx context.Context, c *control.Client, in *call, p *oneInput) (messageAnswer, error) {
	if len(in.unknown) > 0 {
		return messageAnswer{}, puntuale.Invalid(in.unknown...)
	}
	if err := c.DeleteFile(ctx, p.ID); err != nil {
		return messageAnswer{}, err
	}
	return messageAnswer{"File eliminato"}, nil
}

// documentFile describes the bodies that an upload accepts.
func documentFile(a *api, path string) {
	binary := &huma.Schema{Type: "string"}
	form := &huma.Schema{Type: "object", Properties: map[string]*huma.Schema{"file": binary}, Required: []string{"file"}}
	content := map[string]*huma.MediaType{"multipart/form-data": {Schema: form}}
	for _, kind := range strings.Fields("image/jpeg image/png video/mp4 application/pdf application/octet-stream") {
		content[kind] = &huma.MediaType{Schema: binary}
	}
	a.OpenAPI().Paths[path].Post.RequestBody = &huma.RequestBody{Required: true, Content: content}
}
