package message

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// phoneRoutes show the simulated recipients of a sandbox session.
var phoneRoutes = []page.Route{
	page.Get("/c/{client}/phone", page.ClientSide, puntuale.Reader, anyPhone),
	page.Get("/c/{client}/sessions/{id}/phone", page.ClientSide, puntuale.Reader, phone),
	page.Post("/c/{client}/sessions/{id}/phone", page.ClientSide, puntuale.Staff, "phone.answer", answerFromPhone),
	page.Get("/c/{client}/sessions/{id}/phone/live", page.ClientSide, puntuale.Reader, livePhone),
}

// How many messages a page reads for its list of chats, how many it reads for one chat, and how many chats it lists.
const (
	chatsRows = 500
	chatRows  = 100
	maxChats  = 50 // the number of chats in the list; a search by phone number finds all other chats
)

// phonePage reads the chats of a sandbox session, and the messages of one chat: the chat with the given number, or else
// the newest chat.
func phonePage(v *page.Request, id, phone string) (PhonePage, error) {
	var p PhonePage
	var err error
	if p.Version, err = v.Client.Version(v.Ctx()); err != nil { // read the version before the rows, so that no change between the two reads is missed
		return p, err
	}
	session, rows, err := v.Client.Chat(v.Ctx(), id, "", chatsRows)
	if err != nil {
		return p, err
	}
	p.Session, p.Phone = sessionView(session), phone
	p.Chosen = p.Phone != ""
	seen := map[string]bool{}
	for _, m := range rows {
		if p.More = len(p.Chats) == maxChats; p.More {
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
	p.Answer = view.NewForm("phone", p.Phone, "key", v.Frame.Request)
	if _, p.Messages, err = v.Client.Chat(v.Ctx(), id, p.Phone, chatRows); err != nil {
		return p, err
	}
	if len(p.Messages) > 0 {
		p.Phone = p.Messages[0].Phone // the number in the form that messages contain
	}
	if p.Answers, err = chatAnswers(v, p); err != nil {
		return p, err
	}
	phones := []string{p.Phone}
	for _, c := range p.Chats {
		phones = append(phones, c.Phone)
	}
	return p, v.NamePeople(phones...)
}

// chatAnswers returns what the person of the chat wrote to the session, since the oldest of the shown messages.
func chatAnswers(v *page.Request, p PhonePage) ([]puntuale.Reply, error) {
	if len(p.Messages) == 0 {
		return nil, nil
	}
	since := p.Messages[len(p.Messages)-1].Received
	all, _, err := v.Client.Thread(v.Ctx(), p.Phone, request.Page{Limit: strconv.Itoa(chatRows)})
	return slices.DeleteFunc(all, func(y puntuale.Reply) bool {
		return y.Session != p.Session.ID || y.Own || len(p.Messages) == chatRows && y.At.Before(since)
	}), err
}

func phone(v *page.Request) error { return showPhone(v, v.Path("id")) }

func showPhone(v *page.Request, id string) error {
	p, err := phonePage(v, id, v.Query("phone"))
	if err != nil {
		return err
	}
	found, err := v.Sandboxes()
	if err != nil {
		return err
	}
	for _, s := range found {
		p.Sandboxes = append(p.Sandboxes, sessionView(s))
	}
	return v.Show(Phone(p))
}

// anyPhone shows the phone of a simulated session. If the client has none, it redirects to the page that creates a
// session.
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

// answerFromPhone sends an answer in the name of the simulated phone's owner.
func answerFromPhone(v *page.Request) error {
	if _, _, err := v.Client.Chat(v.Ctx(), v.Path("id"), "", 1); err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	taken, err := v.Client.AnswerFromSandbox(v.Ctx(), control.SandboxReply{
		Session: v.Path("id"), Phone: f.Value("phone"), Text: strings.TrimSpace(f.Value("text")), Button: f.Value("button"), Row: f.Value("row"), Shares: f.Value("shares"), Message: f.Value("message"),
		Scope: http.MethodPost + " phone", Key: strings.TrimSpace(f.Value("key") + " " + f.Value("message") + " " + f.Value("button") + f.Value("row") + f.Value("shares")),
	})
	if err != nil {
		p, missing := phonePage(v, v.Path("id"), f.Value("phone"))
		if missing != nil {
			return missing
		}
		p.Answer = f
		return v.ShowRefused(err, f, PhoneAnswer(p), Phone(p), "text")
	}
	v.SetAuditTarget(v.Path("id"))
	kept, _, err := v.Client.Replies(v.Ctx(), taken.Phone, false, request.Page{Limit: strconv.Itoa(chatRows)})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(kept, func(y puntuale.Reply) bool { return y.Session.String() == taken.Session && y.Text == taken.Text }) {
		v.Say("phone.answered", "")
	} else {
		v.Toast("warn", v.T("phone.answered_only"), "")
	}
	return v.Redirect(v.Frame.Place.Base + "/sessions/" + v.Path("id") + "/phone?" + url.Values{"phone": {taken.Phone}}.Encode())
}

// livePhone sends the phone's part of the page again each time that a message has arrived.
func livePhone(v *page.Request) error {
	if _, _, err := v.Client.Chat(v.Ctx(), v.Path("id"), "", 1); err != nil {
		return err
	}
	return v.Stream(func() (string, error) {
		p, err := phonePage(v, v.Path("id"), v.Query("phone"))
		if err != nil {
			return "", err
		}
		return v.Rendered(PhoneInside(p))
	})
}
