package file

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"regexp"
	"strconv"
)

// pageLook is how many bytes of a PDF are searched for the size of its first page.
const pageLook = 1 << 20

// mediaBox matches the corners of a page, in points.
var mediaBox = regexp.MustCompile(`/MediaBox\s*\[\s*(-?[0-9.]{1,12})\s+(-?[0-9.]{1,12})\s+(-?[0-9.]{1,12})\s+(-?[0-9.]{1,12})\s*\]`)

// inspectPDF reads the size of the first page that the file describes in plain text, in points of 1/72 inch. A size that is
// compressed, or larger than what PDF allows, is not known.
func inspectPDF(r io.ReaderAt, size int64) Facts {
	f := Facts{Type: "application/pdf", Extension: "pdf"}
	const step, overlap = 64 << 10, 256 // a page's corners fit into the overlap
	in := bufio.NewReaderSize(io.NewSectionReader(r, 0, min(size, pageLook)), step)
	for {
		text, err := in.Peek(step)
		if at := bytes.Index(text, []byte("/MediaBox")); at >= 0 && (err != nil || len(text)-at >= overlap) {
			if found := mediaBox.FindSubmatch(text[at:min(at+overlap, len(text))]); found != nil {
				f.Width, f.Height = side(found[1], found[3]), side(found[2], found[4])
			}
			if f.Width == 0 || f.Height == 0 {
				f.Width, f.Height = 0, 0
			}
			return f
		}
		if err != nil {
			return f
		}
		if _, err := in.Discard(step - overlap); err != nil {
			return f
		}
	}
}

// side returns the length between two corners, or 0 if it is no length of a page.
func side(from, to []byte) int {
	a, err := strconv.ParseFloat(string(from), 64)
	b, failed := strconv.ParseFloat(string(to), 64)
	const most = 14_400 // the most that PDF allows
	if n := math.Round(math.Abs(b - a)); err == nil && failed == nil && n <= most {
		return int(n)
	}
	return 0
}
