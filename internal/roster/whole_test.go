package roster

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
)

// workbook is a file of so many rows below a header, whose parts a test may change.
func workbook(t testing.TB, rows int, formula bool, change func(name, content string) string) []byte {
	t.Helper()
	f := excelize.NewFile()
	if err := f.SetSheetRow("Sheet1", "A1", &[]any{"Telefono", "Nome"}); err != nil {
		t.Fatal(err)
	}
	for i := range rows {
		if err := f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", i+2), &[]any{fmt.Sprintf("333%07d", i), fmt.Sprintf("Anna %d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	if formula {
		if err := f.SetCellFormula("Sheet1", "C3", `UPPER("ugo")`); err != nil {
			t.Fatal(err)
		}
	}
	var out bytes.Buffer
	if err := f.Write(&out); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	if change == nil {
		return out.Bytes()
	}
	from, err := zip.NewReader(bytes.NewReader(out.Bytes()), int64(out.Len()))
	if err != nil {
		t.Fatal(err)
	}
	var changed bytes.Buffer
	to := zip.NewWriter(&changed)
	for _, entry := range from.File {
		r, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		w, err := to.Create(entry.Name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, change(entry.Name, string(content))); err != nil {
			t.Fatal(err)
		}
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return changed.Bytes()
}

// TestDamagedWorkbook: a workbook whose rows cannot all be read gives none of them.
func TestDamagedWorkbook(t *testing.T) {
	t.Parallel()
	only := func(part string, change func(string) string) func(name, content string) string {
		return func(name, content string) string {
			if strings.EqualFold(name, part) {
				return change(content)
			}
			return content
		}
	}
	const sheet, texts = "xl/worksheets/sheet1.xml", "xl/sharedStrings.xml"
	half := func(s string) string { return s[:len(s)/2] }
	for name, c := range map[string]struct {
		formula bool
		change  func(name, content string) string
		says    string
	}{
		"a sheet that is cut off": {change: only(sheet, half), says: "damaged"},
		"a broken tag":            {change: only(sheet, func(s string) string { return strings.Replace(s, `<row r="500"`, `<row r="500" <`, 1) }), says: "damaged"},
		"texts that are cut off":  {change: only(texts, half), says: "damaged"},
		"no result":               {formula: true, says: "row 3 has a formula without a result"},
		"a long row": {change: only(sheet, func(s string) string {
			return strings.Replace(s, "</row>", strings.Repeat("<c/>", 60_000)+"</row>", 1)
		}), says: "row 1 has more than 16384 cells"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := workbook(t, 1000, c.formula, c.change)
			begun := time.Now()
			_, rows, _, err := read(t, bytes.NewReader(file), sheetType)
			if err == nil || !strings.Contains(err.Error(), c.says) || len(rows) > 0 {
				t.Errorf("%d rows, %v; not %q", len(rows), err, c.says)
			}
			if took := time.Since(begun); took > 5*time.Second {
				t.Errorf("it took %s to say so", took)
			}
		})
	}
	_, rows, _, err := read(t, bytes.NewReader(workbook(t, 1000, false, func(_, content string) string { return content })), sheetType)
	if err != nil || len(rows) != 1000 {
		t.Errorf("whole: %d rows, %v", len(rows), err)
	}
}

// TestHeaderIsNone: where the first row holds a number there is no header, and its recipient would be forgotten.
func TestHeaderIsNone(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]bool{"333 1234567,Anna\n333 7654321,Ugo\n": false, "+39 (333) 123-4567\n": false, "telefono,2026\n333 7654321,Ugo\n": true} {
		if _, _, _, err := read(t, strings.NewReader(file), "text/csv"); (err == nil) != want {
			t.Errorf("%q: %v", file, err)
		}
	}
}

func BenchmarkWorkbook(b *testing.B) {
	file := workbook(b, 100_000, false, nil)
	for b.Loop() {
		if _, rows, _, err := read(b, bytes.NewReader(file), sheetType); err != nil || len(rows) != 100_000 {
			b.Fatal(len(rows), err)
		}
	}
}
