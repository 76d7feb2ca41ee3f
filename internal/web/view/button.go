package view

import (
	"fmt"
	"strings"

	"puntuale"
)

func buttonName(i int) string { return fmt.Sprintf("buttons[%d].label", i) }

// ButtonNames are the names of the fields of [ButtonFields].
func ButtonNames() (names []string) {
	for i := range puntuale.MaxStepButtons {
		names = append(names, buttonName(i))
	}
	return append(names, "buttons")
}

// ButtonsIn reads [ButtonFields]. It moves the labels together, so that each has the place that faults name.
func ButtonsIn(f *Form) (all []puntuale.StepButton) {
	for i := range puntuale.MaxStepButtons {
		if label := strings.TrimSpace(f.Value(buttonName(i))); label != "" {
			all = append(all, puntuale.StepButton{Label: label, Does: puntuale.ButtonAnswers})
		}
	}
	for i := range puntuale.MaxStepButtons {
		label := ""
		if i < len(all) {
			label = all[i].Label
		}
		f.Values.Set(buttonName(i), label)
	}
	return all
}
