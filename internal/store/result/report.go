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
	tells  puntuale.ResultMarks // of delivered, read and answered
}

// keys reads all keys of the clients.
func (s Reports) keys(ctx context.Context, a engine.Querier) ([]storedKey, error) {
	type sessionRef struct {
		client puntuale.ClientID
		id     puntuale.SessionID
	}
	told := map[sessionRef]puntuale.ResultMarks{}
	condition, of := s.of("k.client_id")
	all, err := engine.QueryAll(ctx, a, `select k.id, k.told, `+keyColumns+`, coalesce(s.type, ''), coalesce(s.way, ''), coalesce(s.sandbox, 0)
 from result_key k left join session s on s.client_id = k.client_id and s.id = k.session_id where `+condition+` order by k.client_id, k.id`, []any{of}, func(r engine.Row, k *storedKey) error {
		var bits int64
		var x puntuale.Session
		err := r.Scan(&k.id, &bits, &k.client, &k.Sequence, &k.Step, &k.Campaign, &k.Rule, &k.Session, &k.Template, &x.Type, &x.Way, engine.ScanBool(&x.Sandbox))
		told[sessionRef{k.client, k.Session}] |= tells(x, bits)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].tells = told[sessionRef{all[i].client, all[i].Session}]
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
		if bits&bit != 0 || !s.Sandbox && (s.Type == puntuale.Official || s.Type == puntuale.Socket) {
			marks |= mark
		}
	}
	return marks
}

// matches reports whether the filter chooses the key.
func matches(f *puntuale.ResultFilter, k *Key) bool {
	return (f.Sequence == 0 || f.Sequence == k.Sequence) && (f.Step == nil || *f.Step == k.Step) && (f.Campaign == 0 || f.Campaign == k.Campaign) &&
		(f.Rule == 0 || f.Rule == k.Rule) && (f.Template == "" || f.Template == k.Template) && (f.Session == 0 || f.Session == k.Session)
}

// group returns the key of the row of a report to which a key belongs.
func group(by puntuale.ResultGroup, k *storedKey) string {
	switch by {
	case puntuale.ResultBySequence:
		return k.Sequence.String()
	case puntuale.ResultByStep:
		return strconv.Itoa(k.Step)
	case puntuale.ResultByCampaign:
		return k.Campaign.String()
	case puntuale.ResultByVariant:
		return puntuale.VariantKey(k.Step) // a variant is counted as a step
	case puntuale.ResultByRule:
		return k.Rule.String()
	case puntuale.ResultByTemplate:
		return k.Template
	case puntuale.ResultBySession:
		return k.Session.String()
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
	days  map[int]*puntuale.ResultRow // the rows of days, by the day as YYYYMMDD
	hours [hoursOfWeek]int64
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

// day returns the row of a day.
func (p *report) day(day int) *puntuale.ResultRow {
	r := p.days[day]
	if r == nil {
		r = p.row(puntuale.DateFromInt(day).String())
		p.days[day] = r
	}
	return r
}

// total adds the rows up.
func (p *report) total() puntuale.ResultRow {
	t := newRow("")
	for _, r := range p.rows {
		t.Planned, t.Sent, t.Delivered, t.Read = t.Planned+r.Planned, t.Sent+r.Sent, t.Delivered+r.Delivered, t.Read+r.Read
		t.Answered, t.OptedOut, t.Failed, t.Skipped, t.Cancelled = t.Answered+r.Answered, t.OptedOut+r.OptedOut, t.Failed+r.Failed, t.Skipped+r.Skipped, t.Cancelled+r.Cancelled
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
	p := &report{ResultFilter: f, rows: map[string]*puntuale.ResultRow{}, days: map[int]*puntuale.ResultRow{}}
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
	if err := s.readBookings(ctx, a, p, &out.Total); err != nil {
		return out, engine.PublicError(fmt.Errorf("count bookings: %w", err))
	}
	for _, r := range p.rows {
		out.All = append(out.All, *r)
	}
	if err := s.name(ctx, a, f.By, out.All); err != nil {
		return out, engine.PublicError(fmt.Errorf("read names of results: %w", err))
	}
	slices.SortFunc(out.All, func(x, y puntuale.ResultRow) int {
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
		if matches(&p.ResultFilter, &all[i].Key) {
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
	of := func(day int) *puntuale.ResultRow {
		if p.By == puntuale.ResultByDay {
			return p.day(month*100 + day)
		}
		if row == nil {
			row = p.row(group(p.By, k))
		}
		return row
	}
	if err := eachDay(days, func(day int, n []int64) {
		if day >= from && day <= to {
			addDay(&of(day).ResultCounts, n, k.tells)
		}
	}); err != nil {
		return err
	}
	var sums wordCounts // a cell has few words, and each on many days
	if err := eachWord(words, func(day int, word []byte, n int64) {
		switch {
		case day < from || day > to || len(word) == 0:
		case p.By == puntuale.ResultByDay:
			addWord(of(day), string(word), n)
		default:
			sums.add(word, n)
		}
	}); err != nil {
		return err
	}
	for _, x := range sums {
		addWord(of(0), string(x.word), x.n)
	}
	return eachHour(hours, func(day, hour int, n int64) {
		if day >= from && day <= to {
			p.hours[hour] += n
		}
	})
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

// readBookings adds the bookings whose date is in the period, if the report is about sequences or about everything. Days
// are those of the client's zone.
func (s Reports) readBookings(ctx context.Context, a engine.Querier, p *report, total *puntuale.ResultRow) error {
	about := p.By == puntuale.ResultBySequence || p.By == puntuale.ResultByDay || p.By == puntuale.ResultByStep || p.By == puntuale.ResultByClient
	if !about || p.Campaign != 0 || p.Rule != 0 || p.Template != "" || p.Session != 0 || p.Step != nil {
		return nil
	}
	condition, of := s.of("c.id")
	type clientZone struct {
		id   puntuale.ClientID
		zone string
	}
	clients, err := engine.QueryAll(ctx, a, `select c.id, c.zone from client c where `+condition, []any{of}, func(r engine.Row, c *clientZone) error { return r.Scan(&c.id, &c.zone) })
	if err != nil {
		return err
	}
	zones := map[puntuale.ClientID]*time.Location{}
	for _, c := range clients {
		zones[c.id] = location(c.zone)
	}
	span := `0`
	if p.By == puntuale.ResultByDay {
		span = `b.date_at / ` + strconv.FormatInt(quarter, 10)
	}
	return a.Query(ctx, `select b.client_id, b.sequence_id, `+span+`, b.status, count(*) from $u(c bigint, f bigint, t bigint) cross join booking b
 where b.client_id = u.c and b.date_at >= u.f and b.date_at < u.t and ($1 = 0 or b.sequence_id = $1) group by 1, 2, 3, 4`, []any{p.Sequence, engine.Columns{
		engine.Column(clients, func(c *clientZone) int64 { return int64(c.id) }),
		engine.Column(clients, func(c *clientZone) int64 { return engine.Micros(p.Start.At(0, zones[c.id])) }),
		engine.Column(clients, func(c *clientZone) int64 { return engine.Micros(p.End.AddDays(1).At(0, zones[c.id])) }),
	}}, func(r engine.Row) error {
		var client puntuale.ClientID
		var sequence puntuale.SequenceID
		var at, n int64
		var status puntuale.BookingStatus
		if err := r.Scan(&client, &sequence, &at, &status, &n); err != nil {
			return err
		}
		rows := []*puntuale.ResultRow{total}
		switch p.By {
		case puntuale.ResultByDay:
			rows = append(rows, p.row(puntuale.DateOf(engine.Instant(at*quarter).In(zones[client])).String()))
		case puntuale.ResultBySequence:
			rows = append(rows, p.row(sequence.String()))
		case puntuale.ResultByClient:
			rows = append(rows, p.row(client.String()))
		}
		for _, row := range rows {
			addBookings(row, status, n)
		}
		return nil
	})
}

// quarter is a quarter of an hour, in microseconds. Every day of every zone begins with one.
const quarter = int64(15 * time.Minute / time.Microsecond)

func addBookings(r *puntuale.ResultRow, status puntuale.BookingStatus, n int64) {
	if r.Bookings == nil {
		r.Bookings = &puntuale.BookingResults{}
	}
	switch status {
	case puntuale.BookingOpen:
		r.Bookings.Open += n
	case puntuale.BookingConfirmed:
		r.Bookings.Confirmed += n
	case puntuale.BookingCancelled:
		r.Bookings.Cancelled += n
	case puntuale.BookingArrived:
		r.Bookings.Arrived += n
	case puntuale.BookingNoShow:
		r.Bookings.NoShow += n
	}
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
