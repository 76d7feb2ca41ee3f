package store_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"puntuale"
)

// compare compares all reports with a count from scratch.
func (h *resultHistory) compare(when string) {
	h.t.Helper()
	h.countAll()
	want, got := h.scratch(), map[string]int64{}
	for key, n := range h.archived {
		want[key] += n
	}
	maps.DeleteFunc(want, func(_ string, n int64) bool { return n == 0 })
	for _, client := range h.clients {
		for prefix, f := range h.reports(client) {
			f.Start, f.End, f.Hours = puntuale.Date{Year: 2040, Month: 1, Day: 1}, puntuale.Date{Year: 2060, Month: 12, Day: 31}, true
			r, err := h.Tenant(client).Results(context.Background(), f, h.now())
			h.ok(err)
			if r.Counting || !r.AsOf.Equal(h.now()) {
				h.t.Errorf("%s: counting %v, as of %v", when, r.Counting, r.AsOf)
			}
			for _, row := range r.All {
				addCounts(got, fmt.Sprintf("%d %s=%s ", client, prefix, row.Key), row)
			}
			if f.By == puntuale.ResultByDay {
				for day, hours := range r.Hours {
					for hour, n := range hours {
						got[fmt.Sprintf("%d read %d %d", client, day, hour)] += n
					}
				}
			}
		}
	}
	for _, client := range h.clients { // whole months read their totals, the last month of the part its days
		for key, part := range map[string]puntuale.Date{"year": {Year: 2060, Month: 12, Day: 31}, "part": puntuale.DateOf(h.now())} {
			r, err := h.Tenant(client).Results(context.Background(), puntuale.ResultFilter{By: puntuale.ResultBySequence, Start: puntuale.Date{Year: 2040, Month: 1, Day: 1}, End: part}, h.now())
			h.ok(err)
			for _, row := range r.All {
				addBookings(got, fmt.Sprintf("%d %s sequence=%s ", client, key, row.Key), row.Bookings)
			}
			addBookings(got, fmt.Sprintf("%d %s ", client, key), r.Total.Bookings)
		}
	}
	maps.DeleteFunc(got, func(_ string, n int64) bool { return n == 0 })
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if want[key] != got[key] {
			h.t.Errorf("%s: %s is %d, counted from scratch %d", when, key, got[key], want[key])
		}
	}
	for key, n := range got {
		if want[key] == 0 {
			h.t.Errorf("%s: %s is %d, counted from scratch 0", when, key, n)
		}
	}
	h.compareLists(when)
	if h.t.Failed() {
		h.t.FailNow()
	}
}

// reports are reports of a client, by the first part of the names of their rows.
func (h *resultHistory) reports(client puntuale.ClientID) map[string]puntuale.ResultFilter {
	all := map[string]puntuale.ResultFilter{"variant": {By: puntuale.ResultByVariant, Campaign: comparedCampaign}}
	for _, by := range []puntuale.ResultGroup{puntuale.ResultByDay, puntuale.ResultByStep, puntuale.ResultBySession, puntuale.ResultByTemplate, puntuale.ResultByRule, puntuale.ResultBySequence, puntuale.ResultByCampaign} {
		all[string(by)] = puntuale.ResultFilter{By: by}
	}
	for _, sequence := range h.sequences(client) {
		all[fmt.Sprintf("sequence=%d step", sequence)] = puntuale.ResultFilter{By: puntuale.ResultByStep, Sequence: sequence}
		all[fmt.Sprintf("sequence=%d variant", sequence)] = puntuale.ResultFilter{By: puntuale.ResultByVariant, Sequence: sequence, Step: new(variedStep)}
	}
	return all
}

// variedStep is the step whose messages have several texts.
const variedStep = 3

// choice returns the filter that chooses the units of a group.
func choice(group string) (f puntuale.ResultFilter) {
	f.Start, f.End = puntuale.Date{Year: 2040, Month: 1, Day: 1}, puntuale.Date{Year: 2060, Month: 12, Day: 31}
	for part := range strings.SplitSeq(group, " ") {
		name, value, _ := strings.Cut(part, "=")
		var n int
		_, _ = fmt.Sscan(value, &n)
		if by := puntuale.ResultGroup(name); n == 0 && (by == puntuale.ResultBySequence || by == puntuale.ResultByCampaign || by == puntuale.ResultByRule) || value == "" {
			f.None = append(f.None, by)
			continue
		}
		switch name {
		case "day":
			f.Start, _ = puntuale.ParseDate(value)
			f.End = f.Start
		case "sequence":
			f.Sequence = puntuale.SequenceID(n)
		case "campaign":
			f.Campaign = puntuale.CampaignID(n)
		case "rule":
			f.Rule = puntuale.AutomationID(n)
		case "session":
			f.Session = puntuale.SessionID(n)
		case "template":
			f.Template = value
		case "step":
			f.Step = &n
		case "variant":
			if n = puntuale.VariantOf(value); f.Sequence == 0 {
				f.Campaign, f.Step = comparedCampaign, &n
			} else {
				f.Step, f.Variant = new(variedStep), n+1
			}
		}
	}
	return f
}

// compareLists compares the list of all units, and lists behind some counts, with the stored messages.
func (h *resultHistory) compareLists(when string) {
	h.t.Helper()
	units := h.units()
	for _, client := range h.clients {
		own := slices.DeleteFunc(slices.Clone(units), func(u scratchUnit) bool { return u.ref.Client != client })
		told := map[puntuale.MessageID]puntuale.ResultMarks{}
		for id, m := range h.list(client, puntuale.ResultMessages{ResultFilter: choice("day=2040-01-01")}) {
			h.t.Errorf("%s: message %d is in the list of another day: %+v", when, id, m)
		}
		all := h.list(client, puntuale.ResultMessages{ResultFilter: choice("all=1")})
		if len(all) != len(own) {
			h.t.Errorf("%s: client %d has a list of %d, counted from scratch %d", when, client, len(all), len(own))
		}
		for _, u := range own {
			m := all[u.ref.ID]
			if told[u.ref.ID] = m.Told; m.Marks.String() != u.marks() || "day="+m.Day.String() != u.groups[0] {
				h.t.Errorf("%s: message %v is in the list as %s of %s, counted from scratch as %s of %s", when, u.ref, m.Marks, m.Day, u.marks(), u.groups[0])
			}
		}
		for range min(10, len(own)) {
			u := own[h.r.IntN(len(own))]
			group := u.groups[h.r.IntN(len(u.groups))]
			what := u.counted[h.r.IntN(len(u.counted))]
			if strings.HasSuffix(group, "variant=") {
				continue // no filter chooses messages without a variant
			}
			f := puntuale.ResultMessages{ResultFilter: choice(group), Not: 1 << (1 + h.r.IntN(9)) * puntuale.ResultMarks(h.r.IntN(2))}
			switch kind, word, _ := strings.Cut(what, " "); kind {
			case "reason":
				f.Reason = word
			case "button":
				f.Button = word
			default:
				f.Is, _ = puntuale.ParseResultMarks(kind)
			}
			got := h.list(client, f)
			n := 0
			for _, u := range own {
				wanted := slices.Contains(u.groups, group) && slices.Contains(u.counted, what) && !slices.Contains(u.counted, f.Not.String()) &&
					(f.Not.Untold(told[u.ref.ID]) == 0 || !slices.Contains(u.counted, "sent"))
				if _, listed := got[u.ref.ID]; listed != wanted {
					h.t.Errorf("%s: %s, %s, not %q: message %v is in the list: %v, counted from scratch: %v", when, group, what, f.Not, u.ref, listed, wanted)
				}
				if wanted {
					n++
				}
			}
			if len(got) != n {
				h.t.Errorf("%s: %s, %s, not %q: %d in the list, counted from scratch %d", when, group, what, f.Not, len(got), n)
			}
		}
	}
}

// list reads all pages of a list.
func (h *resultHistory) list(client puntuale.ClientID, f puntuale.ResultMessages) map[puntuale.MessageID]puntuale.ResultMessage {
	h.t.Helper()
	all, page := map[puntuale.MessageID]puntuale.ResultMessage{}, puntuale.Page{Limit: 1 + h.r.IntN(100)}
	for more := true; more; more = page.Cursor != "" {
		rows, next, err := h.Tenant(client).ResultMessages(context.Background(), f, page)
		h.ok(err)
		for _, m := range rows {
			if _, twice := all[m.ID]; twice {
				h.t.Errorf("message %d is listed twice", m.ID)
			}
			all[m.ID] = m
		}
		page.Cursor = next
	}
	return all
}

func addCounts(all map[string]int64, at string, row puntuale.ResultRow) {
	for i, n := range []int64{row.Planned, row.Sent, row.Delivered, row.Read, row.Answered, row.OptedOut, row.Failed, row.Skipped, row.Cancelled, row.Clicked} {
		all[at+countNames[i]] += n
	}
	for word, n := range row.Reasons {
		all[at+"reason "+word] += n
	}
	for word, n := range row.Buttons {
		all[at+"button "+word] += n
	}
	addBookings(all, at, row.Bookings)
}

func addBookings(all map[string]int64, at string, b *puntuale.BookingResults) {
	if b == nil {
		return
	}
	for status, n := range []int64{b.Open, b.Confirmed, b.Cancelled, b.Arrived, b.NoShow} {
		all[at+fmt.Sprint("booked ", status)] += n
	}
}

// scratchBookings counts all stored bookings, in their zones, or else in their clients'.
func (h *resultHistory) scratchBookings(all map[string]int64) {
	rows, err := h.DB.SQL.Query(`select b.client_id, b.id, b.sequence_id, b.date_at, b.status, case when b.zone <> '' then b.zone else c.zone end from booking b join client c on c.id = b.client_id`)
	h.ok(err)
	defer rows.Close()
	for rows.Next() {
		var booked bookedRef
		var sequence, date int64
		var status int
		var name string
		h.ok(rows.Scan(&booked.client, &booked.id, &sequence, &date, &status, &name))
		if kept, erased := h.statuses[booked]; erased {
			status = kept
		}
		zone, err := time.LoadLocation(name)
		h.ok(err)
		day := time.UnixMicro(date).In(zone).Format(time.DateOnly)
		keys := []string{"day=" + day + " ", fmt.Sprintf("sequence=%d ", sequence), fmt.Sprintf("year sequence=%d ", sequence), "year "}
		if day <= puntuale.DateOf(h.now()).String() {
			keys = append(keys, fmt.Sprintf("part sequence=%d ", sequence), "part ")
		}
		for _, key := range keys {
			all[fmt.Sprintf("%d %sbooked %d", booked.client, key, status)]++
		}
	}
	h.ok(rows.Err())
}

var countNames = []string{"planned", "sent", "delivered", "read", "answered", "opted_out", "failed", "skipped", "cancelled", "clicked"}

// scratchMessage is a row of the table message with what belongs to it.
type scratchMessage struct {
	ref                                                       puntuale.MessageRef
	from                                                      puntuale.MessageID
	session, due, state, outcome, step, rule, delivered, read int64
	sequence, clicked, variant                                int
	campaign                                                  puntuale.CampaignID
	template, reason, zone                                    string
}

// scratchUnit is a unit, counted from scratch.
type scratchUnit struct {
	ref     puntuale.MessageRef // its first message
	counted []string            // marks in their order, and then reasons and buttons
	groups  []string            // the day comes first
	read    string              // when; "": it was not read
}

// marks returns the marks of the unit, separated by commas.
func (u scratchUnit) marks() string {
	return strings.Join(slices.DeleteFunc(slices.Clone(u.counted), func(what string) bool { return strings.Contains(what, " ") }), ",")
}

// scratch counts all stored messages, without the counter's tables.
func (h *resultHistory) scratch() map[string]int64 {
	all := map[string]int64{}
	for _, u := range h.units() {
		for _, what := range u.counted {
			for _, group := range u.groups {
				all[fmt.Sprintf("%d %s %s", u.ref.Client, group, what)]++
			}
		}
		if u.read != "" {
			all[fmt.Sprintf("%d read %s", u.ref.Client, u.read)]++
		}
	}
	h.scratchBookings(all)
	return all
}

// units reads all stored messages, without the counter's tables.
func (h *resultHistory) units() (all []scratchUnit) {
	rows, err := h.DB.SQL.Query(`select m.client_id, m.id, m.resent_from, m.session_id, m.due_at, m.state, m.outcome, m.reason, r.zone, r.rule_id, r.sequence_id, r.steps, m.step, m.campaign_id,
 coalesce(g.delivered_at, 0), coalesce(g.read_at, 0),
 (select count(*) from link k where k.client_id = m.client_id and k.run_id = m.run_id and k.step = m.step and k.clicked_at > 0) from message m join run r on r.client_id = m.client_id and r.id = m.run_id
 left join receipt g on g.client_id = m.client_id and g.message_id = m.id order by m.client_id, m.id`)
	h.ok(err)
	defer rows.Close()
	chains := map[puntuale.MessageRef][]scratchMessage{}
	first := map[puntuale.MessageRef]puntuale.MessageRef{}
	for rows.Next() {
		var m scratchMessage
		var steps string
		var position int
		h.ok(rows.Scan(&m.ref.Client, &m.ref.ID, &m.from, &m.session, &m.due, &m.state, &m.outcome, &m.reason, &m.zone, &m.rule, &m.sequence, &steps, &position, &m.campaign, &m.delivered, &m.read, &m.clicked))
		m.step, m.template, m.variant = scratchStep(steps, position)
		if m.reason == "" {
			m.reason = h.reasons[m.ref]
		}
		root := m.ref
		if m.from != 0 {
			root = first[puntuale.MessageRef{Client: m.ref.Client, ID: m.from}]
		}
		first[m.ref] = root
		chains[root] = append(chains[root], m)
	}
	h.ok(rows.Err())
	for _, ref := range slices.SortedFunc(maps.Keys(chains), func(a, b puntuale.MessageRef) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.ID, b.ID))
	}) {
		if u := h.scratchChain(chains[ref]); len(u.counted) > 0 {
			u.ref = ref
			all = append(all, u)
		}
	}
	return all
}

// scratchStep reads {"steps":[3,8],"variants":[2,0],"templates":["","modello"]} by hand.
func scratchStep(steps string, position int) (id int64, template string, variant int) {
	part := func(name string) string {
		_, rest, found := strings.Cut(steps, `"`+name+`":[`)
		if !found {
			return ""
		}
		list, _, _ := strings.Cut(rest, "]")
		if all := strings.Split(list, ","); position < len(all) {
			return all[position]
		}
		return ""
	}
	fmt.Sscan(part("steps"), &id)
	fmt.Sscan(part("variants"), &variant)
	return id, strings.Trim(part("templates"), `"`), variant
}

func (h *resultHistory) scratchChain(chain []scratchMessage) (u scratchUnit) {
	members := chain // who names a message answers all that are one with it, also if it was tried in vain before another took its place
	chain = slices.DeleteFunc(slices.Clone(chain), func(m scratchMessage) bool { return m.state == 5 && m.outcome == 0 })
	if len(chain) == 0 {
		return u
	}
	counted := map[string]bool{"planned": true}
	last := chain[len(chain)-1]
	zone, err := time.LoadLocation(last.zone)
	h.ok(err)
	read := int64(0)
	for _, m := range chain {
		if m.outcome == 1 {
			counted["sent"] = true
			counted["delivered"] = counted["delivered"] || m.delivered+m.read > 0
			if m.read > 0 && (read == 0 || m.read < read) {
				read = m.read
			}
		}
	}
	if counted["sent"] {
		counted["read"], counted["clicked"] = read > 0, last.clicked > 0
		for _, m := range members {
			for _, what := range h.answers[m.ref] {
				switch what {
				case "!":
					counted["opted_out"] = true
				case "":
					counted["answered"] = true
				default:
					counted["answered"], counted["button "+what] = true, true
				}
			}
		}
	} else {
		switch {
		case last.state == 3:
			counted["cancelled"] = true
		case last.state == 4 || last.state == 5 && last.reason == `["blacklisted"]`:
			counted["skipped"], counted["reason blacklisted"] = true, true
		case last.outcome == 2:
			word := map[string]string{`["network"]`: "network", "": "failed", `["expired"]`: "expired", `["uncertain"]`: "uncertain", `["connector.unreachable"]`: "connector.unreachable",
				`["connector.not_accepted"]`: "connector.not_accepted", `["failed"]`: "failed"}[last.reason]
			if strings.HasPrefix(last.reason, `["connector.unsent"`) {
				word = "connector.unsent"
			}
			if strings.HasPrefix(last.reason, "perché") {
				word = "network"
			}
			counted["failed"], counted["reason "+word] = true, true
		}
	}
	for _, what := range append(slices.Clone(countNames), slices.Sorted(maps.Keys(counted))...) {
		if counted[what] && !slices.Contains(u.counted, what) {
			u.counted = append(u.counted, what)
		}
	}
	u.groups = []string{
		"day=" + time.UnixMicro(chain[0].due).In(zone).Format(time.DateOnly), fmt.Sprintf("step=%d", last.step), fmt.Sprintf("session=%d", last.session),
		"template=" + last.template, fmt.Sprintf("rule=%d", last.rule), fmt.Sprintf("sequence=%d", last.sequence), fmt.Sprintf("campaign=%d", last.campaign),
	}
	if last.campaign == comparedCampaign {
		u.groups = append(u.groups, "variant="+string("ABCD"[last.step]))
	}
	if last.sequence != 0 {
		u.groups = append(u.groups, fmt.Sprintf("sequence=%d step=%d", last.sequence, last.step))
		if last.step == variedStep {
			u.groups = append(u.groups, fmt.Sprintf("sequence=%d variant=%s", last.sequence, []string{"", "A", "B", "C", "D"}[last.variant]))
		}
	}
	if read > 0 {
		at := time.UnixMicro(read).In(zone)
		u.read = fmt.Sprintf("%d %d", (int(at.Weekday())+6)%7, at.Hour())
	}
	return u
}
