package httpapi

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"

	"puntuale"
	"puntuale/internal/httpkit"
)

// productName is in the document and on the page. At a partner's own host name the partner's name replaces it.
const productName = "Puntuale"

// hostAt returns the partner whose own host name the request has, or whose pages the browser showed last. Codes:
// not_found.
func (a *api) hostAt(r *http.Request) (puntuale.Host, error) {
	h, err := a.accounts.PartnerAt(r.Context(), r.Host, "")
	if slug := httpkit.SlugIn(r, httpkit.LooksCookie); slug != "" && puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return a.accounts.PartnerAt(r.Context(), "", slug)
	}
	return h, err
}

// labelAt returns the name under which a caller knows the service, and the address of its style ("": the product's).
// They belong to a partner, or else to the product. If the store cannot say which, the name is neutral.
func (a *api) labelAt(r *http.Request) (name, style string) {
	h, err := a.hostAt(r)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return productName, ""
	case r.Context().Err() != nil: // the caller is gone
		return productName, ""
	case err != nil:
		a.logger.WarnContext(r.Context(), "the partner of a host name was not found out", "error", err)
		return "API", ""
	}
	if h.Brand.Colour != "" {
		style = fmt.Sprintf("/brand/%d/%s/style.css", h.Partner.ID, h.Brand.Mark)
	}
	return cmp.Or(h.Brand.Name, h.Partner.Name), style
}

// writeNamed writes the document with this name. It makes no copy, because many callers may ask for it and read slowly.
func writeNamed(w io.Writer, document []byte, name string) {
	ours, _ := json.Marshal(productName) // a string always has a JSON form
	theirs, _ := json.Marshal(name)
	title := []byte(`"title":`)
	before, after, _ := bytes.Cut(document, append(title, ours...))
	for _, part := range [][]byte{before, title, theirs, after} {
		_, _ = w.Write(part) // fails only when the caller is gone
	}
}

// servePage serves the page with the name and the colour of the reader's partner.
func (a *api) servePage(page *asset, w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Cookie")
	if name, style := a.labelAt(r); name != productName {
		content := bytes.ReplaceAll(page.plain, []byte(productName), []byte(html.EscapeString(name)))
		if style != "" {
			content = bytes.Replace(content, []byte("</head>"), []byte(`<link rel="stylesheet" href="`+style+"\">\n</head>"), 1)
		}
		page = newAsset("docs.html", content)
	}
	page.ServeHTTP(w, r)
}
