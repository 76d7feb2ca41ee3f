package docs

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

// ProductName is the product's name in the document and on the page. At a partner's own host name, the partner's name
// replaces it.
const ProductName = "Puntuale"

// hostAt returns the partner whose host name the request uses. If no partner has this host name, hostAt returns the
// partner whose pages the browser showed last. Codes: not_found.
func (a Config) hostAt(r *http.Request) (puntuale.Host, error) {
	h, err := a.Accounts.PartnerAt(r.Context(), r.Host, "")
	if slug := httpkit.SlugIn(r, httpkit.BrandCookie); slug != "" && puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return a.Accounts.PartnerAt(r.Context(), "", slug)
	}
	return h, err
}

// labelAt returns the name under which the caller knows the service, and the address of the style sheet. Both are the
// partner's if hostAt finds a partner, and otherwise the product's. An empty style means the product's style sheet. If
// the store fails, the name is a neutral one.
func (a Config) labelAt(r *http.Request) (name, style string) {
	h, err := a.hostAt(r)
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return ProductName, ""
	case r.Context().Err() != nil: // the caller closed the connection
		return ProductName, ""
	case err != nil:
		a.Logger.WarnContext(r.Context(), "the partner of a host name was not found out", "error", err)
		return "API", ""
	}
	if h.Brand.Colour != "" {
		style = fmt.Sprintf("/brand/%d/%s/style.css", h.Partner.ID, h.Brand.Mark)
	}
	return cmp.Or(h.Brand.Name, h.Partner.Name), style
}

// writeNamed writes the document, with name in place of the product's name. It makes no copy of the document, because
// many callers may read it slowly at the same time.
func writeNamed(w io.Writer, document []byte, name string) {
	product, _ := json.Marshal(ProductName) // encoding a string as JSON cannot fail
	theirs, _ := json.Marshal(name)
	title := []byte(`"title":`)
	before, after, _ := bytes.Cut(document, append(title, product...))
	for _, part := range [][]byte{before, title, theirs, after} {
		_, _ = w.Write(part) // this fails only if the caller closed the connection or reads too slowly
	}
}

// servePage serves the page with the name and the style sheet that labelAt returns.
func (a Config) servePage(page *asset, w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Cookie")
	if name, style := a.labelAt(r); name != ProductName {
		content := bytes.ReplaceAll(page.plain, []byte(ProductName), []byte(html.EscapeString(name)))
		if style != "" {
			content = bytes.Replace(content, []byte("</head>"), []byte(`<link rel="stylesheet" href="`+style+"\">\n</head>"), 1)
		}
		page = newAsset("docs.html", content)
	}
	page.ServeHTTP(w, r)
}
