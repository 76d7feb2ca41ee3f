package icalendar_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"puntuale/internal/icalendar"
)

func day(text string) time.Time {
	t, err := time.Parse("2006-01-02", text)
	if err != nil {
		panic(err)
	}
	return t
}

func options(t testing.TB, from, to string) icalendar.Options {
	t.Helper()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	return icalendar.Options{Zone: rome, From: day(from), To: day(to)}
}
