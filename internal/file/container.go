package file

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
)

// inspectMP4 takes films and sounds in ISO containers. It reads the boxes of the first level, and no codec.
func inspectMP4(r io.ReaderAt, size int64, head []byte) (Facts, error) {
	f := Facts{Type: "video/mp4", Extension: "mp4"}
	switch brand := string(head[8:12]); {
	case strings.HasPrefix(brand, "3g"):
		f = Facts{Type: "video/3gpp", Extension: "3gp"}
	case brand == "M4A " || brand == "M4B ":
		f = Facts{Type: "audio/mp4", Extension: "m4a"}
	case strings.HasPrefix(brand, "hei"), strings.HasPrefix(brand, "hev"), brand == "mif1", brand == "msf1":
		return Facts{}, refuse(faultConvert, "HEIC", "jpg")
	case strings.HasPrefix(brand, "avi"):
		return Facts{}, refuse(faultConvert, "AVIF", "jpg")
	case brand == "qt  ":
		return Facts{}, refuse(faultConvert, "QuickTime", "mp4")
	case !strings.HasPrefix(brand, "iso") && !strings.HasPrefix(brand, "mp4") && brand != "avc1" && brand != "M4V " && brand != "MSNV" && brand != "dash":
		return Facts{}, refuse(faultUnknown, taken)
	}
	damaged, moov := refuse(faultDamaged, strings.ToUpper(f.Extension)), false
	for at := int64(0); at < size; {
		var box [16]byte
		n, err := r.ReadAt(box[:], at)
		if n < 8 || err != nil && err != io.EOF {
			return Facts{}, damaged
		}
		length := int64(binary.BigEndian.Uint32(box[:]))
		switch {
		case length == 0: // to the end of the file
			length = size - at
		case length == 1 && n == 16:
			length = int64(min(binary.BigEndian.Uint64(box[8:]), 1<<62))
		}
		moov = moov || string(box[4:8]) == "moov"
		if length < 8 || length > size-at {
			return Facts{}, damaged
		}
		at += length
	}
	if !moov {
		return Facts{}, damaged
	}
	return f, nil
}

// office are the types of documents, by the folder of their archive that only this type has.
var office = map[string]Facts{
	"word/": {Type: "application/vnd.openxmlformats-officedocument.wordprocessingml.document", Extension: "docx"},
	"xl/":   {Type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", Extension: "xlsx"},
	"ppt/":  {Type: "application/vnd.openxmlformats-officedocument.presentationml.presentation", Extension: "pptx"},
}

// maxEntries is the most entries of a document's archive.
const maxEntries = 10_000

// inspectOffice takes documents without programs. It reads the list of the archive's entries, and unpacks none.
func inspectOffice(r io.ReaderAt, size int64) (Facts, error) {
	names, err := archiveNames(r, size)
	if err != nil {
		return Facts{}, err
	}
	var f Facts
	content := false
	for _, name := range names {
		content = content || name == "[Content_Types].xml"
		if lower := strings.ToLower(name); strings.HasSuffix(lower, "vbaproject.bin") || strings.Contains(lower, "activex") {
			return Facts{}, refuse(faultMacros)
		}
		if folder, _, ok := strings.Cut(name, "/"); ok && f.Type == "" {
			f = office[folder+"/"]
		}
	}
	if !content || f.Type == "" {
		return Facts{}, refuse(faultUnknown, taken)
	}
	return f, nil
}

// archiveNames returns the names in the directory of a zip archive. (APPNOTE 6.3.10, 4.3.12 and 4.3.16.)
func archiveNames(r io.ReaderAt, size int64) ([]string, error) {
	damaged := refuse(faultDamaged, "Office")
	tail := make([]byte, min(size, 22+1<<16))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read a file: %w", err)
	}
	end := bytes.LastIndex(tail, []byte("PK\x05\x06"))
	if end < 0 || len(tail)-end < 22 {
		return nil, damaged
	}
	entries, length, from := int(binary.LittleEndian.Uint16(tail[end+10:])), int64(binary.LittleEndian.Uint32(tail[end+12:])), int64(binary.LittleEndian.Uint32(tail[end+16:]))
	if entries > maxEntries || from+length > size || length > maxDirectory {
		return nil, damaged
	}
	directory := make([]byte, length)
	if _, err := r.ReadAt(directory, from); err != nil && err != io.EOF {
		return nil, fmt.Errorf("read a file: %w", err)
	}
	names := make([]string, 0, entries)
	for len(directory) >= 46 && bytes.HasPrefix(directory, []byte("PK\x01\x02")) {
		name, extra, comment := int(binary.LittleEndian.Uint16(directory[28:])), int(binary.LittleEndian.Uint16(directory[30:])), int(binary.LittleEndian.Uint16(directory[32:]))
		if 46+name+extra+comment > len(directory) {
			return nil, damaged
		}
		names = append(names, string(directory[46:46+name]))
		directory = directory[46+name+extra+comment:]
	}
	if len(names) != entries {
		return nil, damaged
	}
	return names, nil
}

// maxDirectory is the most bytes of the directory of a document's archive.
const maxDirectory = 2 << 20
