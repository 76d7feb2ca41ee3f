// Package yeartest is a model of a small practice, such as a dentist's, with automations. The model computes what the automations must do
// within a year. It follows the design only, and imports no package of the product. The package's test plays the same year to the real code, and
// compares the results.
//
//	NewScript returns the events of the year, from a seed                            (script.go)
//	Play returns which rules must act for which people, and which messages must leave (year.go, date.go)
package yeartest
