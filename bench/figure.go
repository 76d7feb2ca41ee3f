package main

import (
	"math"
	"slices"
)

// sheet contains all figures, in the order of the first repeat.
type sheet struct {
	repeat int
	rows   []*figure
}

// figure contains the values of one measurement, one for each repeat. A missing value is NaN.
type figure struct {
	name, unit string
	values     []float64
}

// The units of figures.
const (
	perSecond = "/s"
	millis    = "ms"
	microCPU  = "µs CPU"
	seconds   = "s"
	mebibytes = "MiB"
	percent   = "%"
)

// note adds a value for the present repeat.
func (s *sheet) note(name, unit string, value float64) {
	f := s.find(name)
	if f == nil {
		f = &figure{name: name, unit: unit}
		s.rows = append(s.rows, f)
	}
	for len(f.values) <= s.repeat {
		f.values = append(f.values, math.NaN())
	}
	f.values[s.repeat] = value
}

func (s *sheet) find(name string) *figure {
	for _, f := range s.rows {
		if f.name == name {
			return f
		}
	}
	return nil
}

// ratio divides the first figure by the second figure, for each repeat. It returns the median, the lowest and the
// highest ratio.
func (s *sheet) ratio(numerator, per string) (median, least, highest float64, ok bool) {
	f, g := s.find(numerator), s.find(per)
	if f == nil || g == nil {
		return 0, 0, 0, false
	}
	var all []float64
	for i := range min(len(f.values), len(g.values)) {
		if r := f.values[i] / g.values[i]; !math.IsNaN(r) {
			all = append(all, r)
		}
	}
	return spread(all)
}

// The name of a figure about processor time ends with one of these texts. This text says whether this process or the
// database's processes used the time.
const (
	ownEffort = ": CPU of this process"
	itsEffort = ": CPU of the database"
)

func (s *sheet) noteEffort(name string, e effort) {
	s.note(name+ownEffort, microCPU, e.own)
	if e.served {
		s.note(name+itsEffort, microCPU, e.database)
	}
}

// effort returns the median processor time for one unit of a figure, such as one message or one call. It returns 0 if
// the time was not measured.
func (s *sheet) effort(name string) (sum float64) {
	for _, part := range []string{ownEffort, itsEffort} {
		if f := s.find(name + part); f != nil {
			median, _, _, _ := spread(f.values)
			sum += median
		}
	}
	return sum
}

// spread returns the median, the lowest and the highest value. It ignores NaN.
func spread(values []float64) (median, least, highest float64, ok bool) {
	sorted := slices.DeleteFunc(slices.Clone(values), math.IsNaN)
	if len(sorted) == 0 {
		return 0, 0, 0, false
	}
	slices.Sort(sorted)
	median = sorted[len(sorted)/2]
	if len(sorted)%2 == 0 {
		median = (median + sorted[len(sorted)/2-1]) / 2
	}
	return median, sorted[0], sorted[len(sorted)-1], true
}

// onEngine returns the name of a figure that was measured on one database.
func onEngine(name, engine string) string { return name + ", " + engine }
