package web

import (
	"encoding/json"

	"puntuale"
	"puntuale/internal/web/view"
)

// profileRoutes are a person's own pages: name, language, password, second factor.
var profileRoutes = []Route{
	Get("/me", SignedIn, puntuale.Reader, me),
	Post("/me/name", SignedIn, puntuale.Reader, "me.name", rename),
	Post("/me/password", SignedIn, puntuale.Reader, "me.password", changePassword),
	Post("/me/visits/end", SignedIn, puntuale.Reader, "me.visits_end", endVisits),
	Get("/me/second", SignedIn, puntuale.Reader, secondPage),
	Post("/me/second", SignedIn, puntuale.Reader, "me.second_on", setSecond),
	Post("/me/second/end", SignedIn, puntuale.Reader, "me.second_off", endSecond),
	Post("/me/second/codes", SignedIn, puntuale.Reader, "me.codes", renewCodes),
}

// mine is what the page shows besides its forms.
func mine(v *Request) view.Mine {
	on, codes := v.person.Second()
	return view.Mine{User: v.person.User(), Second: on, Codes: codes}
}

func me(v *Request) error {
	return v.show(view.Me(mine(v)))
}

func rename(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	if err := v.person.Rename(v.ctx(), f.Value("name")); err != nil {
		m := mine(v)
		m.NameForm = f
		return v.again(err, f, view.NameForm(m), view.Me(m), "name")
	}
	v.say("me.name_done", "")
	return v.Redirect("/me")
}

func changePassword(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	m := mine(v)
	m.PasswordForm = f
	stamp, err := v.person.ChangePassword(v.ctx(), f.Value("present"), f.Value("password"))
	if err != nil {
		return v.again(err, f, view.PasswordForm(m), view.Me(m), "present", "password")
	}
	if err := v.restamp(stamp); err != nil {
		return err
	}
	v.say("me.password_done", "")
	return v.Redirect("/me")
}

func endVisits(v *Request) error {
	stamp, err := v.person.EndVisits(v.ctx())
	if err != nil {
		return err
	}
	if err := v.restamp(stamp); err != nil {
		return err
	}
	v.say("me.visits_done", "")
	return v.Redirect("/me")
}

// secondStep is a second factor that is being set up. It is kept with the visit until a code shows that the person's app
// has the secret.
type secondStep struct {
	Step   puntuale.Unfinished `json:"step"`
	Secret []byte              `json:"secret"`
}

func secondPage(v *Request) error {
	if on, _ := v.person.Second(); on {
		return v.Redirect("/me")
	}
	secret, err := secret(v)
	if err != nil {
		return err
	}
	return v.show(view.Second(view.NewForm(), view.SecondSecret{Secret: secret, URL: v.person.SecondURL(secret)}))
}

// pendingSecret is the secret that is being set up; nil where none is, or its time is over.
func pendingSecret(v *Request) []byte {
	var step secondStep
	if json.Unmarshal([]byte(v.visits.GetString(v.ctx(), keySecret)), &step) != nil || !step.Step.Open(puntuale.UnfinishedSecond, v.person.User(), v.now()) {
		return nil
	}
	return step.Secret
}

// secret returns the one that is being set up, else a new one.
func secret(v *Request) ([]byte, error) {
	if secret := pendingSecret(v); secret != nil {
		return secret, nil
	}
	secret, _, err := v.person.NewSecond()
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(secondStep{v.person.Begin(puntuale.UnfinishedSecond), secret}) //nolint:gosec // it is kept in the visit, which is sealed
	if err != nil {
		return nil, err
	}
	v.visits.Put(v.ctx(), keySecret, string(content))
	return secret, nil
}

func setSecond(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	if on, _ := v.person.Second(); on {
		v.quiet = true
		v.toast("bad", v.T("second.already"), "")
		return v.Redirect("/me")
	}
	secret := pendingSecret(v)
	if secret == nil {
		v.quiet = true
		v.toast("bad", v.T("second.over"), "")
		return v.Redirect("/me/second")
	}
	codes, err := v.person.SetSecond(v.ctx(), secret, f.Value("code"))
	if err != nil {
		f.Values.Del("code")
		part := view.SecondForm(f)
		return v.again(err, f, part, view.Second(f, view.SecondSecret{Secret: secret, URL: v.person.SecondURL(secret)}), "code")
	}
	v.visits.Remove(v.ctx(), keySecret)
	return v.whole(view.RecoveryCodes(codes))
}

func endSecond(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	if err := v.person.EndSecond(v.ctx(), f.Value("present"), f.Value("code")); err != nil {
		f.Values.Del("code")
		m := mine(v)
		m.SecondForm = f
		return v.again(err, f, view.SecondOffForm(m), view.Me(m), "present", "code")
	}
	v.say("me.second_off_done", "")
	return v.Redirect("/me")
}

func renewCodes(v *Request) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	codes, err := v.person.RenewRecovery(v.ctx(), f.Value("present"), f.Value("code"))
	if err != nil {
		f.Values.Del("code")
		m := mine(v)
		m.CodesForm = f
		return v.again(err, f, view.CodesForm(m), view.Me(m), "present", "code")
	}
	return v.whole(view.RecoveryCodes(codes))
}
