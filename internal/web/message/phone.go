package message

import (
	"puntuale"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// phoneRoutes show the simulated recipients of a sandbox session.
var phoneRoutes = []page.Route{
	page.Get("/c/{client}/phone", page.ClientSide, puntuale.Reader, anyPhone),
	page.Get("/c/{client}/sessions/{id}/phone", page.ClientSide, puntuale.Reader, phone),
	page.Get("/c/{client}/sessions/{id}/phone/live", page.ClientSide, puntuale.Reader, livePhone),
}

// How much of the simulated network's ledger is shown.
const (
	chatsRows = 500
	chatRows  = 100
	mostChats = 50 // in the list; others are found by their number
)

// phonePage reads the chats of a sandbox session, and one of them: that with the number, else the newest.
func phonePage(v *page.Request, id string) (PhonePage, error) {
	var p PhonePage
	var err error
	if p.Version, err = v.Client.Version(v.Ctx()); err != nil { // before the rows
		return p, err
	}
	session, rows, err := v.Client.Chat(v.Ctx(), id, "", chatsRows)
	if err != nil {
		return p, err
	}
	p.Session, p.Phone = seen(session), v.Query("phone")
	p.Chosen = p.Phone != ""
	seen := map[string]bool{}
	for _, m := range rows {
		if p.More = len(p.Chats) == mostChats; p.More {
			break
		}
		if !seen[m.Phone] {
			seen[m.Phone] = true
			p.Chats = append(p.Chats, m)
		}
	}
	if !p.Chosen && len(p.Chats) > 0 {
		p.Phone = p.Chats[0].Phone
	}
	if p.Phone == "" {
		return p, nil
	}
	if _, p.Messages, err = v.Client.Chat(v.Ctx(), id, p.Phone, chatRows); err != nil {
		return p, err
	}
	if len(p.Messages) > 0 {
		p.Phone = p.Messages[0].Phone // as messages write it
	}
	p.Names, err = chatNames(v, p)
	return p, err
}

// chatNames are the names that calls gave of the numbers shown, by number. Requests that are too long for one answer go
// without.
func chatNames(v *page.Request, p PhonePage) (map[string]string, error) {
	var ids []string
	for _, c := range p.Chats {
		ids = append(ids, c.Message.String())
	}
	if len(p.Messages) > 0 {
		ids = append(ids, p.Messages[0].Message.String())
	}
	if len(ids) == 0 {
		return nil, nil
	}
	found, err := v.Client.Details(v.Ctx(), ids)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return nil, err
	}
	names := make(map[string]string, len(found))
	for i := range found {
		names[found[i].Phone] = view.CalledName(found[i])
	}
	return names, nil
}

func phone(v *page.Request) error { return showPhone(v, v.Path("id")) }

func showPhone(v *page.Request, id string) error {
	p, err := phonePage(v, id)
	if err != nil {
		return err
	}
	found, err := v.Sandboxes()
	if err != nil {
		return err
	}
	for _, s := range found {
		p.Sandboxes = append(p.Sandboxes, seen(s))
	}
	return v.Show(Phone(p))
}

// anyPhone shows the phone of a simulated session, or leads to where one makes one.
func anyPhone(v *page.Request) error {
	found, err := v.Sandboxes()
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return v.Redirect(v.Frame.Place.Base + "/sessions")
	}
	return showPhone(v, found[0].ID.String())
}

// livePhone sends the phone again whenever something has arrived.
func livePhone(v *page.Request) error {
	if _, _, err := v.Client.Chat(v.Ctx(), v.Path("id"), "", 1); err != nil {
		return err
	}
	return v.Stream(func() (string, error) {
		p, err := phonePage(v, v.Path("id"))
		if err != nil {
			return "", err
		}
		return v.Rendered(PhoneInside(p))
	})
}
