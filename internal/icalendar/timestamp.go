package icalendar

import (
	"strconv"
	"strings"
	"time"
)

// timestamp is a date, or a date with a time, as the feed has it. Its zone is known only after the whole feed was read.
// The zero value means that there is none.
type timestamp struct {
	wall int64  // what a clock shows, in seconds, as if it were in UTC
	tzid string // "": none
	kind timestampKind
}

type timestampKind uint8

const (
	noTime timestampKind = iota
	dateOnly
	local // in the zone tzid, or in a zone that the context gives
	utc
	unreadable
)

func (t timestamp) clock() time.Time { return time.Unix(t.wall, 0).UTC() }

// parseTimestamp reads 20060102, 20060102T150405 or 20060102T150405Z. It also reads a time without seconds, with
// separators, and with an offset.
func parseTimestamp(text, kind, tzid string) timestamp {
	bad := timestamp{kind: unreadable}
	day, clock, timed := strings.Cut(strings.ReplaceAll(strings.ToUpper(strings.TrimSpace(text)), " ", "T"), "T")
	if !timed {
		day, clock, _ = strings.Cut(text, "Z")
	}
	day = strings.ReplaceAll(day, "-", "")
	if len(day) != 8 || !digits(day) {
		return bad
	}
	year, _ := strconv.Atoi(day[:4])
	month, _ := strconv.Atoi(day[4:6])
	d, _ := strconv.Atoi(day[6:])
	date := time.Date(year, time.Month(month), d, 0, 0, 0, 0, time.UTC)
	if year < 1 || int(date.Month()) != month || date.Day() != d {
		return bad
	}
	if !timed || kind == "DATE" {
		return timestamp{wall: date.Unix(), kind: dateOnly}
	}
	t := timestamp{wall: date.Unix(), tzid: tzid, kind: local}
	clock = strings.ReplaceAll(clock, ":", "")
	if at := strings.IndexAny(clock, "Z+-"); at >= 0 {
		offset, ok := parseOffset(clock[at:])
		if !ok && clock[at:] != "Z" {
			return bad
		}
		t.kind, t.wall = utc, t.wall-int64(offset)
		clock = clock[:at]
	}
	clock, _, _ = strings.Cut(clock, ".")
	if len(clock) == 4 {
		clock += "00"
	}
	if len(clock) != 6 || !digits(clock) {
		return bad
	}
	hour, _ := strconv.Atoi(clock[:2])
	minute, _ := strconv.Atoi(clock[2:4])
	second, _ := strconv.Atoi(clock[4:])
	if hour > 24 || minute > 59 || second > 60 {
		return bad
	}
	t.wall += int64(hour*3600 + minute*60 + second)
	return t
}

// parseOffset reads +0100, +01:00 or -013000, and returns seconds.
func parseOffset(text string) (seconds int, ok bool) {
	text = strings.ReplaceAll(strings.TrimSpace(text), ":", "")
	if len(text) != 5 && len(text) != 7 || text[0] != '+' && text[0] != '-' || !digits(text[1:]) {
		return 0, false
	}
	hour, _ := strconv.Atoi(text[1:3])
	minute, _ := strconv.Atoi(text[3:5])
	if len(text) == 7 {
		seconds, _ = strconv.Atoi(text[5:])
	}
	seconds += hour*3600 + minute*60
	if text[0] == '-' {
		seconds = -seconds
	}
	return seconds, hour < 24
}

func digits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}

// at returns the instant at which a clock in the zone shows the wall time. A time that occurs twice, because clocks are
// set back, is the first one. A time that clocks skip is read with the offset before the gap, so 02:30 becomes 03:30
// (RFC 5545, section 3.3.5).
func at(wall time.Time, zone *time.Location) time.Time {
	offset := func(near time.Time) time.Duration {
		_, seconds := near.In(zone).Zone()
		return time.Duration(seconds) * time.Second
	}
	before, after := offset(wall.Add(-24*time.Hour)), offset(wall.Add(24*time.Hour))
	first, second := wall.Add(-before), wall.Add(-after)
	if offset(first) != before && offset(second) == after {
		return second.In(zone)
	}
	return first.In(zone)
}

// wallOf returns what a clock in the instant's zone shows, as if it were in UTC.
func wallOf(instant time.Time) time.Time {
	_, seconds := instant.Zone()
	return instant.UTC().Add(time.Duration(seconds) * time.Second)
}
