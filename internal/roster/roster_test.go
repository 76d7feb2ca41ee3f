package roster

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

// read reads a whole list; faults are the lines of rows that cannot be read.
func read(t testing.TB, file io.Reader, kind string) (columns []string, rows []Row, faults []int, err error) {
	t.Helper()
	r, err := Open(file, kind, t.TempDir())
	if err != nil {
		return nil, nil, nil, err
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	for {
		row, err := r.Next()
		if bad, ok := errors.AsType[*RowError](err); ok {
			faults = append(faults, bad.Line)
			continue
		}
		if errors.Is(err, io.EOF) {
			return r.Columns(), rows, faults, nil
		}
		if err != nil {
			return r.Columns(), rows, faults, err
		}
		rows = append(rows, row)
	}
}

func encoded(t *testing.T, text string, e interface{ String(string) (string, error) }) string {
	t.Helper()
	out, err := e.String(text)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// Every usual way to write the same list gives the same rows.
func TestText(t *testing.T) {
	t.Parallel()
	const plain = "Telefono,Città\n+39333,Forlì\n\n+39334,\"Reggio, Emilia\"\n"
	for name, file := range map[string]string{
		"UTF-8":        plain,
		"with a mark":  "\xef\xbb\xbf" + plain,
		"semicolons":   "Telefono;Città\r\n+39333;Forlì\r\n\r\n+39334;Reggio, Emilia\r\n",
		"tabs":         "Telefono\tCittà\n+39333\tForlì\n\n+39334\tReggio, Emilia",
		"sep=":         "sep=|\nTelefono|Città\n+39333|Forlì\n+39334|Reggio, Emilia\n",
		"mixed ends":   "Telefono,Città\r+39333,Forlì\r\n\n+39334,\"Reggio, Emilia\"",
		"Windows-1252": encoded(t, plain, charmap.Windows1252.NewEncoder()),
		"UTF-16":       encoded(t, plain, unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder()),
		"UTF-16, big":  encoded(t, plain, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder()),
	} {
		columns, rows, faults, err := read(t, strings.NewReader(file), "text/csv")
		if err != nil || len(faults) > 0 || !slices.Equal(columns, []string{"Telefono", "Città"}) || len(rows) != 2 ||
			!slices.Equal(rows[0].Cells, []string{"+39333", "Forlì"}) || !slices.Equal(rows[1].Cells, []string{"+39334", "Reggio, Emilia"}) || rows[0].Line < 2 {
			t.Errorf("%s: %q %v %v %v", name, columns, rows, faults, err)
		}
	}
}

// A bad row is named by its line, and the rows around it are read.
func TestBadRows(t *testing.T) {
	t.Parallel()
	_, rows, faults, err := read(t, strings.NewReader("a,b\n1,2\n3,4,5\nx\x00,1\n\"y\"z,1\n"+strings.Repeat("w", MaxCell+1)+",1\n6\n"), "")
	if err != nil || !slices.Equal(faults, []int{3, 4, 5, 6}) || len(rows) != 2 || !slices.Equal(rows[1].Cells, []string{"6", ""}) {
		t.Errorf("%v %v %v", rows, faults, err)
	}
}

// What is no list, or too long for one, is refused without reading all of it.
func TestBounds(t *testing.T) {
	t.Parallel()
	rows := io.MultiReader(strings.NewReader("a\n"), &endless{text: "1\n"})
	if _, n, _, err := read(t, rows, ""); !isFile(err, true) || len(n) != MaxRows {
		t.Errorf("1,000,001 rows: %d, %v", len(n), err)
	}
	long := &endless{text: strings.Repeat("x", 1000) + "\n"}
	if _, _, _, err := read(t, io.MultiReader(strings.NewReader("a\n"), long), ""); !isFile(err, true) || long.read > MaxBytes+1<<20 {
		t.Errorf("200 MB: %d bytes were read, %v", long.read, err)
	}
	quote := &endless{text: "abc, "}
	if _, _, _, err := read(t, io.MultiReader(strings.NewReader("a,b\n1,\""), quote), ""); !isFile(err, false) || quote.read > 1<<20 {
		t.Errorf("an open quote: %d bytes were read, %v", quote.read, err)
	}
	for _, file := range []string{"", "\n\n", strings.Repeat("c,", MaxColumns+1) + "c\n1\n", "\xd0\xcf\x11\xe0 old", "PK\x03\x04 cut off"} {
		if _, _, _, err := read(t, strings.NewReader(file), ""); !isFile(err, false) {
			t.Errorf("%.10q: %v", file, err)
		}
	}
}

func isFile(err error, large bool) bool {
	e, ok := errors.AsType[*FileError](err)
	return ok && e.TooLarge == large
}

type endless struct {
	text string
	read int
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text[(e.read+n)%len(e.text):])
	}
	e.read += n
	return n, nil
}

// A sheet's numbers have all their digits, and its dates are written as ISO has them.
func TestSheet(t *testing.T) {
	t.Parallel()
	f := excelize.NewFile()
	date, err := f.NewStyle(&excelize.Style{NumFmt: 14})
	if err != nil {
		t.Fatal(err)
	}
	for cell, value := range map[string]any{
		"A1": "Telefono", "B1": "Quando", "C1": "Importo", "D1": "Formula",
		"A2": 393331234567, "B2": 46349, "C2": 12.5, "D2": "=1+1",
		"A4": "+39 333", "B4": time.Date(2026, 11, 24, 15, 30, 0, 0, time.UTC), "C4": 1e15, "D4": "x",
	} {
		if err := f.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.SetCellStyle("Sheet1", "B2", "B2", date); err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := f.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	columns, rows, faults, err := read(t, &file, "")
	if err != nil || len(faults) > 0 || len(columns) != 4 || len(rows) != 2 ||
		!slices.Equal(rows[0].Cells, []string{"393331234567", "2026-11-23", "12.5", "=1+1"}) || rows[0].Line != 2 ||
		!slices.Equal(rows[1].Cells, []string{"+39 333", "2026-11-24 15:30", "1000000000000000", "x"}) || rows[1].Line != 4 {
		t.Errorf("%q %+v %v %v", columns, rows, faults, err)
	}
}

// A file that unpacks to gigabytes is refused by its table of contents.
func TestZipBomb(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	z := zip.NewWriter(&file)
	w, err := z.Create("xl/worksheets/sheet1.xml")
	if err != nil {
		t.Fatal(err)
	}
	zeros := make([]byte, 1<<20)
	for range 64 {
		if _, err := w.Write(zeros); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if _, err := Open(&file, sheetType, folder); !isFile(err, true) {
		t.Errorf("a bomb: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(folder, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}

func TestMapping(t *testing.T) {
	t.Parallel()
	columns := []string{"Cognome", "Tel.", "NOME", "data visita", "a:b"}
	guessed := Guess(columns, nil, []string{"nome", "data_visita", "altro"})
	if want := map[string]int{"phone": 1, "nome": 2, "data_visita": 3}; !maps.Equal(guessed, want) {
		t.Errorf("guessed %v, want %v", guessed, want)
	}
	if guessed := Guess([]string{"x", "y"}, [][]string{{"Anna", "+39 333 1234567"}}, nil); guessed["phone"] != 1 {
		t.Errorf("by its rows: %v", guessed)
	}
	named, err := ParseMapping("phone:Tel.,nome:nome,z:5", columns)
	if want := map[string]int{"phone": 1, "nome": 2, "z": 4}; err != nil || !maps.Equal(named, want) {
		t.Errorf("named %v %v", named, err)
	}
	for _, bad := range []string{"", "phone", "phone:nothing", "phone:9", "phone:1,phone:2"} {
		if _, err := ParseMapping(bad, columns); err == nil {
			t.Errorf("%q is a mapping", bad)
		}
	}
	if _, err := ParseMapping("a:x", []string{"x", "X"}); err == nil || !strings.Contains(err.Error(), "number") {
		t.Errorf("two columns of one name: %v", err)
	}
	for cell, lost := range map[string]bool{"3,33E+09": true, "3.93E+11": true, "393331234567": false, "E10": false, "": false} {
		if LostDigits(cell) != lost {
			t.Errorf("%q: %v", cell, !lost)
		}
	}
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"a,b\n1,2\n", "sep=;\na;b\n", "\xff\xfea\x00", "a\r\r\n\"", "PK\x03\x04"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		columns, rows, _, err := read(t, bytes.NewReader(file), "")
		if err == nil && (len(columns) == 0 || len(columns) > MaxColumns) {
			t.Errorf("%d columns", len(columns))
		}
		for _, row := range rows {
			if len(row.Cells) != len(columns) {
				t.Errorf("%d cells of %d", len(row.Cells), len(columns))
			}
		}
	})
}

func BenchmarkText(b *testing.B) {
	var file bytes.Buffer
	file.WriteString("phone,nome,data\n")
	for i := range 100_000 {
		fmt.Fprintf(&file, "+39333%07d,Anna %d,2026-11-23\n", i, i)
	}
	for b.Loop() {
		if _, rows, _, err := read(b, bytes.NewReader(file.Bytes()), "text/csv"); err != nil || len(rows) != 100_000 {
			b.Fatal(err)
		}
	}
}
