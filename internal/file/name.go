package file

import (
	"path"
	"strings"
	"unicode"
)

// maxName is the most characters of a file's name.
const maxName = 120

// Name makes a name for a file from the one that it was uploaded with. It has no folder, no characters that a system or a
// page could misread, and the extension of the file's type: nobody can make a document look like a picture.
func (f *Facts) Name(given string) string {
	given = given[strings.LastIndexAny(given, `/\`)+1:]
	given = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.C, r) || r == unicode.ReplacementChar || strings.ContainsRune(`:*?"<>|`, r) {
			return -1
		}
		return r
	}, given)
	stem := given
	switch extension := strings.ToLower(path.Ext(given)); {
	case extension == "."+f.Extension, extension == ".jpeg" && f.Extension == "jpg":
		stem = given[:len(given)-len(extension)]
	}
	stem = strings.Trim(stem, ". ")
	if runes := []rune(stem); len(runes) > maxName {
		stem = strings.TrimRight(string(runes[:maxName]), ". ")
	}
	if stem == "" {
		stem = "file"
	}
	return stem + "." + f.Extension
}
