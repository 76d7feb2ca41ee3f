package sequence

import (
	"errors"
	"strings"

	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// tryFile fetches the file at a step's address and describes it, while a person writes the step.
func tryFile(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	address := strings.TrimSpace(f.Value(f.Value("at")))
	note := FileNote{Tone: "info"}
	switch {
	case address == "" || !v.Client.CanTryFiles():
		return v.Show(FileFacts(FileNote{}))
	case strings.Contains(address, "{{"):
		note.Says = v.T("file.fields")
		return v.Show(FileFacts(note))
	}
	facts, err := v.Client.TryFile(v.Ctx(), address)
	if e, _ := page.Refusal(err); e != nil && e.Code == puntuale.CodeInvalid {
		note.Tone, note.Says = "warn", v.Frame.Language.Fault(page.FirstFault(e))
	} else if refused, ok := errors.AsType[*puntuale.SendError](err); ok {
		note.Tone, note.Says = "warn", fileRefusal(v, refused)
	} else if puntuale.CodeOf(err) == puntuale.CodeRateLimited {
		note.Says = v.T("file.wait")
	} else if err != nil {
		return err
	} else {
		note.Tone, note.Kind, note.Says = "ok", facts.Kind, v.T("file.found", "Kind", facts.Kind, "Size", view.Size(v.Frame.Language, facts.Size))
		if maxBytes := control.MaxOfficialFile(facts.Kind); facts.Size > maxBytes {
			note.Tone, note.Says = "warn", note.Says+" "+v.T("file.large", "Most", view.Size(v.Frame.Language, maxBytes))
		}
	}
	return v.Show(FileFacts(note))
}

// fileRefusal returns the reason why a file cannot be sent. For an address that is not public, it also returns advice.
func fileRefusal(v *page.Request, e *puntuale.SendError) string {
	reason := v.Frame.Language.Says(e.Reason)
	if e.Reason.Code == puntuale.ReasonFileAddress {
		reason += ". " + v.T("file.public")
	}
	return reason
}
