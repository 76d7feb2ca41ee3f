package session

import (
	"context"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// sessionRoutes are the pages of the numbers that a client sends from.
var sessionRoutes = []page.Route{
	page.Get("/c/{client}/sessions", page.ClientSide, puntuale.Reader, sessions),
	page.Get("/c/{client}/sessions/new", page.ClientSide, puntuale.Owner, newSession),
	page.Post("/c/{client}/sessions", page.ClientSide, puntuale.Owner, "session.create", createSession),
	page.Get("/c/{client}/sessions/{id}", page.ClientSide, puntuale.Reader, session),
	page.Get("/c/{client}/sessions/{id}/link/live", page.ClientSide, puntuale.Reader, liveLink),
	page.Post("/c/{client}/sessions/{id}/pair", page.ClientSide, puntuale.Staff, "session.pair", pairSession),
	page.Post("/c/{client}/sessions/{id}/unlink", page.ClientSide, puntuale.Staff, "session.unlink", unlinkSession),
	page.Post("/c/{client}/sessions/{id}/reconnect", page.ClientSide, puntuale.Staff, "session.reconnect", reconnectSession),
	page.Post("/c/{client}/sessions/{id}/sequences", page.ClientSide, puntuale.Staff, "session.sequences", setDefaultPair),
	page.Post("/c/{client}/sessions/{id}/name", page.ClientSide, puntuale.Staff, "session.rename", renameSession),
	page.Post("/c/{client}/sessions/{id}/pace", page.ClientSide, puntuale.Staff, "session.pace", setPace),
	page.Get("/c/{client}/sessions/{id}/delete", page.ClientSide, puntuale.Owner, askToDeleteSession),
	page.Post("/c/{client}/sessions/{id}/delete", page.ClientSide, puntuale.Owner, "session.delete", deleteSession),
}

// sender converts a session into the form that pages show. A user with the role reader does not get the linking code,
// because the code can link a phone.
func sender(v *page.Request, s control.Session) Sender {
	shown := Sender{
		Session: s.Session, State: s.State, Word: strings.ReplaceAll(s.Word(), " ", "_"), Number: s.Number, Detail: s.Detail, Hint: s.Hint, Until: s.Until, Limited: s.Limited, PageUntil: s.PageUntil,
	}
	if v.Person.User().Role >= puntuale.Staff {
		shown.Code = s.Code
	}
	return shown
}

func sessionURL(v *page.Request, id puntuale.SessionID) string {
	return v.Frame.Place.Base + "/sessions/" + id.String()
}

func sessions(v *page.Request) error {
	rows, next, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: "50", Cursor: v.Query("cursor")})
	if err != nil {
		return err
	}
	all := make([]Sender, len(rows))
	for i, row := range rows {
		all[i] = sender(v, row)
	}
	return v.Show(Sessions(all, v.Query("cursor"), next))
}

func newSession(v *page.Request) error {
	return v.Show(NewSession(view.NewForm("kind", "socket")))
}

func createSession(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	sandbox, kind := false, puntuale.Socket
	switch f.Value("kind") {
	case "sandbox":
		sandbox = true
	case "official":
		kind = puntuale.Official
	case "gateway":
		return createGateway(v, f)
	case "device":
		return createByDevices(v, f)
	}
	made, err := v.Client.CreateSession(v.Ctx(), control.NewSession{Name: f.Value("name"), Type: string(kind), Sandbox: &sandbox}, control.Once[control.Session]{})
	if err != nil {
		return v.ShowRefused(err, f, NewSessionForm(f), NewSession(f), "name", "kind")
	}
	v.SetAuditTarget(made.ID.String())
	if kind == puntuale.Official {
		return v.Redirect(sessionURL(v, made.ID) + "/official")
	}
	v.Say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// oneSession returns the data of a session's page, without the forms.
func oneSession(v *page.Request, id string) (OneSession, error) {
	found, err := v.Client.Session(v.Ctx(), id)
	if err != nil {
		return OneSession{}, err
	}
	o := OneSession{Sender: sender(v, found), Sequences: []view.Option{{Text: v.T("session.pair_none")}}}
	sequences, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Page: request.Page{Limit: page.MaxChoices}})
	if err != nil {
		return OneSession{}, err
	}
	for _, q := range sequences {
		o.Sequences = append(o.Sequences, view.Option{Value: q.ID.String(), Text: q.Name})
	}
	for _, side := range []struct {
		id   puntuale.SequenceID
		name *string
	}{{found.Start, &o.StartName}, {found.Stop, &o.StopName}} {
		if side.id == 0 {
			continue
		}
		chosen, err := v.Client.Sequence(v.Ctx(), side.id.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return OneSession{}, err
		}
		*side.name = chosen.Name
		if o.Choice(side.id.String()) == "" && err == nil { // the chosen sequence is not among the options, so add it
			o.Sequences = append(o.Sequences, view.Option{Value: side.id.String(), Text: chosen.Name})
		}
	}
	if o.Devices, err = devicesOf(v, found); err == nil && o.ToMeta() {
		o.Meta, err = metaSide(v, found)
	}
	if err == nil {
		o.Chatwoot, err = chatwootLink(v, found.ID)
	}
	return o, err
}

func session(v *page.Request) error {
	o, err := oneSession(v, v.Path("id"))
	if err != nil {
		return err
	}
	return v.Show(Session(o))
}

// liveLink sends the linking part of a session's page again, at each new code and at each change of state.
func liveLink(v *page.Request) error {
	id := v.Path("id")
	if _, err := v.Client.Session(v.Ctx(), id); err != nil {
		return err
	}
	if !v.WantsEvents() {
		return v.Redirect(v.Frame.Place.Base + "/sessions/" + id)
	}
	known := v.KnownVersion("shown")
	return v.Events(func(ctx context.Context) (version, content string, err error) {
		found, err := v.Client.AwaitSession(ctx, id, func(s control.Session) bool { return sender(v, s).Stamp() == known })
		if err != nil {
			return "", "", err
		}
		v.Frame.Now = v.Site.Control.Now()
		shown := sender(v, found)
		known = shown.Stamp()
		o := OneSession{Sender: shown}
		if o.Devices, err = devicesOf(v, found); err != nil {
			return "", "", err
		}
		if o.ToMeta() {
			if o.Meta, err = metaSide(v, found); err != nil {
				return "", "", err
			}
		}
		content, err = v.Rendered(LinkInside(o))
		return known, content, err
	})
}

func pairSession(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if found, err := v.Client.Session(v.Ctx(), v.Path("id")); err == nil && found.ByDevice() {
		return offerDevice(v, found, f)
	}
	method := f.Value("method")
	linked, err := v.Client.Pair(v.Ctx(), v.Path("id"), control.Pairing{Method: method, Phone: strings.TrimSpace(f.Value("phone"))})
	if err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		part := PairForm
		if method == string(puntuale.PairCode) {
			o.CodeForm, part = f, PairCodeForm
		} else {
			o.PairForm = f
		}
		return v.ShowRefused(err, f, part(o), Session(o), "phone")
	}
	v.SetAuditTarget(linked.ID.String())
	return v.Redirect(sessionURL(v, linked.ID))
}

func unlinkSession(v *page.Request) error {
	id := v.Path("id")
	before, err := v.Client.Session(v.Ctx(), id)
	if err != nil {
		return err
	}
	after, err := v.Client.Unlink(v.Ctx(), id)
	if err != nil {
		return err
	}
	v.SetAuditTarget(after.ID.String())
	if before.State == puntuale.LinkPairing {
		v.Say("pair.stopped", "")
	} else {
		v.Say("session.unlinked", "")
	}
	return v.Redirect(sessionURL(v, after.ID))
}

func reconnectSession(v *page.Request) error {
	linked, err := v.Client.Reconnect(v.Ctx(), v.Path("id"))
	if err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		o.LinkForm = view.NewForm()
		return v.ShowRefused(err, o.LinkForm, ReconnectForm(o), Session(o))
	}
	v.SetAuditTarget(linked.ID.String())
	v.Say("session.reconnected", "")
	return v.Redirect(sessionURL(v, linked.ID))
}

func setDefaultPair(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	changed, err := v.Client.SetDefaultPair(v.Ctx(), v.Path("id"), f.Value("start"), f.Value("stop"), page.Versions(f))
	if err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		o.Pair = f
		if v.Compare(err, f, o.PairVersion(), sessionURL(v, o.ID)) {
			f.Differ(v.T("session.pair_start"), o.Choice(f.Value("start")), o.StartName)
			f.Differ(v.T("session.pair_stop"), o.Choice(f.Value("stop")), o.StopName)
		}
		return v.ShowRefused(err, f, DefaultSequencesForm(o), Session(o), "start", "stop")
	}
	v.SetAuditTarget(changed.ID.String())
	v.Say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

func renameSession(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	changed, err := v.Client.ChangeSession(v.Ctx(), v.Path("id"), control.SessionChange{Name: new(strings.TrimSpace(f.Value("name"))), Known: page.Versions(f)})
	if err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		o.NameForm = f
		if v.Compare(err, f, o.Version(), sessionURL(v, o.ID)) {
			f.Differ(v.T("session.name"), f.Value("name"), o.Name)
		}
		return v.ShowRefused(err, f, SessionNameForm(o), SessionNamePage(o), "name")
	}
	v.SetAuditTarget(changed.ID.String())
	v.Say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

func setPace(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	r := control.SessionChange{Pace: &control.PaceChange{}, Known: page.Versions(f)}
	for name, to := range map[string]**int{
		"per_minute": &r.Pace.PerMinute, "per_day": &r.Pace.PerDay, "cold_per_minute": &r.Pace.ColdPerMinute, "cold_per_day": &r.Pace.ColdPerDay, "jitter": &r.Pace.Jitter,
	} {
		n, err := strconv.Atoi(strings.TrimSpace(f.Value(name)))
		if err != nil {
			r.Faults = append(r.Faults, puntuale.Fault{Location: "body.pace." + name, Code: puntuale.FaultNotWhole})
			continue
		}
		*to = &n
	}
	changed, err := v.Client.ChangeSession(v.Ctx(), v.Path("id"), r)
	if err != nil {
		o, missing := oneSession(v, v.Path("id"))
		if missing != nil {
			return missing
		}
		stored := o.StoredPace()
		o.PaceForm = f
		if v.Compare(err, f, o.Version(), sessionURL(v, o.ID)) {
			v.Differ(f, stored, page.Label{Name: "per_minute", Key: "pace.per_minute"}, page.Label{Name: "per_day", Key: "pace.per_day"},
				page.Label{Name: "cold_per_minute", Key: "pace.cold_per_minute"}, page.Label{Name: "cold_per_day", Key: "pace.cold_per_day"}, page.Label{Name: "jitter", Key: "pace.jitter"})
		}
		return v.ShowRefused(page.Below(err, "pace"), f, PaceForm(o), Session(o), "per_minute", "per_day", "cold_per_minute", "cold_per_day", "jitter")
	}
	v.SetAuditTarget(changed.ID.String())
	v.Say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

// otherSessions returns all sessions of the client except one. The argument id names this session. When this session is
// deleted, its pending messages may go to one of the returned sessions.
func otherSessions(v *page.Request, id puntuale.SessionID) ([]view.Option, error) {
	rows, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	if err != nil {
		return nil, err
	}
	var all []view.Option
	for _, row := range rows {
		if row.ID != id {
			all = append(all, view.Option{Value: row.ID.String(), Text: row.Name})
		}
	}
	return all, nil
}

func askToDeleteSession(v *page.Request) error {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	if found.Default {
		return v.Redirect(sessionURL(v, found.ID))
	}
	others, err := otherSessions(v, found.ID)
	if err != nil {
		return err
	}
	return v.Show(DeleteSession(view.NewForm("pending", "move"), sender(v, found), others))
}

func deleteSession(v *page.Request) error {
	found, err := v.Client.Session(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	pending, moveTo := "", f.Value("move_to")
	if f.Value("pending") == "cancel" {
		pending, moveTo = "cancel", ""
	}
	err = puntuale.Invalid(puntuale.Fault{Location: "body.confirm", Code: puntuale.FaultNameDiffers})
	if strings.TrimSpace(f.Value("confirm")) == strings.TrimSpace(found.Name) {
		err = v.Client.DeleteSession(v.Ctx(), found.ID.String(), pending, moveTo)
	}
	if err != nil {
		others, missing := otherSessions(v, found.ID)
		if missing != nil {
			return missing
		}
		shown := sender(v, found)
		return v.ShowRefused(err, f, DeleteSessionForm(f, shown, others), DeleteSession(f, shown, others), "pending", "move_to", "confirm")
	}
	v.SetAuditTarget(found.ID.String() + " " + found.Name)
	v.Say("session.deleted", "", "Name", found.Name)
	return v.Redirect(v.Frame.Place.Base + "/sessions")
}
