package person

import (
	"puntuale"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
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
	for i, unread := range []bool{false, true} {
		if p.Counts[i], err = page.Total(v.Client.CountConversations(v.Ctx(), unread)); err != nil {
			return p, err
		}
	}
	phones := make([]string, len(p.Rows))
	for i, g := range p.Rows {
		phones[i] = g.Phone
	}
	return p, v.NamePeople(phones...)
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
		return v.Rendered(liveInboxParts(p))
	})
}
