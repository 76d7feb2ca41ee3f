package roster_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/xuri/excelize/v2"
	"pgregory.net/rapid"
)

// TestWorkbookAsExcelizeReadsIt compares the reader with the library excelize, for every way to write cells. It does
// not compare fractions and the days of January to March 1900, because excelize does not show them like Excel.
func TestWorkbookAsExcelizeReadsIt(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) { readTwice(t, r) })
}

func readTwice(t testing.TB, r *rapid.T) {
	t.Helper()
	text := func(label string) string {
		pieces := strings.Fields("a b 0 _ x _x _x000D_ _x000A_ _x005F_ _x0041_ _x00e8_ &lt; &gt; &amp; &#233; \" ' é € 😀")
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(pieces, " ", "\n", "\r\n", "\t")), 0, 12).Draw(r, label), "")
	}
	tag := func(s string) string {
		switch rapid.IntRange(0, 4).Draw(r, "shape") {
		case 0:
			return "<t>" + s + "</t>"
		case 1:
			return `<t xml:space="preserve">` + s + "</t><phoneticPr fontId=\"1\"/>"
		case 2:
			return "<r><rPr><b/></rPr><t xml:space=\"preserve\">" + s + "</t></r><r><t>x</t></r>"
		case 3:
			return `<t>` + s + `</t><rPh sb="0" eb="1"><t>kana</t></rPh>`
		default:
			return "<t><![CDATA[" + s + "]]></t>"
		}
	}
	var shared strings.Builder
	for range 4 {
		fmt.Fprintf(&shared, "<si>%s</si>", tag(text("shared")))
	}
	var sheet strings.Builder
	sheet.WriteString(cells("a", "b", "c", "d"))
	line := 1
	for range rapid.IntRange(0, 6).Draw(r, "rows") {
		line += rapid.IntRange(1, 3).Draw(r, "step")
		fmt.Fprintf(&sheet, `<row r="%d" spans="1:4">`, line)
		for column := range 4 {
			at := fmt.Sprintf(`r="%c%d"`, 'A'+column, line)
			switch rapid.IntRange(0, 9).Draw(r, "kind") {
			case 0, 1:
				fmt.Fprintf(&sheet, `<c %s t="s"><v>%d</v></c>`, at, rapid.IntRange(0, 3).Draw(r, "number"))
			case 2:
				fmt.Fprintf(&sheet, `<c %s t="inlineStr"><is>%s</is></c>`, at, tag(text("inline")))
			case 3:
				fmt.Fprintf(&sheet, `<c %s t="str"><f>A1</f><v>%s</v></c>`, at, strings.ReplaceAll(text("str"), "_", "")) // without "_", because excelize does not replace escapes in such a cell
			case 4:
				fmt.Fprintf(&sheet, `<c %s t="b"><v>%d</v></c>`, at, rapid.IntRange(0, 1).Draw(r, "bool"))
			case 5:
				fmt.Fprintf(&sheet, `<c %s><v>%d</v></c>`, at, rapid.Int64Range(-1<<40, 1<<40).Draw(r, "integer"))
			case 6:
				fmt.Fprintf(&sheet, `<c %s><v>%.10E</v></c>`, at, float64(rapid.Int64Range(0, 9999999999).Draw(r, "phone")))
			case 7:
				fmt.Fprintf(&sheet, `<c %s s="1"><v>%v</v></c>`, at, float64(rapid.IntRange(62*86400, 80000*86400).Draw(r, "moment"))/86400)
			case 8:
				fmt.Fprintf(&sheet, `<c %s s="1"/>`, at)
			}
		}
		sheet.WriteString("</row>")
	}
	b := oneSheet(sheet.String()).
		with("[Content_Types].xml", `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>`).
		with("xl/sharedStrings.xml", "<sst "+xmlns+">"+shared.String()+"</sst>").
		with("xl/styles.xml", `<styleSheet `+xmlns+`><numFmts><numFmt numFmtId="170" formatCode="yyyy\-mm\-dd\ hh:mm:ss"/></numFmts><cellXfs><xf/><xf numFmtId="170"/></cellXfs></styleSheet>`)
	if rapid.Bool().Draw(r, "1904") {
		b["xl/workbook.xml"] = strings.Replace(b["xl/workbook.xml"], "<sheets>", `<workbookPr date1904="true"/><sheets>`, 1)
	}
	for name := range b {
		b[name] = strings.ReplaceAll(strings.ReplaceAll(b[name], "http://x/", "http://schemas.openxmlformats.org/officeDocument/2006/relationships/"), "<Relationships>", `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">`)
	}
	data := b.bytes(t)
	f, err := excelize.OpenReader(bytes.NewReader(data))
	if err != nil {
		r.Fatal(err)
	}
	defer f.Close()
	rows, err := f.GetRows("Lista")
	if err != nil {
		r.Fatal(err)
	}
	var want strings.Builder
	for n, row := range rows[1:] {
		cells := make([]string, 4)
		for i := range row {
			cells[i] = strings.TrimSpace(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(row[i]))
			if len(cells[i]) == 19 && cells[i][4] == '-' {
				cells[i] = strings.TrimSuffix(strings.TrimSuffix(cells[i], ":00"), " 00:00")
			}
		}
		if strings.Join(cells, "") != "" {
			fmt.Fprintf(&want, "%d|%s\n", n+2, strings.ReplaceAll(strings.Join(cells, "|"), "\n", `\n`))
		}
	}
	o := drain(t, bytes.NewReader(data), xlsxType)
	if got := o.text(); o.end != nil || o.faults != nil || got != want.String() {
		r.Fatalf("here\n%sexcelize\n%send %v, faults %v\n%s\n%s", got, want.String(), o.end, o.faults, sheet.String(), shared.String())
	}
}
