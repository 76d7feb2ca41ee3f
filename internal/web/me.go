package web

import (
	"encoding/json"

	"puntuale"
	"puntuale/internal/web/view"
)

// meRoutes are a person's own pages: name, language, password, second factor.
var meRoutes = []route{
	get("/me", person, puntuale.Reader, me),
	post("/me/name", person, puntuale.Reader, "me.name", rename),
	post("/me/password", person, puntuale.Reader, "me.password", changePassword),
	post("/me/visits/end", person, puntuale.Reader, "me.visits_end", endVisits),
	get("/me/second", person, puntuale.Reader, secondPage),
	post("/me/second", person, puntuale.Reader, "me.second_on", setSecond),
	post("/me/second/end", person, puntuale.Reader, "me.second_off", endSecond),
	post("/me/second/codes", person, puntuale.Reader, "me.codes", renewCodes),
}

// mine is what the page shows besides its forms.
func mine(v *visit) view.Mine {
	on, codes := v.person.Second()
	return view.Mine{User: v.person.User(), Second: on, Codes: codes}
}

func me(v *visit) error {
	return v.show(view.Me(mine(v)))
}

func rename(v *visit) error {
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
	return v.to("/me")
}

func changePassword(v *visit) error {
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
	return v.to("/me")
}

func endVisits(v *visit) error {
	stamp, err := v.person.EndVisits(v.ctx())
	if err != nil {
		return err
	}
	if err := v.restamp(stamp); err != nil {
		return err
	}
	v.say("me.visits_done", "")
	return v.to("/me")
}

// secondStep is a second factor that is being set up. It is kept with the visit until a code shows that the person's app
// has the secret.
type secondStep struct {
	Step   puntuale.Unfinished `json:"step"`
	Secret []byte              `json:"secret"`
}

func secondPage(v *visit) error {
	if on, _ := v.person.Second(); on {
		return v.to("/me")
	}
	secret, err := secret(v)
	if err != nil {
		return err
	}
	return v.show(view.Second(view.NewForm(), view.SecondSecret{Secret: secret, URL: v.person.SecondURL(secret)}))
}

// pendingSecret is the secret that is being set up; nil where none is, or its time is over.
func pendingSecret(v *visit) []byte {
	var step secondStep
	if json.Unmarshal([]byte(v.visits.GetString(v.ctx(), keySecret)), &step) != nil || !step.Step.Open(puntuale.UnfinishedSecond, v.person.User(), v.now()) {
		return nil
	}
	return step.Secret
}

// secret returns the one that is being set up, else a new one.
func secret(v *visit) ([]byte, error) {
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

func setSecond(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	if on, _ := v.person.Second(); on {
		v.quiet = true
		v.toast("bad", v.t("second.already"), "")
		return v.to("/me")
	}
	secret := pendingSecret(v)
	if secret == nil {
		v.quiet = true
		v.toast("bad", v.t("second.over"), "")
		return v.to("/me/second")
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

func endSecond(v *visit) error {
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
	return v.to("/me")
}

func renewCodes(v *visit) error {
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
