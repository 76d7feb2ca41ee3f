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
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/view"
)

// blacklistRoutes are about the numbers that a client must never write to.
var blacklistRoutes = []route{
	{"GET /c/{client}/blacklist", clientSide, puntuale.Reader, "", (*site).blacklist},
	{"POST /c/{client}/blacklist", clientSide, puntuale.Staff, "blacklist.add", (*site).addBlacklisted},
	{"GET /c/{client}/blacklist/import", clientSide, puntuale.Staff, "", (*site).askForNumbers},
	{"POST /c/{client}/blacklist/import", clientSide, puntuale.Staff, "blacklist.import", (*site).importNumbers},
	{"GET /c/{client}/blacklist/export", clientSide, puntuale.Staff, "", (*site).exportNumbers},
	{"GET /c/{client}/blacklist/{id}/remove", clientSide, puntuale.Staff, "", (*site).askToRemove},
	{"POST /c/{client}/blacklist/{id}/remove", clientSide, puntuale.Staff, "blacklist.remove", (*site).removeBlacklisted},
}

func (v *visit) blacklistPage(f *view.Form) (view.BlacklistPage, error) {
	p := view.BlacklistPage{Query: v.query("q"), Cursor: v.query("cursor"), Form: f}
	var err error
	p.All, p.Next, err = v.client.FindBlacklisted(v.ctx(), p.Query, request.Page{Limit: "50", Cursor: p.Cursor})
	return p, err
}

func (s *site) blacklist(v *visit) error {
	p, err := v.blacklistPage(view.NewForm())
	if err != nil {
		return err
	}
	return v.show(view.Blacklist(p))
}

func (s *site) addBlacklisted(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	added, err := v.client.AddBlacklisted(v.ctx(), strings.TrimSpace(f.Value("phone")), strings.TrimSpace(f.Value("reason")), control.Once[puntuale.BlacklistEntry]{})
	if err != nil {
		p, missing := v.blacklistPage(f)
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
	return v.to(v.frame.Place.Base + "/blacklist")
}

func (s *site) askToRemove(v *visit) error {
	e, err := v.client.BlacklistEntry(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	return v.show(view.RemoveBlacklisted(e))
}

func (s *site) removeBlacklisted(v *visit) error {
	e, err := v.client.RemoveBlacklistEntry(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	v.did(strconv.FormatInt(e.ID, 10))
	v.say("blacklist.removed", "")
	return v.to(v.frame.Place.Base + "/blacklist")
}

func (s *site) askForNumbers(v *visit) error {
	return v.show(view.ImportNumbers(view.NewForm(), nil))
}

// importNumbers takes a list from a file, or as it was pasted: all of it, or nothing where a line is wrong.
func (s *site) importNumbers(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	content, err := v.file("file", admission.MaxBody)
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
		faults = v.lineFaults(e, wrong, lines)
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
	return v.to(v.frame.Place.Base + "/blacklist")
}

// lineFaults says line by line what is wrong with a list: one fault each.
func (v *visit) lineFaults(e *puntuale.Error, wrong []csvFault, lines []control.BlacklistLine) []view.LineFault {
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
func (s *site) exportNumbers(v *visit) error {
	cursor, w := "", csv.NewWriter(v.w)
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
			h := v.w.Header()
			h.Set("Content-Type", "text/csv; charset=utf-8")
			h.Set("Content-Disposition", `attachment; filename="blacklist-`+puntuale.DateOf(v.now().In(v.frame.Zone)).String()+`.csv"`)
			_, _ = io.WriteString(v.w, "\ufeff") // spreadsheets know by it that it is UTF-8
			_ = w.Write([]string{v.t("blacklist.column_phone"), v.t("blacklist.column_reason"), v.t("blacklist.column_added")})
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
