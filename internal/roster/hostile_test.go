package roster_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"puntuale/internal/roster"
)

// heap returns by how many bytes the memory in use grows during the call of read. It measures each time that read calls
// look, and returns the highest value.
func heap(read func(look func())) int64 {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // the second run frees the memory of pools
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before, highest := inUse(), int64(0)
	read(func() { highest = max(highest, inUse()-before) })
	return highest
}

// TestMillionRows checks that a million rows are read in little memory, and that one more row is refused. The test is
// not parallel, because all tests share the heap.
func TestMillionRows(t *testing.T) {
	same := func(b []byte, _ int) []byte { return append(b, "x333;Anna;\"1,50\"\r\n"...) }
	highest := heap(func(look func()) {
		list, err := roster.Open(t.Context(), &generated{row: same, rows: roster.MaxRows + 2}, csvType, "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for n := range roster.MaxRows {
			row, err := list.Next()
			if err != nil || row.Line != n+2 || len(row.Cells) != 3 {
				t.Fatalf("row %d: %v, %v", n, row, err)
			}
			if n%100_000 == 0 {
				look()
			}
		}
		_, err = list.Next()
		expectProblem(t, err, roster.TooManyRows)
		if _, again := list.Next(); again != err {
			t.Errorf("then came %v", again)
		}
	})
	if t.Logf("%d KiB", highest>>10); highest > 2<<20 {
		t.Errorf("reading took %d KiB of memory", highest>>10)
	}
}

// largeWorkbook returns a workbook with a number and a text in each row. Each text has about size bytes and appears
// once. The shared texts have another order than the rows.
func largeWorkbook(t testing.TB, rows, size int) []byte {
	t.Helper()
	var sheet, shared strings.Builder
	sheet.WriteString(cells("phone", "nome"))
	for n := range rows {
		fmt.Fprintf(&sheet, `<row r="%d"><c r="A%d"><v>39333%07d</v></c><c r="B%d" t="s"><v>%d</v></c></row>`, n+2, n+2, n, n+2, (n*7919)%rows)
		fmt.Fprintf(&shared, `<si><t>%s %d</t></si>`, strings.Repeat("x", size), n)
	}
	return oneSheet(sheet.String()).with("xl/sharedStrings.xml", "<sst>"+shared.String()+"</sst>").bytes(t)
}

// TestLargeWorkbook checks that the texts of a workbook are on disk and not in memory. The test is not parallel,
// because all tests share the heap.
func TestLargeWorkbook(t *testing.T) {
	const rows = 2_000
	packed := largeWorkbook(t, rows, 1_000)
	highest := heap(func(look func()) {
		list, err := roster.Open(t.Context(), bytes.NewReader(packed), xlsxType, t.TempDir(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer list.Close()
		for n := range rows {
			row, err := list.Next()
			if want := fmt.Sprintf(" %d", (n*7919)%rows); err != nil || !strings.HasSuffix(row.Cells[1], want) {
				t.Fatalf("row %d: %v, %v", n, row, err)
			}
			if n%500 == 0 {
				look()
			}
		}
		if _, err := list.Next(); err != io.EOF {
			t.Error(err)
		}
	})
	runtime.KeepAlive(packed)
	if t.Logf("%d KiB", highest>>10); highest > 512<<10 { // all texts together have four times as many bytes
		t.Errorf("reading took %d KiB of memory", highest>>10)
	}
}

// TestTooLarge checks that a list is refused at the first byte above the limit. The rows before this byte are read, and
// the rest of the upload is not.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	line := []byte(`"` + strings.Repeat("x", 997) + "\"\n")
	for name, test := range map[string]struct {
		first  string
		format string
	}{"CSV": {"phone\n", csvType}, "workbook": {"PK\x03\x04", xlsxType}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upload := &generated{rows: 200_000, row: func(b []byte, n int) []byte {
				if n == 0 {
					b = append(b, test.first...)
				}
				return append(b, line...)
			}}
			o := drain(t, upload, test.format)
			expectProblem(t, o.end, roster.TooLarge)
			if limit := int64(roster.MaxBytes + 1); upload.read != limit {
				t.Errorf("read %d bytes, want %d", upload.read, limit)
			}
		})
	}
}

// packed returns a workbook with an extra part that unpacks to n zeros.
func packed(t *testing.T, name string, n int64) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for part, content := range oneSheet(cells("phone")) {
		w, err := z.Create(part)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, content)
	}
	w, err := z.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(w, zeros{}, n); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestZipBomb(t *testing.T) {
	t.Parallel()
	bomb := packed(t, "xl/sharedStrings.xml", 2<<20)
	expectProblem(t, drain(t, bytes.NewReader(bomb), xlsxType).end, roster.ZipBomb)
	expectProblem(t, drain(t, bytes.NewReader(packed(t, "xl/media/image1.png", 2<<20)), xlsxType).end, roster.ZipBomb) // the part is refused, although the reader does not need it

	// The next archive has many small parts.
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for n := range 1025 {
		w, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(n), Method: zip.Deflate, UncompressedSize64: 1 << 20, CompressedSize64: 10})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write(make([]byte, 10))
	}
	z.Close()
	expectProblem(t, drain(t, &out, xlsxType).end, roster.ZipBomb)

	// The next archive has a part that unpacks to more bytes than the archive declares.
	lying := bytes.Clone(bomb)
	size := binary.LittleEndian.AppendUint32(nil, 2<<20)
	for at := bytes.Index(lying, size); at >= 0; at = bytes.Index(lying, size) {
		copy(lying[at:], []byte{0, 1, 0, 0})
	}
	expectProblem(t, drain(t, bytes.NewReader(lying), xlsxType).end, roster.Damaged)

	// The next archive has a list of parts of three megabytes. A reader would need the whole list in memory.
	out.Reset()
	z = zip.NewWriter(&out)
	for range 1000 {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: strings.Repeat("x", 3000)}); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	expectProblem(t, drain(t, &out, xlsxType).end, roster.Damaged)
}

// TestPartsAreReadOnce uses an archive whose parts share their bytes, and a workbook whose sheets are all one part.
// Reading each part or sheet would take much time, even for a small upload.
func TestPartsAreReadOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, content := range oneSheet(cells("phone")).with("a", "").with("b", "") {
		h := &zip.FileHeader{Name: name, Method: zip.Store, CompressedSize64: uint64(len(content)), UncompressedSize64: uint64(len(content))}
		if content == "" {
			h.CompressedSize64 = 1500 // the archive is shorter than two parts of this size
		}
		w, err := z.CreateRaw(h)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(w, content)
	}
	z.Close()
	if out.Len() > 3000 {
		t.Fatalf("the archive has %d bytes", out.Len())
	}
	expectProblem(t, drain(t, &out, xlsxType).end, roster.Damaged)

	b := oneSheet("")
	b["xl/workbook.xml"] = strings.Replace(b["xl/workbook.xml"], "</sheets>", strings.Repeat(`<sheet r:id="rId1"/>`, 1000)+"</sheets>", 1)
	expectProblem(t, b.drain(t).end, roster.Damaged)
}

// TestHostileXML uses XML that could fill the memory. The reader must refuse it, and use only little memory for this. The
// test is not parallel, because all tests share the heap.
func TestHostileXML(t *testing.T) {
	random := func(n int) string { // random bytes cannot be compressed, so the archive's ratio looks normal
		b := make([]byte, n)
		seed := uint32(1)
		for i := range b {
			seed = seed*1664525 + 1013904223
			b[i] = 'a' + byte(seed>>24)%26
		}
		return string(b)
	}
	noise := random(3 << 20)
	wide := strings.Repeat(` xmlns=""`, 50_000)
	var names, formats strings.Builder
	for n := range 300_000 {
		fmt.Fprintf(&formats, `<numFmt numFmtId="%d"/>`, n)
	}
	for at := 0; at < len(noise); at += 64 {
		names.WriteString(`<sheet name="` + noise[at:at+64] + `"/>`)
	}
	for name, test := range map[string]struct {
		book book
		want roster.Problem
		most uint64 // bytes of memory that reading may use
	}{
		"a long text":         {oneSheet(`<row><c t="str"><v>` + noise + `</v></c></row>`), roster.Damaged, 8 << 20},
		"a long tag":          {oneSheet(`<row x="` + noise + `"/>`), roster.Damaged, 8 << 20},
		"a long shared text":  {oneSheet("").with("xl/sharedStrings.xml", "<sst><si><t>"+noise), roster.Damaged, 8 << 20},
		"deep tags":           {oneSheet(strings.Repeat("<a>", 300_000)), roster.Damaged, 8 << 20},
		"a wide row":          {oneSheet("<row>" + strings.Repeat("<c><v>1</v></c>", 60_000) + "</row>"), roster.Damaged, 8 << 20},
		"a wide row of texts": {oneSheet("<row>" + strings.Repeat(`<c t="str"><v>`+noise[:4000]+"</v></c>", 1500) + "</row>"), roster.LineTooLong, 14 << 20},
		"cells out of order":  {oneSheet(`<row><c r="B1" t="str"><v>x</v></c><c r="A1"/></row>`), roster.Damaged, 8 << 20},
		"beyond the last one": {oneSheet(`<row><c r="XFE1"/></row>`), roster.Damaged, 8 << 20},
		"rows out of order":   {oneSheet(`<row r="2"/><row r="1"/>`), roster.Damaged, 8 << 20},
		"a row far down":      {oneSheet(`<row r="1048577"/>`), roster.TooManyRows, 8 << 20},
		"many attributes":     {oneSheet(strings.Repeat("<a"+wide+">", 20)), roster.Damaged, 24 << 20},
		"many in styles":      {oneSheet("").with("xl/styles.xml", "<styleSheet>"+strings.Repeat("<a"+wide+">", 10)), roster.Damaged, 24 << 20},
		"many styles":         {oneSheet("").with("xl/styles.xml", "<styleSheet><cellXfs>"+strings.Repeat("<xf/>", 1_500_000)), roster.Damaged, 32 << 20},
		"many number formats": {oneSheet("").with("xl/styles.xml", "<styleSheet><numFmts>"+formats.String()), roster.Damaged, 64 << 20},
		"a long format":       {oneSheet("").with("xl/styles.xml", `<styleSheet><numFmts><numFmt formatCode='`+strings.Repeat(`"`, 50_000)+`'/></numFmts></styleSheet>`), roster.NoHeader, 8 << 20},
		"deep tags in styles": {oneSheet("").with("xl/styles.xml", "<styleSheet>"+strings.Repeat("<a>", 300_000)), roster.Damaged, 8 << 20},
		"many sheets":         {oneSheet("").with("xl/workbook.xml", "<workbook><sheets>"+names.String()+"</sheets></workbook>"), roster.Damaged, 24 << 20},
	} {
		data := test.book.bytes(t)
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := roster.Open(t.Context(), bytes.NewReader(data), xlsxType, t.TempDir(), 0)
			runtime.ReadMemStats(&after)
			expectProblem(t, err, test.want)
			if took := after.TotalAlloc - before.TotalAlloc; took > test.most {
				t.Errorf("took %d KiB of memory", took>>10)
			}
		})
	}
}

// TestDamagedWorkbook checks that a cut or damaged workbook is never read as a shorter list.
func TestDamagedWorkbook(t *testing.T) {
	t.Parallel()
	rows := cells("phone", "nome")
	for n := range 200 {
		rows += cells(fmt.Sprintf("333%07d", n*7919), "Anna")
	}
	whole := oneSheet(rows)
	data := whole.bytes(t)
	if o := drain(t, bytes.NewReader(data), xlsxType); o.end != nil || len(o.rows) != 200 {
		t.Fatalf("%d rows, %v", len(o.rows), o.end)
	}
	for _, at := range []int{5, 100, len(data) / 2, len(data) - 30, len(data) - 1} {
		expectProblem(t, drain(t, bytes.NewReader(data[:at]), xlsxType).end, roster.Damaged)
	}
	const sheet = "xl/worksheets/sheet1.xml"
	xml := whole[sheet]
	for at := len(xml) - len("</sheetData></worksheet>") - 1; at > len(xml)-500; at -= 13 {
		o := whole.with(sheet, xml[:at]).drain(t)
		expectProblem(t, o.end, roster.Damaged)
		if want := fmt.Sprintf("from line %d on: ", strings.Count(xml[:at], "<row>")); !strings.HasPrefix(o.end.Error(), want) {
			t.Errorf("cut at %d: %v, want %s", at, o.end, want)
		}
	}
	expectProblem(t, whole.with(sheet, strings.Replace(xml, "Anna", "An&x;na", 1)).drain(t).end, roster.Damaged)
	expectProblem(t, whole.with(sheet, strings.Replace(xml, "</sheetData>", "</row></sheetData>", 1)).drain(t).end, roster.Damaged)
	whole[sheet] = xml

	// One bit is wrong, either inside the texts or after the last row.
	for _, text := range []string{"Anna</t></is></c></row></sheetData>", "</worksheet>"} {
		flipped := bytes.Clone(data)
		flipped[bytes.Index(flipped, []byte(text))+2] ^= 1
		expectProblem(t, drain(t, bytes.NewReader(flipped), xlsxType).end, roster.Damaged)
	}
}

// TestCancelled checks that the end of the caller's context ends the list at any point, with the context's error.
// This is not a fault of the list.
func TestCancelled(t *testing.T) {
	t.Parallel()
	data := oneSheet(cells("phone") + strings.Repeat("<row>"+strings.Repeat("<c/>", 16_000)+"</row>", 20)).bytes(t) // one call of Next reads all rows
	for name, test := range map[string]struct {
		list   io.Reader
		format string
	}{
		"CSV":      {&generated{row: people, rows: 50_000}, csvType},
		"workbook": {bytes.NewReader(data), xlsxType},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		list, err := roster.Open(ctx, test.list, test.format, t.TempDir(), 0)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		for n := 0; err == nil && n < 20_000; n++ { // rows that are already in memory may still come
			_, err = list.Next()
		}
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s ended with %v", name, err)
		}
		list.Close()
		if _, err := roster.Open(ctx, bytes.NewReader(data), test.format, t.TempDir(), 0); !errors.Is(err, context.Canceled) {
			t.Errorf("%s opened with %v", name, err)
		}
	}
}

func TestNoWorkbook(t *testing.T) {
	t.Parallel()
	for name, data := range map[string][]byte{
		"nothing":       nil,
		"text":          []byte("phone,nome\n333,Anna\n"),
		"other archive": book{"word/document.xml": "<document/>"}.bytes(t),
		"binary":        book{"_rels/.rels": `<Relationships><Relationship Id="r" Type="http://x/officeDocument" Target="xl/workbook.bin"/></Relationships>`, "xl/workbook.bin": "\x83\x01"}.bytes(t), // an .xlsb workbook
		"no sheets":     book{"xl/workbook.xml": "<workbook/>"}.bytes(t),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			expectProblem(t, drain(t, bytes.NewReader(data), xlsxType).end, roster.NotAList)
		})
	}
	b := oneSheet("")
	delete(b, "xl/worksheets/sheet1.xml")
	expectProblem(t, b.drain(t).end, roster.Damaged)
	expectProblem(t, b.with("xl/worksheets/sheet1.xml", "").drain(t).end, roster.Damaged)
	expectProblem(t, oneSheet(cells("phone")).with("xl/sharedStrings.xml", "\n").drain(t).end, roster.Damaged)
}

func TestDiskThatIsNotThere(t *testing.T) {
	t.Parallel()
	_, err := roster.Open(t.Context(), bytes.NewReader(oneSheet(cells("phone")).bytes(t)), xlsxType, "/dev/null/nowhere", 0)
	if _, ok := errors.AsType[*roster.FileError](err); err == nil || ok {
		t.Errorf("error %v", err)
	}
	if _, err := roster.Open(t.Context(), strings.NewReader("phone\n"), csvType, "/dev/null/nowhere", 0); err != nil {
		t.Errorf("CSV needs no disk: %v", err)
	}
}

// TestForms checks that the first bytes of a workbook decide the form of a list. For any other file, the content type
// decides.
func TestForms(t *testing.T) {
	t.Parallel()
	text, workbook := "phone,nome\n333,Anna\n", string(oneSheet(cells("phone", "nome")+cells("333", "Anna")).bytes(t))
	for _, test := range []struct {
		contentType, list string
		refused           roster.Problem
	}{
		{csvType, text, ""},
		{"Text/CSV; charset=windows-1252", text, ""},
		{"", text, ""},
		{"application/octet-stream", text, ""},
		{"application/vnd.ms-excel", text, ""},
		{xlsxType, text, roster.NotAList},
		{xlsxType, "", roster.NotAList},
		{"", workbook, ""},
		{csvType, workbook, ""},
		{csvType, "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1" + text, roster.OldXLS},
		{"application/json", text, roster.UnknownFormat},
		{"text/", text, roster.UnknownFormat},
	} {
		o := drain(t, strings.NewReader(test.list), test.contentType)
		if test.refused != "" {
			expectProblem(t, o.end, test.refused)
		} else {
			o.expect(t, "phone|nome", "2|333|Anna\n")
		}
	}
}
