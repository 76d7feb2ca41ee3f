package person

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// readTagAll reads the filters of an action on all contacts that they find, or the contacts that the person chose. It also
// reads how far the action is, which a form shows again after a refusal.
func readTagAll(values url.Values, f *view.Form) TagAll {
	p := TagAll{Query: strings.TrimSpace(values.Get("q")), Tag: values.Get("tag"), Form: f, Cursor: values.Get("cursor"), Begun: values.Get("begun")}
	p.Total, p.Done, p.Left = page.Count(values.Get("total")), page.Count(values.Get("done")), page.Count(values.Get("left"))
	if values.Get("total") == unknownTotal {
		p.Total = -1
	}
	if p.Chosen = values.Get("chosen") != ""; p.Chosen {
		p.IDs = values["id"]
	}
	return p
}

// unknownTotal stands in the form for contacts that were not counted; see countContacts.
const unknownTotal = "-1"

// action returns a short name for what an action does to which contacts. A cursor of another action does not count.
func (p TagAll) action(verb, tag string) string {
	sum := sha256.Sum256([]byte(url.Values{"verb": {verb}, "new": {strings.TrimSpace(tag)}, "q": {p.Query}, "tag": {p.Tag}}.Encode()))
	return hex.EncodeToString(sum[:16])
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
	verb := f.Value("verb")
	var faults request.Faults
	if faults.Word("body.verb", verb, "add", "remove"); len(faults) > 0 {
		return v.ShowRefused(faults.Err(), f, TagForm(p), AskTag(p), "verb", "new")
	}
	remove := verb == "remove"
	from, action := p, p.action(verb, f.Value("new"))
	if p.Begun != action { // the person chose something else after a refusal, so the action begins anew
		from.Cursor, from.Done, from.Left = "", 0, 0
	}
	done, err := v.Client.TagContacts(v.Ctx(), p.query(f.Value), from.Cursor, f.Value("new"), remove)
	if err != nil {
		return v.ShowRefused(atTag(err), f, TagForm(p), AskTag(p), "verb", "new")
	}
	p.Done, p.Left, p.Cursor, p.Begun = from.Done+done.Changed, from.Left+done.Left, done.Next, action
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
