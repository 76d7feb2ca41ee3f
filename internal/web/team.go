package web

import (
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/view"
)

// teamRoutes are who may enter a dashboard: the partner's own, a client's as its partner sees it, and a client's as it
// sees itself. The pages are the same.
var teamRoutes = append(append(
	teamOf("/partner/users", PartnerSide),
	teamOf("/partner/clients/{id}/users", PartnerSide)...),
	teamOf("/c/{client}/users", ClientSide)...)

func teamOf(base string, which Side) []Route {
	return []Route{
		Get(base, which, puntuale.Owner, team),
		Get(base+"/new", which, puntuale.Owner, newUser),
		Post(base+"/new", which, puntuale.Owner, "user.create", createUser),
		Get(base+"/{user}", which, puntuale.Owner, editUser),
		Post(base+"/{user}", which, puntuale.Owner, "user.change", changeUser),
		Post(base+"/{user}/invite", which, puntuale.Owner, "user.invite", inviteUser),
		Post(base+"/{user}/uninvite", which, puntuale.Owner, "user.uninvite", uninviteUser),
		Post(base+"/{user}/delete", which, puntuale.Owner, "user.delete", deleteUser),
	}
}

// teamPage is the team that a page is about, and where its pages are.
func teamPage(v *Request) (*control.Team, view.Crew, error) {
	crew := view.Crew{Me: v.person.User().ID}
	switch id := v.path("id"); {
	case v.client != nil:
		crew.Base = "/c/" + v.client.ID().String() + "/users"
		return v.client.Team(), crew, nil
	case id != "":
		account, err := v.partner.Account(v.ctx(), id)
		if err != nil {
			return nil, crew, err
		}
		crew.Base, crew.Client = "/partner/clients/"+id+"/users", &account
		team, err := v.partner.TeamOf(v.ctx(), id)
		return team, crew, err
	}
	crew.Base = "/partner/users"
	return v.partner.Team(), crew, nil
}

func team(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	if crew.Users, err = team.Users(v.ctx()); err != nil {
		return err
	}
	return v.show(view.Team(crew))
}

func newUser(v *Request) error {
	_, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	return v.show(view.UserNew(view.NewForm("role", "staff"), crew))
}

func createUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	u, invitation, err := team.Invite(v.ctx(), control.NewUser{Email: f.Value("email"), Name: f.Value("name"), Role: f.Value("role")})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			e, _ := refusal(err)
			err = puntuale.Invalid(puntuale.Fault{Location: "body.email", Message: e.Message})
		}
		return v.again(err, f, view.UserNewForm(f, crew), view.UserNew(f, crew), "email", "name", "role")
	}
	v.did(u.Email)
	return v.whole(view.UserInvited(u, v.invitationAddress(invitation), invitation.Expires, crew))
}

// inviteUser makes a link in the place of any other.
func inviteUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	invitation, err := team.InviteAgain(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	v.did(u.Email)
	return v.whole(view.UserInvited(u, v.invitationAddress(invitation), invitation.Expires, crew))
}

// uninviteUser makes the link worth nothing.
func uninviteUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	if err := team.Uninvite(v.ctx(), v.path("user")); err != nil {
		return err
	}
	v.did(u.Email)
	v.say("user.uninvited", "")
	return v.Redirect(crew.Base + "/" + u.ID.String())
}

func editUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	return v.show(view.UserEdit(userForm(u), u, crew))
}

func userForm(u puntuale.User) *view.Form {
	return view.NewForm(view.Version, string(u.Version()), "name", u.Name, "role", u.Role.String())
}

func changeUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	f, err := v.form()
	if err != nil {
		return err
	}
	r := control.UserChange{
		Name: puntuale.Change[string]{Set: true, To: strings.TrimSpace(f.Value("name"))},
		Role: puntuale.Change[string]{Set: true, To: f.Value("role")}, NoSecond: f.Is("no_second", "on"), Known: Versions(f),
	}
	if _, err := team.Change(v.ctx(), v.path("user"), r); err != nil {
		if v.compare(err, f, u.Version(), v.HTTP.URL.Path) {
			v.differ(f, userForm(u), label{name: "name", key: "me.name"}, label{name: "role", key: "users.role"})
		}
		return v.again(err, f, view.UserForm(f, u, crew), view.UserEdit(f, u, crew), "name", "role")
	}
	v.did(u.Email)
	v.say("user.saved", "")
	return v.Redirect(crew.Base)
}

func deleteUser(v *Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.ctx(), v.path("user"))
	if err != nil {
		return err
	}
	if err := team.Delete(v.ctx(), v.path("user")); err != nil {
		f := view.NewForm()
		q := view.UserDeleteQuestion(v.frame, u, crew)
		return v.again(err, f, view.ConfirmForm(f, q), view.UserEdit(f, u, crew))
	}
	v.did(u.Email)
	v.say("user.deleted", "", "Name", u.Email)
	if u.ID == v.person.User().ID {
		return v.Redirect("/login")
	}
	return v.Redirect(crew.Base)
}
