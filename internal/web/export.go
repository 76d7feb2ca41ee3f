package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/web/view"
)

// exportRoutes bring sequences out as files and in again.
var exportRoutes = []route{
	{"GET /c/{client}/sequences/{id}/export", clientSide, puntuale.Reader, "", (*site).exportSequence},
	{"GET /c/{client}/sequences/import", clientSide, puntuale.Staff, "", (*site).importPage},
	{"POST /c/{client}/sequences/import", clientSide, puntuale.Staff, "sequence.import", (*site).importSequence},
}

// exported is a sequence as a file: what POST /api/sequences takes.
type exported struct {
	Name        string          `json:"name"`
	Session     string          `json:"id_sessione,omitempty"` // taken in, never written: another account has others
	IfRunning   string          `json:"if_running,omitempty"`
	StopOnReply bool            `json:"stop_on_reply,omitempty"`
	Steps       []puntuale.Step `json:"steps"`
}

func (s *site) exportSequence(v *visit) error {
	found, err := v.client.Sequence(v.ctx(), v.path("id"))
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(exported{Name: found.Name, IfRunning: string(found.IfRunning), StopOnReply: found.StopOnReply, Steps: found.Steps}, "", "  ")
	if err != nil {
		return fmt.Errorf("write sequence %d: %w", found.ID, err)
	}
	if err := v.account.Take(2 * int64(len(text))); err != nil {
		return err
	}
	v.pass.Rest() // a slow reader needs no place
	h := v.w.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="sequence-`+found.ID.String()+`.json"`)
	v.answered = true
	v.w.WriteHeader(http.StatusOK)
	_, _ = v.w.Write(append(text, '\n')) // fails only when the reader is gone
	return nil
}

// importSequence makes a sequence of a file's content.
func (s *site) importSequence(v *visit) error {
	f, err := v.form()
	if err != nil {
		return err
	}
	text := f.Value("content")
	if uploaded, err := v.file("file", admission.MaxBody); err != nil {
		return err
	} else if len(uploaded) > 0 {
		text = string(uploaded)
		f.Values.Set("content", text)
	}
	made, err := s.takeIn(v.ctx(), v.client, text)
	if err != nil {
		if e, _ := refusal(err); e != nil && slices.ContainsFunc(e.Faults, func(g puntuale.Fault) bool { return g.Location != "body.content" }) {
			v.quiet = true
			return s.mend(v, text, e)
		}
		return v.again(err, f, view.SequenceImport(f), view.SequenceImportPage(f), "content")
	}
	v.did(made.ID.String())
	v.say("sequence.imported", "")
	return v.to(v.sequenceURL(made.ID))
}

// readExported reads what was exported. A member that there is not is refused, and a step must say when it leaves: else
// a slip of a pen would send at once.
func readExported(text string) (in exported, faults []puntuale.Fault, err error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "\uFEFF")
	if text == "" {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Message: "is required"})
	}
	if httpkit.TooManyValues([]byte(text)) {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Message: "is not a sequence as it was exported"})
	}
	var raw struct {
		Steps []map[string]json.RawMessage `json:"steps"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || d.More() || json.Unmarshal([]byte(text), &raw) != nil {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Message: "is not a sequence as it was exported"})
	}
	if len(in.Steps) > puntuale.MaxSteps {
		return in, nil, nil // their number is what is refused
	}
	for i := range in.Steps {
		in.Steps[i].Timing.Anchor = or(in.Steps[i].Timing.Anchor, puntuale.AnchorStart)
		if _, says := raw.Steps[i]["timing"]; !says {
			faults = append(faults, puntuale.Fault{Location: fmt.Sprintf("body.steps[%d].timing", i), Message: "is required"})
		}
	}
	return in, faults, nil
}

func (s *site) takeIn(ctx context.Context, c *control.Client, text string) (control.Sequence, error) {
	in, faults, err := readExported(text)
	if err != nil {
		return control.Sequence{}, err
	}
	return c.CreateSequence(ctx, control.NewSequence{Name: in.Name, Session: in.Session, IfRunning: in.IfRunning, StopOnReply: in.StopOnReply, Steps: in.Steps, Faults: faults}, control.Once[control.Sequence]{})
}

// mend opens the editor with a sequence that was taken in, where something is wrong with it.
func (s *site) mend(v *visit, text string, refused *puntuale.Error) error {
	in, _, err := readExported(text)
	if err != nil {
		return err
	}
	f := draftForm(puntuale.Sequence{Name: in.Name, IfRunning: puntuale.IfRunning(in.IfRunning), StopOnReply: in.StopOnReply, Steps: in.Steps[:min(len(in.Steps), puntuale.MaxSteps)]})
	e, err := s.editor(v, f, -1)
	if err != nil {
		return err
	}
	f.Take(v.frame.Language, refused, draftFields(f)...)
	return v.whole(view.SequenceEdit(e))
}

func (s *site) importPage(v *visit) error {
	return v.show(view.SequenceImportPage(view.NewForm()))
}
