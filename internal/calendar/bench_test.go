package calendar_test

import (
	"strings"
	"testing"

	"puntuale/internal/calendar"
	"puntuale/internal/icalendar"
)

func BenchmarkUnderstand(b *testing.B) {
	for name, text := range map[string]string{
		"usual": "Prima visita, portare gli esami.\nCell. 333 1234567\nNote: richiamare prima",
		"long":  strings.Repeat("Prima visita del 12/05/2026 alle 15:30, € 50,00. ", 80) + "333 1234567",
		"worst": strings.Repeat("12 34 56 78 ", 330),
	} {
		b.Run(name, func(b *testing.B) {
			e := icalendar.Entry{UID: "1", Title: "Mario Rossi", Description: text}
			for b.Loop() {
				calendar.Understand(e, rules())
			}
		})
	}
}
