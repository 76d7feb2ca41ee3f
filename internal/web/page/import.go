package page

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// FileImport returns what the form of an import asks for. If the line of the header or another choice changed, the columns
// are guessed again. If the person chose another file than the one that was checked, it is checked first; a file of the same name is compared by its
// first rows.
func (v *Request) FileImport(f *view.Form, changed bool) control.FileImport {
	ask := control.FileImport{Check: v.Query("do") != "import"}
	before := f.Value("file_before")
	other := before != "" && before != f.Value("file_name")
	if v.Quiet = ask.Check || other; other {
		return control.FileImport{Check: true}
	}
	ask.Seen = f.Value("seen")
	ask.Header, _ = strconv.Atoi(f.Value("header")) // without a number, the import looks for the header
	ask.Header = max(0, ask.Header)
	if changed || f.Value("header") != f.Value("header_before") {
		return ask
	}
	var pairs, dated []string
	for _, name := range slices.Sorted(maps.Keys(f.Values)) {
		at, err := strconv.Atoi(strings.TrimPrefix(name, "column."))
		to, order, isDate := strings.Cut(f.Value(name), view.DateMark)
		if err != nil || to == "" {
			continue
		}
		pairs = append(pairs, to+":"+strconv.Itoa(at+1))
		if isDate {
			dated = append(dated, to+":"+order)
		}
	}
	if len(pairs) > 0 {
		ask.Columns, ask.Dates = strings.Join(pairs, ","), cmp.Or(strings.Join(dated, ","), "none")
	}
	return ask
}

// ShowImport returns what an import found in a file, and puts its choices into the form. Numbers and dates are shown as the
// file has them and as they are stored.
func (v *Request) ShowImport(f *view.Form, r control.ImportReport) view.ImportedTable {
	v.Quiet = v.Quiet || r.Checked
	t := view.ImportedTable{Seen: r.Seen, Header: r.Header, Hidden: r.Hidden, Columns: r.Columns, Preview: r.Preview, Refused: r.Refused}
	for _, l := range r.Lines {
		t.Lines = append(t.Lines, view.RefusedRow{Line: l.Line, Reason: l.Reason, Value: l.Value})
	}
	v.ShowNumbers(r)
	f.Values.Set("header", strconv.Itoa(r.Header))
	for i := range r.Columns {
		f.Values.Set(view.ColumnName(i), "")
	}
	for name, at := range r.Mapping {
		f.Values.Set(view.ColumnName(at), name)
	}
	for _, d := range r.Dates {
		at := r.Mapping[d.Field]
		t.Dated = append(t.Dated, at)
		v.showDates(r, d, at)
		if !d.Question.IsZero() {
			t.Open = true
			f.Refuse(view.ColumnName(at), v.Frame.Language.Reason(d.Question))
		} else {
			f.Values.Set(view.ColumnName(at), d.Field+view.DateMark+string(d.Order))
		}
	}
	return t
}

// ShowNumbers puts the stored form of the first numbers beside what the file has.
func (v *Request) ShowNumbers(r control.ImportReport) {
	for i, n := range r.Numbers {
		if at, ok := r.Mapping["phone"]; ok && at < len(r.Preview[i]) {
			r.Preview[i][at] = v.ReadAs(n.Written, n.Phone)
		}
	}
}

// showDates puts the stored form of a column's first dates beside what the file has.
func (v *Request) showDates(r control.ImportReport, d control.ImportedDates, at int) {
	next := 0
	for _, cells := range r.Preview {
		if at < len(cells) && cells[at] != "" && next < len(d.Examples) {
			if read := d.Examples[next]; read.Stored != "" && read.Stored != read.Written {
				cells[at] = read.Written + " → " + view.StoredDate(v.Frame.Language.Day, read.Stored)
			}
			next++
		}
	}
}
