package icalendar_test

import (
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"puntuale/internal/icalendar"
)

// repeated is a long feed that is never in memory as a whole: a head, then a text for each number, then a tail.
type repeated struct {
	n, count int
	text     func(i int) string
	rest     string
	bytes    int
}

func (r *repeated) Read(b []byte) (int, error) {
	for r.rest == "" {
		switch {
		case r.n > r.count+1:
			return 0, io.EOF
		case r.n == 0:
			r.rest = "BEGIN:VCALENDAR\r\nVERSION:2.0\r\n"
		case r.n > r.count:
			r.rest = "END:VCALENDAR\r\n"
		default:
			r.rest = r.text(r.n)
		}
		r.n++
	}
	n := copy(b, r.rest)
	r.rest = r.rest[n:]
	r.bytes += n
	return n, nil
}

// TestReadLarge: 50,000 old events and 300 new ones, about 18 MB, need little memory.
func TestReadLarge(t *testing.T) {
	feed := &repeated{count: 50_300, text: func(i int) string {
		start := day("2016-01-04").Add(time.Duration(i) * 97 * time.Minute)
		if i > 50_000 {
			start = day("2026-12-01").Add(time.Duration(i-50_000) * time.Hour)
		}
		return fmt.Sprintf("BEGIN:VEVENT\r\nDTSTART:%s\r\nDTEND:%s\r\nDTSTAMP:20261129T101112Z\r\nUID:%08dabcdefghijklmn@google.com\r\nCREATED:20160102T101112Z\r\n"+
			"DESCRIPTION:Prima visita\\, porta gli esami. Telefono: 333 12%05d\\nIndirizzo: via\r\n  Garibaldi 12\\, Milano\\n\\nNote: richiamare prima dell'appuntamento\r\n"+
			"LAST-MODIFIED:20160102T101112Z\r\nLOCATION:Studio\r\nSEQUENCE:0\r\nSTATUS:CONFIRMED\r\nSUMMARY:Mario Rossi %d\r\nTRANSP:OPAQUE\r\nEND:VEVENT\r\n",
			start.Format("20060102T150405Z"), start.Add(time.Hour).Format("20060102T150405Z"), i, i%100000, i)
	}}
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	var most atomic.Uint64
	sampled := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(sampled)
		for {
			runtime.GC() // what is left after it is in use
			runtime.ReadMemStats(&now)
			most.Store(max(most.Load(), now.HeapAlloc))
			select {
			case <-done:
				return
			default:
			}
		}
	}()
	begun := time.Now()
	got, err := icalendar.Read(feed, options(t, "2026-11-29", "2027-01-28"))
	took := time.Since(begun)
	close(done)
	<-sampled
	if err != nil || len(got.Entries) != 300 {
		t.Fatal(len(got.Entries), err)
	}
	used := int64(most.Load()) - int64(before.HeapAlloc)
	t.Logf("%.1f MB in %v, at most %.1f MB in use", float64(feed.bytes)/1e6, took, float64(used)/1e6)
	if used > 30e6 || took > 30*time.Second || feed.bytes < 15e6 {
		t.Errorf("%d bytes in %v, %d in use", feed.bytes, took, used)
	}
}

// positions is a list of a hundred numbers of days that no month has.
func positions() string {
	var list []string
	for i := range 100 {
		list = append(list, strconv.Itoa(366-i))
	}
	return strings.Join(list, ",")
}

// TestReadBusy: rules that repeat too often, or never match, are refused soon, however many there are.
func TestReadBusy(t *testing.T) {
	t.Parallel()
	rules := []string{"FREQ=SECONDLY", "FREQ=MINUTELY;INTERVAL=7", "FREQ=HOURLY", "FREQ=DAILY;BYHOUR=0,1,2,3,4,5,6,7,8,9;BYMINUTE=0,1,2,3,4,5;BYSECOND=0,1",
		"FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=31", "FREQ=WEEKLY;BYMONTH=4;BYMONTHDAY=31", "FREQ=MONTHLY;BYMONTHDAY=31;BYMONTH=6",
		"FREQ=MONTHLY;BYDAY=MO,TU;BYSETPOS=" + positions(), "FREQ=YEARLY;BYMONTHDAY=30;BYMONTH=2;BYYEARDAY=" + positions(), "FREQ=DAILY;COUNT=900000", "FREQ=YEARLY;BYWEEKNO=53;BYMONTH=6",
		"FREQ=YEARLY;BYYEARDAY=366,-366;BYMONTH=3"}
	for _, r := range rules {
		begun := time.Now()
		feed := &repeated{count: 2000, text: func(i int) string {
			return fmt.Sprintf("BEGIN:VEVENT\r\nUID:%d\r\nDTSTART:19990301T090000\r\nRRULE:%s\r\nSUMMARY:x\r\nEND:VEVENT\r\n", i, r)
		}}
		got, err := icalendar.Read(feed, options(t, "2026-11-29", "2027-01-28"))
		if took := time.Since(begun); took > 60*time.Second || err != nil && !errors.Is(err, icalendar.ErrTooMany) {
			t.Errorf("%s: %v after %v", r, err, took)
		} else {
			t.Log(r, took, len(got.Entries), got.Skipped, err)
		}
	}
}
