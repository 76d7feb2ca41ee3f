package control

import (
	"context"
	"fmt"
	"path"
	"puntuale/internal/control/request"
	"slices"
	"strings"

	"puntuale"
)

// Warning is what will go wrong with a step of a sequence as things are, although the sequence is taken as it is.
type Warning struct {
	Step   int // from 0
	Reason puntuale.Reason
}

// reasonOnlyInWindow: without an approved template a message leaves only within 24 hours of the recipient's last one.
const reasonOnlyInWindow puntuale.ReasonCode = "sequence.only_in_window"

// SequenceWarnings looks at a sequence as it is being written, and stores nothing. Codes: invalid, with all that is wrong.
func (c *Client) SequenceWarnings(ctx context.Context, r NewSequence) ([]Warning, error) {
	checked, err := c.checkSequence(ctx, r)
	return checked.Warnings, err
}

// warn adds what the network of a sequence's session will refuse. These are files of a kind that it does not take, and
// what Meta asks of an Official one.
func (c *Client) warn(ctx context.Context, s *Sequence, expanded puntuale.Sequence) error {
	id := ""
	if s.Session != 0 {
		id = s.Session.String()
	}
	var f request.Faults
	session, err := c.sessionFor(ctx, &f, id)
	if puntuale.CodeOf(err) == puntuale.CodeNotFound {
		return nil
	}
	if err != nil || session.Sandbox {
		return err
	}
	for i, step := range expanded.Steps {
		if why := mediaWarning(step, session.Type); why != "" {
			s.Warnings = append(s.Warnings, Warning{i, puntuale.Because(why)})
		}
	}
	if session.Type != puntuale.Official {
		return nil
	}
	var names []string
	for _, step := range expanded.Steps {
		if step.Official != nil && !slices.Contains(names, step.Official.Name) {
			names = append(names, step.Official.Name)
		}
	}
	about, _, _, err := c.tenant.NetworkTemplates(ctx, session.ID, puntuale.Page{Limit: 1})
	if err != nil {
		return fmt.Errorf("read about templates: %w", err)
	}
	known, err := c.tenant.NetworkTemplatesNamed(ctx, session.ID, names)
	if err != nil {
		return fmt.Errorf("read templates: %w", err)
	}
	for i, step := range expanded.Steps {
		if why := stepWarning(step, about, known); !why.IsZero() {
			s.Warnings = append(s.Warnings, Warning{i, why})
		}
	}
	return nil
}

// metaFiles are the extensions of the files that Meta takes. (Meta, business-phone-numbers/media.)
var metaFiles = []string{"jpg", "jpeg", "png", "mp4", "3gp", "mp3", "ogg", "aac", "amr", "m4a", "pdf", "doc", "docx", "xls", "xlsx", "ppt", "pptx", "txt"}

// mediaWarning is what the network will refuse of a step's file, "" for nothing that is known before its fields are.
func mediaWarning(step puntuale.Step, network puntuale.ConnectionType) puntuale.ReasonCode {
	address, _, _ := strings.Cut(step.Media, "?")
	extension := strings.ToLower(strings.TrimPrefix(path.Ext(address), "."))
	if step.Media == "" || strings.Contains(address, "{{") {
		return ""
	}
	switch {
	case step.Official == nil && step.Text != "" && puntuale.MediaKind(address) == "audio": // which is shown without one
		return puntuale.ReasonAudioAlone
	case network == puntuale.Official && extension != "" && !slices.Contains(metaFiles, extension):
		return puntuale.ReasonFileType
	}
	return ""
}

// stepWarning is what will go wrong with a step, zero for nothing that is known.
func stepWarning(step puntuale.Step, about puntuale.NetworkTemplates, known []puntuale.NetworkTemplate) puntuale.Reason {
	a := step.Official
	if a == nil {
		return puntuale.Because(reasonOnlyInWindow)
	}
	i := slices.IndexFunc(known, func(t puntuale.NetworkTemplate) bool { return t.Name == a.Name && t.Language == a.Language })
	if i < 0 {
		if about.Synced.IsZero() {
			return puntuale.Reason{}
		}
		return puntuale.Because(puntuale.ReasonNoTemplate)
	}
	t := known[i]
	if use, says := t.Status.Use(); use != puntuale.TemplateUsable {
		return says
	}
	if len(t.Parts) > 0 && !fits(step, t) {
		return puntuale.Because(puntuale.ReasonTemplateValues)
	}
	return puntuale.Reason{}
}

// fits reports whether a step fills exactly what the template leaves open.
func fits(step puntuale.Step, t puntuale.NetworkTemplate) bool {
	a, header := step.Official, t.Part("HEADER")
	switch header.Format {
	case "IMAGE", "VIDEO", "DOCUMENT":
		if step.Media == "" {
			return false
		}
	case "LOCATION":
		if step.Latitude == nil {
			return false
		}
	default:
		if step.Media != "" || step.Latitude != nil {
			return false
		}
	}
	return fills(a.Header, header.Places(), t.Named) && fills(a.Body, t.Part("BODY").Places(), t.Named) && pressed(a.Buttons, t.Part("BUTTONS").Buttons)
}

// fills reports whether values are those of the places: as many, or with all their names.
func fills(values []puntuale.Parameter, places []string, named bool) bool {
	if len(values) != len(places) {
		return false
	}
	for _, v := range values {
		if named != (v.Name != "") || named && !slices.Contains(places, v.Name) {
			return false
		}
	}
	return true
}

// pressed reports whether all buttons that need something have it.
func pressed(values []puntuale.Button, buttons []puntuale.TemplateButton) bool {
	for i, b := range buttons {
		if b.Open() && !slices.ContainsFunc(values, func(v puntuale.Button) bool { return v.Index == i }) {
			return false
		}
	}
	return !slices.ContainsFunc(values, func(v puntuale.Button) bool {
		return v.Index >= len(buttons) || !strings.EqualFold(string(v.Kind), buttons[v.Index].Kind)
	})
}
