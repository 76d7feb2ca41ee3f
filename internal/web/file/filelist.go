package file

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"puntuale"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// FilesPage lists the client's files.
type FilesPage struct {
	Files []puntuale.File
	Users map[puntuale.FileID][]puntuale.FileUser
}

// bytes returns how many bytes all files have.
func (p FilesPage) bytes() (n int64) {
	for i := range p.Files {
		n += p.Files[i].Size
	}
	return n
}

func files(v *page.Request) error {
	var p FilesPage
	var err error
	if p.Files, err = v.Client.Files(v.Ctx()); err != nil {
		return err
	}
	if p.Users, err = v.Client.FileUsers(v.Ctx()); err != nil {
		return err
	}
	return v.Show(Files(p))
}

// askDelete asks whether to delete a file.
func askDelete(v *page.Request) error {
	f, err := v.Client.File(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	return v.Show(DeleteFile(f))
}

func deleteFile(v *page.Request) error {
	f, err := v.Client.File(v.Ctx(), v.Path("id"))
	if err == nil {
		err = v.Client.DeleteFile(v.Ctx(), string(f.ID))
	}
	if puntuale.CodeOf(err) == puntuale.CodeConflict {
		v.Toast("bad", v.T("files.in_use", "Name", f.Name), "")
		return v.Redirect(v.Frame.Place.Base + "/files")
	}
	if err != nil {
		return err
	}
	v.SetAuditTarget(string(f.ID))
	v.Say("files.deleted", "", "Name", f.Name)
	return v.Redirect(v.Frame.Place.Base + "/files")
}

// showSmall sends the small picture of an image.
func showSmall(v *page.Request) error {
	picture, err := v.Client.SmallPicture(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.Answered = true
	h := v.Writer.Header()
	h.Set("Content-Type", "image/jpeg")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = v.Writer.Write(picture) // this fails only if the browser has disconnected
	return nil
}

// users are the pages of what names files, and the words for it.
var users = map[puntuale.FileUserKind]struct{ path, word string }{
	puntuale.FileUserSequence: {"/sequences/", "files.sequence"}, puntuale.FileUserTemplate: {"/templates/", "files.template"},
	puntuale.FileUserRule: {"/automations/", "files.rule"}, puntuale.FileUserCampaign: {"/campaigns/", "files.campaign"},
}

func userAddress(ctx context.Context, u puntuale.FileUser) string {
	return view.Base(ctx) + users[u.Kind].path + fmt.Sprint(u.ID)
}

// facts are the type, the size, and the pixels or the page of a file.
func facts(ctx context.Context, f puntuale.File) string {
	says := view.T(ctx, "files.kind."+puntuale.MediaKind(string(f.ID))) + " · " + view.Size(view.FrameOf(ctx).Language, f.Size)
	if f.Width > 0 && f.Type == "application/pdf" {
		const point = 25.4 / 72 // millimeters
		says += fmt.Sprintf(" · %.0f × %.0f mm", float64(f.Width)*point, float64(f.Height)*point)
	} else if f.Width > 0 {
		says += fmt.Sprintf(" · %d × %d", f.Width, f.Height)
	}
	return says
}

// leaves reports whether a message with the file may still leave.
func leaves(f puntuale.File, now time.Time) bool { return f.Needed.After(now) }
