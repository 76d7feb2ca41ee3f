package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// businessOf makes a session of a business that has a template.
func (c *Client) businessOf() (puntuale.SessionID, error) {
	id := c.MustOfficial(false)
	if err := c.w.NoteOfficial(context.Background(), id, "10"+id.String(), "55"); err != nil {
		return 0, err
	}
	return id, c.w.KeepNetworkTemplates(context.Background(), id, "55", Begin, []puntuale.NetworkTemplate{{Name: "uno", Language: "it", ID: "880001", Status: puntuale.TemplateApproved}}, puntuale.Reason{})
}

// requestOf makes a request about a template of the client's business.
func (c *Client) requestOf() (r puntuale.TemplateRequest, err error) {
	id, err := c.businessOf()
	if err != nil {
		return r, err
	}
	r = puntuale.TemplateRequest{
		Session: id, Account: "55", Kind: puntuale.CreatesTemplate, Name: "due", Language: "it", Made: Begin,
		Draft: puntuale.TemplateDraft{Name: "due", Language: "it", Category: puntuale.CategoryUtility, Text: "Il tuo ordine è pronto."},
	}
	r.ID, err = c.RequestTemplate(context.Background(), r, func(puntuale.TemplateUsage) error { return nil })
	return r, err
}

// MustKnow stores every kind of data about a business, and aliases of people.
func (c *Client) MustKnow(phone string) {
	c.w.t.Helper()
	r, err := c.requestOf()
	id := r.Session
	if err == nil {
		err = c.w.KeepAliases(context.Background(), []puntuale.Alias{{Client: c.ID, Session: id, Name: "IT.12", Phone: phone}})
	}
	if err == nil {
		err = c.w.KeepOfficialPauses(context.Background(), []puntuale.OfficialPause{
			{Client: c.ID, Session: id, Kind: puntuale.PausePerson, Subject: phone, Code: 131026, Reason: "official.recipient_unreachable", Final: true, Detail: "Meta 131026", At: Begin, Until: Begin.Add(time.Hour)},
			{Client: c.ID, Account: "55", Kind: puntuale.PauseCategory, Subject: "UTILITY", Code: 131064, Reason: "official.wrong_category", At: Begin, Until: Begin.Add(time.Hour)},
		})
	}
	if err == nil {
		err = c.w.KeepHealth(context.Background(), []puntuale.HealthReport{{Client: c.ID, Session: id, Kind: puntuale.HealthQuality, Value: "GREEN", At: Begin}}, Begin)
	}
	if err != nil {
		c.w.t.Fatal(err)
	}
}

// testNetworkTemplates checks that the store keeps the complete list of a business's templates for each client. A list
// must not undo changes that are later than the list.
func testNetworkTemplates(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	first, second := c.MustOfficial(false), c.MustOfficial(false)
	foreign := other.MustOfficial(false)
	for id, account := range map[puntuale.SessionID]string{first: "55", second: "55", foreign: "55"} {
		if err := w.NoteOfficial(ctx, id, "10"+id.String(), account); err != nil {
			t.Fatal(err)
		}
	}
	sessions := func(number, account string, want ...puntuale.SessionID) {
		t.Helper()
		got, err := w.OfficialSessions(ctx, number, account)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("number %q, account %q: %v, %v, want %v", number, account, got, err, want)
		}
	}
	sessions("10"+first.String(), "", first)
	sessions("", "55", first, second, foreign)
	sessions("", "")
	showsTemplates(t, c, first, "55 never :")
	keepTemplates(t, w, first, "55", Begin.Add(time.Second), "", "uno", "due")
	showsTemplates(t, c, first, "55 1 : due APPROVED UTILITY GREEN  uno APPROVED UTILITY GREEN ")
	showsTemplates(t, c, second, "55 never : due APPROVED UTILITY GREEN  uno APPROVED UTILITY GREEN ")
	showsTemplates(t, other, foreign, "55 never :")
	keepTemplates(t, w, second, "55", Begin.Add(2*time.Second), "non si può")
	showsTemplates(t, c, second, "55 never non si può: due APPROVED UTILITY GREEN  uno APPROVED UTILITY GREEN ")
	keepTemplates(t, w, first, "56", Begin.Add(9*time.Second), "", "altro") // ignored, because the session now belongs to another business
	showsTemplates(t, c, first, "55 1 : due APPROVED UTILITY GREEN  uno APPROVED UTILITY GREEN ")

	late := Begin.Add(time.Minute)
	tellTemplate(t, w, c, puntuale.TemplateEvent{Account: "55", Name: "uno", Status: puntuale.TemplatePaused, Reason: "FIRST_PAUSE", At: late})
	tellTemplate(t, w, c, puntuale.TemplateEvent{Account: "55", Name: "uno", Status: puntuale.TemplateApproved, At: late.Add(-time.Second)}) // ignored, because it is older than the list
	tellTemplate(t, w, c, puntuale.TemplateEvent{Account: "55", Name: "uno", Quality: "RED", At: late})
	tellTemplate(t, w, c, puntuale.TemplateEvent{Account: "55", Name: "nuovo", Category: "MARKETING", At: late})
	tellTemplate(t, w, c, puntuale.TemplateEvent{Account: "99", Name: "uno", Status: puntuale.TemplatePaused, At: late})
	keepTemplates(t, w, first, "55", Begin.Add(30*time.Second), "", "uno")
	showsTemplates(t, c, first, "55 30 : due DELETED UTILITY GREEN  nuovo UNKNOWN MARKETING   uno PAUSED UTILITY RED FIRST_PAUSE")
	showsTemplates(t, other, foreign, "55 never :")
	if got, known, err := w.NetworkTemplate(ctx, c.ID, "55", "uno", "it"); err != nil || !known || got.Status != puntuale.TemplatePaused || !got.Named ||
		got.Part("BODY").Text != "Ciao {{nome}}" || !got.Part("BUTTONS").Buttons[0].Open() {
		t.Errorf("uno: %+v, %v, %v", got, known, err)
	}
	if _, known, err := w.NetworkTemplate(ctx, other.ID, "55", "uno", "it"); err != nil || known {
		t.Errorf("another client's: %v, %v", known, err)
	}
	named, err := c.NetworkTemplatesNamed(ctx, second, []string{"uno", "due", "tre"})
	if err != nil || len(named) != 2 {
		t.Errorf("named: %+v, %v", named, err)
	}
	pageThrough(t, c, first)

	// The templates must be removed together with the last session of the business.
	if err := w.ForgetKeys(ctx, first); err != nil {
		t.Fatal(err)
	}
	showsTemplates(t, c, second, "55 never non si può: due DELETED UTILITY GREEN  nuovo UNKNOWN MARKETING   uno PAUSED UTILITY RED FIRST_PAUSE")
	showsTemplates(t, c, first, " never :")
	if err := c.DeleteSession(ctx, second, false, 0, Begin); err != nil {
		t.Fatal(err)
	}
	if n := w.Int("select count(*) from network_template"); n != 0 {
		t.Errorf("%d templates are left", n)
	}
	_, _, _, err = other.NetworkTemplates(ctx, first, puntuale.Page{})
	WantCode(t, err, puntuale.CodeNotFound)
	_, _, _, err = other.NetworkTemplates(ctx, foreign, puntuale.Page{Cursor: "x"})
	WantCode(t, err, puntuale.CodeInvalid)
}

// keepTemplates stores Meta's list for a session: approved templates with these names. If problem is not "", it stores
// that there is no list, and why.
func keepTemplates(t *testing.T, w *World, id puntuale.SessionID, account string, at time.Time, problem string, names ...string) {
	t.Helper()
	var all []puntuale.NetworkTemplate
	for _, name := range names {
		all = append(all, puntuale.NetworkTemplate{
			Name: name, Language: "it", ID: "7", Status: puntuale.TemplateApproved, Category: "UTILITY", Quality: "GREEN", Named: true,
			Parts: []puntuale.TemplatePart{{Kind: "BODY", Text: "Ciao {{nome}}"}, {Kind: "BUTTONS", Buttons: []puntuale.TemplateButton{{Kind: "URL", URL: "https://x/{{1}}"}}}},
		})
	}
	if err := w.KeepNetworkTemplates(context.Background(), id, account, at, all, puntuale.Quoted(problem)); err != nil {
		t.Fatal(err)
	}
}

// showsTemplates checks the templates that a session's client sees.
func showsTemplates(t *testing.T, c *Client, id puntuale.SessionID, want string) {
	t.Helper()
	about, all, _, err := c.NetworkTemplates(context.Background(), id, puntuale.Page{})
	got := fmt.Sprintf("%s %d %s:", about.Account, about.Synced.Sub(Begin)/time.Second, about.Problem)
	if about.Synced.IsZero() {
		got = about.Account + " never " + about.Problem.String() + ":"
	}
	for _, n := range all {
		got += fmt.Sprintf(" %s %s %s %s %s", n.Name, n.Status, n.Category, n.Quality, n.Reason)
	}
	if err != nil || got != want {
		t.Errorf("session %d shows %q, %v, want %q", id, got, err, want)
	}
}

// tellTemplate stores a change of one template, as if Meta had reported it.
func tellTemplate(t *testing.T, w *World, c *Client, n puntuale.TemplateEvent) {
	t.Helper()
	n.Client, n.Language = c.ID, "it"
	if err := w.TellNetworkTemplate(context.Background(), n); err != nil {
		t.Fatal(err)
	}
}

func pageThrough(t *testing.T, c *Client, id puntuale.SessionID) {
	t.Helper()
	var names []string
	for p := (puntuale.Page{Limit: 1}); ; {
		_, all, next, err := c.NetworkTemplates(context.Background(), id, p)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range all {
			names = append(names, n.Name)
		}
		if p.Cursor = next; next == "" {
			break
		}
	}
	if !slices.Equal(names, []string{"due", "nuovo", "uno"}) {
		t.Errorf("page by page: %v", names)
	}
}

// testAliases checks that each name of a person leads to all other names, for one client. An erased person must
// have no names.
func testAliases(t *testing.T, w *World) {
	ctx := context.Background()
	c, other := w.Client(puntuale.AccountFull), w.Client(puntuale.AccountFull)
	const id, written, known = "BR.1502576394655843", "+551187654321", "+5511987654321"
	alias := func(c *Client, name, phone string) puntuale.Alias {
		return puntuale.Alias{Client: c.ID, Session: c.Session, Name: name, Phone: phone}
	}
	for range 2 {
		if err := w.KeepAliases(ctx, []puntuale.Alias{alias(c, id, written), alias(c, written, known), alias(other, id, "+390000000"), alias(c, known, known), alias(c, "", known)}); err != nil {
			t.Fatal(err)
		}
	}
	stands := func(c *Client, name string, want ...string) {
		t.Helper()
		got, err := w.Recipients(ctx, c.ID, name)
		slices.Sort(got[min(1, len(got)):])
		slices.Sort(want[1:])
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s stands for %v, %v, want %v", name, got, err, want)
		}
	}
	stands(c, id, id, written, known)
	stands(c, written, written, id, known)
	stands(c, known, known, id, written)
	stands(c, phone, phone)
	stands(other, id, id, "+390000000")
	c.mustHear(id, Begin, Begin)
	if _, err := c.Erase(ctx, puntuale.Erasure{Person: c.person(known), Day: Day, Now: Begin}); err != nil {
		t.Fatal(err)
	}
	stands(c, known, known, written) // the two forms of a number belong together without an alias, too

	// The names of a person are removed when the store knows nothing else about the person. Other people's names stay.
	if err := w.KeepAliases(ctx, []puntuale.Alias{alias(c, "IT.1", phone), alias(c, "IT.2", "+393339999999"), alias(c, "IT.3", "+393338888888")}); err != nil {
		t.Fatal(err)
	}
	c.MustStart(phone, Begin, 1)
	c.mustHear("IT.3", Begin, Begin)
	if err := w.Maintain(ctx, Begin, time.Time{}); err != nil {
		t.Fatal(err)
	}
	stands(c, "IT.1", "IT.1", phone)
	stands(c, "IT.2", "IT.2")
	stands(c, "IT.3", "IT.3", "+393338888888")
}
