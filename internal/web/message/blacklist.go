package message

import (
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
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
	return v.Show(ImportNumbers(view.NewForm(), nil))
}

const faultListNotCSV puntuale.ReasonCode = "list.not_csv"

// importNumbers adds a list of numbers from a file or from pasted text. If one line is wrong, it adds no number.
func importNumbers(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	content, err := v.File("file", admission.MaxBody)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		content = []byte(f.Value("numbers"))
	}
	lines, faulty := readNumbers(content)
	var faults []view.LineFault
	added, different := 0, 0
	if lines == nil && len(faulty) > 0 {
		err = puntuale.Invalid(puntuale.Fault{Location: "body.file", Code: faultListNotCSV})
	} else {
		added, different, err = v.Client.ImportBlacklist(v.Ctx(), lines)
	}
	if e, _ := page.Refusal(err); e != nil {
		faults = lineFaults(v, e, faulty, lines)
		if len(faults) > 0 {
			err = &puntuale.Error{Code: e.Code, Reason: puntuale.Because(puntuale.FaultListNothingAdded)}
		}
		return v.ShowRefused(err, f, ImportForm(f, faults), ImportNumbers(f, faults), "file", "numbers")
	}
	if err != nil {
		return err
	}
	v.SetAuditTarget(strconv.Itoa(added))
	v.Say("blacklist.imported", "", "N", added, "All", v.Frame.Language.Number(int64(different)))
	return v.Redirect(v.Frame.Place.Base + "/blacklist")
}

// lineFaults returns one fault for each wrong line of a list.
func lineFaults(v *page.Request, e *puntuale.Error, faults []csvFault, lines []control.BlacklistLine) []view.LineFault {
	at := map[int]puntuale.ReasonCode{}
	for _, w := range faults {
		at[w.line] = w.code
	}
	var all []view.LineFault
	for _, fault := range e.Faults {
		text, own := strings.CutPrefix(fault.Location, "line[")
		number, _, _ := strings.Cut(text, "]")
		line, err := strconv.Atoi(number)
		if !own || err != nil || len(all) > 0 && all[len(all)-1].Line == line {
			continue
		}
		reason := fault.Reason()
		if known := at[line]; known != "" {
			reason = puntuale.Because(known)
		}
		all = append(all, view.LineFault{Line: line, Says: v.Frame.Language.Fault(reason)})
	}
	if lines == nil {
		for _, w := range faults {
			all = append(all, view.LineFault{Line: w.line, Says: v.Frame.Language.Fault(puntuale.Because(w.code))})
		}
	}
	texts := make(map[int]string, len(lines))
	for _, l := range lines {
		texts[l.Line] = l.Phone
	}
	for i := range all {
		all[i].Text = texts[all[i].Line]
	}
	return all
}

// exportNumbers writes the whole list in a form that a spreadsheet in the reader's language can open, and that
// [readNumbers] can read.
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
