package roster_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"

	"puntuale/internal/roster"
)

// cells returns the XML of one row whose cells have no positions. Some programs write such rows.
func cells(all ...string) string {
	var b strings.Builder
	b.WriteString("<row>")
	for _, c := range all {
		b.WriteString(`<c t="inlineStr"><is><t>` + c + `</t></is></c>`)
	}
	b.WriteString("</row>")
	return b.String()
}

func TestWorkbookCells(t *testing.T) {
	t.Parallel()
	styles := `<styleSheet><numFmts><numFmt numFmtId="164" formatCode="dd/mm/yyyy"/><numFmt numFmtId="165" formatCode="[$€-410]\ #,##0.00&quot; di sconto&quot;"/><numFmt numFmtId="166" formatCode="[h]:mm"/><numFmt numFmtId="167" formatCode="[Red]0;hh"/><numFmt numFmtId="168" formatCode="&quot;il &quot;d"/><numFmt numFmtId="169" formatCode="0&quot;days"/></numFmts>
		<cellXfs><xf numFmtId="0"/><xf numFmtId="14"/><xf numFmtId="164"/><xf numFmtId="165"/><xf numFmtId="166"/><xf numFmtId="167"/><xf numFmtId="20"/><xf numFmtId="168"/><xf numFmtId="169"/></cellXfs><dxfs><dxf><numFmt numFmtId="164" formatCode="0"/></dxf></dxfs></styleSheet>`
	shared := `<sst><si><t>Anna</t></si><si><r><t>Ma</t></r><r><rPr/><t xml:space="preserve">ria </t></r><rPh><t>x</t></rPh></si><si><t>uno_x000D_
due_x005F_x000D_</t></si><si/><si><t>` + strings.Repeat("x", 4097) + `</t></si></sst>`
	for name, test := range map[string]struct{ cell, want, problem string }{
		"integer":                   {`<c><v>393331234567</v></c>`, "393331234567", ""},
		"integer with an exponent":  {`<c><v>3.93331234567E+11</v></c>`, "393331234567", ""},
		"integer as a fraction":     {`<c><v>393331234567.0</v></c>`, "393331234567", ""},
		"integer beyond doubles":    {`<c><v>12345678901234567</v></c>`, "12345678901234567", ""},
		"large with an exponent":    {`<c><v>1E+20</v></c>`, "100000000000000000000", ""},
		"fraction":                  {`<c><v>12.50</v></c>`, "12.5", ""},
		"fraction of a sum":         {`<c><v>0.30000000000000004</v></c>`, "0.3", ""},
		"small":                     {`<c t="n"><v>1.5E-3</v></c>`, "0.0015", ""},
		"negative":                  {`<c><v>-12</v></c>`, "-12", ""},
		"no number":                 {`<c><v>0x1p3</v></c>`, "0x1p3", ""},
		"date":                      {`<c s="1"><v>46349</v></c>`, "2026-11-23", ""},
		"date and time":             {`<c s="2"><v>46349.645833333336</v></c>`, "2026-11-23 15:30", ""},
		"date, time and seconds":    {`<c s="2"><v>46349.645844907407</v></c>`, "2026-11-23 15:30:01", ""},
		"first day":                 {`<c s="1"><v>1</v></c>`, "1900-01-01", ""},
		"before 29 February 1900":   {`<c s="1"><v>59.5</v></c>`, "1900-02-28 12:00", ""},
		"behind 29 February 1900":   {`<c s="1"><v>61</v></c>`, "1900-03-01", ""},
		"time":                      {`<c s="6"><v>0.64583333333333337</v></c>`, "15:30", ""},
		"midnight":                  {`<c s="6"><v>0</v></c>`, "00:00", ""},
		"last moment of a day":      {`<c s="1"><v>46349.999999</v></c>`, "2026-11-24", ""},
		"money":                     {`<c s="3"><v>46349</v></c>`, "46349", ""},
		"how long":                  {`<c s="4"><v>1.5</v></c>`, "1.5", ""},
		"a colour":                  {`<c s="5"><v>46349</v></c>`, "46349", ""},
		"a text before the day":     {`<c s="7"><v>46349</v></c>`, "2026-11-23", ""},
		"a text that does not end":  {`<c s="8"><v>46349</v></c>`, "46349", ""},
		"a phone shown as a date":   {`<c s="1"><v>3331234567</v></c>`, "3331234567", ""},
		"a style that is not there": {`<c s="99"><v>46349</v></c>`, "46349", ""},
		"date as text":              {`<c t="d"><v>2026-11-23T15:30:00</v></c>`, "2026-11-23 15:30", ""},
		"true":                      {`<c t="b"><v>1</v></c>`, "TRUE", ""},
		"false":                     {`<c t="b"><v>0</v></c>`, "FALSE", ""},
		"shared":                    {`<c t="s"><v>0</v></c>`, "Anna", ""},
		"shared in runs":            {`<c t="s"><v>1</v></c>`, "Maria", ""},
		"escaped signs":             {`<c t="s"><v>2</v></c>`, "uno\ndue_x000D_", ""},
		"shared and empty":          {`<c t="s"><v>3</v></c>`, "", ""},
		"shared by a wrong number":  {`<c t="s"><v>5</v></c>`, "", "bad_cell"},
		"shared by no number":       {`<c t="s"><v>x</v></c>`, "", "bad_cell"},
		"inline":                    {`<c t="inlineStr"><is><r><t>An</t></r><r><t>na</t></r></is></c>`, "Anna", ""},
		"looks like a formula":      {`<c t="inlineStr"><is><t>=1+1</t></is></c>`, "=1+1", ""},
		"formula, text":             {`<c t="str"><f>A1&amp;"x"</f><v>x &lt; y</v></c>`, "x < y", ""},
		"formula, empty text":       {`<c t="str"><f>""</f><v></v></c>`, "", ""},
		"formula, number":           {`<c><f>1+1</f><v>2</v></c>`, "2", ""},
		"formula without a result":  {`<c><f>1+1</f></c>`, "", "formula"},
		"formula, empty result":     {`<c><f>1+1</f><v/></c>`, "", "formula"},
		"text formula without one":  {`<c t="str"><f>1+1</f></c>`, "", "formula"},
		"error":                     {`<c t="e"><f>NA()</f><v>#N/A</v></c>`, "", "error_value"},
		"unknown kind":              {`<c t="zz"><v>1</v></c>`, "", "bad_cell"},
		"empty":                     {`<c s="1"/>`, "", ""},
		"longest":                   {`<c t="inlineStr"><is><t>x` + strings.Repeat("_x000D__x000A_", 4094) + `x</t></is></c>`, "x" + strings.Repeat("\n", 4094) + "x", ""},
		"too long, escaped":         {`<c t="inlineStr"><is><t>` + strings.Repeat("_x000D__x000A_", 5000) + `</t></is></c>`, "", "cell_too_long"},
		"too long, shared":          {`<c t="s"><v>4</v></c>`, "", "cell_too_long"},
		"NUL":                       {`<c t="inlineStr"><is><t>_x0000_</t></is></c>`, "", "nul_byte"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := oneSheet(cells("phone", "x")+`<row r="7"><c t="inlineStr"><is><t>333</t></is></c>`+test.cell+`</row>`+cells("334", "y")).
				with("xl/styles.xml", styles).
				with("xl/sharedStrings.xml", shared).
				drain(t)
			want := "7|333|" + strings.ReplaceAll(test.want, "\n", `\n`) + "\n8|334|y\n"
			switch test.problem {
			case "":
				o.expect(t, "phone|x", want)
			case "nul_byte":
				o.expect(t, "phone|x", "8|334|y\n", "7:0 nul_byte")
			default: // after a RowError, the reader continues
				o.expect(t, "phone|x", "7|333|!"+test.problem+"\n8|334|y\n")
			}
		})
	}
}

// TestFormulasWithoutResult checks that a formula without a result is a fault if its column has a name in the header. A
// row that contains only such formulas still counts as a row.
func TestFormulasWithoutResult(t *testing.T) {
	t.Parallel()
	const formula = `<c><f>1+1</f></c>`
	oneSheet(cells("phone", "nome")+`<row><c><v>333</v></c><c/>`+formula+`</row><row>`+formula+`</row><row r="9"><c/><c/>`+formula+`</row>`+cells("334", "Bea")).
		drain(t).expect(t, "phone|nome", "2|333|\n3|!formula|\n10|334|Bea\n")
	expectProblem(t, oneSheet(`<row>`+formula+`</row>`+cells("333")).drain(t).end, roster.Formula)
}

func TestWorkbookRowTooLong(t *testing.T) {
	t.Parallel()
	names, long := make([]string, 20), make([]string, 20)
	for i := range names {
		names[i], long[i] = "x", strings.Repeat("y", 4000)
	}
	oneSheet(cells(names...)+cells(long...)+cells("333")).drain(t).
		expect(t, strings.Join(names, "|"), "3|333"+strings.Repeat("|", 19)+"\n", "2:0 line_too_long")
}

func TestWorkbook1904(t *testing.T) {
	t.Parallel()
	b := oneSheet(`<row><c t="str"><v>giorno</v></c></row><row><c s="0"><v>44887.5</v></c></row>`).
		with("xl/styles.xml", `<styleSheet><cellXfs><xf numFmtId="22"/></cellXfs></styleSheet>`)
	b["xl/workbook.xml"] = strings.Replace(b["xl/workbook.xml"], "<sheets>", `<workbookPr date1904="1"/><sheets>`, 1)
	b.drain(t).expect(t, "giorno", "2|2026-11-23 12:00\n")
}

// TestWorkbookPlaces checks that the position of a cell or of a row may be missing.
func TestWorkbookPlaces(t *testing.T) {
	t.Parallel()
	far := `<c r="GT4" t="str"><v>`
	oneSheet(`<row r="3"><c r="B3" t="str"><v> phone </v></c><c r="D3" t="str"><v>nome</v></c><c r="F3"/></row>
		<row r="4"><c r="B4"><v>333</v></c>`+far+` </v></c></row>
		<row/><row><c/><c t="str"><v> </v></c></row>
		<row r="10"><c r="A10"><v>1</v></c><c><v>334</v></c><c r="D10" t="str"><v>Bea</v></c></row>
		<row r="11"><c r="E11"><v>1</v></c></row>
		<row r="12">`+strings.ReplaceAll(far, "4", "12")+` </v></c><c t="str"><v>x</v></c></row>`).
		drain(t).expect(t, "|phone||nome", "4||333||\n10|1|334||Bea\n", "11:0 too_many_cells", "12:0 too_many_cells")
}

func TestWorkbookSheets(t *testing.T) {
	t.Parallel()
	b := oneSheet("")
	sheets, links := "", `<Relationship Id="a" Type="http://x/chartsheet" Target="worksheets/hidden.xml"/>`
	for name, content := range map[string]string{
		"hidden": cells("segreto"), "very": cells("segreto"), "blank": `<row><c s="1"/></row>` + cells(" "), "list": cells("phone") + cells("333"), "behind": cells("altro"),
	} {
		b["xl/worksheets/"+name+".xml"] = `<worksheet><sheetData>` + content + `</sheetData></worksheet>`
		links += `<Relationship Id="` + name + `" Type="http://x/worksheet" Target="/xl/worksheets/` + strings.ToUpper(name) + `.xml"/>`
	}
	for _, s := range []string{"a:visible", "hidden:hidden", "very:veryHidden", "blank:", "list:visible", "behind:"} {
		id, state, _ := strings.Cut(s, ":")
		sheets += `<sheet name="` + id + `" r:id="` + id + `" state="` + state + `"/>`
	}
	b["xl/workbook.xml"] = `<workbook ` + xmlns + `><sheets>` + sheets + `</sheets></workbook>`
	b["xl/_rels/workbook.xml.rels"] = `<Relationships>` + links + `</Relationships>`
	b.drain(t).expect(t, "phone", "2|333\n")

	b["xl/worksheets/list.xml"] = `<worksheet/>`
	b.drain(t).expect(t, "altro", "")
	b["xl/worksheets/behind.xml"] = `<worksheet><sheetData/></worksheet>`
	expectProblem(t, b.drain(t).end, roster.NoHeader)
}

// TestWorkbookLinks checks that the id of one link may equal the kind of another link.
func TestWorkbookLinks(t *testing.T) {
	t.Parallel()
	b := oneSheet(`<row><c t="s"><v>0</v></c></row>`).with("xl/sharedStrings.xml", "<sst><si><t>phone</t></si></sst>")
	b["xl/workbook.xml"] = strings.Replace(b["xl/workbook.xml"], "rId1", "sharedStrings", 1)
	b["xl/_rels/workbook.xml.rels"] = `<Relationships><Relationship Id="x" Type="http://x/sharedStrings" Target="./../xl/sharedStrings.xml"/><Relationship Id="sharedStrings" Type="http://x/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`
	b.drain(t).expect(t, "phone", "")
}

// TestWorkbookOfOtherPrograms checks that names of tags may have prefixes, and names of parts may have backslashes.
func TestWorkbookOfOtherPrograms(t *testing.T) {
	t.Parallel()
	b := book{
		`xl\workbook.xml`:            `<x:workbook xmlns:x="a" xmlns:r="b"><x:sheets><x:sheet name="1" r:id="q"/></x:sheets></x:workbook>`,
		`xl\_rels\workbook.xml.rels`: `<Relationships><Relationship Id="q" Type="http://purl.oclc.org/ooxml/officeDocument/relationships/worksheet" Target="s.xml"/></Relationships>`,
		`XL\S.XML`: `<?xml version="1.0" encoding="utf-8"?><x:worksheet xmlns:x="a"><x:cols/><x:sheetData><x:row><x:c t="inlineStr"><x:is><x:t>phone</x:t></x:is></x:c></x:row>` +
			`<x:row><x:c><x:v>333</x:v></x:c><x:extLst><x:ext/></x:extLst></x:row></x:sheetData><x:mergeCells/></x:worksheet>`,
	}
	b.drain(t).expect(t, "phone", "2|333\n")
}

// TestWorkbookOfExcelize checks that cells from the library excelize are read unchanged: shared and other texts,
// numbers, days, formulas.
func TestWorkbookOfExcelize(t *testing.T) {
	t.Parallel()
	f := excelize.NewFile()
	defer f.Close()
	fill := func(cell string, value any) {
		t.Helper()
		if err := f.SetCellValue("Sheet1", cell, value); err != nil {
			t.Fatal(err)
		}
	}
	for i, name := range []string{"Telefono", "Nome", "Giorno", "Vero", "Conto"} {
		fill(fmt.Sprintf("%c1", 'A'+i), name)
	}
	fill("A2", 393331234567)
	fill("B2", "Niccolò\nRossi")
	fill("C2", time.Date(2026, 11, 23, 15, 30, 0, 0, time.UTC))
	fill("D2", true)
	fill("E2", 12.5)
	fill("A4", "=1+1")
	if err := f.SetCellFormula("Sheet1", "E4", "SUM(E2)"); err != nil {
		t.Fatal(err)
	}
	fill("A5", "0333 123")
	whole, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	drain(t, bytes.NewReader(whole.Bytes()), xlsxType).expect(t, "Telefono|Nome|Giorno|Vero|Conto",
		"2|393331234567|Niccolò\\nRossi|2026-11-23 15:30|TRUE|12.5\n4|=1+1||||!formula\n5|0333 123||||\n")

	locked := new(bytes.Buffer)
	if err := f.Write(locked, excelize.Options{Password: "segreto"}); err != nil {
		t.Fatal(err)
	}
	o := drain(t, bytes.NewReader(locked.Bytes()), xlsxType)
	expectProblem(t, o.end, roster.Encrypted)
	old := bytes.ReplaceAll(locked.Bytes(), []byte("E\x00n\x00c\x00r\x00"), []byte("W\x00o\x00r\x00k\x00"))
	expectProblem(t, drain(t, bytes.NewReader(old), xlsxType).end, roster.OldXLS)
}

// TestWorkbookTexts checks that a text with any characters is read unchanged.
func TestWorkbookTexts(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.SampledFrom([]rune("ab_x0D<>&\"' \né€=😀"))).Filter(func(s string) bool { return len(s) < 200 })
	f := excelize.NewFile()
	defer f.Close()
	_ = f.SetSheetRow("Sheet1", "A1", &[]string{"x", "y"})
	var want strings.Builder
	for n := range 300 {
		row := []string{text.Example(2 * n), text.Example(2*n + 1)}
		_ = f.SetSheetRow("Sheet1", fmt.Sprintf("A%d", n+2), &row)
		if strings.TrimSpace(strings.Join(row, "")) != "" {
			fmt.Fprintf(&want, "%d|%s\n", n+2, strings.ReplaceAll(strings.TrimSpace(row[0])+"|"+strings.TrimSpace(row[1]), "\n", `\n`))
		}
	}
	whole, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	drain(t, whole, xlsxType).expect(t, "x|y", want.String())
}
