package official

import (
	"slices"

	"puntuale"
)

// systemMessage says that a person has another number or another id. Meta sends it as a message of the person. If the
// person hides the number, Meta gives only ids. (Meta, webhooks/reference/messages/system.)
type systemMessage struct {
	Type      string `json:"type"`
	Number    string `json:"wa_id"`
	ID        string `json:"user_id"`
	ParentID  string `json:"parent_user_id"`
	OldID     string `json:"previous_user_id"`
	OldParent string `json:"previous_parent_user_id"`
}

// system reads a system message. Of other types than changes of names, it reads nothing.
func (r *reader) system(m *inboundMessage) bool {
	s := part[systemMessage](m.System)
	var old, fresh []string
	switch s.Type {
	case "user_changed_number":
		old, fresh = namesOf(m.From, s.OldID, s.OldParent, m.FromID, m.FromParent), namesOf(s.Number, s.ID, s.ParentID)
	case "user_changed_user_id": // the number, if Meta gives it, is still the person's
		number := s.Number
		if number == "" {
			number = m.From
		}
		old, fresh = namesOf("", s.OldID, s.OldParent), namesOf(number, s.ID, s.ParentID)
	default:
		return true
	}
	old = slices.DeleteFunc(old, func(name string) bool { return slices.Contains(fresh, name) })
	if m.ID == "" || len(old) == 0 || len(fresh) == 0 {
		return false
	}
	r.at.Changes = append(r.at.Changes, puntuale.NumberChange{Client: r.at.client, Session: r.at.session, ID: storable(clip(m.ID, 300)), At: r.moment(m.At), Old: old, New: fresh})
	return true
}

// rename moves what memory has of a person to the new name: what was sent lately. Pauses are found under all names of the
// person. What other nodes have in memory stays there until it ends.
func (a *account) rename(c puntuale.NumberChange) {
	to := puntuale.ShownName(c.New)
	for _, from := range c.Old {
		a.pairs.rename(from, to)
		a.persons().rename(from, to)
	}
}

func (p *pairs) rename(from, to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	x := p.all[from]
	if x == nil {
		return
	}
	delete(p.all, from)
	if there := p.all[to]; there == nil || there.paid.Before(x.paid) {
		p.all[to] = x
	}
}

func (r *recipientCount) rename(from, to string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at, ok := r.all[from]; ok {
		delete(r.all, from)
		if at.After(r.all[to]) {
			r.all[to] = at
		}
	}
}
