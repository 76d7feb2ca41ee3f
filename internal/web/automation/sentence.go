package automation

import (
	"context"
	"strings"

	"puntuale"
	"puntuale/internal/web/view"
)

// names contains the names of the sequences and sessions in automations, by id.
type names struct {
	sequences map[puntuale.SequenceChoice]string
	sessions  map[string]string
}

func (n names) sequence(ctx context.Context, c puntuale.SequenceChoice) string {
	if name := n.sequences[c]; name != "" {
		return quoted(ctx, name)
	}
	return view.T(ctx, "automation.says.gone")
}

func quoted(ctx context.Context, text string) string {
	return view.T(ctx, "automation.says.quoted", "Text", text)
}

// sentence describes an automation, such as "Quando una persona scrive «info», allora invia «Ecco il listino»."
func sentence(ctx context.Context, a puntuale.Automation, n names) string {
	when, actions := triggerWords(ctx, a.Trigger, n), actionsWords(ctx, a.Actions, n)
	if conditions := conditionsWords(ctx, a.Conditions, n); conditions != "" {
		return view.T(ctx, "automation.says.rule_if", "When", when, "If", conditions, "Then", actions)
	}
	return view.T(ctx, "automation.says.rule", "When", when, "Then", actions)
}

func triggerWords(ctx context.Context, t puntuale.Trigger, n names) string {
	switch key := "automation.says.when." + string(t.Kind); t.Kind {
	case puntuale.TriggerReply:
		switch {
		case t.First:
			return view.T(ctx, key+"_first")
		case len(t.Words) > 0:
			return view.T(ctx, key+"_words", "Words", joined(ctx, "or", quotedAll(ctx, t.Words)))
		}
		return view.T(ctx, key)
	case puntuale.TriggerReplyTo:
		return view.T(ctx, key, "Sequence", n.sequence(ctx, t.Sequence))
	case puntuale.TriggerNoReply:
		return view.T(ctx, key, "Sequence", n.sequence(ctx, t.Sequence), "N", t.Hours)
	case puntuale.TriggerDate:
		if t.Repeat != "" {
			key += "_" + string(t.Repeat)
		}
		return view.T(ctx, key, "Field", quoted(ctx, view.Or(t.Field, "…")))
	case puntuale.TriggerOutcome:
		return view.T(ctx, key+"_"+strings.ToLower(view.Or(string(t.Is), string(puntuale.OutcomeCompleted))), "Sequence", n.sequence(ctx, t.Sequence))
	case puntuale.TriggerBooking:
		which := view.T(ctx, "automation.says.every_booking")
		if t.Sequence != "" {
			which = view.T(ctx, "automation.says.booking_of", "Sequence", n.sequence(ctx, t.Sequence))
		}
		return view.T(ctx, key+"_"+view.Or(string(t.Is), string(puntuale.BookingIsCreated)), "Booking", which)
	case puntuale.TriggerHook:
		if name := presetNames[t.Preset]; name != "" {
			return view.T(ctx, key+"_preset", "Program", name)
		}
		return view.T(ctx, key)
	}
	return "…"
}

// bookingWords describes an action about a booking.
func bookingWords(ctx context.Context, key string, x puntuale.Action, n names) string {
	if x.Reference != "" {
		key += "_named"
	}
	says := view.T(ctx, key, "Sequence", n.sequence(ctx, x.Sequence), "Reference", quoted(ctx, shortened(x.Reference)))
	switch {
	case x.Status != "":
		return says + " " + view.T(ctx, "automation.says.then.as", "Status", quoted(ctx, view.T(ctx, "automation.booking."+x.Status)))
	case x.Silent:
		return says + " " + view.T(ctx, "automation.says.then.silently")
	}
	return says
}

func quotedAll(ctx context.Context, texts []string) []string {
	out := make([]string, len(texts))
	for i, text := range texts {
		out[i] = quoted(ctx, text)
	}
	return out
}

// joined formats a list, such as "a, b e c" or "a, b o c".
func joined(ctx context.Context, word string, all []string) string {
	switch len(all) {
	case 0:
		return ""
	case 1:
		return all[0]
	}
	last := len(all) - 1
	return strings.Join(all[:last], ", ") + " " + view.T(ctx, "automation.says."+word) + " " + all[last]
}

func conditionsWords(ctx context.Context, k puntuale.Conditions, n names) string {
	var all []string
	if len(k.Tags) > 0 {
		all = append(all, view.T(ctx, "automation.says.if.tags", "N", len(k.Tags), "Tags", joined(ctx, "and", quotedAll(ctx, k.Tags))))
	}
	for _, f := range k.Fields {
		all = append(all, view.T(ctx, "automation.says.if."+view.Or(string(f.Op), string(puntuale.FieldEqual)), "Field", quoted(ctx, f.Name), "Value", quoted(ctx, f.Value)))
	}
	if k.Session != "" {
		all = append(all, view.T(ctx, "automation.says.if.session", "Session", quoted(ctx, view.Or(n.sessions[k.Session], "…"))))
	}
	if k.NotIn != "" {
		all = append(all, view.T(ctx, "automation.says.if.not_in", "Sequence", n.sequence(ctx, k.NotIn)))
	}
	if k.CooldownHours > 0 {
		all = append(all, view.T(ctx, "automation.says.if.cooldown", "N", k.CooldownHours))
	}
	if len(k.BookingStatus) > 0 {
		all = append(all, view.T(ctx, "automation.says.if.booking_status", "Statuses", joined(ctx, "or", statusWords(ctx, k.BookingStatus))))
	}
	if w := view.WindowWords(ctx, k.Window); w != "" {
		all = append(all, view.T(ctx, "automation.says.if.window", "Window", w))
	}
	return joined(ctx, "and", all)
}

func statusWords(ctx context.Context, statuses []string) []string {
	all := make([]string, len(statuses))
	for i, s := range statuses {
		all[i] = view.T(ctx, "automation.booking."+s)
	}
	return all
}

func actionsWords(ctx context.Context, actions []puntuale.Action, n names) string {
	all := make([]string, 0, len(actions))
	for _, x := range actions {
		all = append(all, actionWords(ctx, x, n))
	}
	return view.Or(joined(ctx, "and", all), "…")
}

// actionWords describes one action.
func actionWords(ctx context.Context, x puntuale.Action, n names) string {
	key := "automation.says.then." + string(x.Kind)
	switch x.Kind {
	case puntuale.ActionStart, puntuale.ActionStop:
		switch x.Sequence {
		case puntuale.SequenceDefault, puntuale.SequenceAll:
			return view.T(ctx, key+"_"+string(x.Sequence))
		}
		return view.T(ctx, key, "Sequence", n.sequence(ctx, x.Sequence))
	case puntuale.ActionSend:
		return sendWords(ctx, key, x)
	case puntuale.ActionTag:
		var all []string
		if len(x.Add) > 0 {
			all = append(all, view.T(ctx, key+"_add", "N", len(x.Add), "Tags", joined(ctx, "and", quotedAll(ctx, x.Add))))
		}
		if len(x.Remove) > 0 {
			all = append(all, view.T(ctx, key+"_remove", "N", len(x.Remove), "Tags", joined(ctx, "and", quotedAll(ctx, x.Remove))))
		}
		return view.Or(joined(ctx, "and", all), "…")
	case puntuale.ActionBook, puntuale.ActionCancelBooking:
		return bookingWords(ctx, key, x, n)
	case puntuale.ActionBlacklist:
		return view.T(ctx, key)
	}
	return "…"
}

func sendWords(ctx context.Context, key string, x puntuale.Action) string {
	switch {
	case x.Template != "":
		return view.T(ctx, key+"_template", "Template", quoted(ctx, x.Template))
	case x.Text != "":
		return view.T(ctx, key, "Text", quoted(ctx, shortened(x.Text)))
	case x.Media != "":
		return view.T(ctx, key+"_media")
	case x.Latitude != nil:
		return view.T(ctx, key+"_location")
	}
	return view.T(ctx, key+"_empty")
}

// shortened returns the beginning of a text.
func shortened(text string) string {
	const limit = 60
	runes := []rune(strings.Join(strings.Fields(text), " "))
	if len(runes) <= limit {
		return string(runes)
	}
	return strings.TrimSpace(string(runes[:limit])) + "…"
}

// contentWords returns the beginning of a message's text, or describes the message if it has no text.
func contentWords(ctx context.Context, c puntuale.Content) string {
	const most = 120
	switch text := []rune(c.Text); {
	case len(text) > most:
		return string(text[:most]) + "…"
	case len(text) > 0:
		return c.Text
	case c.Official != nil:
		return view.T(ctx, "automation.says.then.send_template", "Template", c.Official.Name)
	case c.MediaURL != "":
		return view.T(ctx, "automation.says.then.send_media")
	case c.Latitude != nil:
		return view.T(ctx, "automation.says.then.send_location")
	}
	return ""
}
