package plan

import (
	"reflect"
	"slices"
	"strconv"

	"puntuale"
)

// Codes of the faults in this file.
const (
	faultSequenceUnknownStep puntuale.ReasonCode = "sequence.unknown_step"
	faultSequenceStepTwice   puntuale.ReasonCode = "sequence.step_twice"
)

// NameSteps gives each step of s an id. stored is the sequence that s replaces; the zero value: none. If s names steps by
// their ids, the other steps are new. If it names none, equal steps keep their ids, and the rest keeps the id of its
// position. An id that the stored sequence does not have, or one that s has twice, is a fault. The number of a removed
// step is never used again. Without a stored sequence, ids in s are ignored.
func NameSteps(stored puntuale.Sequence, s *puntuale.Sequence) (faults []puntuale.Fault) {
	names, last := make([]string, len(stored.Steps)), stored.LastStep
	for i, step := range stored.Steps {
		names[i] = step.Name(i)
		if n, err := strconv.Atoi(names[i]); err == nil {
			last = max(last, n)
		}
	}
	if len(stored.Steps) == 0 {
		last = -1
		for i := range s.Steps {
			s.Steps[i].ID = ""
		}
	}
	given := slices.ContainsFunc(s.Steps, func(step puntuale.Step) bool { return step.ID != "" })
	taken := make(map[string]bool, len(s.Steps))
	for i := range s.Steps {
		id := s.Steps[i].ID
		switch {
		case id == "":
			continue
		case !slices.Contains(names, id):
			faults = append(faults, puntuale.Because(faultSequenceUnknownStep).At(stepLocation("body.", i, "id"), clip(id)))
		case taken[id]:
			faults = append(faults, puntuale.Because(faultSequenceStepTwice).At(stepLocation("body.", i, "id"), id))
		}
		taken[id] = true
	}
	if !given {
		for i := range s.Steps {
			for j, old := range stored.Steps {
				if old.ID = ""; !taken[names[j]] && reflect.DeepEqual(old, s.Steps[i]) {
					s.Steps[i].ID, taken[names[j]] = names[j], true
					break
				}
			}
		}
		for i := range min(len(s.Steps), len(names)) {
			if s.Steps[i].ID == "" && !taken[names[i]] {
				s.Steps[i].ID, taken[names[i]] = names[i], true
			}
		}
	}
	for i := range s.Steps {
		if s.Steps[i].ID == "" {
			last++
			s.Steps[i].ID = strconv.Itoa(last)
		}
	}
	s.LastStep = max(last, 0)
	return faults
}
