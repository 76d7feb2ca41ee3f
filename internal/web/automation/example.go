package automation

import (
	"puntuale"
	"puntuale/internal/control"
	"puntuale/internal/control/request"
	"puntuale/internal/web/page"
)

// beginning returns the rule that a new form shows: an example, or a rule whose parts are still empty.
func beginning(v *page.Request) (a puntuale.Automation, like string) {
	like = v.Query("like")
	a = puntuale.Automation{Active: true, Name: v.T("automation.like." + like)}
	send := func(key string) []puntuale.Action {
		return []puntuale.Action{{Kind: puntuale.ActionSend, Text: v.T(key), Purpose: puntuale.PurposeService.String()}}
	}
	switch like {
	case "birthday":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerDate, Field: v.T("automation.field.birthday"), Repeat: puntuale.RepeatYearly}
		a.Actions = []puntuale.Action{{Kind: puntuale.ActionStart, Sequence: sequenceFrom(v, a.Trigger.Field)}}
	case "renewal":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerDate, Field: v.T("automation.field.renewal"), Repeat: puntuale.RepeatYearly}
		a.Actions = []puntuale.Action{{Kind: puntuale.ActionStart, Sequence: sequenceFrom(v, a.Trigger.Field)}}
	case "info":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerReply, Words: []string{"info"}}
		a.Conditions.CooldownHours = 1
		a.Actions = send("automation.like.info_1")
	case "noshow":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerNoReply, Sequence: newest(v), Hours: 24}
		a.Actions = send("automation.like.noshow_1")
	case "absent":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerBooking, Is: puntuale.BookingIsNoShow}
		a.Actions = send("automation.like.absent_1")
	case "form":
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerHook, Map: map[string]string{phoneField: "phone", "nome": "name"}}
		a.Actions = send("automation.like.form_1")
	case "program":
		a.Name = v.T("automation.like.program_name")
		a.Trigger = puntuale.Trigger{Kind: puntuale.TriggerHook, Preset: puntuale.PresetCalCom}
		a.Actions = []puntuale.Action{{Kind: puntuale.ActionBook, Sequence: newestForBookings(v)}}
	default:
		return puntuale.Automation{Active: true, Trigger: puntuale.Trigger{Kind: puntuale.TriggerReply, Repeat: puntuale.RepeatYearly}, Actions: []puntuale.Action{{Kind: puntuale.ActionSend}}}, ""
	}
	return a, like
}

// sequenceFrom returns the newest sequence with a date field of this name, or "" if there is none.
func sequenceFrom(v *page.Request, field string) puntuale.SequenceChoice {
	found, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: maxRead}})
	if err != nil {
		return "" // the person must choose a sequence
	}
	for _, s := range found {
		for _, f := range s.Fields {
			if f.Name == field && f.Kind == puntuale.FieldDate {
				return puntuale.SequenceChoice(s.ID.String())
			}
		}
	}
	return ""
}

// newest returns the newest sequence, or "" if there is none.
func newest(v *page.Request) puntuale.SequenceChoice {
	found, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: "1"}})
	if err != nil || len(found) == 0 {
		return ""
	}
	return puntuale.SequenceChoice(found[0].ID.String())
}

// newestForBookings returns the newest sequence for bookings, or "" if there is none.
func newestForBookings(v *page.Request) puntuale.SequenceChoice {
	found, _, err := v.Client.Sequences(v.Ctx(), control.SequenceSearch{Newest: true, Page: request.Page{Limit: maxRead}})
	if err != nil {
		return "" // the person must choose a sequence
	}
	for _, s := range found {
		if s.Booking != "" {
			return puntuale.SequenceChoice(s.ID.String())
		}
	}
	return ""
}

// lacksSequence reports whether an example needs a sequence that does not exist yet.
func (e Editor) lacksSequence() bool {
	return (e.Like == "birthday" || e.Like == "renewal") && len(e.Rule.Actions) > 0 && e.Rule.Actions[0].Sequence == ""
}

// sequenceLike returns the query of the address at which a person creates the sequence that an example needs.
func (e Editor) sequenceLike() string {
	if e.Like == "birthday" || e.Like == "renewal" {
		return "?like=" + e.Like
	}
	return ""
}
