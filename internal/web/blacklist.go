package web

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/httpkit"
	"puntuale/internal/web/view"
)

// blacklistRoutes are about the numbers that a client must never write to.
var blacklistRoutes = []Route{
	Get("/c/{client}/blacklist", ClientSide, puntuale.Reader, blacklist),
	Post("/c/{client}/blacklist", ClientSide, puntuale.Staff, "blacklist.add", addBlacklisted),
	Get("/c/{client}/blacklist/import", ClientSide, puntuale.Staff, askForNumbers),
	Post("/c/{client}/blacklist/import", ClientSide, puntuale.Staff, "blacklist.import", importNumbers),
	Get("/c/{client}/blacklist/export", ClientSide, puntuale.Staff, exportNumbers),
	Get("/c/{client}/blacklist/{id}/remove", ClientSide, puntuale.Staff, askToRemove),
	Post("/c/{client}/blacklist/{id}/remove", ClientSide, puntuale.Staff, "blacklist.remove", removeBlacklisted),
}

func blacklistPage(v *Request, f *view.Form) (view.BlacklistPage, error) {
	p := view.BlacklistPage{Query: v.query("q"), Cursor: v.query("cursor"), Form: f}
	var err error
	p.All, p.Next, err = v.client.FindBlacklisted(v.ctx(), p.Query, request.Page{Limit: "50", Cursor: p.Cursor})
	return p, err
}

func blacklist(v *Request) error {
	p, err := blacklistPage(v, view.NewForm())
	if err != nil {
		return err
	}
	return v.show(view.Blacklist(p))
}

func addBlacklisted(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	added, err := v.client.AddBlacklisted(v.ctx(), strings.TrimSpace(f.Value("phone")), strings.TrimSpace(f.Value("reason")), control.Once[puntuale.BlacklistEntry]{})
	if err != nil {
		p, missing := blacklistPage(v, f)
		if missing != nil {
			return missing
		}
		return v.again(err, f, view.BlacklistForm(f), view.Blacklist(p), "phone", "reason")
	}
	found, _, err := v.client.FindBlacklisted(v.ctx(), added.Phone, request.Page{Limit: "1"})
	if err != nil {
		return err
	}
	undo := ""
	if len(found) == 1 && found[0].Phone == added.Phone && !found[0].Added.Before(v.now().Truncate(time.Microsecond)) {
		v.did(strconv.FormatInt(found[0].ID, 10))
		undo = v.frame.Place.Base + "/blacklist/" + strconv.FormatInt(found[0].ID, 10) + "/remove"
		v.say("blacklist.added", undo, "Phone", view.Grouped(added.Phone))
	} else {
		v.quiet = true
		v.say("blacklist.there", undo, "Phone", view.Grouped(added.Phone))
	}
	return v.Redirect(v.frame.Place.Base + "/blacklist")
}

func askToRemove(v *Request) error {
	e, err := v.client.BlacklistEntry(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	return v.show(view.RemoveBlacklisted(e))
}

func removeBlacklisted(v *Request) error {
	e, err := v.client.RemoveBlacklistEntry(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	v.did(strconv.FormatInt(e.ID, 10))
	v.say("blacklist.removed", "")
	return v.Redirect(v.frame.Place.Base + "/blacklist")
}

func askForNumbers(v *Request) error {
	return v.show(view.ImportNumbers(view.NewForm(), nil))
}

// importNumbers takes a list from a file, or as it was pasted: all of it, or nothing where a line is wrong.
func importNumbers(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	content, err := v.file("file", httpkit.MaxBody)
	if err != nil {
		return err
	}
	if len(content) == 0 {
		content = []byte(f.Value("numbers"))
	}
	lines, wrong := readNumbers(content)
	var faults []view.LineFault
	added, different := 0, 0
	if lines == nil && len(wrong) > 0 {
		err = puntuale.Invalid(puntuale.Fault{Location: "body.file", Message: "cannot be read as a CSV file"})
	} else {
		added, different, err = v.client.ImportBlacklist(v.ctx(), lines)
	}
	if e, _ := refusal(err); e != nil {
		faults = lineFaults(v, e, wrong, lines)
		if len(faults) > 0 {
			err = &puntuale.Error{Code: e.Code, Message: "nothing was added: mend these lines and try again"}
		}
		return v.again(err, f, view.ImportForm(f, faults), view.ImportNumbers(f, faults), "file", "numbers")
	}
	if err != nil {
		return err
	}
	v.did(strconv.Itoa(added))
	v.say("blacklist.imported", "", "N", added, "All", v.frame.Language.Number(int64(different)))
	return v.Redirect(v.frame.Place.Base + "/blacklist")
}

// lineFaults says line by line what is wrong with a list: one fault each.
func lineFaults(v *Request, e *puntuale.Error, wrong []csvFault, lines []control.BlacklistLine) []view.LineFault {
	at := map[int]string{}
	for _, w := range wrong {
		at[w.line] = w.message
	}
	var all []view.LineFault
	for _, fault := range e.Faults {
		text, ours := strings.CutPrefix(fault.Location, "line[")
		number, _, _ := strings.Cut(text, "]")
		line, err := strconv.Atoi(number)
		if !ours || err != nil || len(all) > 0 && all[len(all)-1].Line == line {
			continue
		}
		message := fault.Message
		if known := at[line]; known != "" {
			message = known
		}
		all = append(all, view.LineFault{Line: line, Says: v.frame.Language.Fault(message)})
	}
	if lines == nil {
		for _, w := range wrong {
			all = append(all, view.LineFault{Line: w.line, Says: v.frame.Language.Fault(w.message)})
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

// exportNumbers writes the whole list, as a spreadsheet of the reader's language opens it.
func exportNumbers(v *Request) error {
	cursor, w := "", csv.NewWriter(v.Writer)
	if v.frame.Language.Code == "it" {
		w.Comma = ';'
	}
	for {
		all, next, err := v.client.FindBlacklisted(v.ctx(), "", request.Page{Limit: mostChoices, Cursor: cursor})
		if err != nil {
			return err
		}
		if !v.answered {
			v.answered = true
			h := v.Writer.Header()
			h.Set("Content-Type", "text/csv; charset=utf-8")
			h.Set("Content-Disposition", `attachment; filename="blacklist-`+puntuale.DateOf(v.now().In(v.frame.Zone)).String()+`.csv"`)
			_, _ = io.WriteString(v.Writer, "\ufeff") // spreadsheets know by it that it is UTF-8
			_ = w.Write([]string{v.T("blacklist.column_phone"), v.T("blacklist.column_reason"), v.T("blacklist.column_added")})
		}
		v.pass.Rest() // a slow reader needs no place
		if err := writeNumbers(w, all, func(e puntuale.BlacklistEntry) []string {
			return []string{e.Phone, e.Reason, e.Added.In(v.frame.Zone).Format("2006-01-02 15:04")}
		}); err != nil || next == "" {
			return nil //nolint:nilerr // the reader is gone
		}
		cursor = next
		if err := v.readOn(); err != nil {
			v.breakOff(err)
		}
	}
}
