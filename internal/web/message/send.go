package message

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// sendRoutes send one message, now or at a chosen time.
var sendRoutes = []page.Route{
	page.Get("/c/{client}/messages/new", page.ClientSide, puntuale.Staff, newMessage),
	page.Post("/c/{client}/messages/new", page.ClientSide, puntuale.Staff, "message.send", sendMessage),
}

// SendPage is the page on which a person writes one message.
type SendPage struct {
	Form     *view.Form
	Sessions []view.Option
	Network  string // of the chosen session, as the texts about limits name it; "": there is no session
}

func newMessage(v *page.Request) error {
	p, err := sendPage(v, view.NewForm("phone", v.Query("phone"), "purpose", puntuale.PurposeService.String(), "when", "now", "key", v.Frame.Request))
	if err != nil {
		return err
	}
	return v.Show(SendOne(p))
}

func sendPage(v *page.Request, f *view.Form) (p SendPage, err error) {
	p.Form = f
	sessions, _, err := v.Client.Sessions(v.Ctx(), request.Page{Limit: page.MaxChoices})
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, view.Option{Value: s.ID.String(), Text: s.Name})
		if s.Default && f.Value("id_sessione") == "" {
			f.Values.Set("id_sessione", s.ID.String())
		}
		if s.ID.String() == f.Value("id_sessione") {
			p.Network = networkOf(s.Session)
		}
	}
	return p, err
}

// networkOf names the network of a session, as far as it limits files.
func networkOf(s puntuale.Session) string {
	if s.Sandbox {
		return "sandbox"
	}
	return strings.ToLower(string(s.Type))
}

// sendFields are the fields of the form, in the order of the page.
var sendFields = slices.Concat([]string{"phone", "text", "media", "media_name"}, view.ButtonNames(), []string{"purpose", "when", "date", "id_sessione"})

func sendMessage(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	if f.Value("do") == "look" && v.Partial() {
		v.Quiet = true
		p, err := sendPage(v, f)
		if err != nil {
			return err
		}
		return v.Show(SendLook(p))
	}
	call, err := singleCall(f)
	if err != nil {
		return err
	}
	started, err := v.Client.Send(v.Ctx(), call)
	if err != nil {
		p, failed := sendPage(v, f)
		if failed != nil {
			return failed
		}
		return v.ShowRefused(err, f, SendForm(p), SendOne(p), sendFields...)
	}
	v.SetAuditTarget(started.IDs[0].String())
	switch {
	case started.Notes.Blacklisted:
		v.Say("send.blacklisted", "")
	case f.Value("when") == "now":
		v.Say("send.done_now", "")
	default:
		v.Say("send.done", "")
	}
	return v.Redirect(messageAddress(v, started.IDs[0]))
}

// singleCall converts the form into the call that a program would make.
func singleCall(f *view.Form) (call control.SingleCall, err error) {
	members := map[string]string{"phone": f.Value("phone"), "text": f.Value("text"), "purpose": f.Value("purpose"), "id_sessione": f.Value("id_sessione")}
	call = control.SingleCall{
		Phone: members["phone"], Purpose: members["purpose"], Session: members["id_sessione"],
		Fields: map[string]json.RawMessage{}, Scope: http.MethodPost + " messages/new", Key: f.Value("key"), Buttons: view.ButtonsIn(f), Interactive: view.InteractiveIn(f, ""),
	}
	needed := []string{"purpose"}
	if members["media"] = strings.TrimSpace(f.Value("media")); members["media"] == "" { // a file may have no words
		needed = append(needed, "text")
	} else {
		members["media_name"] = f.Value("media_name")
	}
	if f.Value("when") != "now" {
		members["date"] = f.Value("date")
		needed = append(needed, "date")
	}
	for _, name := range needed {
		if strings.TrimSpace(members[name]) == "" {
			call.Faults = append(call.Faults, puntuale.Fault{Location: "body." + name, Code: puntuale.FaultRequired})
		}
	}
	for _, name := range []string{"text", "media", "media_name", "date"} {
		if members[name] != "" {
			if call.Fields[name], err = json.Marshal(members[name]); err != nil {
				return call, fmt.Errorf("write a call: %w", err)
			}
		}
	}
	for _, b := range call.Buttons {
		members["buttons"] += b.Label + "\n"
	}
	if x := call.Interactive; x != nil {
		text, err := json.Marshal(x)
		if err != nil {
			return call, fmt.Errorf("write a call: %w", err)
		}
		members["interactive"] = string(text)
	}
	if call.Body, err = json.Marshal(members); err != nil {
		return call, fmt.Errorf("write a call: %w", err)
	}
	return call, nil
}
