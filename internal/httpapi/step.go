package httpapi

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"puntuale"
)

// steps are the steps of a sequence. Package puntuale defines their JSON form, and this file documents the form.
type steps []puntuale.Step

// Schema tells huma what a step is.
func (steps) Schema(r huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: "array", Items: r.Schema(reflect.TypeFor[step](), true, ""),
		MinItems: new(1), MaxItems: new(puntuale.MaxSteps),
	}
}

// step, timing, offset, window and validity only document the members of a step. Values of these types never hold data.
type step struct {
	Text      string   `json:"text,omitempty" doc:"With {{field}} and {{field|fallback}}; of a date field, {{field:data}}, {{field:ora}}, {{field:giorno}} too"`
	Media     string   `json:"media,omitempty" doc:"Address of a media file, http or https; may hold fields"`
	MediaName string   `json:"media_name,omitempty" doc:"File name of the media; may hold fields"`
	Latitude  *float64 `json:"latitude,omitempty" minimum:"-90" maximum:"90" doc:"Degrees; together with longitude"`
	Longitude *float64 `json:"longitude,omitempty" minimum:"-180" maximum:"180" doc:"Degrees; together with latitude"`
	Template  string   `json:"template,omitempty" doc:"Name of a template of the client"`
	Timing    timing   `json:"timing"`

	OnUncertain string `json:"on_uncertain,omitempty" enum:"never,resend" doc:"What to do when nobody knows whether the network took the message, and it would show a repeat as a second one (Official): never send it again by itself, which is the default; or send it once more after ten minutes without word, perhaps twice in all"`
}

type timing struct {
	Anchor   string    `json:"anchor" doc:"start, the moment of the call, or the name of a date field"`
	Offset   offset    `json:"offset" doc:"Distance from the anchor"`
	At       string    `json:"at,omitempty" doc:"HH:MM: the time of day, with offsets in days and longer units"`
	Window   *window   `json:"window,omitempty" doc:"When the message may leave"`
	Jitter   int       `json:"jitter,omitempty" minimum:"0" maximum:"86400" doc:"Seconds at most that are added by chance; a step never passes the one planned after it"`
	IfPast   string    `json:"if_past,omitempty" enum:"skip,send_now,reject" doc:"What to do with a moment more than five minutes ago; else skip"`
	ValidFor *validity `json:"valid_for,omitempty" doc:"How long after its moment the message may still leave; else 24 hours"`
}

type offset struct {
	Amount    int    `json:"amount" minimum:"0"`
	Unit      string `json:"unit,omitempty" enum:"seconds,minutes,hours,days,weeks,months" doc:"Needed unless the amount is 0. Days and longer are reckoned by the calendar"`
	Direction string `json:"direction,omitempty" enum:"before,after" doc:"before needs a date field as the anchor; with the amount 0, too, the message leaves before the date"`
}

type window struct {
	Weekdays []int  `json:"weekdays,omitempty" maxItems:"7" uniqueItems:"true" doc:"1 Monday to 7 Sunday; none: every day"`
	From     string `json:"from,omitempty" doc:"HH:MM"`
	To       string `json:"to,omitempty" doc:"HH:MM, exclusive; earlier than from: on the next day"`
	Holidays string `json:"holidays,omitempty" enum:"avoid"`
}

type validity struct {
	Amount int    `json:"amount" minimum:"1"`
	Unit   string `json:"unit" enum:"seconds,minutes,hours,days,weeks,months"`
}
