package httpapi

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"

	"puntuale"
)

// productName is in the document and on the page; at a partner's own host name the partner's stands in its place.
const productName = "Puntuale"

// nameAt is the name under which a caller knows the service: that of the partner whose own host name it called, else the
// product's. Where that cannot be found out it is neither's.
func (a *api) nameAt(r *http.Request) string {
	h, err := a.control.PartnerAt(r.Context(), r.Host, "")
	switch {
	case puntuale.CodeOf(err) == puntuale.CodeNotFound:
		return productName
	case r.Context().Err() != nil: // the caller is gone
		return productName
	case err != nil:
		a.logger.WarnContext(r.Context(), "the partner of a host name was not found out", "error", err)
		return "API"
	case h.Brand.Name != "":
		return h.Brand.Name
	}
	return h.Partner.Name
}

// writeNamed writes the document under a name, without a copy: many may ask for it and not read it.
func writeNamed(w io.Writer, document []byte, name string) {
	ours, _ := json.Marshal(productName) // a string always has a form
	theirs, _ := json.Marshal(name)
	title := []byte(`"title":`)
	before, after, _ := bytes.Cut(document, append(title, ours...))
	for _, part := range [][]byte{before, title, theirs, after} {
		_, _ = w.Write(part) // fails only when the caller is gone
	}
}

// servePage serves the page under the name that its reader knows.
func (a *api) servePage(page *asset, w http.ResponseWriter, r *http.Request) {
	if name := a.nameAt(r); name != productName {
		page = newAsset("docs.html", bytes.ReplaceAll(page.plain, []byte(productName), []byte(html.EscapeString(name))))
	}
	page.ServeHTTP(w, r)
}
