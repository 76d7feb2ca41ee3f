package roster_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"puntuale/internal/roster"
)

// outcome is the complete result of reading a list: the columns, the rows, and the faults.
type outcome struct {
	columns []string
	rows    []roster.Row
	faults  []string // such as "line 3, column 2: cell_too_long"
	end     error    // nil: the list was read to its end
}

const (
	csvType  = "text/csv"
	xlsxType = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
)

// drain reads a list to its end.
func drain(t testing.TB, r io.Reader, contentType string) outcome {
	t.Helper()
	dir := t.TempDir()
	list, err := roster.Open(t.Context(), r, contentType, dir, 0)
	if err != nil {
		nothingLeft(t, dir)
		return outcome{end: err}
	}
	o := outcome{columns: list.Columns()}
	for {
		row, err := list.Next()
		faulty, isRow := errors.AsType[*roster.RowError](err)
		switch {
		case err == nil:
			o.rows = append(o.rows, row)
		case isRow:
			o.faults = append(o.faults, fmt.Sprintf("%d:%d %s", faulty.Line, faulty.Column, faulty.Problem))
		default:
			if _, again := list.Next(); !errors.Is(again, err) {
				t.Errorf("after %v came %v", err, again)
			}
			if !errors.Is(err, io.EOF) {
				o.end = err
			}
			if err := list.Close(); err != nil {
				t.Errorf("close: %v", err)
			}
			nothingLeft(t, dir)
			return o
		}
	}
}

func nothingLeft(t testing.TB, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left on disk: %v, %v", left, err)
	}
}

// text writes each row on its own line as "line|cell|cell". A line end inside a cell is written as \n. A cell that
// was not read is "!" and its problem.
func (o outcome) text() string {
	var b strings.Builder
	for _, r := range o.rows {
		shown := slices.Clone(r.Cells)
		for i, cell := range shown {
			if p := roster.CellProblem(cell); p != "" {
				shown[i] = "!" + string(p)
			}
		}
		fmt.Fprintf(&b, "%d|%s\n", r.Line, strings.ReplaceAll(strings.Join(shown, "|"), "\n", `\n`))
	}
	return b.String()
}

func (o outcome) expect(t testing.TB, columns, rows string, faults ...string) {
	t.Helper()
	if o.end != nil {
		t.Errorf("the list ended with %v", o.end)
	}
	if got := strings.Join(o.columns, "|"); got != columns {
		t.Errorf("columns %q, want %q", got, columns)
	}
	if got := o.text(); got != rows {
		t.Errorf("rows\n%swant\n%s", got, rows)
	}
	if !slices.Equal(o.faults, faults) {
		t.Errorf("faults %q, want %q", o.faults, faults)
	}
}

func csvOf(t testing.TB, text string) outcome {
	t.Helper()
	return drain(t, strings.NewReader(text), csvType)
}

// expectProblem checks that err is a FileError with this problem.
func expectProblem(t testing.TB, err error, want roster.Problem) {
	t.Helper()
	f, ok := errors.AsType[*roster.FileError](err)
	if !ok || f.Problem != want || !strings.HasSuffix(err.Error(), string(want)) || want.Reason().IsZero() {
		t.Errorf("error %v, want %s", err, want)
		if f != nil {
			t.Logf("the reason is %v", f.Err)
		}
	}
}

// book is a workbook: the contents of its parts by name.
type book map[string]string

const xmlns = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`

// oneSheet returns a workbook with one sheet. rows is the XML of the sheet's rows.
func oneSheet(rows string) book {
	return book{
		"_rels/.rels":                `<Relationships><Relationship Id="rId1" Type="http://x/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
		"xl/workbook.xml":            `<workbook ` + xmlns + `><sheets><sheet name="Lista" sheetId="1" r:id="rId1"/></sheets></workbook>`,
		"xl/_rels/workbook.xml.rels": `<Relationships><Relationship Id="rId1" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/><Relationship Id="rId2" Type="http://x/sharedStrings" Target="/xl/sharedStrings.xml"/><Relationship Id="rId3" Type="http://x/styles" Target="styles.xml"/></Relationships>`,
		"xl/worksheets/sheet1.xml":   `<worksheet ` + xmlns + `><sheetData>` + rows + `</sheetData></worksheet>`,
	}
}

func (b book) with(part, content string) book { b[part] = content; return b }

// bytes packs the workbook without compression, because compression is slow with the race detector.
func (b book) bytes(t testing.TB) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(b)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Store})
		if err == nil {
			_, err = io.WriteString(w, b[name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func (b book) drain(t testing.TB) outcome {
	t.Helper()
	return drain(t, bytes.NewReader(b.bytes(t)), xlsxType)
}

// generated is a list whose rows are generated when the reader needs them. row appends the row with number n, from 0.
type generated struct {
	row  func(b []byte, n int) []byte
	rows int
	n    int
	rest []byte
	from int
	read int64
}

func (g *generated) Read(p []byte) (int, error) {
	if g.from == len(g.rest) {
		g.rest, g.from = g.rest[:0], 0
		for len(g.rest) < 32<<10 && g.n < g.rows {
			g.rest = g.row(g.rest, g.n)
			g.n++
		}
	}
	if len(g.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, g.rest[g.from:])
	g.from += n
	g.read += int64(n)
	return n, nil
}

// people appends the header if n is 0, and otherwise a row of a usual list with three columns.
func people(b []byte, n int) []byte {
	if n == 0 {
		return append(b, "Telefono;Nome;Importo\r\n"...)
	}
	return fmt.Appendf(b, "+39 333 %07d;Anna %d;\"%d,50 euro\"\r\n", n, n, n%100)
}
