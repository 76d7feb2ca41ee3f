package calendar

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/icalendar"
	"puntuale/internal/media"
	"puntuale/internal/outside"
)

// Codes of why a feed could not be read.
const (
	faultUnreachable puntuale.ReasonCode = "calendar.unreachable"
	faultForbidden   puntuale.ReasonCode = "calendar.address_forbidden"
	faultStatus      puntuale.ReasonCode = "calendar.status" // {1}: the HTTP status
	faultSignIn      puntuale.ReasonCode = "calendar.sign_in"
	faultMissing     puntuale.ReasonCode = "calendar.missing"
	faultOften       puntuale.ReasonCode = "calendar.too_often"
	faultNoCalendar  puntuale.ReasonCode = "calendar.no_calendar"
	faultCut         puntuale.ReasonCode = "calendar.cut"
	faultEmptied     puntuale.ReasonCode = "calendar.emptied"
	faultTooLarge    puntuale.ReasonCode = "calendar.too_large"
	faultTooMany     puntuale.ReasonCode = "calendar.too_many_entries" // {1}: how many are allowed
)

// warnings are the codes of what the reader of feeds had to assume.
var warnings = map[icalendar.Warning]puntuale.ReasonCode{
	icalendar.WarnNoUID:        warnNoUID,
	icalendar.WarnZoneCalendar: warnZoneCalendar,
	icalendar.WarnZoneClient:   warnZoneClient,
	icalendar.WarnZoneCustom:   warnZoneCustom,
}

const (
	warnNoUID        puntuale.ReasonCode = "calendar.no_uid"
	warnZoneCalendar puntuale.ReasonCode = "calendar.zone_calendar"
	warnZoneClient   puntuale.ReasonCode = "calendar.zone_client"
	warnZoneCustom   puntuale.ReasonCode = "calendar.zone_custom"
)

// reading is what a reading of a feed found.
type reading struct {
	same           bool // nothing has changed since the latest good reading
	entries        []puntuale.CalendarEntry
	etag, modified string
	digest         string
	refresh        time.Duration // how often the feed wants to be read; 0: it does not say
	fault          puntuale.Reason
	passes         bool          // the fault may pass by itself
	after          time.Duration // how long the server asks to wait
}

func bad(passes bool, code puntuale.ReasonCode, args ...string) reading {
	return reading{fault: puntuale.Because(code, args...), passes: passes}
}

// feedMemory is what the reading of a feed takes, besides its entries.
const feedMemory = 4 << 20

// fetch reads the feed.
func (r *Reader) fetch(ctx context.Context, c *puntuale.Calendar, account Account) reading {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := puntuale.TakeMemory(ctx, feedMemory); err != nil {
		return bad(true, faultUnreachable)
	}
	address, err := r.Address(c)
	if err != nil {
		return bad(false, faultUnreachable)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return bad(false, faultUnreachable)
	}
	if user := request.URL.User; user != nil {
		password, _ := user.Password()
		request.SetBasicAuth(user.Username(), password)
		request.URL.User = nil
	}
	request.Header.Set("Accept", "text/calendar, */*;q=0.5")
	request.Header.Set("User-Agent", "Puntuale")
	// The first reading of a day is whole, because entries come nearer although the feed stays the same.
	if sameDay := r.Clock.Now().UTC().Truncate(24 * time.Hour).Equal(c.Read.UTC().Truncate(24 * time.Hour)); sameDay {
		if c.ETag != "" {
			request.Header.Set("If-None-Match", c.ETag)
		}
		if c.Modified != "" {
			request.Header.Set("If-Modified-Since", c.Modified)
		}
	}
	answer, err := r.client.Do(request)
	switch {
	case media.Forbidden(err):
		return bad(false, faultForbidden)
	case err != nil:
		return bad(true, faultUnreachable)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return status(answer, r.Clock.Now())
	}
	return r.parse(ctx, c, account, answer)
}

// status returns what an answer without a feed means.
func status(answer *http.Response, now time.Time) reading {
	switch code := answer.StatusCode; {
	case code == http.StatusNotModified:
		return reading{same: true}
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return bad(false, faultSignIn)
	case code == http.StatusNotFound || code == http.StatusGone:
		return bad(false, faultMissing)
	case code == http.StatusTooManyRequests || code >= 500:
		f := bad(true, faultStatus, strconv.Itoa(code))
		if code == http.StatusTooManyRequests {
			f.fault = puntuale.Because(faultOften)
		}
		f.after = retryAfter(answer.Header.Get("Retry-After"), now)
		return f
	default:
		return bad(false, faultStatus, strconv.Itoa(code))
	}
}

// retryAfter reads how long a server asks to wait, at most a day.
func retryAfter(text string, now time.Time) time.Duration {
	d := time.Duration(0)
	if seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32); err == nil {
		d = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		d = at.Sub(now)
	}
	return min(max(d, 0), 24*time.Hour)
}

// readPast is how far back entries are read, so that one that was moved back is not taken for gone.
const readPast = 8 * 24 * time.Hour

// parse reads the entries of an answer, a piece at a time.
func (r *Reader) parse(ctx context.Context, c *puntuale.Calendar, account Account, answer *http.Response) reading {
	now := r.Clock.Now()
	body := outside.Calendar.Body(ctx, answer.Body)
	defer body.Close()
	feed, err := icalendar.Read(body, icalendar.Options{
		Zone: account.Zone(), From: now.Add(-readPast), To: now.Add(puntuale.CalendarReach), Expand: now.Add(puntuale.CalendarHorizon), AllDay: true, MaxEntries: puntuale.MaxCalendarEntries,
	})
	var large *outside.TooLargeError
	switch {
	case errors.As(err, &large):
		return bad(false, faultTooLarge, strconv.FormatInt(outside.Calendar.MaxBytes>>20, 10))
	case errors.Is(err, icalendar.ErrNoCalendar):
		return bad(false, faultNoCalendar)
	case errors.Is(err, icalendar.ErrCut):
		return bad(false, faultCut)
	case errors.Is(err, icalendar.ErrTooMany):
		return bad(false, faultTooMany, strconv.Itoa(puntuale.MaxCalendarEntries))
	case err != nil:
		return bad(true, faultUnreachable)
	}
	rules := account.Rules(c)
	f := reading{etag: answer.Header.Get("ETag"), modified: answer.Header.Get("Last-Modified"), refresh: feed.Refresh}
	if len(f.etag) > 200 || len(f.modified) > 100 {
		f.etag, f.modified = "", ""
	}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%x %v", feed.Hash, rules)
	f.digest = hex.EncodeToString(hash.Sum(nil)[:16])
	if f.same = c.Digest != "" && f.digest == c.Digest; !f.same {
		if f.entries, err = fetched(ctx, &feed, rules, account.Zone()); err != nil {
			return bad(true, faultUnreachable)
		}
	}
	return f
}

// searched bounds the texts in one feed that are searched for a number, in bytes. More would cost seconds of a processor
// with each change of the feed.
const searched = 4 << 20

// fetched turns the entries of a feed into those that the store keeps. zone is the client's.
func fetched(ctx context.Context, feed *icalendar.Feed, rules Rules, zone *time.Location) ([]puntuale.CalendarEntry, error) {
	all, left := make([]puntuale.CalendarEntry, 0, len(feed.Entries)), searched
	type understood struct {
		appointment Appointment
		problem     puntuale.ReasonCode
	}
	known := map[string]understood{} // the instances of a series have the same texts
	for i := range feed.Entries {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e := &feed.Entries[i]
		texts := fmt.Sprintf("%v %q %q %q %q %q", e.AllDay, e.Problem, e.Title, e.Location, e.Description, e.Attendees)
		u, ok := known[texts]
		if !ok {
			if left -= len(texts); left < 0 {
				e.Description, e.Location, e.Attendees = "", "", nil
			}
			u.appointment, u.problem = Understand(*e, rules)
			known[texts] = u
		}
		a := u.appointment
		a.Reference = referenceOf(*e)
		all = append(all, entryOf(e, a, u.problem, zone))
	}
	return all, nil
}

// entryOf returns an entry as the store keeps it. An entry without a time starts at midnight in the client's zone.
func entryOf(e *icalendar.Entry, a Appointment, problem puntuale.ReasonCode, zone *time.Location) puntuale.CalendarEntry {
	stored := puntuale.CalendarEntry{
		Reference: a.Reference, Start: e.Start, AllDay: e.AllDay, Title: e.Title, Place: e.Location, Phone: a.Phone, Name: a.Name, Cancelled: e.Cancelled,
		Problem: problem, Warning: warnings[e.Warning],
	}
	if e.AllDay && !e.Start.IsZero() {
		stored.Start = puntuale.DateOf(e.Start).At(0, zone)
	}
	stored.Start = stored.Start.UTC()
	if problem != "" {
		stored.Phone, stored.Name = "", ""
	}
	hash := sha256.New()
	_, _ = fmt.Fprintf(hash, "%q %q %d %v %q %q", stored.Phone, stored.Name, stored.Start.Unix(), stored.AllDay, stored.Title, stored.Place)
	stored.Digest = hex.EncodeToString(hash.Sum(nil)[:12])
	return stored
}

// ParseAddress reads the address of a feed as people write it. webcal means https.
func ParseAddress(text string) (*url.URL, bool) {
	text = strings.TrimSpace(text)
	for _, scheme := range []string{"webcal://", "webcals://"} {
		if rest, ok := strings.CutPrefix(strings.ToLower(text[:min(len(text), len(scheme))]), scheme); ok && rest == "" {
			text = "https://" + text[len(scheme):]
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Hostname() == "" || u.Opaque != "" || !puntuale.IsPort(u.Port()) || u.Scheme != "https" && u.Scheme != "http" {
		return nil, false
	}
	u.Fragment = ""
	return u, true
}
