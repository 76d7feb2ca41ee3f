package signin

import (
	"encoding/json"

	"github.com/a-h/templ"

	"puntuale"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// profileRoutes are a person's own pages: name, language, password and second factor.
var profileRoutes = []page.Route{
	page.Get("/me", page.SignedIn, puntuale.Reader, profilePage),
	page.Post("/me/name", page.SignedIn, puntuale.Reader, "me.name", rename),
	page.Post("/me/password", page.SignedIn, puntuale.Reader, "me.password", changePassword),
	page.Post("/me/visits/end", page.SignedIn, puntuale.Reader, "me.visits_end", endVisits),
	page.Post("/me/visits/end-one", page.SignedIn, puntuale.Reader, "me.visit_end", endVisit),
	page.Get("/me/second", page.SignedIn, puntuale.Reader, secondPage),
	page.Post("/me/second", page.SignedIn, puntuale.Reader, "me.second_on", setSecond),
	page.Post("/me/second/end", page.SignedIn, puntuale.Reader, "me.second_off", endSecond),
	page.Post("/me/second/codes", page.SignedIn, puntuale.Reader, "me.codes", renewCodes),
}

// loadMine returns the page's data, without its forms.
func loadMine(v *page.Request) (Mine, error) {
	enabled, codes := v.Person.Second()
	choices, err := noticeChoices(v)
	if err != nil {
		return Mine{}, err
	}
	visits, err := v.OpenVisits()
	return Mine{User: v.Person.User(), Second: enabled, Codes: codes, Notices: choices, Visits: visits}, err
}

func profilePage(v *page.Request) error {
	m, err := loadMine(v)
	if err != nil {
		return err
	}
	return v.Show(Me(m))
}

// showRefused shows the profile again, with the refused form.
func showRefused(v *page.Request, refused error, f *view.Form, set func(*Mine), part func(Mine) templ.Component, fields ...string) error {
	m, err := loadMine(v)
	if err != nil {
		return err
	}
	set(&m)
	return v.ShowRefused(refused, f, part(m), Me(m), fields...)
}

func rename(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if err := v.Person.Rename(v.Ctx(), f.Value("name")); err != nil {
		return showRefused(v, err, f, func(m *Mine) { m.NameForm = f }, NameForm, "name")
	}
	v.Say("me.name_done", "")
	return v.Redirect("/me")
}

func changePassword(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	stamp, err := v.Person.ChangePassword(v.Ctx(), f.Value("present"), f.Value("password"))
	if err != nil {
		return showRefused(v, err, f, func(m *Mine) { m.PasswordForm = f }, PasswordForm, "present", "password")
	}
	if err := v.KeepValid(stamp); err != nil {
		return err
	}
	v.Say("me.password_done", "")
	return v.Redirect("/me")
}

func endVisits(v *page.Request) error {
	stamp, err := v.Person.EndVisits(v.Ctx())
	if err != nil {
		return err
	}
	if err := v.KeepValid(stamp); err != nil {
		return err
	}
	v.Say("me.visits_done", "")
	return v.Redirect("/me")
}

// endVisit signs the person out in one other browser.
func endVisit(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if err := v.Person.EndVisit(v.Ctx(), f.Value("visit")); err != nil {
		return err
	}
	v.Say("me.visit_done", "")
	return v.Redirect("/me")
}

// secondStep is a second factor that is being set up. The visit stores it until a code proves that the person's app has
// the secret.
type secondStep struct {
	Step   puntuale.PendingStep `json:"step"`
	Secret []byte               `json:"secret"`
}

func secondPage(v *page.Request) error {
	if enabled, _ := v.Person.Second(); enabled {
		return v.Redirect("/me")
	}
	secret, err := secret(v)
	if err != nil {
		return err
	}
	return v.Show(Second(view.NewForm(), SecondSecret{Secret: secret, URL: v.Person.SecondURL(secret)}))
}

// pendingSecret returns the secret of the second factor that is being set up. It returns nil if there is none, or if
// its time is over.
func pendingSecret(v *page.Request) []byte {
	var step secondStep
	if json.Unmarshal([]byte(v.Visits.GetString(v.Ctx(), page.KeySecret)), &step) != nil || !step.Step.Open(puntuale.UnfinishedSecond, v.Person.User(), v.Now()) {
		return nil
	}
	return step.Secret
}

// secret returns the pending secret, or a new secret if there is none.
func secret(v *page.Request) ([]byte, error) {
	if secret := pendingSecret(v); secret != nil {
		return secret, nil
	}
	secret, _, err := v.Person.NewSecond()
	if err != nil {
		return nil, err
	}
	content, err := json.Marshal(secondStep{v.Person.Begin(puntuale.UnfinishedSecond), secret}) //nolint:gosec // the secret is stored in the visit, which is sealed
	if err != nil {
		return nil, err
	}
	v.Visits.Put(v.Ctx(), page.KeySecret, string(content))
	return secret, nil
}

func setSecond(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if enabled, _ := v.Person.Second(); enabled {
		v.Quiet = true
		v.Toast("bad", v.T("second.already"), "")
		return v.Redirect("/me")
	}
	secret := pendingSecret(v)
	if secret == nil {
		v.Quiet = true
		v.Toast("bad", v.T("second.over"), "")
		return v.Redirect("/me/second")
	}
	codes, err := v.Person.SetSecond(v.Ctx(), secret, f.Value("code"))
	if err != nil {
		f.Values.Del("code")
		part := SecondForm(f)
		return v.ShowRefused(err, f, part, Second(f, SecondSecret{Secret: secret, URL: v.Person.SecondURL(secret)}), "code")
	}
	v.Visits.Remove(v.Ctx(), page.KeySecret)
	return v.Whole(RecoveryCodes(codes))
}

func endSecond(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if err := v.Person.EndSecond(v.Ctx(), f.Value("present"), f.Value("code")); err != nil {
		f.Values.Del("code")
		return showRefused(v, err, f, func(m *Mine) { m.SecondForm = f }, SecondOffForm, "present", "code")
	}
	v.Say("me.second_off_done", "")
	return v.Redirect("/me")
}

func renewCodes(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	codes, err := v.Person.RenewRecovery(v.Ctx(), f.Value("present"), f.Value("code"))
	if err != nil {
		f.Values.Del("code")
		return showRefused(v, err, f, func(m *Mine) { m.CodesForm = f }, CodesForm, "present", "code")
	}
	return v.Whole(RecoveryCodes(codes))
}
