package person

import (
	"net/url"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// readTagAll reads the filters of an action on all contacts that they find, or the contacts that the person chose.
func readTagAll(values url.Values, f *view.Form) TagAll {
	p := TagAll{Query: strings.TrimSpace(values.Get("q")), Tag: values.Get("tag"), Form: f}
	if p.Chosen = values.Get("chosen") != ""; p.Chosen {
		p.IDs = values["id"]
	}
	return p
}

// query returns which contacts the action changes. If the person chose none, these are none.
func (p TagAll) query(value func(string) string) control.ContactQuery {
	q := contactQuery(value)
	if p.Chosen {
		q.IDs = append([]string{}, p.IDs...)
	}
	return q
}

// askTag asks which tag all contacts that the filters find get or lose.
func askTag(v *page.Request) (err error) {
	p := readTagAll(v.HTTP.URL.Query(), view.NewForm("verb", "add"))
	if p.Total = len(p.IDs); p.Chosen {
		return v.Show(AskTag(p))
	}
	if p.Total, err = countContacts(v, contactQuery(v.Query)); err != nil {
		return err
	}
	return v.Show(AskTag(p))
}

// tagAll changes the next part of the contacts. The form contains the cursor, and how many contacts were changed so far.
func tagAll(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	p := readTagAll(f.Values, f)
	p.Total, _ = strconv.Atoi(f.Value("total"))
	p.Done, _ = strconv.Atoi(f.Value("done"))
	p.Left, _ = strconv.Atoi(f.Value("left"))
	verb := f.Value("verb")
	var faults request.Faults
	if faults.Word("body.verb", verb, "add", "remove"); len(faults) > 0 {
		return v.ShowRefused(faults.Err(), f, TagForm(p), AskTag(p), "verb", "new")
	}
	remove := verb == "remove"
	done, err := v.Client.TagContacts(v.Ctx(), p.query(f.Value), f.Value("cursor"), f.Value("new"), remove)
	if err != nil {
		return v.ShowRefused(atTag(err), f, TagForm(p), AskTag(p), "verb", "new")
	}
	p.Done, p.Left, p.Cursor = max(0, p.Done)+done.Changed, max(0, p.Left)+done.Left, done.Next
	v.SetAuditTarget(verb + " " + strconv.Itoa(done.Changed) + " " + done.Tag)
	v.Quiet = done.Changed == 0
	if p.Running = done.Next != ""; p.Running {
		if v.Partial() {
			return v.Show(TagForm(p))
		}
		return v.Show(AskTag(p))
	}
	said, next := "contact.tagged", contactsURL(v.Frame.Place.Base, "", done.Tag)
	if remove {
		said, next = "contact.untagged", contactsURL(v.Frame.Place.Base, p.Query, p.Tag)
	}
	told := v.T(said, "N", p.Done, "Tag", done.Tag)
	if p.Left > 0 {
		told += " " + v.T("contact.tag_left", "N", p.Left)
	}
	v.Toast("ok", told, "")
	return v.Redirect(next)
}

// atTag changes the locations of faults in the tag into the name of the form's field.
func atTag(err error) error {
	e, _ := page.Refusal(err)
	if e == nil {
		return err
	}
	named := *e
	named.Faults = append([]puntuale.Fault(nil), e.Faults...)
	for i, fault := range named.Faults {
		if strings.HasPrefix(fault.Location, "body.tag") {
			named.Faults[i].Location = "body.new"
		}
	}
	return &named
}
