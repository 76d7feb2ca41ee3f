package yeartest

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Verdicts about an occurrence.
const (
	Acted    = "acted"
	Missed   = "missed"   // the server was down for too long
	Past     = "past"     // all steps were already past when the rule read the date
	Changed  = "changed"  // the date changed, so the messages for the old date are cancelled
	Most     = "most"     // the person got five starts in 24 hours
	Depth    = "depth"    // rules triggered each other, up to depth 3
	Takeover = "takeover" // people of the practice answer the person
	Answered = "answered" // the person replied in time
)

// Occurrence is one line of a rule's log.
type Occurrence struct {
	Rule    int
	Person  int    // -1: unknown, because the contact is deleted
	What    string // the day of a date, the id of a reply, or the id of the reply that started the run
	Verdict string
	At      time.Time // when the rule decides
}

// Departure is a message that reaches a person.
type Departure struct {
	Person int
	Text   string
	At     time.Time
}

// Year is what the rules must do in a year.
type Year struct {
	Occurrences []Occurrence
	Departures  []Departure
	Expired     int         // number of messages that could not leave before their deadline
	Moments     []time.Time // the times at which something happens, in order
}

const (
	most       = 5
	depths     = 3
	silentFor  = 48 * time.Hour
	lastAfter  = 2 * time.Hour
	catchUp    = 24 * time.Hour
	dayLong    = 24 * time.Hour
	takenFor   = 12 * time.Hour
	grace      = 5 * time.Minute // a step that is late by at most this time is sent immediately
	replyKnown = 30 * dayLong
)

// model plays a script.
type model struct {
	*Script
	Year
	now     time.Time
	agenda  agenda
	added   int
	serves  bool // the server accepts calls and sends messages
	runs    bool // the server's runners act
	active  [RuleCount]bool
	people  []*person
	network []Event        // replies that the network delivers when the server is up again
	waiting []func()       // work for when the server is up again
	queued  []func()       // work for when the runners act again
	touched map[int]*touch // contacts that changed while the runners did not act, by person
}

type touch struct{ at time.Time }

// person is what the model stores about a person.
type person struct {
	id        int
	there     bool // a contact of this person exists
	dates     map[int]string
	rows      map[int]*row // the dates that the rules have stored, by rule
	starts    []time.Time  // when rules started sequences for the person
	taken     time.Time    // when people of the practice last wrote to the person
	sequences []*run
	wrote     []time.Time // when the person wrote each delivered reply
}

// row is a date that a rule has stored for a person.
type row struct {
	value   string
	learned time.Time
	day     time.Time // the next day on which the date comes; zero: none
	last    *run      // the run that the rule last started for this date; nil: none
}

// run is a sequence that a rule started for a person.
type run struct {
	name     string
	rule     int
	person   *person
	depth    int
	received time.Time
	open     int       // number of messages that have not left yet
	wrote    time.Time // when the first message left; zero: none yet
	told     bool      // the rule for outcomes has already decided about the run
	messages []*message
}

type message struct {
	run       *run
	text      string
	due       time.Time
	cancelled bool
	done      bool
}

// Play returns what the rules must do.
func Play(s *Script) Year {
	m := &model{Script: s, serves: true, runs: true, touched: map[int]*touch{}}
	for p := range s.People {
		m.people = append(m.people, &person{id: p, dates: map[int]string{}, rows: map[int]*row{}})
	}
	for rule := range RuleCount {
		m.active[rule] = true
	}
	for _, e := range s.Events {
		m.at(e.At, func() { m.event(e) })
	}
	heap.Init(&m.agenda)
	for len(m.agenda) > 0 {
		next := heap.Pop(&m.agenda).(item)
		if next.at.After(s.End) {
			break
		}
		if m.now = next.at; len(m.Moments) == 0 || !m.Moments[len(m.Moments)-1].Equal(m.now) {
			m.Moments = append(m.Moments, m.now)
		}
		next.do()
	}
	return m.Year
}

// event plays one event of the script.
func (m *model) event(e Event) {
	p := m.people[e.Person]
	switch e.Kind {
	case Add:
		p.there = true
		for rule, value := range e.Dates {
			p.dates[rule] = value
		}
		m.touch(p)
	case Change:
		if p.there {
			p.dates[e.Rule] = e.Dates[e.Rule]
			m.touch(p)
		}
	case Delete:
		p.there, p.dates = false, map[int]string{}
		m.touch(p)
	case Reply:
		if !m.serves {
			m.network = append(m.network, e)
			return
		}
		m.deliver(p, e)
	case Answer:
		p.taken = m.now
	case Pause:
		m.active[e.Rule] = false
	case Resume:
		m.active[e.Rule] = true
		m.resume(e.Rule)
	case Down:
		m.serves, m.runs = false, false
	case Hang:
		m.runs = false
	case Up, Recover:
		m.back()
	}
}

// back ends an outage: everything that waited for the server or its runners happens now.
func (m *model) back() {
	m.serves, m.runs = true, true
	delivered := m.network
	m.network = nil
	for _, e := range delivered {
		m.deliver(m.people[e.Person], e)
	}
	for id := range m.people {
		if t := m.touched[id]; t != nil {
			delete(m.touched, id)
			m.follow(m.people[id], t.at, Dated[:]...)
		}
	}
	for _, list := range []*[]func(){&m.queued, &m.waiting} {
		some := *list
		*list = nil
		for _, do := range some {
			do()
		}
	}
	for _, p := range m.people {
		for _, rule := range Dated {
			m.plan(p, rule)
		}
	}
}

// acts executes the function do immediately, or, while the runners do not act, when they act again.
func (m *model) acts(do func()) {
	if m.runs {
		do()
		return
	}
	m.queued = append(m.queued, do)
}

// touch handles a changed contact immediately. While the runners do not act, it records the contact until they act again.
func (m *model) touch(p *person) {
	if !m.runs {
		m.touched[p.id] = &touch{m.now}
		return
	}
	m.follow(p, m.now, Dated[:]...)
}

// follow updates the dates that active rules have stored for a contact. If a date changed, it cancels the messages for the old date.
func (m *model) follow(p *person, learned time.Time, rules ...int) {
	for _, rule := range rules {
		if !m.active[rule] {
			continue
		}
		r, value := p.rows[rule], p.dates[rule]
		if r != nil && r.value == value || r == nil && value == "" {
			continue
		}
		if r != nil {
			m.cancel(p, rule, r)
			delete(p.rows, rule)
		}
		if value != "" {
			p.rows[rule] = &row{value: value, learned: learned, day: m.next(rule, value, learned)}
			m.plan(p, rule)
		}
	}
}

// cancel cancels the pending messages for an old date. If there were any, it logs the cancellation.
func (m *model) cancel(p *person, rule int, r *row) {
	some := false
	if r.last != nil {
		for _, x := range r.last.messages {
			if !x.done && !x.cancelled {
				x.cancelled, some = true, true
			}
		}
	}
	if some {
		if !p.there {
			m.log(rule, -1, "", Changed) // the log of a deleted contact has neither person nor date
			return
		}
		m.log(rule, p.id, r.value, Changed)
	}
}

// resume switches a rule on. Dates that came while the rule was off are neither planned nor logged.
func (m *model) resume(rule int) {
	if !slices.Contains(Dated[:], rule) {
		return
	}
	for _, p := range m.people {
		r := p.rows[rule]
		if r != nil && r.value == p.dates[rule] {
			if today := m.midnight(m.now, 0); r.day.Before(today) && !r.day.IsZero() {
				r.day = m.next(rule, r.value, today)
			}
			r.learned = m.now
			m.plan(p, rule)
			continue
		}
		m.follow(p, m.now, rule)
	}
}

// plan starts the sequence for a date that is near enough. For a later date, it calls itself again when the date is near.
func (m *model) plan(p *person, rule int) {
	r := p.rows[rule]
	if r == nil || !m.active[rule] || !m.runs {
		return
	}
	for !r.day.IsZero() {
		near := m.midnight(r.day, plans[rule][0].days-1)
		if near.After(m.now) {
			day := r.day
			m.at(near, func() {
				if p.rows[rule] == r && r.day.Equal(day) {
					m.plan(p, rule)
				}
			})
			return
		}
		m.date(p, rule, r, near)
		r.day = m.next(rule, r.value, m.midnight(r.day, 1))
	}
}

// date decides about one occurrence of a date. near is when this decision was due.
func (m *model) date(p *person, rule int, r *row, near time.Time) {
	what := r.day.Format(time.DateOnly)
	if m.reached(p) >= most {
		m.log(rule, p.id, what, Most)
		return
	}
	from := near
	for _, at := range []time.Time{r.learned, m.now.Add(-catchUp)} {
		if at.After(from) {
			from = at
		}
	}
	var messages []*message
	known := false
	for _, s := range plans[rule] {
		due := m.on(m.midnight(r.day, s.days), s.hour, s.minute)
		known = known || !due.Before(r.learned.Add(-grace))
		if !due.Before(from.Add(-grace)) {
			messages = append(messages, &message{text: s.text, due: due})
		}
	}
	switch {
	case len(messages) > 0:
		m.log(rule, p.id, what, Acted)
		r.last = m.start(p, rule, "", 0, messages)
	case known:
		m.log(rule, p.id, what, Missed)
	default:
		m.log(rule, p.id, what, Past)
	}
}

// reached returns how many sequences rules started for a person in the last 24 hours.
func (m *model) reached(p *person) (n int) {
	for _, at := range p.starts {
		if at.After(m.now.Add(-dayLong)) {
			n++
		}
	}
	return n
}

// deliver handles a reply that the network delivers.
func (m *model) deliver(p *person, e Event) {
	p.wrote = append(p.wrote, e.At)
	depth := 0
	var last *run
	for _, x := range p.sequences {
		if !x.wrote.IsZero() && !x.wrote.After(e.At) && x.wrote.After(e.At.Add(-replyKnown)) {
			last = x
		}
	}
	if last != nil && e.At.Sub(last.received) < time.Hour {
		depth = last.depth
	}
	if !m.active[Keyword] || strings.ToLower(strings.Trim(e.Text, " !")) != "info" {
		return
	}
	m.acts(func() {
		verdict := m.personal(p, depth)
		if verdict == "" && m.reached(p) >= most {
			verdict = Most
		}
		if verdict != "" {
			m.log(Keyword, p.id, e.ID, verdict)
			return
		}
		m.log(Keyword, p.id, e.ID, Acted)
		day, later := m.midnight(m.now, 1), m.now.In(m.Zone)
		m.start(p, Keyword, e.ID, depth, []*message{{text: TextInfo, due: m.now}, {text: TextInfoAgain, due: m.on(day, later.Hour(), later.Minute())}})
	})
}

// personal returns why a rule must not act in a conversation; "": it may act.
func (m *model) personal(p *person, depth int) string {
	switch {
	case depth >= depths:
		return Depth
	case !p.taken.IsZero() && m.now.Before(p.taken.Add(takenFor)):
		return Takeover
	}
	return ""
}

// start starts a sequence. Each message leaves at its due time.
func (m *model) start(p *person, rule int, name string, depth int, messages []*message) *run {
	x := &run{name: name, rule: rule, person: p, depth: depth + 1, received: m.now, open: len(messages), messages: messages}
	p.starts, p.sequences = append(p.starts, m.now), append(p.sequences, x)
	for _, one := range messages {
		one.run = x
		m.at(one.due, func() { m.leave(one) })
	}
	return x
}

// leave sends a message now. While the server is down, the message waits. A message that is then more than a day late expires.
func (m *model) leave(x *message) {
	if x.cancelled {
		return
	}
	if !m.serves {
		m.waiting = append(m.waiting, func() { m.leave(x) })
		return
	}
	x.done = true
	r := x.run
	r.open--
	if m.now.After(x.due.Add(dayLong)) {
		m.Expired++
		return
	}
	m.Departures = append(m.Departures, Departure{r.person.id, x.text, m.now})
	if r.wrote.IsZero() {
		r.wrote = m.now
	}
	switch since := m.now; {
	case r.rule == Keyword && r.open == 0 && m.active[Silence]:
		m.at(since.Add(silentFor), func() { m.acts(func() { m.silence(r, since) }) })
	case r.rule == Silence && m.active[Reminded]:
		m.acts(func() { m.reminded(r) })
	}
}

// silence decides about a run when the time for an answer has ended. since is when the run's last message left.
func (m *model) silence(r *run, since time.Time) {
	if !m.active[Silence] {
		return
	}
	p := r.person
	verdict := m.personal(p, r.depth)
	if verdict != Depth && slices.ContainsFunc(p.wrote, func(at time.Time) bool { return !at.Before(since) }) {
		verdict = Answered
	}
	if verdict == "" && m.reached(p) >= most {
		verdict = Most
	}
	if verdict != "" {
		m.log(Silence, p.id, r.name, verdict)
		return
	}
	m.log(Silence, p.id, r.name, Acted)
	m.start(p, Silence, r.name, r.depth, []*message{{text: TextReminder, due: m.now}, {text: TextLast, due: m.now.Add(lastAfter)}})
}

// reminded lets the rule for outcomes add a tag. If the person is no contact, the rule makes a contact.
func (m *model) reminded(r *run) {
	p := r.person
	if r.told {
		return
	}
	r.told = true
	if verdict := m.personal(p, r.depth); verdict != "" {
		m.log(Reminded, p.id, r.name, verdict)
		return
	}
	m.log(Reminded, p.id, r.name, Acted)
	p.there = true
}

func (m *model) log(rule, person int, what, verdict string) {
	m.Occurrences = append(m.Occurrences, Occurrence{rule, person, what, verdict, m.now})
}

// String returns the text for test failures. Two occurrences with the same text count as equal.
func (o Occurrence) String() string {
	return fmt.Sprintf("rule %d, person %d, %s: %s", o.Rule, o.Person, o.What, o.Verdict)
}

// at schedules a function for a time. Functions with the same time are called in the order in which they were scheduled.
func (m *model) at(at time.Time, do func()) {
	m.added++
	if at.Before(m.now) {
		at = m.now
	}
	heap.Push(&m.agenda, item{at, m.added, do})
}

type item struct {
	at    time.Time
	order int
	do    func()
}

type agenda []item

func (a agenda) Len() int { return len(a) }
func (a agenda) Less(i, j int) bool {
	return a[i].at.Before(a[j].at) || a[i].at.Equal(a[j].at) && a[i].order < a[j].order
}
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }
func (a *agenda) Push(x any)   { *a = append(*a, x.(item)) }
func (a *agenda) Pop() any {
	last := len(*a) - 1
	x := (*a)[last]
	*a = (*a)[:last]
	return x
}
