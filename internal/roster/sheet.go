package roster

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/xuri/excelize/v2"
)

// sheet is a list in XLSX: the first visible sheet of the file. Its rows are read twice at once. One reading has the numbers
// with all their digits, the other tells which of them are shown as dates.
type sheet struct {
	path         string
	file         *excelize.File
	plain, shown *excelize.Rows
	line         int
}

// Bounds of what an XLSX file may unpack to.
const (
	maxUnpacked = 1 << 30
	maxRatio    = 200 // of an entry that is longer than smallEntry
	smallEntry  = 1 << 20
	inMemory    = 16 << 20 // of one part; longer ones are unpacked to a file
)

func openSheet(r io.Reader, folder string) (_ *sheet, err error) {
	if folder != "" {
		if err := os.MkdirAll(folder, 0o700); err != nil {
			return nil, fmt.Errorf("keep a list on disk: %w", err)
		}
	}
	kept, err := os.CreateTemp(folder, "list-*.xlsx")
	if err != nil {
		return nil, fmt.Errorf("keep a list on disk: %w", err)
	}
	s := &sheet{path: kept.Name()}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	_, err = io.Copy(kept, r)
	if err = errors.Join(err, kept.Close()); err != nil {
		return nil, err
	}
	if err := unpacks(s.path); err != nil {
		return nil, err
	}
	s.file, err = excelize.OpenFile(s.path, excelize.Options{UnzipSizeLimit: maxUnpacked, UnzipXMLSizeLimit: inMemory, TmpDir: folder})
	if err != nil {
		return nil, &FileError{Message: "the file is not an XLSX file that can be read; it may be protected by a password"}
	}
	return s, s.begin()
}

// unpacks refuses a file that would fill memory or disk once it is unpacked, or that is damaged.
func unpacks(path string) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return &FileError{Message: "the file is not a whole XLSX file"}
	}
	defer func() { _ = z.Close() }()
	total := uint64(0)
	for _, entry := range z.File {
		size := entry.UncompressedSize64
		if total += size; total > maxUnpacked || size > smallEntry && size/maxRatio > entry.CompressedSize64 {
			return &FileError{Message: "the file unpacks to far more than it is; it is not read", TooLarge: true}
		}
	}
	return whole(&z.Reader)
}

func (s *sheet) begin() error {
	for _, name := range s.file.GetSheetList() {
		visible, err := s.file.GetSheetVisible(name)
		if err != nil || !visible {
			continue
		}
		if s.plain, err = s.file.Rows(name); err != nil {
			return &FileError{Message: "the sheet " + strconv.Quote(name) + " cannot be read"}
		}
		if s.shown, err = s.file.Rows(name); err != nil {
			return &FileError{Message: "the sheet " + strconv.Quote(name) + " cannot be read"}
		}
		return nil
	}
	return errHeader
}

func (s *sheet) next() (line int, cells []string, err error) {
	for s.plain.Next() {
		s.shown.Next()
		s.line++
		plain, err := s.plain.Columns(excelize.Options{RawCellValue: true})
		if err != nil {
			return 0, nil, &FileError{Message: fmt.Sprintf("row %d cannot be read", s.line)}
		}
		shown, err := s.shown.Columns(excelize.Options{ShortDatePattern: "yyyy-mm-dd"})
		if err != nil {
			return 0, nil, &FileError{Message: fmt.Sprintf("row %d cannot be read", s.line)}
		}
		if len(plain) > 4*MaxColumns {
			plain = plain[:4*MaxColumns]
		}
		if blank(plain) {
			continue
		}
		for i := range plain {
			as := plain[i]
			if i < len(shown) {
				as = shown[i]
			}
			plain[i] = cellText(plain[i], as)
		}
		return s.line, plain, nil
	}
	if err := s.plain.Error(); err != nil {
		return 0, nil, &FileError{Message: fmt.Sprintf("the sheet cannot be read behind row %d", s.line)}
	}
	return 0, nil, io.EOF
}

// dateShape is how a number that is shown as a date looks.
var dateShape = regexp.MustCompile(`^\d{1,4}[-/.]\d{1,2}([-/.]\d{1,4})?\b|^\d{1,2}:\d{2}|^\d{1,2}[-/. ][A-Za-z]{3}`)

// cellText is what a cell says: a number without an exponent, a date as ISO writes it.
func cellText(plain, shown string) string {
	number, err := strconv.ParseFloat(plain, 64)
	if err != nil || strings.TrimLeft(plain, "+-0123456789.eE") != "" {
		return plain
	}
	if shown != plain && dateShape.MatchString(shown) {
		if at, err := excelize.ExcelDateToTime(number, false); err == nil {
			if at.Hour() == 0 && at.Minute() == 0 {
				return at.Format("2006-01-02")
			}
			return at.Format("2006-01-02 15:04")
		}
	}
	if strings.ContainsAny(plain, "eE") {
		return strconv.FormatFloat(number, 'f', -1, 64)
	}
	return plain
}

// Close removes the copy.
func (s *sheet) Close() error {
	var all []error
	for _, rows := range []*excelize.Rows{s.plain, s.shown} {
		if rows != nil {
			all = append(all, rows.Close())
		}
	}
	if s.file != nil {
		all = append(all, s.file.Close())
	}
	return errors.Join(append(all, os.Remove(s.path))...)
}
