package roster

import (
	"archive/zip"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"
)

// excelize gives the rows before a damage and no error, reads a row of any number of cells, and takes a formula without a
// result for an empty cell. So the parts that hold rows are read to their ends first: who stands behind the damage would
// be forgotten.

const (
	maxSheetCells = 16_384 // of a row: as many as a spreadsheet has
	maxDepth      = 32     // of tags; a sheet has six
)

var errDamaged = &FileError{Message: "the file is damaged: open it in a spreadsheet and save it again"}

// whole refuses a file whose rows cannot all be read.
func whole(z *zip.Reader) error {
	for _, entry := range z.File {
		name := strings.ToLower(entry.Name)
		sheet := path.Dir(name) == "xl/worksheets" && path.Ext(name) == ".xml"
		if !sheet && name != "xl/sharedstrings.xml" {
			continue
		}
		if err := wholePart(entry, sheet); err != nil {
			return err
		}
	}
	return nil
}

func wholePart(entry *zip.File, sheet bool) error {
	r, err := entry.Open()
	if err != nil {
		return errDamaged
	}
	defer func() { _ = r.Close() }()
	p := part{decoder: xml.NewDecoder(r), sheet: sheet}
	for {
		token, err := p.decoder.Token()
		if errors.Is(err, io.EOF) && p.depth == 0 && p.tags > 0 { // the checksum was compared, too
			return nil
		}
		if err != nil {
			return errDamaged
		}
		if err := p.take(token); err != nil {
			return err
		}
	}
}

// part is how far one part was looked at.
type part struct {
	decoder     *xml.Decoder
	sheet       bool
	depth, tags int
	line        int // of the row
	cells       int
	inValue     bool

	formula, value bool // the cell has them
	text           bool // its result is a text, which may be empty
}

func (p *part) take(token xml.Token) error {
	switch t := token.(type) {
	case xml.StartElement:
		p.tags++
		if p.depth++; p.depth > maxDepth {
			return errDamaged
		}
		if p.sheet {
			return p.open(t)
		}
	case xml.CharData:
		if p.inValue && len(t) > 0 {
			p.value = true
		}
	case xml.EndElement:
		p.depth--
		if p.sheet {
			return p.shut(t)
		}
	}
	return nil
}

func (p *part) open(t xml.StartElement) error {
	switch t.Name.Local {
	case "row":
		p.line, p.cells = p.line+1, 0
		if n, err := strconv.Atoi(attribute(t, "r")); err == nil {
			p.line = n
		}
	case "c":
		p.formula, p.value, p.text = false, false, attribute(t, "t") == "str"
		if p.cells++; p.cells > maxSheetCells {
			return &FileError{Message: fmt.Sprintf("row %d has more than %d cells", p.line, maxSheetCells), TooLarge: true}
		}
	case "f":
		p.formula = true
	case "v":
		p.inValue, p.value = true, p.text
	}
	return nil
}

func (p *part) shut(t xml.EndElement) error {
	switch t.Name.Local {
	case "v":
		p.inValue = false
	case "c":
		if p.formula && !p.value {
			return &FileError{Message: fmt.Sprintf("row %d has a formula without a result: open the file in a spreadsheet and save it again", p.line)}
		}
	}
	return nil
}

func attribute(t xml.StartElement, name string) string {
	for _, a := range t.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
