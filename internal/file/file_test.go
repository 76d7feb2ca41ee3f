package file

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"io"
	"slices"
	"strings"
	"testing"

	"puntuale"
)

const tinyJPEG = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wgALCAABAAEBAREA/8QAFBABAAAAAAAAAAAAAAAAAAAAAP/aAAgBAQABPxA="

// photo returns a picture with the segments behind its first mark, and with bytes behind its end.
func photo(t testing.TB, segments, behind string) []byte {
	t.Helper()
	plain, err := base64.StdEncoding.DecodeString(tinyJPEG)
	if err != nil {
		t.Fatal(err)
	}
	return []byte(string(plain[:2]) + segments + string(plain[2:]) + "\xff\xd9" + behind)
}

func segment(marker byte, body string) string {
	return string([]byte{0xff, marker}) + string(binary.BigEndian.AppendUint16(nil, uint16(len(body)+2))) + body
}

func chunk(kind, body string) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)))) + kind + body + "CRC!"
}

func header(width, height uint32) string {
	return chunk("IHDR", string(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, width), height))+"\x08\x02\x00\x00\x00")
}

// archive returns the directory of a zip archive with these names, which is all that is read.
func archive(names ...string) string {
	const body = "PK\x03\x04"
	var entries strings.Builder
	for _, name := range names {
		entry := make([]byte, 46)
		copy(entry, "PK\x01\x02")
		binary.LittleEndian.PutUint16(entry[28:], uint16(len(name)))
		entries.Write(entry)
		entries.WriteString(name)
	}
	end := make([]byte, 22)
	copy(end, "PK\x05\x06")
	binary.LittleEndian.PutUint16(end[10:], uint16(len(names)))
	binary.LittleEndian.PutUint32(end[12:], uint32(entries.Len()))
	binary.LittleEndian.PutUint32(end[16:], uint32(len(body)))
	return body + entries.String() + string(end)
}

func inspected(content string) (Facts, error) {
	return Inspect(strings.NewReader(content), int64(len(content)))
}

// The content decides about the type, whatever a name says. What can contain a script, a program or a bomb is refused.
func TestInspect(t *testing.T) {
	t.Parallel()
	box := func(kind, body string) string {
		return string(binary.BigEndian.AppendUint32(nil, uint32(len(body)+8))) + kind + body
	}
	for name, c := range map[string]struct{ content, want string }{
		"jpeg":              {string(photo(t, "", "")), "image/jpeg"},
		"a late height":     {strings.Replace(string(photo(t, "", "")), "\x08\x00\x01\x00\x01", "\x08\x00\x00\x00\x01", 1), "file.damaged"},
		"cut jpeg":          {string(photo(t, "", "")[:60]), "file.damaged"},
		"jpeg without end":  {strings.TrimSuffix(string(photo(t, "", "")), "\xff\xd9"), "file.damaged"},
		"png":               {pngMark + header(2, 2) + chunk("IDAT", "x") + chunk("IEND", ""), "image/png"},
		"png bomb":          {pngMark + header(60_000, 60_000) + chunk("IDAT", "x") + chunk("IEND", ""), "file.pixels"},
		"wide png":          {pngMark + header(20_000, 1) + chunk("IDAT", "x") + chunk("IEND", ""), "file.pixels"},
		"png without data":  {pngMark + header(2, 2) + chunk("IEND", ""), "file.damaged"},
		"png with a lie":    {pngMark + header(2, 2) + "\xff\xff\xff\xffIDATx", "file.damaged"},
		"mp4":               {box("ftyp", "isom\x00\x00\x00\x00") + box("moov", "x"), "video/mp4"},
		"mp4 without film":  {box("ftyp", "isom\x00\x00\x00\x00"), "file.damaged"},
		"mp4 and a page":    {box("ftyp", "isom\x00\x00\x00\x00") + box("moov", "x") + "<html>....", "file.damaged"},
		"3gp":               {box("ftyp", "3gp4\x00\x00\x00\x00") + box("moov", "x"), "video/3gpp"},
		"m4a":               {box("ftyp", "M4A \x00\x00\x00\x00") + box("moov", "x"), "audio/mp4"},
		"heic":              {box("ftyp", "heic\x00\x00\x00\x00"), "file.convert"},
		"quicktime":         {box("ftyp", "qt  \x00\x00\x00\x00") + box("moov", "x"), "file.convert"},
		"pdf":               {"%PDF-1.7\n", "application/pdf"},
		"docx":              {archive("[Content_Types].xml", "word/document.xml"), "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		"xlsx":              {archive("[Content_Types].xml", "xl/workbook.xml"), "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"},
		"docx with macros":  {archive("[Content_Types].xml", "word/document.xml", "word/vbaProject.bin"), "file.macros"},
		"zip":               {archive("x.exe"), "file.unknown"},
		"zip with no end":   {"PK\x03\x04....", "file.damaged"},
		"old office":        {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "file.convert"},
		"opus":              {"OggS" + strings.Repeat("\x00", 24) + "OpusHead", "audio/ogg"},
		"vorbis":            {"OggS" + strings.Repeat("\x00", 24) + "\x01vorbis", "file.convert"},
		"mp3":               {"ID3\x04", "audio/mpeg"},
		"aac":               {"\xff\xf1\x50\x80", "audio/aac"},
		"amr":               {"#!AMR\nx", "audio/amr"},
		"text":              {"Ciao, perché no?\n", "text/plain"},
		"text with a zero":  {"a\x00b", "file.unknown"},
		"latin text":        {"perch\xe9", "file.unknown"},
		"svg":               {" <svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "file.unknown"},
		"page":              {"\xef\xbb\xbf<!doctype html>", "file.unknown"},
		"script":            {"#!/bin/sh\n", "file.unknown"},
		"gif":               {"GIF89a", "file.convert"},
		"webp":              {"RIFF\x00\x00\x00\x00WEBP", "file.convert"},
		"program":           {"MZ\x90\x00", "file.unknown"},
		"an empty archive":  {archive(), "file.unknown"},
		"zip with many":     {archive(make([]string, maxEntries+1)...), "file.damaged"},
		"zip without types": {archive("word/document.xml"), "file.unknown"},
	} {
		f, err := inspected(c.content)
		got := f.Type
		if refused, ok := errors.AsType[*RefusedError](err); ok {
			got = string(refused.Reason.Code)
		} else if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestPageOfPDF: the first page's size, wherever it stands in the first megabyte. A size that is none is not told.
func TestPageOfPDF(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"%PDF-1.7\n1 0 obj <</Type/Page/MediaBox[0 0 595.276 841.89]>>":                           "595x842",
		"%PDF-1.7\n" + strings.Repeat("x", 65_530) + "/MediaBox [ -10 0\n602 792 ]":               "612x792",
		"%PDF-1.7\n" + strings.Repeat("x", 300_000) + "/MediaBox[0 0 100 200] /MediaBox[0 0 1 1]": "100x200",
		"%PDF-1.7\n/MediaBox[0 0 99999 10]":                                                       "0x0",
		"%PDF-1.7\n/MediaBox[0 0 1.2.3 10]":                                                       "0x0",
		"%PDF-1.7\n/MediaBox 7 0 R":                                                               "0x0",
		"%PDF-1.7\n" + strings.Repeat("x", pageLook) + "/MediaBox[0 0 100 200]":                   "0x0",
		"%PDF-1.7\n/MediaBox[0 0 14400 14400]":                                                    "14400x14400",
	} {
		f, err := inspected(content)
		if got := fmt.Sprintf("%dx%d", f.Width, f.Height); err != nil || got != want || f.Type != "application/pdf" || f.Size != int64(len(content)) {
			t.Errorf("%.60q: %s, %+v, %v; want %s", content, got, f, err, want)
		}
	}
}

// A picture loses place, device, comments and whatever follows it, and keeps which side is up.
func TestImagesLoseWhatIsNotPicture(t *testing.T) {
	t.Parallel()
	exif := "Exif\x00\x00II*\x00\x08\x00\x00\x00\x02\x00\x12\x01\x03\x00\x01\x00\x00\x00\x06\x00\x00\x00\x25\x88\x04\x00\x01\x00\x00\x00\x26\x00\x00\x00\x00\x00\x00\x00GPS"
	with := photo(t, segment(0xe1, exif)+segment(0xfe, "comment")+segment(0xed, "IPTC"), "PK\x03\x04<script>")
	f, err := Inspect(bytes.NewReader(with), int64(len(with)))
	if err != nil || f.Width != 1 || f.Height != 1 {
		t.Fatalf("%+v, %v", f, err)
	}
	got, err := io.ReadAll(f.Reader(bytes.NewReader(with)))
	if err != nil || int64(len(got)) != f.Size {
		t.Fatalf("%d bytes of %d, %v", len(got), f.Size, err)
	}
	for _, secret := range []string{"GPS", "comment", "IPTC", "<script>"} {
		if bytes.Contains(got, []byte(secret)) {
			t.Errorf("the picture still has %q", secret)
		}
	}
	if want := photo(t, string(exifOf(6)), ""); !bytes.Equal(got, want) {
		t.Errorf("the picture is\n%x, want\n%x", got, want)
	}
	again, err := Inspect(bytes.NewReader(got), int64(len(got)))
	if err != nil || again.Size != f.Size {
		t.Errorf("a cleaned picture becomes %+v, %v", again, err)
	}

	png := pngMark + header(2, 2) + chunk("tEXt", "secret") + chunk("eXIf", "GPS") + chunk("IDAT", "x") + chunk("zTXt", "bomb") + chunk("IEND", "") + "<script>"
	f, err = inspected(png)
	if err != nil {
		t.Fatal(err)
	}
	if got, _ := io.ReadAll(f.Reader(strings.NewReader(png))); string(got) != pngMark+header(2, 2)+chunk("IDAT", "x")+chunk("IEND", "") {
		t.Errorf("the png became %q", got)
	}
}

// No name leads into a folder, hides an extension, or looks like another type.
func TestName(t *testing.T) {
	t.Parallel()
	f := Facts{Extension: "jpg"}
	for given, want := range map[string]string{
		"foto.JPG": "foto.jpg", "foto.jpeg": "foto.jpg", "../../etc/passwd": "passwd.jpg", `C:\x\a.png`: "a.png.jpg", "": "file.jpg", "..": "file.jpg",
		"a\u202egpj.exe": "agpj.exe.jpg", "a\x00b\r\n.jpg": "ab.jpg", `"><script>`: "script.jpg", strings.Repeat("è", 300): strings.Repeat("è", maxName) + ".jpg", "\xff\xfe": "file.jpg",
	} {
		if got := f.Name(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}

func TestReader(t *testing.T) {
	t.Parallel()
	content := bytes.Repeat([]byte("0123456789abcdef"), 3*puntuale.FilePartBytes/16)
	content = content[:2*puntuale.FilePartBytes+5]
	reads := 0
	r := NewReader(int64(len(content)), func(n int) ([]byte, error) {
		reads++
		if n > 2 {
			return nil, fmt.Errorf("part %d", n)
		}
		return content[n*puntuale.FilePartBytes : min(len(content), (n+1)*puntuale.FilePartBytes)], nil
	})
	for range 2 {
		if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if at, err := r.Seek(0, io.SeekStart); at != 0 || err != nil {
			t.Fatal(at, err)
		}
	}
	if reads != 6 {
		t.Errorf("%d parts were read", reads)
	}
	if at, err := r.Seek(-3, io.SeekEnd); at != int64(len(content))-3 || err != nil {
		t.Fatal(at, err)
	}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content[len(content)-3:]) {
		t.Errorf("%q, %v", got, err)
	}
	short := NewReader(10, func(int) ([]byte, error) { return []byte("short"), nil })
	if _, err := io.ReadAll(short); !errors.Is(err, errParts) {
		t.Errorf("a missing part: %v", err)
	}
}

// FuzzInspect: no content makes the inspection fail in another way than a refusal, and what is kept is what Size says.
func FuzzInspect(f *testing.F) {
	f.Add(photo(f, segment(0xe1, "Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01"), ""))
	f.Add([]byte(pngMark + header(2, 2) + chunk("IDAT", "x") + chunk("IEND", "")))
	f.Add([]byte(archive("[Content_Types].xml", "word/x")))
	f.Fuzz(func(t *testing.T, content []byte) {
		facts, err := Inspect(bytes.NewReader(content), int64(len(content)))
		if err != nil {
			if _, ok := errors.AsType[*RefusedError](err); !ok {
				t.Fatal(err)
			}
			return
		}
		got, err := io.ReadAll(facts.Reader(bytes.NewReader(content)))
		if err != nil || int64(len(got)) != facts.Size {
			t.Fatalf("%d bytes, size %d, %v", len(got), facts.Size, err)
		}
	})
}

// TestSmall: a small picture shows the right side up, and a picture that would take much memory gets none.
func TestSmall(t *testing.T) {
	t.Parallel()
	whole := image.NewGray(image.Rect(0, 0, 400, 200)) // the left half is black
	for y := range 200 {
		for x := range 200 {
			whole.SetGray(200+x, y, color.Gray{0xff})
		}
	}
	var plain bytes.Buffer
	if err := jpeg.Encode(&plain, whole, nil); err != nil {
		t.Fatal(err)
	}
	type place struct{ width, height, darkX, darkY int } // dark is a place in the black half, of the small picture
	for up, want := range map[uint16]place{
		1: {100, 50, 10, 25}, 2: {100, 50, 90, 25}, 3: {100, 50, 90, 25}, 4: {100, 50, 10, 25}, 5: {50, 100, 25, 10}, 6: {50, 100, 25, 10}, 7: {50, 100, 25, 90}, 8: {50, 100, 25, 90},
	} {
		content := slices.Concat(plain.Bytes()[:2], exifOf(up), plain.Bytes()[2:])
		small, width, height := Small(func() io.Reader { return bytes.NewReader(content) }, 100)
		got, err := jpeg.Decode(bytes.NewReader(small))
		if err != nil || got.Bounds().Dx() != want.width || got.Bounds().Dy() != want.height || width != 4*want.width || height != 4*want.height {
			t.Errorf("side %d: %d × %d became %v, %v", up, width, height, got, err)
			continue
		}
		dark, _, _, _ := got.At(want.darkX, want.darkY).RGBA()
		light, _, _, _ := got.At(want.width-1-want.darkX, want.height-1-want.darkY).RGBA()
		if dark > 0x3000 || light < 0xd000 {
			t.Errorf("side %d: %x is not dark, or %x not light", up, dark, light)
		}
	}
	large := pngMark + header(9000, 9000)
	if small, width, _ := Small(func() io.Reader { return strings.NewReader(large) }, 100); small != nil || width != 0 && width != 9000 {
		t.Errorf("a large picture became %d bytes, %d wide", len(small), width)
	}
}
