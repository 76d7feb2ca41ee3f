package signin

import (
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// noticeRoutes are the pages of a person's notices, and of the choice which notices come by e-mail.
var noticeRoutes = []page.Route{
	page.Get("/me/notices", page.SignedIn, puntuale.Reader, notices),
	page.Post("/me/notices/read", page.SignedIn, puntuale.Reader, page.Unaudited, readNotices),
	page.Post("/me/notices/choose", page.SignedIn, puntuale.Reader, "me.notices", chooseNotices),
}

// noticeList reads the person's notices. focus is the notice that was marked last.
func noticeList(v *page.Request, focus string) (l NoticeList, err error) {
	if own := v.Person.User().Client; own != 0 {
		if c, err := v.Person.Client(v.Ctx(), own.String()); err == nil { // a suspended client's user has no client pages, but still has notices
			if zone, err := time.LoadLocation(c.Account().Zone); err == nil {
				v.Frame.Zone = zone
			}
		}
	}
	if v.Frame.Notices, err = v.Person.UnreadNotices(v.Ctx(), view.MaxUnread); err != nil {
		return l, err
	}
	all, err := v.Person.Notices(v.Ctx())
	for _, n := range all {
		id := strconv.FormatInt(int64(n.ID), 10)
		l.Rows = append(l.Rows, NoticeRow{Notice: n, ID: id, Path: account.NoticePath(n), Focus: id == focus})
	}
	return l, err
}

func notices(v *page.Request) error {
	l, err := noticeList(v, "")
	if err != nil {
		return err
	}
	return v.Show(Notices(l))
}

// readNotices marks one notice as read, or all notices that were due when the page was shown.
func readNotices(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	id := f.Value("id")
	if id != "" {
		err = v.Person.ReadNotice(v.Ctx(), id)
	} else if shown, parseErr := strconv.ParseInt(f.Value("shown"), 10, 64); parseErr == nil {
		err = v.Person.ReadNotices(v.Ctx(), time.UnixMicro(shown))
	}
	if err != nil {
		return err
	}
	if !v.Partial() || id == "" {
		return v.Redirect("/me/notices")
	}
	l, err := noticeList(v, id)
	if err != nil {
		return err
	}
	return v.Show(NoticeRows(l))
}

// noticeChoices returns the choices of notices for the profile. It returns none if the service sends no e-mails.
func noticeChoices(v *page.Request) (all []NoticeChoice, err error) {
	if !v.Site.Accounts.Mails() {
		return nil, nil
	}
	mailed, kinds, err := v.Person.MailedNotices(v.Ctx())
	for _, k := range kinds.Kinds() {
		all = append(all, NoticeChoice{Kind: k.String(), Mailed: mailed.Has(k)})
	}
	return all, err
}

func chooseNotices(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if err := v.Person.ChooseNotices(v.Ctx(), f.Values["mailed"]); err != nil {
		return err
	}
	v.Say("me.notices_done", "")
	return v.Redirect("/me")
}
