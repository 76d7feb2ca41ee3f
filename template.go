package puntuale

import "time"

// Template is named content of a client that steps and single sends may name instead of bringing their own. The name is
// unique among the client's.
type Template struct {
	ID        TemplateID
	Name      string
	Text      string
	Media     string
	MediaName string
	Latitude  *float64
	Longitude *float64
	Created   time.Time
	Updated   time.Time
}
