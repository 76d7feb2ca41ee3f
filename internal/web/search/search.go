package search

import (
	"cmp"
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

// picks is the parameter of a search for the number field of a form, whose value is the text. The answer has only people, as
// buttons that write their number into the field.
const picks = "picks"

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
	text := cmp.Or(v.Query("text"), v.Query(v.Query(picks)))
	r := Result{Text: strings.TrimSpace(text), Address: v.HTTP.URL.Path, Form: view.NewForm("text", text)}
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
	if v.Partial() && v.Query(picks) != "" {
		return v.ShowAs(status, Picks(r))
	}
	if v.Partial() {
		return v.ShowAs(status, Results(r))
	}
	return v.ShowAs(status, Search(r))
}
