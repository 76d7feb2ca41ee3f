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

// productName is in the document and on the page. At a partner's own host name, the partner's name replaces
// productName.
const productName = "Puntuale"

// hostAt returns the partner to whose host name the request was sent. Otherwise it returns the partner whose pages the
// browser showed last. Codes: not_found.
func (a *api) hostAt(r *http.Request) (puntuale.Host, error) {
	h, err := a.accounts.PartnerAt(r.Context(), r.Host, "")
	if slug := httpkit.SlugIn(r, httpkit.LooksCookie); slug != "" && puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return a.accounts.PartnerAt(r.Context(), "", slug)
	}
	return h, err
}

// labelAt returns the name under which a caller knows the service, and the address of its style sheet. Name and style
// are a partner's, or else the product's. An empty style is the product's. If the store cannot tell the partner, the
// name is neutral.
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

// writeNamed writes the document with this name in place of the product's. It makes no copy of the document, because
// many callers may read it slowly at the same time.
func writeNamed(w io.Writer, document []byte, name string) {
	product, _ := json.Marshal(productName) // a string always has a JSON form
	theirs, _ := json.Marshal(name)
	title := []byte(`"title":`)
	before, after, _ := bytes.Cut(document, append(title, product...))
	for _, part := range [][]byte{before, title, theirs, after} {
		_, _ = w.Write(part) // this fails only if the caller has hung up
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
