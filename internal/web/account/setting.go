package account

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// settingRoutes are the pages of a client's settings about the people that it writes to. The client and its partner
// have the same page.
var settingRoutes = []page.Route{
	page.Get("/partner/clients/{id}/settings", page.PartnerSide, puntuale.Staff, settings),
	page.Post("/partner/clients/{id}/settings", page.PartnerSide, puntuale.Staff, "client.settings", changeSettings),

	page.Get("/c/{client}/settings", page.ClientSide, puntuale.Owner, settings),
	page.Post("/c/{client}/settings", page.ClientSide, puntuale.Owner, "client.settings", changeSettings),
}

// settingFields are the fields of the form, in the order of the page.
var settingFields = []string{"remember", "keep_replies", "keep_media", "takeover_hours", "automated_most", "consent", "opt_out_words", "opt_out_answer", "confirm_words", "cancel_words", "button_line", "flatten_values", "pause_if_marketing", "track_links"}

// settingPage reads the data of the settings page. The path names the client.
func settingPage(v *page.Request) (c *control.Client, p SettingPage, err error) {
	if c = v.Client; c != nil {
		p.Addressless, err = c.Addressless(v.Ctx())
		p.Action = v.Frame.Place.Base + "/settings"
		return c, p, err
	}
	if c, err = v.Person.Client(v.Ctx(), v.Path("id")); err != nil {
		return nil, p, err
	}
	account := c.Account()
	p.Addressless, err = c.Addressless(v.Ctx())
	p.Action, p.Client = "/partner/clients/"+account.ID.String()+"/settings", &account
	return c, p, err
}

func settings(v *page.Request) error {
	c, p, err := settingPage(v)
	if err != nil {
		return err
	}
	found, err := c.Settings(v.Ctx())
	if err != nil {
		return err
	}
	p.Form = settingForm(found)
	return v.Show(Settings(p))
}

// settingForm returns the form with the present settings. If the client has no opt-out words of its own, the form shows
// the usual words.
func settingForm(s puntuale.ClientSettings) *view.Form {
	words, confirm, cancel := s.Words()
	f := view.NewForm("keep_replies", string(s.KeepReplies), "consent", string(s.Consent), "opt_out_words", strings.Join(words, "\n"),
		"opt_out_answer", s.OptOutAnswer, "takeover_hours", strconv.Itoa(s.TakeoverHours), "automated_most", strconv.Itoa(s.AutomatedMost),
		"confirm_words", strings.Join(confirm, "\n"), "cancel_words", strings.Join(cancel, "\n"), "button_line", cmp.Or(s.ButtonLine, puntuale.DefaultButtonLine))
	for name, on := range map[string]bool{"remember": s.Remember, "flatten_values": s.FlattenValues, "pause_if_marketing": s.PauseCostlier, "track_links": s.TrackLinks, "keep_media": s.KeepMedia} {
		if on {
			f.Values.Set(name, "on")
		}
	}
	for _, name := range settingFields {
		f.Values.Set("was."+name, f.Value(name))
	}
	return f
}

func changeSettings(v *page.Request) error {
	c, p, err := settingPage(v)
	if err != nil {
		return err
	}
	f, err := v.Form()
	if err != nil {
		return err
	}
	patch, faults := readSettings(f)
	if _, err := c.UpdateSettings(v.Ctx(), patch, nil, faults...); err != nil {
		p.Form = f
		return v.ShowRefused(err, f, SettingForm(p), Settings(p), settingFields...)
	}
	v.SetAuditTarget(c.ID().String())
	v.Say("setting.saved", "")
	return v.Redirect(p.Action)
}

// readSettings reads the settings that the person changed. All other settings keep the stored values, because somebody
// else may have changed these settings.
func readSettings(f *view.Form) (p puntuale.SettingsPatch, faults []puntuale.Fault) {
	touched := func(name string) bool {
		return strings.TrimSpace(f.Value(name)) != strings.TrimSpace(f.Value("was."+name))
	}
	check := func(name string) *bool {
		if !touched(name) {
			return nil
		}
		return new(f.Is(name, "on"))
	}
	p.Remember, p.FlattenValues, p.PauseCostlier, p.TrackLinks = check("remember"), check("flatten_values"), check("pause_if_marketing"), check("track_links")
	p.KeepMedia = check("keep_media")
	if touched("keep_replies") {
		p.KeepReplies = new(puntuale.KeepReplies(f.Value("keep_replies")))
	}
	if touched("consent") {
		p.Consent = new(puntuale.ConsentRule(f.Value("consent")))
	}
	words := func(name string, usual []string) *[]string {
		if !touched(name) {
			return nil
		}
		words := []string{}
		for line := range strings.Lines(f.Value(name)) {
			if line = strings.TrimSpace(line); line != "" {
				words = append(words, line)
			}
		}
		if slices.Equal(words, usual) {
			words = []string{}
		}
		return &words
	}
	p.OptOutWords = words("opt_out_words", puntuale.DefaultOptOutWords())
	p.ConfirmWords, p.CancelWords = words("confirm_words", puntuale.DefaultConfirmWords()), words("cancel_words", puntuale.DefaultCancelWords())
	if touched("button_line") {
		line := strings.TrimSpace(f.Value("button_line"))
		if line == puntuale.DefaultButtonLine {
			line = ""
		}
		p.ButtonLine = &line
	}
	if touched("opt_out_answer") {
		p.OptOutAnswer = new(strings.TrimSpace(f.Value("opt_out_answer")))
	}
	number := func(name string) *int {
		if !touched(name) {
			return nil
		}
		n, err := strconv.Atoi(strings.TrimSpace(f.Value(name)))
		if err != nil {
			faults = append(faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultNotWhole})
			return nil
		}
		return &n
	}
	p.TakeoverHours, p.AutomatedMost = number("takeover_hours"), number("automated_most")
	return p, faults
}
