package yeartest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Rules of the practice, in the order of their creation. The words after the colons are the messages that a rule sends.
const (
	Birthday   = iota // each year: Auguri on the day
	Instalment        // each month: Rata on the day of the month
	Keyword           // a reply "info": Info immediately, and again a day later
	Silence           // no reply within 48 hours after Info: Sollecito
	Renewal           // once: Rinnovo seven days before the date, and on the date
	Reminded          // a message of Sollecito is COMPLETED: the rule adds a tag and sends nothing
	RuleCount
)

// Dated lists the rules for dates. Each of them uses another field of the contacts.
var Dated = [...]int{Birthday, Instalment, Renewal}

// Texts of the messages.
const (
	TextBirthday   = "auguri"
	TextInstalment = "rata"
	TextInfo       = "info"
	TextInfoAgain  = "info di nuovo"
	TextReminder   = "sollecito"
	TextLast       = "ultimo sollecito"
	TextBefore     = "rinnovo fra una settimana"
	TextToday      = "rinnovo oggi"
)

// Kind is a kind of event.
type Kind int

const (
	Add     Kind = iota // a contact with dates is added, or merged into the existing contact
	Change              // a contact's date changes; "" removes the date
	Delete              // a contact is deleted
	Reply               // a person writes; while the server is down, the network delivers it later
	Answer              // people of the practice write to a person from the linked phone
	Pause               // a rule is switched off
	Resume              // a rule is switched on
	Down                // the server stops
	Up                  // the server starts
	Hang                // the runners stop; the server still accepts calls and sends messages
	Recover             // the runners start
	KindCount
)

// Event is one event of the year.
type Event struct {
	At     time.Time
	Kind   Kind
	Person int
	Rule   int            // set in events of the kinds Change, Pause and Resume
	Dates  map[int]string // set in Add and Change: the dates by rule
	Text   string         // set in Reply
	ID     string         // set in Reply: the network's id
}

// Script contains the events of a year.
type Script struct {
	Begin, End time.Time
	Zone       *time.Location
	People     int
	Events     []Event // sorted by time
}

// Minutes of the hour at which events come. Messages for dates are due at the minutes 0 and 30. So there are some minutes between an event and
// a due time, and a small delay never changes the result.
const (
	firstReply   = 3
	replies      = 8 // number of different minutes for replies: 3, 6, … 24
	minuteChange = 37
	minuteAnswer = 42
	minuteSwitch = 45
	minuteDown   = 51
	minuteUp     = 56
)

// writer writes a script.
type writer struct {
	*Script
	r       *rand.Rand
	away    []span      // times without server or runners
	wrote   map[int]int // number of replies, by person
	replied int
}

type span struct {
	from, to time.Time
	hangs    bool // only the runners are stopped; the server accepts calls
}

// NewScript returns a random script; the same seed gives the same script. In the script, people reply, contacts are added and deleted, dates
// change, rules are switched off, and the server stops.
func NewScript(seed uint64, zone *time.Location, begin, end time.Time, people int) *Script {
	w := &writer{Script: &Script{Begin: begin, End: end, Zone: zone, People: people}, r: rand.New(rand.NewPCG(seed, 21)), wrote: map[int]int{}} //nolint:gosec // a test repeats it
	w.outages()
	w.pauses()
	for p := range people {
		w.person(p)
	}
	slices.SortStableFunc(w.Events, func(a, b Event) int { return a.At.Compare(b.At) })
	return w.Script
}

// days returns the length of the year in days.
func (w *writer) days() int { return int(w.End.Sub(w.Begin).Hours() / 24) }

// moment returns a random time of the year. Its day is at least from and less than to, its hour is 4 to 22, and its minute is given.
func (w *writer) moment(from, to, minute int) time.Time {
	day := w.Begin.In(w.Zone).AddDate(0, 0, from+w.r.IntN(max(1, to-from)))
	return time.Date(day.Year(), day.Month(), day.Day(), 4+w.r.IntN(19), minute, 0, 0, w.Zone)
}

// outages stops the server, or only its runners, every few weeks: for minutes, hours or days.
func (w *writer) outages() {
	for day := 9; day+8 < w.days(); day += 8 + w.r.IntN(14) {
		kinds := [2]Kind{Down, Up}
		if w.r.IntN(3) == 0 {
			kinds = [2]Kind{Hang, Recover}
		}
		long := []time.Duration{0, 2 * time.Hour, 9 * time.Hour, 23 * time.Hour, 30 * time.Hour, 80 * time.Hour}[w.r.IntN(6)]
		from := w.moment(day, day+2, minuteDown)
		to := from.Add(long + (minuteUp-minuteDown)*time.Minute)
		w.away = append(w.away, span{from, to, kinds[0] == Hang})
		w.Events = append(w.Events, Event{At: from, Kind: kinds[0]}, Event{At: to, Kind: kinds[1]})
	}
}

// isAway reports whether the server or its runners are stopped at a time, or at most margin before or after that time.
func (w *writer) isAway(at time.Time, margin time.Duration) bool {
	return slices.ContainsFunc(w.away, func(s span) bool { return !at.Before(s.from.Add(-margin)) && !at.After(s.to.Add(margin)) })
}

// pauses switches each rule off a few times, for hours or days.
func (w *writer) pauses() {
	for rule := range RuleCount {
		for day := 20 + w.r.IntN(60); day+12 < w.days(); day += 40 + w.r.IntN(100) {
			from := w.moment(day, day+1, minuteSwitch)
			to := from.Add(time.Duration(1+w.r.IntN(200)) * time.Hour)
			if w.isAway(from, 0) || w.isAway(to, 0) {
				continue
			}
			w.Events = append(w.Events, Event{At: from, Kind: Pause, Rule: rule}, Event{At: to, Kind: Resume, Rule: rule})
		}
	}
}

// person writes the events of one person. Some people are contacts from the beginning. Some become contacts later. Some only write, and are no
// contacts.
func (w *writer) person(p int) {
	if p%10 == 9 {
		w.bursts(p)
		return
	}
	from := 0
	if p%4 == 3 {
		from = w.r.IntN(w.days() - 30)
	}
	at := w.Begin.Add(minuteChange * time.Minute)
	if from > 0 {
		at = w.clear(w.moment(from, from+1, minuteChange))
	}
	dates := map[int]string{Birthday: w.birthday(p)}
	if p%3 == 0 {
		dates[Instalment] = w.instalment()
	}
	if p%2 == 0 {
		dates[Renewal] = w.renewal(from)
	}
	w.Events = append(w.Events, Event{At: at, Kind: Add, Person: p, Dates: dates})
	w.changes(p, from, dates)
	for range w.r.IntN(4) {
		w.talk(p, from)
	}
}

// clear moves a time to a later hour if the server is down, because a stopped server accepts no calls. The minute stays the same.
func (w *writer) clear(at time.Time) time.Time {
	for slices.ContainsFunc(w.away, func(s span) bool { return !s.hangs && !at.Before(s.from) && !at.After(s.to) }) {
		at = at.Add(time.Hour)
	}
	return at
}

func (w *writer) birthday(p int) string {
	if p%15 == 0 {
		return "1992-02-29"
	}
	born := time.Date(1940+w.r.IntN(60), 1, 1+w.r.IntN(365), 0, 0, 0, 0, time.UTC)
	return born.Format(time.DateOnly)
}

func (w *writer) instalment() string {
	day := []int{1, 15, 26, 28, 29, 30, 31}[w.r.IntN(7)]
	return fmt.Sprintf("2026-%02d-%02d", []int{1, 3, 5, 7, 8, 10}[w.r.IntN(6)], day)
}

func (w *writer) renewal(from int) string {
	return w.Begin.AddDate(0, 0, from+w.r.IntN(w.days()+20-from)).Format(time.DateOnly)
}

// changes writes events that change a person's dates, and sometimes events that change them back. It may also write an event that deletes the
// contact, and sometimes one that adds the contact again.
func (w *writer) changes(p, from int, dates map[int]string) {
	for range w.r.IntN(3) {
		rule := Dated[w.r.IntN(len(Dated))]
		old, has := dates[rule]
		if !has {
			continue
		}
		other := map[int]string{Birthday: w.birthday(1), Instalment: w.instalment(), Renewal: w.renewal(from)}[rule]
		if w.r.IntN(6) == 0 {
			other = ""
		}
		day := from + 3 + w.r.IntN(w.days()-from-10)
		if at, ok := w.near(rule, old); ok && w.r.IntN(2) == 0 {
			day = max(from+2, at-w.r.IntN(9)) // at most eight days before the date comes, when its messages may already be planned
		}
		at := w.clear(w.moment(day, day+1, minuteChange))
		if s := w.away[w.r.IntN(len(w.away))]; s.hangs && w.r.IntN(2) == 0 && s.from.After(w.Begin.AddDate(0, 0, from+2)) {
			at = s.from.Truncate(time.Hour).Add(time.Hour + minuteChange*time.Minute) // the runners are stopped, so they read this change later
			other = w.soon(rule, at)
		}
		w.Events = append(w.Events, Event{At: at, Kind: Change, Person: p, Rule: rule, Dates: map[int]string{rule: other}})
		if w.r.IntN(2) == 0 {
			back := w.clear(at.Add(time.Duration(1+w.r.IntN(60)) * time.Hour))
			w.Events = append(w.Events, Event{At: back, Kind: Change, Person: p, Rule: rule, Dates: map[int]string{rule: old}})
		}
	}
	if w.r.IntN(8) == 0 {
		at := w.clear(w.moment(from+4, w.days()-2, minuteChange))
		w.Events = append(w.Events, Event{At: at, Kind: Delete, Person: p})
		if w.r.IntN(2) == 0 {
			w.Events = append(w.Events, Event{At: w.clear(at.Add(time.Duration(1+w.r.IntN(90)) * time.Hour)), Kind: Add, Person: p, Dates: dates})
		}
	}
}

// soon returns a date that comes within four days. The first of these days contains the time at.
func (w *writer) soon(rule int, at time.Time) string {
	day := at.In(w.Zone).AddDate(0, 0, w.r.IntN(4))
	if rule != Renewal {
		day = day.AddDate(-20, 0, 0)
	}
	return day.Format(time.DateOnly)
}

// near returns the first day on which a date comes, as a number of days since the beginning of the year. It skips the first 12 days. It returns
// false if there is no such day.
func (w *writer) near(rule int, value string) (int, bool) {
	for day := 12; day < w.days()-3; day++ {
		if falls(rule, value, w.Begin.In(w.Zone).AddDate(0, 0, day)) {
			return day, true
		}
	}
	return 0, false
}

// reply lets a person write near a time. Successive replies of one person have different minutes.
func (w *writer) reply(p int, at time.Time, text string) time.Time {
	minute := firstReply + 3*(w.wrote[p]%replies)
	w.wrote[p]++
	w.replied++
	at = at.Truncate(time.Hour).Add(time.Duration(minute) * time.Minute)
	w.Events = append(w.Events, Event{At: at, Kind: Reply, Person: p, Text: text, ID: fmt.Sprintf("n%d", w.replied)})
	return at
}

// talk lets a person ask for information. Sometimes the person writes again in the following days.
func (w *writer) talk(p, from int) {
	at := w.reply(p, w.moment(from, w.days()-6, 0), []string{"info", "Info!", "  INFO ", "vorrei sapere i prezzi"}[w.r.IntN(4)])
	switch w.r.IntN(5) {
	case 0:
		w.reply(p, at.Add(time.Duration(2+w.r.IntN(18))*time.Hour), "grazie") // before the second message
	case 1:
		w.reply(p, at.Add(time.Duration(26+w.r.IntN(40))*time.Hour), "Grazie mille")
	case 2:
		w.reply(p, at.Add(time.Duration(26+w.r.IntN(40))*time.Hour), "info")
	case 3:
		answer := at.Add(time.Duration(w.r.IntN(80)) * time.Hour).Truncate(time.Hour).Add(minuteAnswer * time.Minute)
		w.Events = append(w.Events, Event{At: w.clear(answer), Kind: Answer, Person: p})
		w.reply(p, answer.Add(time.Duration(2+w.r.IntN(16))*time.Hour), "info")
	}
}

// bursts lets a person without dates write eight times: within one hour, as a program would, or once in each hour.
func (w *writer) bursts(p int) {
	for day := 5 + w.r.IntN(20); day+10 < w.days(); day += 15 + w.r.IntN(60) {
		at := w.moment(day, day+1, 0)
		if w.isAway(at, 72*time.Hour) {
			continue
		}
		w.wrote[p] = 0
		for i := range replies {
			if day%2 == 0 {
				w.reply(p, at, "info")
			} else {
				w.reply(p, at.Add(time.Duration(i)*time.Hour), "info")
			}
		}
	}
}
