package media

import (
	"mime"
	"net/http"
	"net/url"
	"path"
	"strings"
)

// sniffed is how many of a file's first bytes are used to detect its type.
const sniffed = 512

const unknownKind = "application/octet-stream"

// kinds contains the media type of each file extension that a media address may have by default. The operating system's
// table is not used, because it differs between machines.
var kinds = map[string]string{
	"jpg": "image/jpeg", "jpeg": "image/jpeg", "png": "image/png",
	"mp4": "video/mp4", "3gp": "video/3gpp",
	"mp3": "audio/mpeg", "ogg": "audio/ogg", "aac": "audio/aac", "amr": "audio/amr", "m4a": "audio/mp4",
	"pdf": "application/pdf", "txt": "text/plain",
	"doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"xls": "application/vnd.ms-excel", "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
	"ppt": "application/vnd.ms-powerpoint", "pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
}

// kindOf returns the media type of a file. If the host's header contains a type, this is the result. If the first bytes
// are a web page, the result is the type of a web page. Otherwise the extension in the address where the file was found
// decides. If this extension is not known, the extension in the requested address decides. If no extension is known,
// the first bytes decide.
func kindOf(header string, found *url.URL, requested string, first []byte) string {
	if kind, _, err := mime.ParseMediaType(header); err == nil && kind != unknownKind && strings.Contains(kind, "/") {
		return kind
	}
	// A web page is never a file, even if its address ends like one.
	seen, _, err := mime.ParseMediaType(http.DetectContentType(first))
	if err == nil && isPage(seen) {
		return seen
	}
	addresses := []*url.URL{found}
	if u, err := url.Parse(requested); err == nil {
		addresses = append(addresses, u)
	}
	for _, u := range addresses {
		if kind := kinds[strings.ToLower(strings.TrimPrefix(path.Ext(u.Path), "."))]; kind != "" {
			return kind
		}
	}
	if err != nil {
		return unknownKind
	}
	return seen
}

// isPage reports whether a file type means a web page. Some hosts send a page, such as a login, instead of a file.
func isPage(kind string) bool { return kind == "text/html" || kind == "application/xhtml+xml" }
