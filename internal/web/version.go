package web

import (
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// A form of something that others edit, too, holds the version that it was filled with. Where that is not the stored one
// any more, nothing is saved: the form comes back with what was written and what is stored now side by side, and with the
// stored version. Whoever saves it again has seen both.

// known are the versions that a form was filled with; none where it holds none.
func known(f *view.Form) []puntuale.Version {
	if v := f.Value(view.Version); v != "" {
		return []puntuale.Version{puntuale.Version(v)}
	}
	return nil
}

// label is a field of a form, and the key of its name for people.
type label struct{ name, key string }

// compare reports whether a form was refused for its version. Then it gives the form the stored version, and the address
// that shows what is stored.
func (v *visit) compare(err error, f *view.Form, version puntuale.Version, fresh string) bool {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return false
	}
	f.Values.Set(view.Version, string(version))
	f.Fresh = fresh
	return true
}

// differ notes which fields of a form are stored otherwise now.
func (v *visit) differ(f, stored *view.Form, labels ...label) {
	for _, l := range labels {
		f.Differ(v.t(l.key), strings.TrimSpace(f.Value(l.name)), strings.TrimSpace(stored.Value(l.name)))
	}
}

// compareSequence is compare for a sequence, and notes what differs step by step.
func (v *visit) compareSequence(err error, f *view.Form, id string) error {
	if puntuale.CodeOf(err) != puntuale.CodePrecondition {
		return nil
	}
	found, missing := v.client.Sequence(v.ctx(), id)
	if missing != nil {
		return missing
	}
	v.compare(err, f, found.Version(), sequenceURL(v, found.ID)+"/edit")
	v.differ(f, draftForm(found.Sequence), label{"name", "sequence.name"})
	mine := readDraft(f)
	ctx := view.With(v.ctx(), v.frame)
	for i := range max(len(mine.Steps), len(found.Steps)) {
		f.Differ(v.t("step.number", "Number", i+1), view.StepWords(ctx, mine.Steps, i), view.StepWords(ctx, found.Steps, i))
	}
	settings := func(session, ifRunning string, stop bool) string {
		words := []string{v.t("editor.running." + or(ifRunning, string(puntuale.IfRunningAllow)))}
		if session != "" {
			words = append(words, v.t("editor.session")+" "+session)
		}
		if stop {
			words = append(words, v.t("editor.stop_on_reply"))
		}
		return strings.Join(words, " · ")
	}
	f.Differ(v.t("editor.more"), settings(mine.Session, mine.IfRunning, mine.StopOnReply), settings(sessionText(found.Session), string(found.IfRunning), found.StopOnReply))
	return nil
}
