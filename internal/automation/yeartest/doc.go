// Package yeartest says what the automations of a small practice must do within a year. Its model is written from the design alone and
// imports nothing of the product. The package's test plays the same year to the real parts, and compares.
//
//	NewScript: what happens in the year, by a seed                  (script.go)
//	Play: which rules must act for which people, and what leaves    (year.go, date.go)
package yeartest
