package search

import (
	"net/http"
	"net/url"
	"strings"

	"puntuale"
	"puntuale/internal/control/search"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// ownSearch leads to the search of the reader's own dashboard, with the same text.
func ownSearch(v *page.Request) error {
	address := "/partner/search"
	if client := v.Person.User().Client; client != 0 {
		address = "/c/" + client.String() + "/search"
	}
	if text := v.Query("text"); text != "" {
		address += "?" + url.Values{"text": {text}}.Encode()
	}
	return v.Redirect(address)
}

func clientSearch(v *page.Request) error {
	return show(v, func(text string) (search.Result, error) {
		found, err := search.OfClient(v.Ctx(), v.Client, text)
		if err != nil {
			return found, err
		}
		var phones []string
		for _, p := range found.People {
			phones = append(phones, p.Phone)
		}
		for i := range found.Messages {
			phones = append(phones, found.Messages[i].Phone)
		}
		for i := range found.Bookings {
			phones = append(phones, found.Bookings[i].Phone)
		}
		return found, v.NamePeople(phones...)
	})
}

func partnerSearch(v *page.Request) error {
	return show(v, func(text string) (search.Result, error) { return search.OfPartner(v.Ctx(), v.Partner, text) })
}

// show answers a search. While a person types, htmx sends the request again, and show sends only the result.
func show(v *page.Request, find func(text string) (search.Result, error)) error {
	r := Result{Text: strings.TrimSpace(v.Query("text")), Address: v.HTTP.URL.Path, Form: view.NewForm("text", v.Query("text"))}
	status := http.StatusOK
	if r.Text != "" {
		found, err := find(r.Text)
		e, refused := page.Refusal(err)
		switch {
		case e != nil && e.Code == puntuale.CodeInvalid:
			r.Form.Take(v.Frame.Language, e, "text")
			status = refused
		case err != nil:
			return err
		}
		r.Found = found
	}
	if v.Partial() {
		return v.ShowAs(status, Results(r))
	}
	return v.ShowAs(status, Search(r))
}
