package result

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"

	"puntuale"
)

// counts is how many counts a day of a cell has: one for each mark.
const counts = 10

// hoursOfWeek is the number of hours since Monday began.
const hoursOfWeek = 7 * 24

// totals is the day of a month's totals. Cells that an earlier version wrote have none.
const totals = 0

// hourOfDay and wordOfDay are what a cell counts besides the marks.
type hourOfDay struct{ day, hour int }

type wordOfDay struct {
	day  int
	word string
}

// cell contains the counts of one key in one month. One row for a month, and not for each day, because a year of a big
// client is then read in milliseconds. Day 0 has the totals of the month, so that most reports need not read the days.
type cell struct {
	days  map[int]*[counts]int64 // by the day of the month
	hours map[hourOfDay]int64
	words map[wordOfDay]int64
}

func newCell() *cell {
	return &cell{map[int]*[counts]int64{}, map[hourOfDay]int64{}, map[wordOfDay]int64{}}
}

// add counts a unitCount n times; -1 takes it back.
func (c *cell) add(x unitCount, n int64) {
	for _, day := range []int{totals, x.day % 100} {
		c.addDay(day, x, n)
	}
}

func (c *cell) addDay(day int, x unitCount, n int64) {
	d := c.days[day]
	if d == nil {
		d = new([counts]int64)
		c.days[day] = d
	}
	for i := range d {
		if x.marks&(1<<i) != 0 {
			d[i] += n
		}
	}
	if *d == [counts]int64{} {
		delete(c.days, day)
	}
	if x.hour >= 0 {
		change(c.hours, hourOfDay{day, x.hour}, n)
	}
	if x.words != "" {
		for word := range strings.SplitSeq(x.words, "\n") {
			change(c.words, wordOfDay{day, word}, n)
		}
	}
}

func change[K comparable](all map[K]int64, key K, n int64) {
	if all[key] += n; all[key] == 0 {
		delete(all, key)
	}
}

func (c *cell) empty() bool { return len(c.days)+len(c.hours)+len(c.words) == 0 }

// encode returns the columns of the cell: the numbers of days and counts, of hours, and of words. All are varints, in
// ascending order. The first number of the counts is how many there are for each day, so that a later version may have
// more.
func (c *cell) encode() (days, hours, words []byte) {
	days, hours, words = []byte{}, []byte{}, []byte{}
	if len(c.days) > 0 {
		days = binary.AppendVarint(days, counts)
	}
	for _, day := range slices.Sorted(maps.Keys(c.days)) {
		days = binary.AppendVarint(days, int64(day))
		for _, n := range c.days[day] {
			days = binary.AppendVarint(days, n)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.hours), func(a, b hourOfDay) int { return (a.day-b.day)*hoursOfWeek + a.hour - b.hour }) {
		for _, n := range []int64{int64(k.day), int64(k.hour), c.hours[k]} {
			hours = binary.AppendVarint(hours, n)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(c.words), func(a, b wordOfDay) int {
		if a.day != b.day {
			return a.day - b.day
		}
		return strings.Compare(a.word, b.word)
	}) {
		words = binary.AppendVarint(words, int64(k.day))
		words = binary.AppendVarint(words, int64(len(k.word)))
		words = append(words, k.word...)
		words = binary.AppendVarint(words, c.words[k])
	}
	return days, hours, words
}

var errCell = errors.New("the counts of a month cannot be read")

// cellReader reads varints. After the first fault, ok is false.
type cellReader struct {
	rest   []byte
	ok     bool
	totals bool // there are totals
}

func (r *cellReader) next() int64 {
	if len(r.rest) > 0 && r.rest[0] < 0x80 { // most numbers are small
		v := int64(r.rest[0]>>1) ^ -int64(r.rest[0]&1)
		r.rest = r.rest[1:]
		return v
	}
	if len(r.rest) > 1 && r.rest[1] < 0x80 {
		u := uint64(r.rest[0]&0x7f) | uint64(r.rest[1])<<7
		r.rest = r.rest[2:]
		return int64(u>>1) ^ -int64(u&1)
	}
	v, n := binary.Varint(r.rest)
	if n <= 0 {
		r.ok, r.rest = false, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// part is what a reader wants of a cell.
type part int

const (
	partAll    part = iota
	partDays        // the days, without the totals
	partTotals      // the totals; the days, if there are no totals
)

// day reads the day of the next entry, and whether the reader wants the entry. ok is false if nothing is left for it.
func (r *cellReader) day(p part) (day int, wanted, ok bool) {
	if len(r.rest) == 0 {
		return 0, false, false
	}
	day = int(r.next())
	r.totals = r.totals || day == totals // it is the first day
	switch p {
	case partDays:
		return day, day != totals, true
	case partTotals:
		return day, true, day == totals || !r.totals
	}
	return day, true, true
}

// eachDay calls take for each day, always with the same slice.
func eachDay(days []byte, p part, take func(day int, n []int64)) error {
	r := cellReader{rest: days, ok: true}
	if len(days) == 0 {
		return nil
	}
	width := r.next()
	if width < 1 || width > 64 {
		return errCell
	}
	all := make([]int64, max(width, counts))
	for day, wanted, ok := r.day(p); ok; day, wanted, ok = r.day(p) {
		for i := range width {
			all[i] = r.next()
		}
		if !r.ok {
			return errCell
		}
		if wanted {
			take(day, all)
		}
	}
	return nil
}

// eachHour calls take for each hour of each day.
func eachHour(hours []byte, p part, take func(day, hour int, n int64)) error {
	r := cellReader{rest: hours, ok: true}
	for day, wanted, ok := r.day(p); ok; day, wanted, ok = r.day(p) {
		hour, n := int(r.next()), r.next()
		if !r.ok || hour < 0 || hour >= hoursOfWeek {
			return errCell
		}
		if wanted {
			take(day, hour, n)
		}
	}
	return nil
}

// eachWord calls take for each word of each day.
func eachWord(words []byte, p part, take func(day int, word []byte, n int64)) error {
	r := cellReader{rest: words, ok: true}
	for day, wanted, ok := r.day(p); ok; day, wanted, ok = r.day(p) {
		size := r.next()
		if !r.ok || size < 0 || size > int64(len(r.rest)) {
			return errCell
		}
		word := r.rest[:size]
		r.rest = r.rest[size:]
		n := r.next()
		if !r.ok {
			return errCell
		}
		if wanted {
			take(day, word, n)
		}
	}
	return nil
}

// decodeCell reads the columns of a cell, and makes totals if there are none.
func decodeCell(days, hours, words []byte) (*cell, error) {
	c := newCell()
	if err := eachDay(days, partAll, func(day int, n []int64) { c.days[day] = (*[counts]int64)(slices.Clone(n[:counts])) }); err != nil {
		return nil, err
	}
	if err := eachHour(hours, partAll, func(day, hour int, n int64) { c.hours[hourOfDay{day, hour}] = n }); err != nil {
		return nil, err
	}
	if err := eachWord(words, partAll, func(day int, word []byte, n int64) { c.words[wordOfDay{day, string(word)}] = n }); err != nil {
		return nil, err
	}
	if c.days[totals] == nil && len(c.days) > 0 {
		c.sum()
	}
	return c, nil
}

// sum makes the totals.
func (c *cell) sum() {
	sum := new([counts]int64)
	for _, d := range c.days {
		for i, n := range d {
			sum[i] += n
		}
	}
	c.days[totals] = sum
	for k, n := range maps.Clone(c.hours) {
		c.hours[hourOfDay{totals, k.hour}] += n
	}
	for k, n := range maps.Clone(c.words) {
		c.words[wordOfDay{totals, k.word}] += n
	}
}

// addDay adds the counts of one day.
func addDay(c *puntuale.ResultCounts, n []int64, tells puntuale.ResultMarks) {
	c.Planned += n[0]
	c.Sent += n[1]
	c.Delivered += n[2]
	c.Read += n[3]
	c.Answered += n[4]
	c.OptedOut += n[5]
	c.Failed += n[6]
	c.Skipped += n[7]
	c.Cancelled += n[8]
	c.Clicked += n[9]
	if tells&puntuale.ResultDelivered != 0 {
		c.TellDelivered += n[1]
	}
	if tells&puntuale.ResultRead != 0 {
		c.TellRead += n[1]
	}
	if tells&puntuale.ResultAnswered != 0 {
		c.TellAnswered += n[1]
	}
	if tells&puntuale.ResultClicked != 0 {
		c.TellClicked += n[1]
	}
}
