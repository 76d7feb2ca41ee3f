// Package search finds whatever a person looks for with one text: people, messages, bookings, sequences, campaigns,
// templates, and a partner's clients. It asks the lists that there are, each for few rows, so a search is quick and needs
// no rights of its own.
package search
