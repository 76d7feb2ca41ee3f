package person

import (
	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// replyRoutes are the pages of the list of people who wrote to the client.
var replyRoutes = []page.Route{
	page.Get("/c/{client}/replies", page.ClientSide, puntuale.Reader, inbox),
	page.Get("/c/{client}/replies/live", page.ClientSide, puntuale.Reader, liveInbox),
}

// inboxRows is the number of rows on one page of the list.
const inboxRows = "50"

func inboxPage(v *page.Request) (p ConversationList, err error) {
	p = ConversationList{Unread: v.Query("unread") == "true", Cursor: v.Query("cursor")}
	if p.Version, err = v.Client.Version(v.Ctx()); err != nil { // read the version before the rows, so that no change between the two reads is missed
		return p, err
	}
	if p.Rows, p.Next, err = v.Client.Conversations(v.Ctx(), p.Unread, request.Page{Limit: inboxRows, Cursor: p.Cursor}); err != nil {
		return p, err
	}
	p.Names, err = names(v, p.Rows)
	return p, err
}

func inbox(v *page.Request) error {
	p, err := inboxPage(v)
	if err != nil {
		return err
	}
	return v.Show(Inbox(p))
}

// liveInbox sends the first page of the list again each time that somebody wrote, or marked replies as read.
func liveInbox(v *page.Request) error {
	return v.Stream(func() (string, error) {
		p, err := inboxPage(v)
		if err != nil {
			return "", err
		}
		return v.Rendered(InboxRows(p))
	})
}

// names returns the names of people, by number. A name comes from the contacts, or from the latest call that sent to
// the person.
func names(v *page.Request, rows []puntuale.Conversation) (map[string]string, error) {
	var ids []string
	for _, g := range rows {
		if g.Last.Run != 0 {
			ids = append(ids, puntuale.MessageID(g.Last.Run).String())
		}
	}
	called := make(map[string]string, len(rows))
	phones := make([]string, len(rows))
	for i, g := range rows {
		phones[i] = g.Phone
	}
	listed, err := v.Client.ContactsOf(v.Ctx(), phones...)
	if err != nil {
		return nil, err
	}
	if len(ids) > 0 {
		found, err := v.Client.Details(v.Ctx(), ids)
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeInvalid {
			return nil, err
		}
		for i := range found {
			called[found[i].Phone] = view.CalledName(found[i])
		}
	}
	for phone, c := range listed {
		if c.Name != "" {
			called[phone] = c.Name
		}
	}
	return called, nil
}
