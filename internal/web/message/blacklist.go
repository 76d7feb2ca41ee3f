package message

import (
	"context"
	"io"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// blacklistRoutes are the pages about the numbers that a client must never write to.
var blacklistRoutes = []page.Route{
	page.Get("/c/{client}/blacklist", page.ClientSide, puntuale.Reader, blacklist),
	page.Post("/c/{client}/blacklist", page.ClientSide, puntuale.Staff, "blacklist.add", addBlacklisted),
	page.Get("/c/{client}/blacklist/import", page.ClientSide, puntuale.Staff, askForNumbers),
	page.Post("/c/{client}/blacklist/import", page.ClientSide, puntuale.Staff, "blacklist.import", importNumbers),
	page.Get("/c/{client}/blacklist/export", page.ClientSide, puntuale.Staff, exportNumbers),
	page.Get("/c/{client}/blacklist/{id}/remove", page.ClientSide, puntuale.Staff, askToRemove),
	page.Post("/c/{client}/blacklist/{id}/remove", page.ClientSide, puntuale.Staff, "blacklist.remove", removeBlacklisted),
}

func blacklistPage(v *page.Request, f *view.Form) (BlacklistPage, error) {
	p := BlacklistPage{Query: v.Query("q"), Cursor: v.Query("cursor"), Form: f}
	var err error
	p.All, p.Next, err = v.Client.FindBlacklisted(v.Ctx(), p.Query, request.Page{Limit: "50", Cursor: p.Cursor})
	if err != nil {
		return p, err
	}
	if p.Count, err = page.Total(v.Client.CountBlacklisted(v.Ctx(), p.Query)); err != nil {
		return p, err
	}
	return p, v.NamePeople(page.Each(p.All, func(e puntuale.BlacklistEntry) string { return e.Phone })...)
}

func blacklist(v *page.Request) error {
	p, err := blacklistPage(v, view.NewForm())
	if err != nil {
		return err
	}
	return v.Show(Blacklist(p))
}

func addBlacklisted(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	added, err := v.Client.AddBlacklisted(v.Ctx(), strings.TrimSpace(f.Value("phone")), strings.TrimSpace(f.Value("reason")), control.Once[puntuale.BlacklistEntry]{})
	if err != nil {
		p, missing := blacklistPage(v, f)
		if missing != nil {
			return missing
		}
		return v.ShowRefused(err, f, BlacklistForm(f), Blacklist(p), "phone", "reason")
	}
	found, _, err := v.Client.FindBlacklisted(v.Ctx(), added.Phone, request.Page{Limit: "1"})
	if err != nil {
		return err
	}
	undo := ""
	if len(found) == 1 && found[0].Phone == added.Phone && !found[0].Added.Before(v.Now().Truncate(time.Microsecond)) {
		v.SetAuditTarget(strconv.FormatInt(found[0].ID, 10))
		undo = v.Frame.Place.Base + "/blacklist/" + strconv.FormatInt(found[0].ID, 10) + "/remove"
		v.Say("blacklist.added", undo, "Phone", view.Grouped(added.Phone))
	} else {
		v.Quiet = true
		v.Say("blacklist.there", undo, "Phone", view.Grouped(added.Phone))
	}
	return v.Redirect(v.Frame.Place.Base + "/blacklist")
}

func askToRemove(v *page.Request) error {
	e, err := v.Client.BlacklistEntry(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if err := v.NamePeople(e.Phone); err != nil {
		return err
	}
	return v.Show(RemoveBlacklisted(e))
}

func removeBlacklisted(v *page.Request) error {
	e, err := v.Client.RemoveBlacklistEntry(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	v.SetAuditTarget(strconv.FormatInt(e.ID, 10))
	v.Say("blacklist.removed", "")
	return v.Redirect(v.Frame.Place.Base + "/blacklist")
}

func askForNumbers(v *page.Request) error {
	return v.Show(ImportNumbers(NumbersImport{Form: view.NewForm()}))
}

// importNumbers reads a list of numbers from a file or from pasted text, while it arrives. First it shows what it finds. The
// browser still has the list, so the person can send it again for the import.
func importNumbers(v *page.Request) error {
	p := NumbersImport{Form: view.NewForm()}
	var found control.ImportedBlacklist
	err := v.UploadList(p.Form, func(ctx context.Context, file io.Reader, kind string) (err error) {
		found, err = v.Client.ImportBlacklist(ctx, file, kind, v.FileImport(p.Form, false))
		return err
	})
	if err != nil {
		return v.ShowRefused(err, p.Form, NumbersFound(p), ImportNumbers(p), "file")
	}
	p.Checked, p.Done = true, !found.Checked
	p.Rows, p.Different, p.Added = found.Rows, found.Found, found.Added
	p.Found = v.ShowImport(p.Form, found.ImportReport)
	for name, at := range found.Mapping {
		if name != "reason" && name != "phone" {
			showAllNumbers(v, found.Preview, at)
		}
	}
	if p.Done {
		v.SetAuditTarget(strconv.Itoa(found.Added))
		if len(found.Refused) == 0 {
			v.Say("blacklist.imported", "", "N", found.Added, "All", v.Frame.Language.Number(int64(found.Found)))
			return v.Redirect(v.Frame.Place.Base + "/blacklist")
		}
	}
	if v.Partial() {
		return v.Show(NumbersFound(p))
	}
	return v.Show(ImportNumbers(p))
}

// showAllNumbers puts the stored form of the numbers in one more column of numbers beside what the file has.
func showAllNumbers(v *page.Request, rows [][]string, at int) {
	for _, cells := range rows {
		if at < len(cells) && cells[at] != "" {
			numbers, _ := v.Client.NumbersIn(cells[at])
			cells[at] = v.ReadAs(cells[at], strings.Join(numbers, ", "))
		}
	}
}

// exportNumbers writes the whole list in a form that a spreadsheet in the reader's language can open, and that an
// import can read.
func exportNumbers(v *page.Request) error {
	header := []string{v.T("blacklist.column_phone"), v.T("blacklist.column_reason"), v.T("blacklist.column_added")}
	return v.SendCSV("blacklist-"+v.Today(), header, func(cursor string) (rows [][]string, next string, err error) {
		all, next, err := v.Client.FindBlacklisted(v.Ctx(), "", request.Page{Limit: page.MaxChoices, Cursor: cursor})
		for _, e := range all {
			if !e.Erased {
				rows = append(rows, []string{httpkit.InertCell(e.Phone), httpkit.InertCell(e.Reason), e.Added.In(v.Frame.Zone).Format("2006-01-02 15:04")})
			}
		}
		return rows, next, err
	})
}
