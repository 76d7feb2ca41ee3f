package roster_test

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"pgregory.net/rapid"

	"puntuale/internal/roster"
)

func TestCSV(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text, columns, rows string
		faults              []string
	}{
		"plain":                     {"phone,nome\n333,Anna\n334,Bea\n", "phone|nome", "2|333|Anna\n3|334|Bea\n", nil},
		"no line end at the end":    {"phone,nome\n333,Anna", "phone|nome", "2|333|Anna\n", nil},
		"header alone":              {"phone,nome", "phone|nome", "", nil},
		"header is trimmed":         {" phone , nome\u00a0\n333, Anna\n", "phone|nome", "2|333|Anna\n", nil},
		"one column":                {"Telefono\r\n333\r\n334\r\n", "Telefono", "2|333\n3|334\n", nil},
		"mixed line ends":           {"phone,nome\r333,Anna\r\n334,Bea\n\n\r335,Caterina\r", "phone|nome", "2|333|Anna\n3|334|Bea\n6|335|Caterina\n", nil},
		"blank rows":                {"\n ; \nphone;nome\n;\n  \n333;Anna\n; \n", "phone|nome", "6|333|Anna\n", nil},
		"missing cells":             {"phone,nome,citta\n333\n334,Bea\n", "phone|nome|citta", "2|333||\n3|334|Bea|\n", nil},
		"surplus cells":             {"phone,nome\n333,Anna,,\n334,Bea, ,Roma\n335,Ciro\n", "phone|nome", "2|333|Anna\n4|335|Ciro\n", []string{"3:0 too_many_cells"}},
		"a mark to the right":       {"phone,nome\n333,Anna,\ufeff\n", "phone|nome", "2|333|Anna\n", nil},
		"columns without names":     {"phone,,nome,,\n333,x,Anna,,\n", "phone||nome", "2|333|x|Anna\n", nil},
		"quotes":                    {"phone,nome\n\"333\",\"Rossi, \"\"la\"\" Anna\"\n\"\",\"\"\n334,\"\"\n", "phone|nome", "2|333|Rossi, \"la\" Anna\n4|334|\n", nil},
		"blanks around quotes":      {"phone, \"nome\"\n333, \"Rossi, Anna\" \n", "phone|nome", "2|333|Rossi, Anna\n", nil},
		"a quote in the middle":     {"phone;nome\n333;Pizzeria \"da Gino\"\n", "phone|nome", "2|333|Pizzeria \"da Gino\"\n", nil},
		"lines in a cell":           {"phone,testo\n333,\"uno\r\ndue\rtre\n\"\n334,x\n", "phone|testo", "2|333|uno\\ndue\\ntre\n6|334|x\n", nil},
		"text behind a quote":       {"phone,nome\n333,\"Anna\" Rossi\n334,Bea\n", "phone|nome", "3|334|Bea\n", []string{"2:0 bare_quote"}},
		"a quote that is not ended": {"phone,nome\n333,\"Anna\n334,Bea\n335,Ciro\n", "phone|nome", "3|334|Bea\n4|335|Ciro\n", []string{"2:0 open_quote"}},
		"that one before a good":    {"phone,nome\n333,\"Anna\n334,\"Bea\"\n", "phone|nome", "3|334|Bea\n", []string{"2:0 bare_quote"}},
		"NUL":                       {"phone,nome\n333,An\x00na\n334,Bea\n", "phone|nome", "3|334|Bea\n", []string{"2:0 nul_byte"}},
		"formulas are text":         {"phone,nome\n333,\"=HYPERLINK(\"\"x\"\")\"\n334,+1\n", "phone|nome", "2|333|=HYPERLINK(\"x\")\n3|334|+1\n", nil},
		"cell of the longest":       {"phone,nome\n333," + strings.Repeat("x", 4096) + "\n", "phone|nome", "2|333|" + strings.Repeat("x", 4096) + "\n", nil},
		"cell too long":             {"phone,nome\n333," + strings.Repeat("x", 4097) + "\n334,\"" + strings.Repeat("x\n", 3000) + "\"\n335,Ciro\n", "phone|nome", "2|333|!cell_too_long\n3|334|!cell_too_long\n3004|335|Ciro\n", nil},
		"semicolons and commas":     {"telefono;importo\n333;12,50\n334;3,20\n", "telefono|importo", "2|333|12,50\n3|334|3,20\n", nil},
		"commas in each row":        {"Cognome, Nome, Titolo;Telefono\nRossi, Anna, Dott.;333\n", "Cognome, Nome, Titolo|Telefono", "2|Rossi, Anna, Dott.|333\n", nil},
		"semicolons in some":        {"phone,nota\n333,a;b\n334,c\n", "phone|nota", "2|333|a;b\n3|334|c\n", nil},
		"faults above":              {"\"phone\";nota\n\"x\"y;z\n333;\"a,b\"\n", "phone|nota", "3|333|a,b\n", []string{"2:0 bare_quote"}},
		"tabs":                      {"telefono\tnome, cognome\n333\tAnna Rossi\n334\tBea, Verdi\n", "telefono|nome, cognome", "2|333|Anna Rossi\n3|334|Bea, Verdi\n", nil},
		"bars":                      {"telefono|nome\n333|Anna\n", "telefono|nome", "2|333|Anna\n", nil},
		"delimiters in quotes":      {"\"telefono;casa\",nome\n\"3;3;3\",Anna\n", "telefono;casa|nome", "2|3;3;3|Anna\n", nil},
		"sep=":                      {"sep=:\r\ntelefono:nome,cognome\r\n333:Anna,Rossi\r\n", "telefono|nome,cognome", "3|333|Anna,Rossi\n", nil},
		"sep= with a mark":          {"\xEF\xBB\xBFSEP=;\ntelefono;a,b,c\n333;1,2,3\n", "telefono|a,b,c", "3|333|1,2,3\n", nil},
		"sep= is a header":          {"sep=,phone\n1,333\n", "sep=|phone", "2|1|333\n", nil},
		"sep= of a letter":          {"sep=x\n1\n", "sep=x", "2|1\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csvOf(t, test.text).expect(t, test.columns, test.rows, test.faults...)
			drain(t, iotest.OneByteReader(strings.NewReader(test.text)), csvType).expect(t, test.columns, test.rows, test.faults...)
		})
	}
}

// TestOpenQuoteIsBounded checks that an open quote damages only its own line. Reading continues with the next line.
func TestOpenQuoteIsBounded(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("phone,nome\n333,\"Anna\n")
	var want strings.Builder
	for n := range 20_000 {
		fmt.Fprintf(&text, "334%06d,Bea\n", n)
		fmt.Fprintf(&want, "%d|334%06d|Bea\n", n+3, n)
	}
	csvOf(t, text.String()).expect(t, "phone|nome", want.String(), "2:0 open_quote")
}

// TestLongLines checks that the longest allowed row is read, and that a row with one more byte is refused. A line
// without an end is skipped, and not kept in memory.
func TestLongLines(t *testing.T) {
	t.Parallel()
	columns := strings.Repeat("x,", 100) + "phone\n"
	row := strings.Repeat(strings.Repeat("y", 640)+",", 101) // the row has 64,741 bytes
	row += strings.Repeat(" ", roster.MaxLine-len(row))
	if o := csvOf(t, columns+row+"\n"+row+"\r\n"+row); len(o.rows) != 3 || o.faults != nil || o.end != nil {
		t.Errorf("%d rows, faults %v, end %v", len(o.rows), o.faults, o.end)
	}
	for name, line := range map[string]string{
		"one byte":  row + " ",
		"very much": strings.Repeat("z,", 2_000_000),
		"quoted":    "\"\"" + strings.Repeat(" ", roster.MaxLine),
	} {
		o := csvOf(t, columns+line+"\r\n1,2\r\n")
		if len(o.rows) != 1 || o.rows[0].Line != 3 || !slices.Equal(o.faults, []string{"2:0 line_too_long"}) || o.end != nil {
			t.Errorf("%s: %d rows, faults %v, end %v", name, len(o.rows), o.faults, o.end)
		}
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	const text = "Telefono;Città\r\n333;Forlì\r\n334;Zoë €\r\n"
	const columns, rows = "Telefono|Città", "2|333|Forlì\n3|334|Zoë €\n"
	windows, err := charmap.Windows1252.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	wide := func(order unicode.Endianness, mark unicode.BOMPolicy) string {
		s, err := unicode.UTF16(order, mark).NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, list := range map[string]string{
		"UTF-8":                    text,
		"UTF-8 with a mark":        "\xEF\xBB\xBF" + text,
		"Windows-1252":             windows,
		"UTF-16 LE":                wide(unicode.LittleEndian, unicode.UseBOM),
		"UTF-16 BE":                wide(unicode.BigEndian, unicode.UseBOM),
		"UTF-16 LE without a mark": wide(unicode.LittleEndian, unicode.IgnoreBOM),
		"UTF-16 BE without a mark": wide(unicode.BigEndian, unicode.IgnoreBOM),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			csvOf(t, list).expect(t, columns, rows)
			drain(t, iotest.OneByteReader(strings.NewReader(list)), csvType).expect(t, columns, rows)
		})
	}
}

// TestEncodingIsDecidedLate checks that the first row that is not ASCII decides the encoding, even if it comes late.
// A later row in another encoding is reported.
func TestEncodingIsDecidedLate(t *testing.T) {
	t.Parallel()
	plain := strings.Repeat("333,Anna\n", 50_000)
	for name, test := range map[string]struct{ rows, want, faults string }{
		"Windows-1252":           {"334,Forl\xEC\n335,Niccol\xF2\n", "50002|334|Forlì\n50003|335|Niccolò\n", ""},
		"UTF-8":                  {"334,Forlì\n335,Niccolò\n", "50002|334|Forlì\n50003|335|Niccolò\n", ""},
		"UTF-8, then the other":  {"334,Forlì\n335,Niccol\xF2\n336,Bea\n", "50002|334|Forlì\n50004|336|Bea\n", "50003:0 bad_encoding"},
		"Windows-1252, then not": {"334,Forl\xEC\n335,Niccolò\n336,Bea\n", "50002|334|Forlì\n50004|336|Bea\n", "50003:0 bad_encoding"},
		"halves in two cells":    {"33\xC3,\xACx\n", "50002|33Ã|¬x\n", ""},
		"no sign of either":      {"334,a\x81b\n335,x\n", "50003|335|x\n", "50002:0 bad_encoding"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := csvOf(t, "phone,nome\n"+plain+test.rows)
			late := outcome{rows: o.rows[50_000:]}
			if o.end != nil || late.text() != test.want || strings.Join(o.faults, " ") != test.faults {
				t.Errorf("end %v, rows\n%sfaults %q", o.end, late.text(), o.faults)
			}
		})
	}
	csvOf(t, "\xEF\xBB\xBFphone,nome\n333,Forl\xEC\n").expect(t, "phone|nome", "", "2:0 bad_encoding")
	csvOf(t, "\xFF\xFEp\x00,\x00q\x00\n\x001\x00,\x00\x00\xD8\n\x002\x00,\x003\x00\n\x004\x00,").expect(t, "p|q", "3|2|3\n", "2:0 bad_encoding", "4:0 bad_encoding")
}

func TestRefusedCSV(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		text string
		want roster.Problem
	}{
		"nothing":                 {"", roster.NoHeader},
		"a mark alone":            {"\xEF\xBB\xBF", roster.NoHeader},
		"blanks alone":            {"\n\r\n  \n", roster.NoHeader},
		"no header":               {"3331234567;Anna\n3331234568;Bea\n", roster.PhoneHeader},
		"no header, other shapes": {"Anna,+39 (333) 123-4567\n", roster.PhoneHeader},
		"no header, lost digits":  {"3,33E+09;Anna\n", roster.PhoneHeader},
		"a picture":               {"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR" + strings.Repeat("\x00\x01\xff", 10), roster.NotAList},
		"NULs":                    {"phone\x00\x01,nome\n", roster.NotAList},
		"201 columns":             {strings.Repeat("a,", 200) + "b\n", roster.TooManyColumns},
		"an open quote":           {"\"phone,nome\n333,Anna\n", roster.OpenQuote},
		"a long name":             {strings.Repeat("x", 4097) + ",phone\n", roster.CellTooLong},
		"no line":                 {strings.Repeat("x,", 100_000), roster.LineTooLong},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectProblem(t, csvOf(t, test.text).end, test.want)
		})
	}
	if o := csvOf(t, strings.Repeat("a,", 199)+"b\n1\n"); o.end != nil || len(o.columns) != 200 || len(o.rows) != 1 {
		t.Errorf("200 columns: %v", o.end)
	}
	csvOf(t, "2026-11-23;2026\n1;2\n").expect(t, "2026-11-23|2026", "2|1|2\n")
}

// TestCSVOfOthers checks that cells from encoding/csv are read unchanged, whatever they contain.
func TestCSVOfOthers(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		cell := rapid.StringOf(rapid.SampledFrom([]rune("ab,;\t|\"\n é€=+"))).Filter(func(s string) bool { return len(s) < 200 })
		table := rapid.SliceOfN(rapid.SliceOfN(cell, 3, 3), 0, 20).Draw(r, "table")
		var text bytes.Buffer
		w := csv.NewWriter(&text)
		w.UseCRLF = rapid.Bool().Draw(r, "CRLF")
		w.Comma = rapid.SampledFrom([]rune(",;\t|")).Draw(r, "delimiter")
		fmt.Fprintf(&text, "sep=%c\n", w.Comma)
		var want [][]string
		_ = w.Write([]string{"x", "y", "z"})
		for _, row := range table {
			_ = w.Write(row)
			if strings.TrimSpace(strings.Join(row, "")) != "" {
				for i := range row {
					row[i] = strings.TrimSpace(row[i])
				}
				want = append(want, row)
			}
		}
		w.Flush()
		o := csvOf(t, text.String())
		var got [][]string
		for _, row := range o.rows {
			got = append(got, row.Cells)
		}
		if o.end != nil || o.faults != nil || !slices.EqualFunc(got, want, slices.Equal) {
			r.Fatalf("list %q\ngot  %q\nwant %q\nend %v, faults %v", text.String(), got, want, o.end, o.faults)
		}
	})
}

// TestBrokenUpload checks that a list does not end normally if its upload breaks off.
func TestBrokenUpload(t *testing.T) {
	t.Parallel()
	whole := oneSheet(`<row><c t="str"><v>phone</v></c></row>`).bytes(t)
	for name, test := range map[string]struct {
		sent   string
		format string
	}{
		"in the header":   {"pho", csvType},
		"behind rows":     {"phone\n333\n334\n", csvType},
		"behind a 100 KB": {"phone\n" + strings.Repeat("333\n", 100_000), csvType},
		"workbook":        {string(whole[:100]), xlsxType},
	} {
		o := drain(t, io.MultiReader(strings.NewReader(test.sent), iotest.ErrReader(io.ErrUnexpectedEOF)), test.format)
		if o.end == nil || !strings.Contains(o.end.Error(), io.ErrUnexpectedEOF.Error()) {
			t.Errorf("%s: ended with %v after %d rows", name, o.end, len(o.rows))
		}
	}
}

// TestWithoutHeader: the columns of a list without a header end one after the last phone number. The last column has the rest
// of a row, and a phone number there stays a value of its own.
func TestWithoutHeader(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", roster.MaxCell)
	text := "333 1234567\n\n333 1234567,20/11/2026, ,no,grazie,\n" + strings.Repeat("333 1234567\n", 10) +
		"333 1234567,no,333 7654321\n333 1234567,,no\n333 1234567,no," + long + "\n333 1234567,," + long + "\n333 1234567,x" + long + ",no\n"
	list, err := roster.Open(t.Context(), strings.NewReader(text), csvType, t.TempDir(), roster.MaybeHeader)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = list.Close() }()
	var got []string
	for {
		row, err := list.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(row.Cells) != 2 || row.Cells[0] != "333 1234567" {
			t.Fatal(row, err)
		}
		if cell := row.Cells[1]; roster.CellProblem(cell) != "" {
			got = append(got, string(roster.CellProblem(cell)))
		} else if cell != "" {
			got = append(got, cell[:min(len(cell), 25)])
		}
	}
	if want := []string{"20/11/2026 ::: no ::: gra", "no ::: 333 7654321", "no", "cell_too_long", long[:25], "cell_too_long"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
