// Package preset reads the calls of programs for appointments. It knows where each program writes an appointment's id,
// date, person and status, and what its events mean. Its functions are pure.
//
// Such programs repeat calls, and send them in any order. So an appointment has the program's own id, and the program's
// own time says which of two calls is newer. Some programs give an appointment another id when it moves: then the call
// names the former one.
package preset

import (
	"slices"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/payload"
)

// Appointment is what a call says about one appointment. Values that the call lacks are empty.
type Appointment struct {
	Reference string // the program's name and id
	Former    string // the reference before a move
	Status    puntuale.BookingStatus
	Moved     bool     // cancelled, because it goes on under another reference
	Date      string   // with an offset, or in Zone, or else in the client's zone
	Zone      string   // the zone in which the person reads the date
	Phones    []string // texts that may be the person's number, the likeliest first
	AsOf      string   // how new the call is: a date-time, or a whole number
	Name      string
	Email     string
	Service   string // what was booked
}

// Values returns the values of a trigger, by the names of fields that texts, conditions and the action book know.
func (a *Appointment) Values() map[string]string {
	all := map[string]string{
		puntuale.ReferenceField: a.Reference, puntuale.FormerField: a.Former, puntuale.StatusField: a.Status.String(),
		puntuale.DateField: a.Date, puntuale.ZoneField: a.Zone, puntuale.AsOfField: a.AsOf,
		"nome": a.Name, "email": a.Email, "servizio": a.Service,
	}
	if a.Moved {
		all[puntuale.MovedField] = "true"
	}
	for name, value := range all {
		if value == "" {
			delete(all, name)
		}
	}
	return all
}

// call is a payload with the reads that all programs need.
type call struct {
	payload.Payload
	members []payload.Member
}

// maxMembers bounds the members of a payload among which a call looks for a number.
const maxMembers = 500

// Read reads a call of a program. If the call says nothing about an appointment, Read returns the reason.
func Read(program puntuale.HookPreset, p payload.Payload) (Appointment, puntuale.ReasonCode) {
	c := &call{Payload: p}
	var a Appointment
	var reason puntuale.ReasonCode
	switch program {
	case puntuale.PresetCalCom:
		a, reason = c.calCom()
	case puntuale.PresetCalendly:
		a, reason = c.calendly()
	case puntuale.PresetEasyAppointments:
		a, reason = c.easyAppointments()
	case puntuale.PresetWooCommerce:
		a, reason = c.wooCommerce()
	default:
		return a, puntuale.FiringNotProgram
	}
	switch {
	case reason != "":
		return Appointment{}, reason
	case a.Reference == "":
		return Appointment{}, puntuale.FiringNotProgram
	}
	if a.Former == a.Reference {
		a.Former = ""
	}
	if !isZone(a.Zone) {
		a.Zone = ""
	}
	return a, ""
}

// text returns the first value that is not empty.
func (c *call) text(paths ...string) string {
	for _, text := range paths {
		path, err := payload.ParsePath(text)
		if err != nil {
			continue // cannot happen: the paths are constants, or come from the payload
		}
		if value := strings.TrimSpace(c.Text(path)); value != "" {
			return value
		}
	}
	return ""
}

// phones returns the values at the paths, without empty ones, and then the answers to questions for a phone number.
func (c *call) phones(question, answer string, paths ...string) (all []string) {
	for _, path := range paths {
		if value := c.text(path); value != "" {
			all = append(all, value)
		}
	}
	if question == "" {
		return all
	}
	if c.members == nil {
		c.members = c.Members(maxMembers)
	}
	for _, m := range c.members {
		if at, found := strings.CutSuffix(m.Path, "."+question); found && asksForPhone(m.Text) {
			if value := c.text(at + "." + answer); value != "" && !slices.Contains(all, value) {
				all = append(all, value)
			}
		}
	}
	return all
}

// asksForPhone reports whether a question asks for a phone number. An answer to another question, such as a tax number,
// may look like one.
func asksForPhone(question string) bool {
	question = strings.ToLower(question)
	for _, word := range []string{"telefon", "phone", "cellulare", "whatsapp", "mobile"} {
		if strings.Contains(question, word) {
			return true
		}
	}
	return false
}

// isZone reports whether a name is that of a time zone.
func isZone(name string) bool {
	if name == "" || name == "Local" {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}

// moment returns a date-time with an offset, or "" if the text is none.
func moment(text string) string {
	if _, err := time.Parse(time.RFC3339, text); err != nil {
		return ""
	}
	return text
}

// reference returns the reference of a program's id.
func reference(program, id string) string {
	if id == "" {
		return ""
	}
	return program + ":" + id
}
