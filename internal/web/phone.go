package web

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// phoneRoutes show the simulated recipients of a sandbox session.
var phoneRoutes = []route{
	{"GET /c/{client}/phone", clientSide, puntuale.Reader, "", (*site).anyPhone},
	{"GET /c/{client}/sessions/{id}/phone", clientSide, puntuale.Reader, "", (*site).phone},
	{"GET /c/{client}/sessions/{id}/phone/live", clientSide, puntuale.Reader, "", (*site).livePhone},
}

// How much of the simulated network's ledger is shown.
const (
	chatsRows = 500
	chatRows  = 100
)

// phonePage reads the chats of a sandbox session, and one of them: that with the number, else the newest.
func (s *site) phonePage(v *visit) (view.PhonePage, error) {
	var p view.PhonePage
	var err error
	if p.Version, err = v.client.Version(v.ctx()); err != nil { // before the rows
		return p, err
	}
	session, rows, err := v.client.Chat(v.ctx(), v.path("id"), "", chatsRows)
	if err != nil {
		return p, err
	}
	p.Session, p.Phone = seen(session), v.query("phone")
	p.Chosen = p.Phone != ""
	seen := map[string]bool{}
	for _, m := range rows {
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
	_, p.Messages, err = v.client.Chat(v.ctx(), v.path("id"), p.Phone, chatRows)
	return p, err
}

func (s *site) phone(v *visit) error {
	p, err := s.phonePage(v)
	if err != nil {
		return err
	}
	return v.show(view.Phone(p))
}

// sandbox is the client's first simulated session; 0: it has none.
func (v *visit) sandbox() (puntuale.SessionID, error) {
	all, _, err := v.client.Sessions(v.ctx(), control.Page{Limit: "50"})
	for _, s := range all {
		if s.Sandbox {
			return s.ID, nil
		}
	}
	return 0, err
}

// anyPhone leads to the phone of the first simulated session.
func (s *site) anyPhone(v *visit) error {
	id, err := v.sandbox()
	if err != nil {
		return err
	}
	if id == 0 {
		return v.to(v.frame.Place.Base + "/sessions")
	}
	return v.to(v.sessionURL(id) + "/phone")
}

// livePhone sends the phone again whenever something has arrived.
func (s *site) livePhone(v *visit) error {
	if _, _, err := v.client.Chat(v.ctx(), v.path("id"), "", 1); err != nil {
		return err
	}
	return v.stream(func() (string, error) {
		p, err := s.phonePage(v)
		if err != nil {
			return "", err
		}
		return v.rendered(view.PhoneInside(p))
	})
}
