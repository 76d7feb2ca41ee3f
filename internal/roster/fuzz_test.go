package roster_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"puntuale/internal/roster"
)

// fuzzed reads a list in the same way as drain, and checks that all limits hold.
func fuzzed(t *testing.T, data []byte, f string) {
	t.Helper()
	list, err := roster.Open(t.Context(), bytes.NewReader(data), f, t.TempDir(), 0)
	if err != nil {
		if _, ok := errors.AsType[*roster.FileError](err); !ok || err.Error() == "" {
			t.Fatalf("opening gave %v", err)
		}
		return
	}
	defer list.Close()
	columns := list.Columns()
	if len(columns) == 0 || len(columns) > roster.MaxColumns || columns[len(columns)-1] == "" {
		t.Fatalf("columns %q", columns)
	}
	last := 0
	for range 2*len(data) + 1<<16 {
		row, err := list.Next()
		line := row.Line
		if faulty, ok := errors.AsType[*roster.RowError](err); ok {
			line = faulty.Line
		} else if _, fatal := errors.AsType[*roster.FileError](err); fatal || errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("reading gave %v", err)
		}
		if line <= last {
			t.Fatalf("line %d came behind %d", line, last)
		}
		blank := strings.TrimSpace(strings.ReplaceAll(strings.Join(row.Cells, ""), "\ufeff", "")) == ""
		if last = line; err == nil && (len(row.Cells) != len(columns) || blank) {
			t.Fatalf("row %q", row.Cells)
		}
		size := 0
		for _, cell := range row.Cells {
			if roster.CellProblem(cell) != "" {
				continue
			}
			if size += len(cell); len(cell) > roster.MaxCell || size > roster.MaxLine || !utf8.ValidString(cell) || strings.Contains(cell, "\x00") {
				t.Fatalf("cell %q", cell)
			}
		}
	}
	t.Fatal("the list does not end")
}

func FuzzCSV(f *testing.F) {
	for _, seed := range []string{
		"phone,nome\n333,Anna\n", "sep=;\r\nphone;nome\r333;\"An\"\"na\"\n\n", "\xEF\xBB\xBFphone\tnome\n\"333\n334\tx",
		"phone,nome\n333,Forl\xEC\n334,Forlì\n", "p\x00h\x00\n\x003\x00", "\xFF\xFEp\x00\n\x003\x00\x00\xD8", "\xFE\xFF\x00p\x00\n\x003",
		"a|b\n1|\"2\" x\n3|\x00\n", "\"\"\"\n,,\r\r\n", strings.Repeat("a,", 201), "a\n" + strings.Repeat("x", roster.MaxCell+1), "a,b\n\"" + strings.Repeat("\n", 100),
		"a\n\" \ufeff\"\n\ufeff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, data, csvType) })
}

// FuzzWorkbook varies the XML of a sheet, of shared texts and of styles.
func FuzzWorkbook(f *testing.F) {
	f.Add(`<row><c t="s"><v>0</v></c><c t="str"><v>nome</v></c></row><row r="5"><c r="B5" s="1"><f/><v>46349.5</v></c></row>`, `<si><t>phone</t></si>`, `<numFmts><numFmt numFmtId="170" formatCode="[h]"/></numFmts><cellXfs><xf numFmtId="14"/><xf numFmtId="170"/></cellXfs>`)
	f.Add(`<row><c t="inlineStr"><is><r><t>a_x000D_</t></r><rPh><t>b</t></rPh></is></c></row><row><c t="b"><v>1</v></c><c t="e"/><c t="d"><v>2026-11-23</v></c></row>`, "", `<cellXfs/>`)
	f.Add(`<row><c r="GS1" t="str"><v>x</v></c></row><row><c><v>1E+308</v></c><c s="0"><v>2.5E9</v></c></row>`, `<si/><si>`, "")
	f.Fuzz(func(t *testing.T, sheet, shared, styles string) {
		b := oneSheet(sheet).with("xl/sharedStrings.xml", "<sst>"+shared+"</sst>").with("xl/styles.xml", "<styleSheet>"+styles+"</styleSheet>")
		fuzzed(t, b.bytes(t), xlsxType)
	})
}

// FuzzArchive varies the bytes of a workbook.
func FuzzArchive(f *testing.F) {
	f.Add(oneSheet(cells("phone") + cells("333")).bytes(f))
	f.Add([]byte("PK\x03\x04"))
	f.Add([]byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1E\x00n\x00c\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { fuzzed(t, data, xlsxType) })
}

func BenchmarkCSV(b *testing.B) {
	const rows = 100_000
	var data []byte
	for n := range rows + 1 {
		data = people(data, n)
	}
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		read(b, bytes.NewReader(data), csvType, rows)
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}

func BenchmarkWorkbook(b *testing.B) {
	const rows = 100_000
	data := largeWorkbook(b, rows, 20)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		read(b, bytes.NewReader(data), xlsxType, rows)
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}

func read(b *testing.B, r io.Reader, f string, rows int) {
	b.Helper()
	b.ReportAllocs()
	list, err := roster.Open(b.Context(), r, f, b.TempDir(), 0)
	n := -1
	for err == nil {
		_, err = list.Next()
		n++
	}
	if err != io.EOF || n != rows {
		b.Fatalf("%d rows, %v", n, err)
	}
	list.Close()
}
