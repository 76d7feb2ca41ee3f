//go:build e2e

package e2e

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// verify waits until all due messages have left. Then it compares three records: the callers' ledger of answers, the
// simulated network's ledger, and the rows with their outcomes. No message may be lost or doubled. No cancelled message
// may be sent. No message may leave before its due time, or later than allowed by the argument late. It returns the
// lateness of each message that reached the network.
func (l *load) verify(t *testing.T, base string, late time.Duration) []time.Duration {
	t.Helper()
	for _, w := range l.wrong {
		t.Error(w)
	}
	count := map[string]int{}
	var lateness []time.Duration
	for _, who := range l.tenants {
		v := newVerifier(t, base, who, count)
		v.late = late
		for _, p := range l.book {
			if p.tenant.key != who.key {
				continue
			}
			if v.mine[p.id] != nil {
				t.Errorf("message %s was acknowledged twice", p.id)
			}
			v.mine[p.id] = p
		}
		v.settle()
		v.network()
		v.outcomes(l.begun)
		for id := range v.mine {
			v.compare(id)
		}
		if !l.uncounted {
			v.results()
		}
		lateness = append(lateness, v.lateness...)
	}
	slices.Sort(lateness)
	t.Logf("%d messages acknowledged in %d calls, %d of them repeated: %d sent once, %d cancelled (%d of them in flight), %d not due, %d uncertain; late p50 %v, p99 %v, max %v",
		len(l.book), l.calls, l.repeat, count["COMPLETED"], count["CANCELLED"], count["unnamed"], count["PENDING"]-count["held"], count["held"],
		quantile(lateness, 0.50), quantile(lateness, 0.99), quantile(lateness, 1))
	if count["COMPLETED"] < 100 || count["CANCELLED"] < 10 {
		t.Error("the load was too small to show anything")
	}
	if odd := count["unnamed"] + count["held"]; odd > 10+count["CANCELLED"]/10 {
		t.Errorf("%d cancellations did not say what they did: so many cannot have been in flight", odd)
	}
	return lateness
}

// quantile returns a quantile of sorted durations. If q is 1, it returns the longest duration.
func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(len(sorted)-1, int(float64(len(sorted))*q))].Round(time.Microsecond)
}

// verifier contains everything that is known about one client's messages.
type verifier struct {
	t        *testing.T
	base     string
	tenant   tenant
	mine     map[string]*promise
	rows     map[string]detail
	arrived  map[string]time.Time // when the message reached the network
	sent     map[string]int       // how many times the list of outcomes has the message as sent
	late     time.Duration        // how late a message may be at most
	lateness []time.Duration
	count    map[string]int // how many messages are in each state
}

func newVerifier(t *testing.T, base string, who tenant, count map[string]int) *verifier {
	return &verifier{t: t, base: base, tenant: who, mine: map[string]*promise{}, count: count}
}

// settle reads the rows repeatedly, until every due message is closed or held. It fails the test after a minute.
func (v *verifier) settle() {
	v.t.Helper()
	v.rows = map[string]detail{}
	var open []string
	for id := range v.mine {
		open = append(open, id)
	}
	deadline := time.Now().Add(60 * time.Second)
	for {
		read := details(v.t, v.base, v.tenant.key, open)
		open = open[:0]
		for id, row := range read {
			v.rows[id] = row
			if row.State == "PENDING" && v.mine[id].after < far && !v.held(id) {
				open = append(open, id)
			}
		}
		if len(open) == 0 {
			return
		}
		if time.Now().After(deadline) {
			v.t.Errorf("%d due messages are still PENDING, for example %s %+v", len(open), open[0], v.rows[open[0]])
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// held reports whether the message was stopped in flight and its answer was lost. Such a message is not repeated. It
// waits for a delivery receipt.
func (v *verifier) held(id string) bool {
	row := v.rows[id]
	return v.mine[id].asked && row.State == "PENDING" && row.Detail != nil && strings.HasPrefix(*row.Detail, "esito incerto")
}

// network reads the simulated network's ledger.
func (v *verifier) network() {
	v.t.Helper()
	v.arrived = map[string]time.Time{}
	copies := map[string]int{} // the copies of each phone and text, so that copies under other ids count, too
	for _, r := range ledger(v.t, v.base, v.tenant.key) {
		at, err := time.Parse(stamp, r.Received)
		if err != nil {
			v.t.Fatal(err)
		}
		id := strconv.FormatInt(r.ID, 10)
		v.arrived[id] = at
		if copies[r.Phone+" "+r.Text]++; copies[r.Phone+" "+r.Text] == 2 {
			v.t.Errorf("the network shows a second copy of %q, message %s", r.Text, id)
		}
		switch p := v.mine[id]; {
		case p == nil:
			v.t.Errorf("the network has message %s, %q, that no answer named", id, r.Text)
		case p.text != "" && p.text != r.Text:
			v.t.Errorf("message %s arrived as %q, not %q", id, r.Text, p.text)
		}
	}
}

// outcomes reads the list of outcomes until it has as many entries as the rows. The list is updated a little later than
// the rows.
func (v *verifier) outcomes(since time.Time) {
	v.t.Helper()
	want := 0
	for _, row := range v.rows {
		if row.State == "COMPLETED" || row.State == "FAILED" {
			want++
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		v.sent = map[string]int{}
		got := 0
		for _, o := range outcomesSince(v.t, v.base, v.tenant.key, since) {
			got++
			if o.Status == "SENT" {
				v.sent[strconv.FormatInt(o.ID, 10)]++
			}
		}
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			v.t.Errorf("the period has %d outcomes, the rows %d", got, want)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// results reads the client's results until they equal a count of the rows. They are counted a little later than the rows.
func (v *verifier) results() {
	v.t.Helper()
	type counts struct{ Sent, Failed, Cancelled int }
	var want counts
	for _, row := range v.rows {
		switch row.State {
		case "COMPLETED":
			want.Sent++
		case "FAILED":
			want.Failed++
		case "CANCELLED":
			want.Cancelled++
		}
	}
	day := func(n int) string { return time.Now().AddDate(0, 0, n).Format(time.DateOnly) }
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
		var got struct {
			Total counts
		}
		must(v.t, "GET", v.base+"/api/results?by=session&start="+day(-2)+"&end="+day(2), v.tenant.key, nil).into(v.t, &got)
		if got.Total == want {
			return
		}
		if time.Now().After(deadline) {
			v.t.Errorf("the results have %+v, the rows %+v", got.Total, want)
			return
		}
	}
}

// compare reports contradictions about one message. It compares the answer to the caller, the message's row with its
// outcomes, and the network's ledger. It also checks when the message arrived.
func (v *verifier) compare(id string) {
	v.t.Helper()
	p, row := v.mine[id], v.rows[id]
	at, found := v.arrived[id]
	v.count[row.State]++
	switch {
	case p.cancelled && row.State != "CANCELLED":
		v.t.Errorf("message %s: an answer said cancelled, the row says %s", id, row.State)
	case v.held(id):
		v.count["held"]++
		return // nobody knows whether the network has the message
	case row.State == "CANCELLED" && !p.cancelled && !p.asked:
		v.t.Errorf("message %s is CANCELLED and nobody asked for that", id)
	case row.State != "COMPLETED" && found:
		v.t.Errorf("message %s is %s (%s) and the network has it", id, row.State, row.Response)
	case row.State == "COMPLETED" && !found:
		v.t.Errorf("message %s is COMPLETED and the network does not have it", id)
	case row.State == "PENDING" && p.after < far, row.State == "FAILED", row.State == "BLACKLISTED", row.State == "RESCHEDULED":
		v.t.Errorf("message %s is %s: %s", id, row.State, row.Response)
	}
	if row.State == "CANCELLED" && !p.cancelled && !p.doubted {
		v.count["unnamed"]++ // the message was stopped in flight, and the network refused its attempt
	}
	want := 0
	if row.State == "COMPLETED" {
		want = 1
	}
	if v.sent[id] != want {
		v.t.Errorf("message %s is %s and listed as sent %d times", id, row.State, v.sent[id])
	}
	if !found {
		return
	}
	due := v.due(p, row)
	if at.Before(due) {
		v.t.Errorf("message %s arrived at %v, %v before its moment", id, at, due.Sub(at))
	}
	v.lateness = append(v.lateness, at.Sub(due))
	if at.Sub(due) > v.late && v.count["late"] < 5 {
		v.count["late"]++
		v.t.Errorf("message %s arrived %v late, more than %v: %v", id, at.Sub(due), v.late, row)
	}
}

// due returns the promised due time of a message. It depends on the call, and on the time when the server accepted the
// call.
func (v *verifier) due(p *promise, row detail) time.Time {
	v.t.Helper()
	accepted, err := time.Parse(stamp, row.Accepted)
	if err != nil {
		v.t.Fatal(err)
	}
	switch {
	case p.at.IsZero():
		return accepted.Add(p.after)
	case p.at.Before(accepted): // the call took longer than the time until the due time
		return accepted
	}
	return p.at
}

type outcome struct {
	ID     int64  `json:"message_id"`
	Status string `json:"status"`
}

// outcomesSince reads all outcomes, beginning with the minute that contains since.
func outcomesSince(t *testing.T, base, key string, since time.Time) (all []outcome) {
	t.Helper()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	const minute = "02/01/2006 15:04"
	query := url.Values{"start": {since.In(rome).Format(minute)}, "end": {time.Now().Add(time.Minute).In(rome).Format(minute)}}
	for {
		var page struct {
			Messages []outcome `json:"messages"`
			Next     string    `json:"next_cursor"`
		}
		must(t, "GET", base+"/api/messages/statusByPeriod?"+query.Encode(), key, nil).into(t, &page)
		all = append(all, page.Messages...)
		if page.Next == "" {
			return all
		}
		query.Set("cursor", page.Next)
	}
}
