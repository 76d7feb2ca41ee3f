package sequence

import (
	"cmp"
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
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// exportRoutes export sequences to files, and import such files.
var exportRoutes = []page.Route{
	page.Get("/c/{client}/sequences/{id}/export", page.ClientSide, puntuale.Reader, exportSequence),
	page.Get("/c/{client}/sequences/import", page.ClientSide, puntuale.Staff, importPage),
	page.Post("/c/{client}/sequences/import", page.ClientSide, puntuale.Staff, "sequence.import", importSequence),
}

// exported is a sequence in a file. The file has the form of the body of POST /api/sequences.
type exported struct {
	Name        string `json:"name"`
	Session     string `json:"id_sessione,omitempty"` // read, but never written, because the session's id is wrong in another account
	IfRunning   string `json:"if_running,omitempty"`
	StopOnReply bool   `json:"stop_on_reply,omitempty"`
	TrackLinks  *bool  `json:"track_links,omitempty"`
	Purpose     string `json:"purpose,omitempty"` // "": service
	Booking     *struct {
		Date string `json:"date"`
	} `json:"booking,omitempty"` // only of a sequence for bookings
	Steps []puntuale.Step `json:"steps"`
}

// date returns the name of the main date field; "": the sequence is not for bookings.
func (x exported) date() string {
	if x.Booking == nil {
		return ""
	}
	return cmp.Or(x.Booking.Date, " ") // a blank name is a fault
}

func exportSequence(v *page.Request) error {
	found, err := v.Client.Sequence(v.Ctx(), v.Path("id"))
	if err != nil {
		return err
	}
	file := exported{Name: found.Name, IfRunning: string(found.IfRunning), StopOnReply: found.StopOnReply, TrackLinks: found.TrackLinks.Choice(), Steps: found.Steps}
	if found.Purpose != puntuale.PurposeService {
		file.Purpose = found.Purpose.String()
	}
	if found.Booking != "" {
		file.Booking = &struct {
			Date string `json:"date"`
		}{found.Booking}
	}
	text, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return fmt.Errorf("write sequence %d: %w", found.ID, err)
	}
	if err := v.Memory.Take(2 * int64(len(text))); err != nil {
		return err
	}
	v.Pass.LeaveSeat() // the request has no seat while the answer is sent, because the reader may be slow
	h := v.Writer.Header()
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="sequence-`+found.ID.String()+`.json"`)
	v.Answered = true
	v.Writer.WriteHeader(http.StatusOK)
	_, _ = v.Writer.Write(append(text, '\n')) // this fails only if the reader closed the connection or reads too slowly
	return nil
}

// importSequence creates a sequence from a file's content.
func importSequence(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	text := f.Value("content")
	if uploaded, err := v.File("file", admission.MaxBody); err != nil {
		return err
	} else if len(uploaded) > 0 {
		text = string(uploaded)
		f.Values.Set("content", text)
	}
	made, err := takeIn(v.Ctx(), v.Client, text)
	if err != nil {
		if e, _ := page.Refusal(err); e != nil && slices.ContainsFunc(e.Faults, func(g puntuale.Fault) bool { return g.Location != "body.content" }) {
			v.Quiet = true
			return editImported(v, text, e)
		}
		return v.ShowRefused(err, f, SequenceImport(f), SequenceImportPage(f), "content")
	}
	v.SetAuditTarget(made.ID.String())
	v.Say("sequence.imported", "")
	return v.Redirect(sequenceAddress(v, made.ID))
}

const faultSequenceNotExported puntuale.ReasonCode = "sequence.not_exported"

// readExported reads an exported file. It refuses members that it does not know. It also refuses a step without timing,
// because such a step would leave immediately, and the timing may be missing by mistake.
func readExported(text string) (in exported, faults []puntuale.Fault, err error) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "\uFEFF")
	if text == "" {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Code: puntuale.FaultRequired})
	}
	if httpkit.TooManyValues([]byte(text)) {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Code: faultSequenceNotExported})
	}
	var raw struct {
		Steps []map[string]json.RawMessage `json:"steps"`
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if d.Decode(&in) != nil || d.More() || json.Unmarshal([]byte(text), &raw) != nil {
		return in, nil, puntuale.Invalid(puntuale.Fault{Location: "body.content", Code: faultSequenceNotExported})
	}
	if len(in.Steps) > puntuale.MaxSteps {
		return in, nil, nil // CreateSequence then reports only that there are too many steps
	}
	for i := range in.Steps {
		in.Steps[i].Timing.Anchor = firstText(in.Steps[i].Timing.Anchor, puntuale.AnchorStart)
		for n, b := range in.Steps[i].Buttons {
			in.Steps[i].Buttons[n].Does = cmp.Or(b.Does, puntuale.ButtonAnswers)
		}
		if _, says := raw.Steps[i]["timing"]; !says {
			faults = append(faults, puntuale.Fault{Location: fmt.Sprintf("body.steps[%d].timing", i), Code: puntuale.FaultRequired})
		}
	}
	return in, faults, nil
}

func takeIn(ctx context.Context, c *control.Client, text string) (control.Sequence, error) {
	in, faults, err := readExported(text)
	if err != nil {
		return control.Sequence{}, err
	}
	return c.CreateSequence(ctx, control.NewSequence{Name: in.Name, Session: in.Session, IfRunning: in.IfRunning, StopOnReply: in.StopOnReply, TrackLinks: in.TrackLinks, Purpose: in.Purpose, Booking: in.date(), Steps: in.Steps, Faults: faults}, control.Once[control.Sequence]{})
}

// editImported opens the editor with an imported sequence that has faults.
func editImported(v *page.Request, text string, refused *puntuale.Error) error {
	in, _, err := readExported(text)
	if err != nil {
		return err
	}
	purpose, _ := puntuale.ParsePurpose(in.Purpose) // an invalid purpose becomes the zero purpose, and the editor then reports a fault
	f := draftForm(puntuale.Sequence{Purpose: purpose, Name: in.Name, IfRunning: puntuale.IfRunning(in.IfRunning), StopOnReply: in.StopOnReply, TrackLinks: puntuale.TrackLinksOf(in.TrackLinks), Steps: in.Steps[:min(len(in.Steps), puntuale.MaxSteps)]})
	e, err := editor(v, f, -1)
	if err != nil {
		return err
	}
	refused.Faults = variantFields(refused.Faults)
	f.Take(v.Frame.Language, refused, draftFields(f)...)
	return v.Whole(SequenceEdit(e))
}

func importPage(v *page.Request) error {
	return v.Show(SequenceImportPage(view.NewForm()))
}
