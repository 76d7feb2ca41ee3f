package engine

import "sort"

// Sort sorts as [slices.SortFunc] does, and SortStable as [slices.SortStableFunc]. They need one allocation more, and are
// a little slower, but the program does not contain all code of sorting once more for each type: that is 20 KB a type.
// What each message passes through uses slices.
func Sort[E any](all []E, compare func(a, b E) int) { sort.Sort(&order[E]{all, compare}) }

// SortStable keeps the order of equal elements; see [Sort].
func SortStable[E any](all []E, compare func(a, b E) int) { sort.Stable(&order[E]{all, compare}) }

type order[E any] struct {
	all     []E
	compare func(a, b E) int
}

func (o *order[E]) Len() int           { return len(o.all) }
func (o *order[E]) Less(i, j int) bool { return o.compare(o.all[i], o.all[j]) < 0 }
func (o *order[E]) Swap(i, j int)      { o.all[i], o.all[j] = o.all[j], o.all[i] }
