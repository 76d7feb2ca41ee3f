package web

import (
	"context"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/view"
)

// sessionRoutes are the numbers that a client sends from.
var sessionRoutes = []Route{
	Get("/c/{client}/sessions", ClientSide, puntuale.Reader, sessions),
	Get("/c/{client}/sessions/new", ClientSide, puntuale.Owner, newSession),
	Post("/c/{client}/sessions", ClientSide, puntuale.Owner, "session.create", createSession),
	Get("/c/{client}/sessions/{id}", ClientSide, puntuale.Reader, session),
	Get("/c/{client}/sessions/{id}/link/live", ClientSide, puntuale.Reader, liveLink),
	Post("/c/{client}/sessions/{id}/pair", ClientSide, puntuale.Staff, "session.pair", pairSession),
	Post("/c/{client}/sessions/{id}/unlink", ClientSide, puntuale.Staff, "session.unlink", unlinkSession),
	Post("/c/{client}/sessions/{id}/reconnect", ClientSide, puntuale.Staff, "session.reconnect", reconnectSession),
	Post("/c/{client}/sessions/{id}/sequences", ClientSide, puntuale.Staff, "session.sequences", setDefaultPair),
	Post("/c/{client}/sessions/{id}/name", ClientSide, puntuale.Staff, "session.rename", renameSession),
	Post("/c/{client}/sessions/{id}/pace", ClientSide, puntuale.Staff, "session.pace", setPace),
	Get("/c/{client}/sessions/{id}/delete", ClientSide, puntuale.Owner, askToDeleteSession),
	Post("/c/{client}/sessions/{id}/delete", ClientSide, puntuale.Owner, "session.delete", deleteSession),
}

// sender is a session as pages show it. Whoever may only look sees no code: it would link a phone.
func sender(v *Request, s control.Session) view.Sender {
	shown := view.Sender{
		Session: s.Session, State: s.State, Word: strings.ReplaceAll(s.Word(), " ", "_"), Number: s.Number, Detail: s.Detail, Hint: s.Hint, Until: s.Until, Limited: s.Limited,
	}
	if v.person.User().Role >= puntuale.Staff {
		shown.Code = s.Code
	}
	return shown
}

func sessionURL(v *Request, id puntuale.SessionID) string {
	return v.frame.Place.Base + "/sessions/" + id.String()
}

func sessions(v *Request) error {
	rows, next, err := v.client.Sessions(v.ctx(), request.Page{Limit: "50", Cursor: v.query("cursor")})
	if err != nil {
		return err
	}
	all := make([]view.Sender, len(rows))
	for i, row := range rows {
		all[i] = sender(v, row)
	}
	return v.show(view.Sessions(all, v.query("cursor"), next))
}

func newSession(v *Request) error {
	return v.show(view.NewSession(view.NewForm("kind", "socket")))
}

func createSession(v *Request) error {
	f, err := v.form()
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
	made, err := v.client.CreateSession(v.ctx(), control.NewSession{Name: f.Value("name"), Type: string(kind), Sandbox: &sandbox}, control.Once[control.Session]{})
	if err != nil {
		return v.again(err, f, view.NewSessionForm(f), view.NewSession(f), "name", "kind")
	}
	v.did(made.ID.String())
	if kind == puntuale.Official {
		return v.Redirect(sessionURL(v, made.ID) + "/official")
	}
	v.say("session.created", "")
	return v.Redirect(sessionURL(v, made.ID))
}

// oneSession is what the page of a session shows besides its forms.
func oneSession(v *Request, id string) (view.OneSession, error) {
	found, err := v.client.Session(v.ctx(), id)
	if err != nil {
		return view.OneSession{}, err
	}
	o := view.OneSession{Sender: sender(v, found), Sequences: []view.Option{{Text: v.T("session.pair_none")}}}
	sequences, _, err := v.client.Sequences(v.ctx(), control.SequenceSearch{Page: request.Page{Limit: mostChoices}})
	if err != nil {
		return view.OneSession{}, err
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
		chosen, err := v.client.Sequence(v.ctx(), side.id.String())
		if err != nil && puntuale.CodeOf(err) != puntuale.CodeNotFound {
			return view.OneSession{}, err
		}
		*side.name = chosen.Name
		if o.Choice(side.id.String()) == "" && err == nil { // beyond those that are offered
			o.Sequences = append(o.Sequences, view.Option{Value: side.id.String(), Text: chosen.Name})
		}
	}
	if o.Devices, err = devicesOf(v, found); err == nil && o.ToMeta() {
		o.Meta, err = metaSide(v, found)
	}
	return o, err
}

func session(v *Request) error {
	o, err := oneSession(v, v.path("id"))
	if err != nil {
		return err
	}
	return v.show(view.Session(o))
}

// liveLink tells the page of a session what becomes of its link: each code when it takes the place of the one before, and
// each change of state.
func liveLink(v *Request) error {
	id := v.path("id")
	if _, err := v.client.Session(v.ctx(), id); err != nil {
		return err
	}
	if !v.wantsEvents() {
		return v.Redirect(v.frame.Place.Base + "/sessions/" + id)
	}
	known := v.KnownVersion("shown")
	return v.events(func(ctx context.Context) (version, content string, err error) {
		found, err := v.client.AwaitSession(ctx, id, func(s control.Session) bool { return sender(v, s).Stamp() == known })
		if err != nil {
			return "", "", err
		}
		v.frame.Now = v.site.control.Now()
		shown := sender(v, found)
		known = shown.Stamp()
		o := view.OneSession{Sender: shown}
		if o.Devices, err = devicesOf(v, found); err != nil {
			return "", "", err
		}
		if o.ToMeta() {
			if o.Meta, err = metaSide(v, found); err != nil {
				return "", "", err
			}
		}
		content, err = v.rendered(view.LinkInside(o))
		return known, content, err
	})
}

func pairSession(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	if found, err := v.client.Session(v.ctx(), v.path("id")); err == nil && found.ByDevice() {
		return offerDevice(v, found, f)
	}
	method := f.Value("method")
	linked, err := v.client.Pair(v.ctx(), v.path("id"), control.Pairing{Method: method, Phone: strings.TrimSpace(f.Value("phone"))})
	if err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		part := view.PairForm
		if method == string(puntuale.PairCode) {
			o.CodeForm, part = f, view.PairCodeForm
		} else {
			o.PairForm = f
		}
		return v.again(err, f, part(o), view.Session(o), "phone")
	}
	v.did(linked.ID.String())
	return v.Redirect(sessionURL(v, linked.ID))
}

func unlinkSession(v *Request) error {
	id := v.path("id")
	before, err := v.client.Session(v.ctx(), id)
	if err != nil {
		return err
	}
	after, err := v.client.Unlink(v.ctx(), id)
	if err != nil {
		return err
	}
	v.did(after.ID.String())
	if before.State == puntuale.LinkPairing {
		v.say("pair.stopped", "")
	} else {
		v.say("session.unlinked", "")
	}
	return v.Redirect(sessionURL(v, after.ID))
}

func reconnectSession(v *Request) error {
	linked, err := v.client.Reconnect(v.ctx(), v.path("id"))
	if err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		o.LinkForm = view.NewForm()
		return v.again(err, o.LinkForm, view.ReconnectForm(o), view.Session(o))
	}
	v.did(linked.ID.String())
	v.say("session.reconnected", "")
	return v.Redirect(sessionURL(v, linked.ID))
}

func setDefaultPair(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	changed, err := v.client.SetDefaultPair(v.ctx(), v.path("id"), f.Value("start"), f.Value("stop"), Versions(f))
	if err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		o.Pair = f
		if v.compare(err, f, o.PairVersion(), sessionURL(v, o.ID)) {
			f.Differ(v.T("session.pair_start"), o.Choice(f.Value("start")), o.StartName)
			f.Differ(v.T("session.pair_stop"), o.Choice(f.Value("stop")), o.StopName)
		}
		return v.again(err, f, view.DefaultPairForm(o), view.Session(o), "start", "stop")
	}
	v.did(changed.ID.String())
	v.say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

func renameSession(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	changed, err := v.client.ChangeSession(v.ctx(), v.path("id"), control.SessionChange{Name: new(strings.TrimSpace(f.Value("name"))), Known: Versions(f)})
	if err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		o.NameForm = f
		if v.compare(err, f, o.Version(), sessionURL(v, o.ID)) {
			f.Differ(v.T("session.name"), f.Value("name"), o.Name)
		}
		return v.again(err, f, view.SessionNameForm(o), view.SessionNamePage(o), "name")
	}
	v.did(changed.ID.String())
	v.say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

func setPace(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	r := control.SessionChange{Pace: &control.PaceChange{}, Known: Versions(f)}
	for name, to := range map[string]**int{
		"per_minute": &r.Pace.PerMinute, "per_day": &r.Pace.PerDay, "cold_per_minute": &r.Pace.ColdPerMinute, "cold_per_day": &r.Pace.ColdPerDay, "jitter": &r.Pace.Jitter,
	} {
		n, err := strconv.Atoi(strings.TrimSpace(f.Value(name)))
		if err != nil {
			r.Faults = append(r.Faults, puntuale.Fault{Location: "body.pace." + name, Message: "is not a whole number"})
			continue
		}
		*to = &n
	}
	changed, err := v.client.ChangeSession(v.ctx(), v.path("id"), r)
	if err != nil {
		o, missing := oneSession(v, v.path("id"))
		if missing != nil {
			return missing
		}
		stored := o.StoredPace()
		o.PaceForm = f
		if v.compare(err, f, o.Version(), sessionURL(v, o.ID)) {
			v.differ(f, stored, label{name: "per_minute", key: "pace.per_minute"}, label{name: "per_day", key: "pace.per_day"},
				label{name: "cold_per_minute", key: "pace.cold_per_minute"}, label{name: "cold_per_day", key: "pace.cold_per_day"}, label{name: "jitter", key: "pace.jitter"})
		}
		return v.again(below(err, "pace"), f, view.PaceForm(o), view.Session(o), "per_minute", "per_day", "cold_per_minute", "cold_per_day", "jitter")
	}
	v.did(changed.ID.String())
	v.say("session.saved", "")
	return v.Redirect(sessionURL(v, changed.ID))
}

// others are the client's other sessions, which may take over what is pending.
func others(v *Request, id puntuale.SessionID) ([]view.Option, error) {
	rows, _, err := v.client.Sessions(v.ctx(), request.Page{Limit: mostChoices})
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

func askToDeleteSession(v *Request) error {
	found, err := v.client.Session(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	if found.Default {
		return v.Redirect(sessionURL(v, found.ID))
	}
	others, err := others(v, found.ID)
	if err != nil {
		return err
	}
	return v.show(view.DeleteSession(view.NewForm("pending", "move"), sender(v, found), others))
}

func deleteSession(v *Request) error {
	found, err := v.client.Session(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	pending, moveTo := "", f.Value("move_to")
	if f.Value("pending") == "cancel" {
		pending, moveTo = "cancel", ""
	}
	err = puntuale.Invalid(puntuale.Fault{Location: "body.confirm", Message: "does not match the name"})
	if strings.TrimSpace(f.Value("confirm")) == strings.TrimSpace(found.Name) {
		err = v.client.DeleteSession(v.ctx(), found.ID.String(), pending, moveTo)
	}
	if err != nil {
		others, missing := others(v, found.ID)
		if missing != nil {
			return missing
		}
		shown := sender(v, found)
		return v.again(err, f, view.DeleteSessionForm(f, shown, others), view.DeleteSession(f, shown, others), "pending", "move_to", "confirm")
	}
	v.did(found.ID.String() + " " + found.Name)
	v.say("session.deleted", "", "Name", found.Name)
	return v.Redirect(v.frame.Place.Base + "/sessions")
}
