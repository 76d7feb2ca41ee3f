package web

import (
	"puntuale"
	"puntuale/internal/web/view"
)

// phoneRoutes show the simulated recipients of a sandbox session.
var phoneRoutes = []Route{
	Get("/c/{client}/phone", ClientSide, puntuale.Reader, anyPhone),
	Get("/c/{client}/sessions/{id}/phone", ClientSide, puntuale.Reader, phone),
	Get("/c/{client}/sessions/{id}/phone/live", ClientSide, puntuale.Reader, livePhone),
}

// How much of the simulated network's ledger is shown.
const (
	chatsRows = 500
	chatRows  = 100
	mostChats = 50 // in the list; others are found by their number
)

// phonePage reads the chats of a sandbox session, and one of them: that with the number, else the newest.
func phonePage(v *Request, id string) (view.PhonePage, error) {
	var p view.PhonePage
	var err error
	if p.Version, err = v.client.Version(v.ctx()); err != nil { // before the rows
		return p, err
	}
	session, rows, err := v.client.Chat(v.ctx(), id, "", chatsRows)
	if err != nil {
		return p, err
	}
	p.Session, p.Phone = seen(session), v.query("phone")
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
	if _, p.Messages, err = v.client.Chat(v.ctx(), id, p.Phone, chatRows); err != nil {
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
func chatNames(v *Request, p view.PhonePage) (map[string]string, error) {
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
	found, err := v.client.Details(v.ctx(), ids)
	if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
		return nil, err
	}
	names := make(map[string]string, len(found))
	for i := range found {
		names[found[i].Phone] = view.CalledName(found[i])
	}
	return names, nil
}

func phone(v *Request) error { return showPhone(v, v.path("id")) }

func showPhone(v *Request, id string) error {
	p, err := phonePage(v, id)
	if err != nil {
		return err
	}
	found, err := v.sandboxes()
	if err != nil {
		return err
	}
	for _, s := range found {
		p.Sandboxes = append(p.Sandboxes, seen(s))
	}
	return v.show(view.Phone(p))
}

// anyPhone shows the phone of a simulated session, or leads to where one makes one.
func anyPhone(v *Request) error {
	found, err := v.sandboxes()
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return v.Redirect(v.frame.Place.Base + "/sessions")
	}
	return showPhone(v, found[0].ID.String())
}

// livePhone sends the phone again whenever something has arrived.
func livePhone(v *Request) error {
	if _, _, err := v.client.Chat(v.ctx(), v.path("id"), "", 1); err != nil {
		return err
	}
	return v.stream(func() (string, error) {
		p, err := phonePage(v, v.path("id"))
		if err != nil {
			return "", err
		}
		return v.rendered(view.PhoneInside(p))
	})
}
