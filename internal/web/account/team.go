package account

import (
	"strings"

	"puntuale"
	"puntuale/internal/control/account"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// teamRoutes are the pages about the users of a dashboard. There are three sets of the same pages. The partner sees its
// own users and the users of each client. A client sees its own users.
var teamRoutes = append(append(
	teamOf("/partner/users", page.PartnerSide),
	teamOf("/partner/clients/{id}/users", page.PartnerSide)...),
	teamOf("/c/{client}/users", page.ClientSide)...)

func teamOf(base string, side page.Side) []page.Route {
	return []page.Route{
		page.Get(base, side, puntuale.Owner, team),
		page.Get(base+"/new", side, puntuale.Owner, newUser),
		page.Post(base+"/new", side, puntuale.Owner, "user.create", createUser),
		page.Get(base+"/{user}", side, puntuale.Owner, editUser),
		page.Post(base+"/{user}", side, puntuale.Owner, "user.change", changeUser),
		page.Post(base+"/{user}/invite", side, puntuale.Owner, "user.invite", inviteUser),
		page.Post(base+"/{user}/uninvite", side, puntuale.Owner, "user.uninvite", uninviteUser),
		page.Post(base+"/{user}/delete", side, puntuale.Owner, "user.delete", deleteUser),
	}
}

// teamPage returns the team that a page shows, and the page's other data.
func teamPage(v *page.Request) (*account.Team, Crew, error) {
	crew := Crew{Me: v.Person.User().ID}
	switch id := v.Path("id"); {
	case v.Client != nil:
		crew.Base = "/c/" + v.Client.ID().String() + "/users"
		return v.Site.Accounts.TeamOf(v.Client), crew, nil
	case id != "":
		account, err := v.Partner.Account(v.Ctx(), id)
		if err != nil {
			return nil, crew, err
		}
		crew.Base, crew.Client = "/partner/clients/"+id+"/users", &account
		team, err := v.Partner.TeamOf(v.Ctx(), id)
		return team, crew, err
	}
	crew.Base = "/partner/users"
	return v.Partner.Team(), crew, nil
}

func team(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	if crew.Users, err = team.Users(v.Ctx()); err != nil {
		return err
	}
	return v.Show(Team(crew))
}

func newUser(v *page.Request) error {
	_, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	return v.Show(UserNew(view.NewForm("role", "staff"), crew))
}

func createUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	u, invitation, err := team.Invite(v.Ctx(), account.NewUser{Email: f.Value("email"), Name: f.Value("name"), Role: f.Value("role"), Spoken: v.Frame.Language.Code})
	if err != nil {
		if puntuale.CodeOf(err) == puntuale.CodeConflict {
			e, _ := page.Refusal(err)
			err = puntuale.Invalid(e.Reason.At("body.email", nil))
		}
		return v.ShowRefused(err, f, UserNewForm(f, crew), UserNew(f, crew), "email", "name", "role")
	}
	v.SetAuditTarget(u.Email)
	return v.Whole(UserInvited(u, v.InvitationAddress(invitation), invitation.Expires, invitation.Mailed, crew))
}

// inviteUser creates a new invitation link, which replaces the user's earlier link.
func inviteUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.Ctx(), v.Path("user"))
	if err != nil {
		return err
	}
	invitation, err := team.InviteAgain(v.Ctx(), v.Path("user"), v.Frame.Language.Code)
	if err != nil {
		return err
	}
	v.SetAuditTarget(u.Email)
	return v.Whole(UserInvited(u, v.InvitationAddress(invitation), invitation.Expires, invitation.Mailed, crew))
}

// uninviteUser makes the user's invitation link invalid.
func uninviteUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.Ctx(), v.Path("user"))
	if err != nil {
		return err
	}
	if err := team.Uninvite(v.Ctx(), v.Path("user")); err != nil {
		return err
	}
	v.SetAuditTarget(u.Email)
	v.Say("user.uninvited", "")
	return v.Redirect(crew.Base + "/" + u.ID.String())
}

func editUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.Ctx(), v.Path("user"))
	if err != nil {
		return err
	}
	return v.Show(UserEdit(userForm(u), u, crew))
}

func userForm(u puntuale.User) *view.Form {
	return view.NewForm(view.Version, string(u.Version()), "name", u.Name, "role", u.Role.String())
}

func changeUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.Ctx(), v.Path("user"))
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	r := account.UserChange{
		Name: puntuale.Change[string]{Set: true, To: strings.TrimSpace(f.Value("name"))},
		Role: puntuale.Change[string]{Set: true, To: f.Value("role")}, NoSecond: f.Is("no_second", "on"), Known: page.Versions(f),
	}
	if _, err := team.Change(v.Ctx(), v.Path("user"), r); err != nil {
		if v.Compare(err, f, u.Version(), v.HTTP.URL.Path) {
			v.Differ(f, userForm(u), page.Label{Name: "name", Key: "me.name"}, page.Label{Name: "role", Key: "users.role"})
		}
		return v.ShowRefused(err, f, UserForm(f, u, crew), UserEdit(f, u, crew), "name", "role")
	}
	v.SetAuditTarget(u.Email)
	v.Say("user.saved", "")
	return v.Redirect(crew.Base)
}

func deleteUser(v *page.Request) error {
	team, crew, err := teamPage(v)
	if err != nil {
		return err
	}
	u, err := team.User(v.Ctx(), v.Path("user"))
	if err != nil {
		return err
	}
	if err := team.Delete(v.Ctx(), v.Path("user")); err != nil {
		f := view.NewForm()
		q := UserDeleteQuestion(v.Frame, u, crew)
		return v.ShowRefused(err, f, view.ConfirmForm(f, q), UserEdit(f, u, crew))
	}
	v.SetAuditTarget(u.Email)
	v.Say("user.deleted", "", "Name", u.Email)
	if u.ID == v.Person.User().ID {
		return v.Redirect("/login")
	}
	return v.Redirect(crew.Base)
}
