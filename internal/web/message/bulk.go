package message

import (
	"errors"
	"strconv"
	"strings"

	"github.com/a-h/templ"

	"puntuale"
	"puntuale/internal/web/page"
	"puntuale/internal/web/view"
)

// bulkRoutes change all messages that a search finds, or those that the person chose. The first page asks for confirmation.
// Then each request changes one part of the messages.
var bulkRoutes = []page.Route{
	page.Get("/c/{client}/messages/all", page.ClientSide, puntuale.Staff, askAll),
	page.Post("/c/{client}/messages/all", page.ClientSide, puntuale.Staff, "message.all", doAll),
}

// bulkRows is the number of messages that one request changes.
const bulkRows = "200"

// bulkVerb returns the action that is possible for all messages in a state: "again", "cancel", or "" for no action.
func bulkVerb(state string) string {
	switch state {
	case "PENDING":
		return "cancel"
	case "FAILED", "CANCELLED", "BLACKLISTED":
		return "again"
	}
	return ""
}

func askAll(v *page.Request) error {
	b := Bulk{Search: readSearch(v.Query), Form: view.NewForm("when", "now")}
	if v.Query("chosen") != "" {
		return askChosen(v, b)
	}
	if b.Verb = bulkVerb(b.Search.State); b.Verb == "" {
		return v.Redirect(v.Frame.Place.Base + "/messages")
	}
	b.Search.Cursor = ""
	b.Sequence, b.Campaign = page.SequenceName(v, b.Search.Sequence), page.CampaignName(v, b.Search.Campaign)
	q := queryOf(b.Search, "")
	q.Brief = true
	counts, err := v.Client.CountStates(v.Ctx(), q)
	if err != nil {
		return err
	}
	state, _ := puntuale.ParseState(b.Search.State) // bulkVerb knows the state
	if n, counted := counts[state]; counted {
		b.Total, b.More = min(n, puntuale.MaxCounted), n > puntuale.MaxCounted
		return v.Show(AskAll(b))
	}
	total, all, err := v.Client.CountMessages(v.Ctx(), q, puntuale.MaxCounted)
	if err != nil {
		return err
	}
	b.Total, b.More = total, !all
	return v.Show(AskAll(b))
}

// askChosen asks about the messages that the person chose, and says how many of them the action cannot change.
func askChosen(v *page.Request, b Bulk) error {
	b.Chosen, b.IDs, b.Verb = true, v.HTTP.URL.Query()["id"], v.Query("verb")
	if b.Verb != "cancel" && b.Verb != "again" {
		return v.Redirect(v.Frame.Place.Base + "/messages" + b.Search.Query(""))
	}
	fit, unfit, err := fitIDs(v, b.Verb, b.IDs)
	b.Total, b.Unfit = len(fit), unfit
	if err != nil {
		return err
	}
	return v.Show(AskAll(b))
}

// fitIDs returns which of the chosen messages an action can change, each once, and how many it cannot. It must be called again
// when the action begins, because sending a pending message again would move it.
func fitIDs(v *page.Request, verb string, chosen []string) (ids []string, unfit int, err error) {
	if len(chosen) == 0 {
		return nil, 0, nil
	}
	all, err := v.Client.Details(v.Ctx(), chosen)
	if err != nil {
		return nil, 0, err
	}
	seen := map[string]bool{}
	for i := range all {
		id := all[i].ID.String()
		if !seen[id] && (verb == "again" && mayAgain(all[i]) || verb == "cancel" && mayCancel(all[i])) {
			ids = append(ids, id)
		}
		seen[id] = true
	}
	for _, id := range chosen {
		seen[id] = true
	}
	return ids, len(seen) - len(ids), nil
}

// doAll changes the next part of the messages. The form contains the cursor, and the number of messages changed so far.
func doAll(v *page.Request) error {
	f, err := v.Form()
	if err != nil {
		return err
	}
	b := Bulk{Search: readSearch(f.Value), Form: f, Total: page.Count(f.Value("total")), More: f.Value("more") != "", Done: page.Count(f.Value("done")), Left: page.Count(f.Value("left")), Running: true}
	var ids []string
	next := ""
	if b.Chosen = f.Value("chosen") != ""; b.Chosen {
		b.Verb, b.IDs = f.Value("verb"), f.Values["id"]
		ids, b.Unfit, err = fitIDs(v, b.Verb, b.IDs)
	} else if b.Verb = bulkVerb(b.Search.State); b.Verb == f.Value("verb") {
		ids, next, err = foundIDs(v, b.Search)
	}
	if b.Verb != f.Value("verb") || b.Verb != "cancel" && b.Verb != "again" {
		v.Quiet = true
		return v.Redirect(v.Frame.Place.Base + "/messages")
	}
	if err != nil {
		return err
	}
	n, err := bulk(v, b.Verb, ids, f)
	if err != nil {
		b.Running = false
		b.Sequence, b.Campaign = page.SequenceName(v, b.Search.Sequence), page.CampaignName(v, b.Search.Campaign)
		return v.ShowRefused(err, f, BulkForm(b), AskAll(b), "date", "time")
	}
	b.Done, b.Left, b.Search.Cursor = b.Done+n, b.Left+len(ids)-n, next
	v.SetAuditTarget(strings.ToLower(b.Verb) + " " + strings.ToLower(b.Search.State) + " " + strconv.Itoa(n))
	v.Quiet = n == 0
	if b.Running = next != ""; b.Running {
		return v.Show(bulkPart(v, b))
	}
	done := v.T("bulk."+b.Verb+"_done", "N", b.Done)
	if b.Left > 0 {
		done += ". " + v.T("bulk.left", "N", b.Left)
	}
	if b.Unfit > 0 {
		done += ". " + v.T("bulk."+b.Verb+"_unfit", "N", b.Unfit)
	}
	v.Toast("ok", done, "")
	return v.Redirect(v.Frame.Place.Base + "/messages" + b.Search.Query(""))
}

// foundIDs returns the ids of the next messages that a search finds, and the cursor of those after them.
func foundIDs(v *page.Request, search view.MessageSearch) (ids []string, next string, err error) {
	rows, next, err := v.Client.Messages(v.Ctx(), queryOf(search, bulkRows))
	for i := range rows {
		ids = append(ids, rows[i].ID.String())
	}
	return ids, next, err
}

// bulkPart returns only the form for htmx, and the whole page for a browser without scripts.
func bulkPart(v *page.Request, b Bulk) templ.Component {
	if v.Partial() {
		return BulkForm(b)
	}
	return AskAll(b)
}

// bulk changes messages, and returns how many it changed. It skips messages whose state is different by now.
func bulk(v *page.Request, verb string, ids []string, f *view.Form) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	if verb == "cancel" {
		cancelled, err := v.Client.CancelMessages(v.Ctx(), ids)
		return len(cancelled), err
	}
	call := resendCall(f, ids...)
	for range 3 {
		resent, err := v.Client.Resend(v.Ctx(), call)
		e, ok := errors.AsType[*puntuale.Error](err)
		if !ok || e.Code != puntuale.CodeConflict && e.Code != puntuale.CodeNotFound || len(e.Faults) == 0 {
			return len(resent.IDs), err
		}
		refused := map[string]bool{}
		for _, fault := range e.Faults {
			refused[strings.TrimSuffix(strings.TrimPrefix(fault.Location, "body.id["), "]")] = true
		}
		var rest []string
		for i, id := range call.IDs {
			if !refused[strconv.Itoa(i)] {
				rest = append(rest, id)
			}
		}
		if call.IDs = rest; len(rest) == 0 {
			return 0, nil
		}
	}
	return 0, nil
}
