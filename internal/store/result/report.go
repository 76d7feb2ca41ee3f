package result

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/store/engine"
)

// Reports reads the counts of clients. It is safe for concurrent use.
type Reports struct {
	db      *engine.DB
	client  puntuale.ClientID
	partner puntuale.PartnerID
}

// OfClient gives access to the results of one client.
func (s *Counter) OfClient(client puntuale.ClientID) Reports {
	return Reports{db: s.db, client: client}
}

// OfPartner gives access to the results of all clients of a partner, without the deleted ones.
func (s *Counter) OfPartner(partner puntuale.PartnerID) Reports {
	return Reports{db: s.db, partner: partner}
}

// lists returns the connections for reading. Each client and partner reads only one report at a time.
func (s Reports) lists() engine.Querier {
	if s.partner != 0 {
		return s.db.Lists(-int64(s.partner))
	}
	return s.db.Lists(int64(s.client))
}

// of is a condition for the clients that the report is about; its parameter is $1.
func (s Reports) of(column string) (string, any) {
	if s.partner != 0 {
		return column + ` in (select o.id from client o where o.partner_id = $1 and o.deleted_at = 0)`, s.partner
	}
	return column + ` = $1`, s.client
}

// storedKey is a key with what its session's network tells.
type storedKey struct {
	Key
	client puntuale.ClientID
	id     int64
	tells  puntuale.ResultMarks // of delivered, read, answered and clicked
}

// keys reads all keys of the clients.
func (s Reports) keys(ctx context.Context, a engine.Querier) ([]storedKey, error) {
	type sessionRef struct {
		client puntuale.ClientID
		id     puntuale.SessionID
	}
	told := map[sessionRef]puntuale.ResultMarks{}
	linked := map[keyID]bool{}
	condition, of := s.of("k.client_id")
	all, err := engine.QueryAll(ctx, a, `select k.id, k.told, `+keyColumns+`, coalesce(s.type, ''), coalesce(s.way, ''), coalesce(s.sandbox, 0)
 from result_key k left join session s on s.client_id = k.client_id and s.id = k.session_id where `+condition+` order by k.client_id, k.id`, []any{of}, func(r engine.Row, k *storedKey) error {
		var bits int64
		var x puntuale.Session
		err := r.Scan(&k.id, &bits, &k.client, &k.Sequence, &k.Step, &k.Campaign, &k.Rule, &k.Session, &k.Template, &k.Variant, &x.Type, &x.Way, engine.ScanBool(&x.Sandbox))
		told[sessionRef{k.client, k.Session}] |= tells(x, bits)
		if bits&bitLinks != 0 {
			linked[keyID{k.client, k.id}] = true
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].tells = told[sessionRef{all[i].client, all[i].Session}]
		if linked[keyID{all[i].client, all[i].id}] {
			all[i].tells |= puntuale.ResultClicked
		}
	}
	return all, nil
}

// tells returns what a session's network tells. Of a gateway and of the sandbox, a receipt that came shows it; bits are
// those of the receipts.
func tells(s puntuale.Session, bits int64) (marks puntuale.ResultMarks) {
	if s.ByDevice() {
		return 0
	}
	marks = puntuale.ResultAnswered
	for mark, bit := range toldBits {
		if mark != puntuale.ResultClicked && (bits&bit != 0 || !s.Sandbox && (s.Type == puntuale.Official || s.Type == puntuale.Socket)) {
			marks |= mark
		}
	}
	return marks
}

// matches reports whether the filter chooses the key.
func matches(f *puntuale.ResultFilter, k *Key) bool {
	for _, g := range f.None {
		if k.Step == stepOfBookings || k.of(g) != 0 || g == puntuale.ResultByTemplate && k.Template != "" {
			return false
		}
	}
	return (f.Sequence == 0 || f.Sequence == k.Sequence) && (f.Step == nil || *f.Step == k.Step) && (f.Campaign == 0 || f.Campaign == k.Campaign) &&
		(f.Rule == 0 || f.Rule == k.Rule) && (f.Template == "" || f.Template == k.Template) && (f.Session == 0 || f.Session == k.Session) && (f.Variant == 0 || f.Variant == k.Variant)
}

// of returns the id of what the key belongs to; 0: to none.
func (k *Key) of(g puntuale.ResultGroup) int64 {
	switch g {
	case puntuale.ResultBySequence:
		return int64(k.Sequence)
	case puntuale.ResultByCampaign:
		return int64(k.Campaign)
	case puntuale.ResultByRule:
		return int64(k.Rule)
	case puntuale.ResultBySession:
		return int64(k.Session)
	}
	return 0
}

// group returns the key of the row of a report to which a key belongs.
func group(f *puntuale.ResultFilter, k *storedKey) string {
	switch f.By {
	case puntuale.ResultBySequence, puntuale.ResultByCampaign, puntuale.ResultByRule, puntuale.ResultBySession:
		return strconv.FormatInt(k.of(f.By), 10)
	case puntuale.ResultByStep:
		return strconv.Itoa(k.Step)
	case puntuale.ResultByVariant:
		switch {
		case f.Sequence == 0:
			return puntuale.VariantKey(k.Step) // a variant of a campaign is counted as a step
		case k.Variant > 0:
			return puntuale.VariantKey(k.Variant - 1)
		}
		return ""
	case puntuale.ResultByTemplate:
		return k.Template
	case puntuale.ResultByClient:
		return k.client.String()
	default:
		return ""
	}
}

// report is a report while it is read.
type report struct {
	puntuale.ResultFilter
	rows  map[string]*puntuale.ResultRow
	days  map[int]*[32]*puntuale.ResultRow // the rows of days, by month and day
	words map[string]string                // one text for each word, because a word stands on many days
	hours [hoursOfWeek]int64
	// booked are the bookings of the whole report, if it is about bookings.
	booked *puntuale.BookingResults
}

// aboutBookings reports whether the report has bookings: if it is about sequences or about everything.
func (p *report) aboutBookings() bool {
	return slices.Contains([]puntuale.ResultGroup{puntuale.ResultBySequence, puntuale.ResultByDay, puntuale.ResultByStep, puntuale.ResultByClient}, p.By)
}

func newRow(key string) *puntuale.ResultRow {
	return &puntuale.ResultRow{Key: key, Buttons: map[string]int64{}, Reasons: map[string]int64{}}
}

func (p *report) row(key string) *puntuale.ResultRow {
	r := p.rows[key]
	if r == nil {
		r = newRow(key)
		p.rows[key] = r
	}
	return r
}

// month returns the rows of a month's days.
func (p *report) month(month int) *[32]*puntuale.ResultRow {
	m := p.days[month]
	if m == nil {
		m = new([32]*puntuale.ResultRow)
		p.days[month] = m
	}
	return m
}

// word returns the text of a word.
func (p *report) word(w []byte) string {
	text, ok := p.words[string(w)]
	if !ok {
		text = string(w)
		p.words[text] = text
	}
	return text
}

// total adds the rows up.
func (p *report) total() puntuale.ResultRow {
	t := newRow("")
	for _, r := range p.rows {
		t.Planned, t.Sent, t.Delivered, t.Read = t.Planned+r.Planned, t.Sent+r.Sent, t.Delivered+r.Delivered, t.Read+r.Read
		t.Answered, t.OptedOut, t.Failed, t.Skipped, t.Cancelled = t.Answered+r.Answered, t.OptedOut+r.OptedOut, t.Failed+r.Failed, t.Skipped+r.Skipped, t.Cancelled+r.Cancelled
		t.Clicked, t.TellClicked = t.Clicked+r.Clicked, t.TellClicked+r.TellClicked
		t.TellDelivered, t.TellRead, t.TellAnswered = t.TellDelivered+r.TellDelivered, t.TellRead+r.TellRead, t.TellAnswered+r.TellAnswered
		for word, n := range r.Buttons {
			t.Buttons[word] += n
		}
		for word, n := range r.Reasons {
			t.Reasons[word] += n
		}
	}
	return *t
}

// Results reads a report. Days without messages have no row.
func (s Reports) Results(ctx context.Context, f puntuale.ResultFilter, now time.Time) (puntuale.ResultReport, error) {
	p := &report{ResultFilter: f, rows: map[string]*puntuale.ResultRow{}, days: map[int]*[32]*puntuale.ResultRow{}, words: map[string]string{}}
	out := puntuale.ResultReport{AsOf: now}
	a := s.lists()
	if err := s.freshness(ctx, a, &out); err != nil { // first, so that the counts are never older than it says
		return out, engine.PublicError(fmt.Errorf("read how far results are counted: %w", err))
	}
	all, err := s.keys(ctx, a)
	if err != nil {
		return out, engine.PublicError(fmt.Errorf("read what results belong to: %w", err))
	}
	if err := engine.TakeMemory(ctx, 0, bytesOfKey*len(all)); err != nil { // the keys, and at most a row of the report for each
		return out, err
	}
	if err := s.readCells(ctx, a, p, all); err != nil {
		return out, engine.PublicError(fmt.Errorf("read results: %w", err))
	}
	out.Total = p.total()
	out.Total.Bookings = p.booked
	for _, r := range p.rows {
		out.All = append(out.All, *r)
	}
	if err := s.name(ctx, a, f.By, out.All); err != nil {
		return out, engine.PublicError(fmt.Errorf("read names of results: %w", err))
	}
	engine.Sort(out.All, func(x, y puntuale.ResultRow) int {
		if f.By == puntuale.ResultByDay || f.By == puntuale.ResultByTemplate {
			return cmp.Compare(x.Key, y.Key)
		}
		return cmp.Or(cmp.Compare(len(x.Key), len(y.Key)), cmp.Compare(x.Key, y.Key))
	})
	for hour, n := range p.hours {
		out.Hours[hour/24][hour%24] = n
	}
	return out, nil
}

// freshness reads since when a change may not be counted yet.
func (s Reports) freshness(ctx context.Context, a engine.Querier, out *puntuale.ResultReport) error {
	condition, of := s.of("g.client_id")
	var changed, began time.Time
	if _, err := engine.QueryOne(ctx, a, `select coalesce(min(g.at), 0) from result_change g where `+condition, []any{of}, engine.ScanTime(&changed)); err != nil {
		return err
	}
	if _, err := engine.QueryOne(ctx, a, `select coalesce(min(g.began_at), 0), case when count(*) > 0 then 1 else 0 end from result_client g where g.state = 0 and `+condition, []any{of},
		engine.ScanTime(&began), engine.ScanBool(&out.Counting)); err != nil {
		return err
	}
	for _, at := range []time.Time{changed, began} {
		if !at.IsZero() && at.Before(out.AsOf) {
			out.AsOf = at
		}
	}
	return nil
}

// bytesOfKey is about what a key takes in memory, with a part of the report.
const bytesOfKey = 150

func month(d puntuale.Date) int { return d.Int() / 100 }

// readCells adds the cells of the months of the period.
func (s Reports) readCells(ctx context.Context, a engine.Querier, p *report, all []storedKey) error {
	chosen := make(map[keyID]*storedKey, len(all))
	var ids []int64
	for i := range all {
		if matches(&p.ResultFilter, &all[i].Key) && (all[i].Step != stepOfBookings || p.aboutBookings()) {
			chosen[keyID{all[i].client, all[i].id}] = &all[i]
			ids = append(ids, all[i].id)
		}
	}
	if len(chosen) == 0 {
		return nil
	}
	hours := `x.hours`
	if !p.Hours {
		hours = `$4::bytea`
	}
	condition, of := s.of("x.client_id")
	args := []any{of, month(p.Start), month(p.End), []byte{}}
	text := `select x.client_id, x.key_id, x.month, x.counts, ` + hours + `, x.words from result_month x left join result_client g on g.client_id = x.client_id
 where ` + condition + ` and x.month >= $2 and x.month <= $3 and x.generation in (0, coalesce(g.shown, 1)) and length($4::bytea) = 0`
	if len(ids) < len(all) {
		text += ` and x.key_id in (select u.k from $u(k bigint))`
		args = append(args, engine.Columns{ids})
	}
	return a.Query(ctx, text, args, func(r engine.Row) error {
		var k keyID
		var month int
		var days, hours, words []byte
		if err := r.Scan(&k.client, &k.id, &month, &days, &hours, &words); err != nil {
			return err
		}
		if key := chosen[k]; key != nil {
			return p.add(key, month, days, hours, words)
		}
		return nil
	})
}

type keyID struct {
	client puntuale.ClientID
	id     int64
}

// add adds a cell.
func (p *report) add(k *storedKey, month int, days, hours, words []byte) error {
	from, to := p.Start.Int()-month*100, p.End.Int()-month*100
	var row *puntuale.ResultRow
	rows := p.month(month)
	of := func(day int) *puntuale.ResultRow {
		if p.By == puntuale.ResultByDay {
			if rows[day] == nil {
				rows[day] = p.row(puntuale.DateFromInt(month*100 + day).String())
			}
			return rows[day]
		}
		if row == nil {
			row = p.row(group(&p.ResultFilter, k))
		}
		return row
	}
	kept, ofHours := partDays, partDays
	if from <= 1 && to >= 31 {
		if ofHours = partTotals; p.By != puntuale.ResultByDay {
			kept = partTotals
		}
	}
	if err := eachDay(days, kept, func(day int, n []int64) {
		switch {
		case kept == partDays && (day < from || day > to):
		case k.Step == stepOfBookings:
			p.book(k, of, day, n)
		default:
			addDay(&of(day).ResultCounts, n, k.tells)
		}
	}); err != nil {
		return err
	}
	var sums wordCounts // a cell has few words, and each on many days
	if err := eachWord(words, kept, func(day int, word []byte, n int64) {
		switch {
		case kept == partDays && (day < from || day > to) || len(word) == 0:
		case p.By == puntuale.ResultByDay:
			addWord(of(day), p.word(word), n)
		default:
			sums.add(word, n)
		}
	}); err != nil {
		return err
	}
	for _, x := range sums {
		addWord(of(0), p.word(x.word), x.n)
	}
	return eachHour(hours, ofHours, func(day, hour int, n int64) {
		if ofHours == partTotals || day >= from && day <= to {
			p.hours[hour] += n
		}
	})
}

// book adds the bookings of a day to the report, and to the row of which they are. The counts are by status.
func (p *report) book(k *storedKey, of func(day int) *puntuale.ResultRow, day int, n []int64) {
	rows := []**puntuale.BookingResults{&p.booked}
	if p.By != puntuale.ResultByStep {
		rows = append(rows, &of(day).Bookings)
	}
	for _, b := range rows {
		if *b == nil {
			*b = &puntuale.BookingResults{}
		}
		for status, count := range []*int64{&(*b).Open, &(*b).Confirmed, &(*b).Cancelled, &(*b).Arrived, &(*b).NoShow} {
			*count += n[status]
		}
	}
}

func addWord(r *puntuale.ResultRow, word string, n int64) {
	if word[:1] == wordReason {
		r.Reasons[word[1:]] += n
	} else {
		r.Buttons[word[1:]] += n
	}
}

// wordCounts adds up words without making texts of them.
type wordCounts []struct {
	word []byte
	n    int64
}

func (s *wordCounts) add(word []byte, n int64) {
	for i := range *s {
		if bytes.Equal((*s)[i].word, word) {
			(*s)[i].n += n
			return
		}
	}
	*s = append(*s, struct {
		word []byte
		n    int64
	}{word, n})
}

// named says in which table the names of a group are.
var named = map[puntuale.ResultGroup]string{
	puntuale.ResultBySequence: "sequence", puntuale.ResultByCampaign: "campaign", puntuale.ResultByRule: "automation", puntuale.ResultBySession: "session",
}

// name sets the names of the rows. What was deleted for good has none.
func (s Reports) name(ctx context.Context, a engine.Querier, by puntuale.ResultGroup, rows []puntuale.ResultRow) error {
	byKey := map[string]*puntuale.ResultRow{}
	var ids []int64
	for i := range rows {
		r := &rows[i]
		byKey[r.Key] = r
		if by == puntuale.ResultByDay || by == puntuale.ResultByTemplate {
			r.Name = r.Key
		}
		if id, err := strconv.ParseInt(r.Key, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	text := `select x.id, x.name from $u(i bigint) cross join ` + named[by] + ` x where x.client_id = $1 and x.id = u.i`
	var of any = s.client
	switch {
	case by == puntuale.ResultByClient:
		text, of = `select x.id, x.name from $u(i bigint) cross join client x where x.partner_id = $1 and x.id = u.i`, s.partner
	case named[by] == "" || s.partner != 0:
		return nil
	}
	if len(ids) == 0 {
		return nil
	}
	return a.Query(ctx, text, []any{of, engine.Columns{ids}}, func(r engine.Row) error {
		var id int64
		var name string
		err := r.Scan(&id, &name)
		byKey[strconv.FormatInt(id, 10)].Name = name
		return err
	})
}
