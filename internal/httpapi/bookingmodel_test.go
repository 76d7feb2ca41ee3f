package httpapi_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
)

// TestBookingHistories plays random histories of bookings, and compares the messages after each step with a slow model,
// which shares no code with the product: what the state wants is there, what it does not want is not, and nobody gets
// the same occurrence of a step twice.
func TestBookingHistories(t *testing.T) {
	t.Parallel()
	databases(t, options{}, func(t *testing.T, s *service) {
		b, histories := newBooked(t, s), 60
		if os.Getenv("PUNTUALE_LONG") != "" {
			histories, s.undescribed = map[bool]int{true: 5_000, false: 50_000}[s.db.Postgres], true
		}
		for n := range histories {
			seed := uint64(n)
			if !newBookingModel(b, fmt.Sprintf("h%d", n), rand.New(rand.NewPCG(seed, 7))).play(14) {
				t.Fatalf("the history with seed %d differs", seed)
			}
		}
	})
}

// modelKey is one occurrence of a step for a person.
type modelKey struct{ phone, step, occurrence string }

// modelMessage is what a key got.
type modelMessage struct {
	state string // pending, sent, taken (by the booking) or ended (by a person)
	text  string
	id    string
}

// bookingModel says in other words what the difference between a booking and its messages must be.
type bookingModel struct {
	*booked
	rand      *rand.Rand
	reference string
	revision  int

	phone, name, status, by string
	date, created           time.Time
	told                    time.Time
	changes                 map[string]modelChange // moved, confirmed, cancelled, arrived
	got                     map[modelKey]*modelMessage
	log                     []string
}

type modelChange struct {
	revision int
	at       time.Time
}

func newBookingModel(b *booked, reference string, r *rand.Rand) *bookingModel {
	return &bookingModel{booked: b, rand: r, reference: reference, changes: map[string]modelChange{}, got: map[modelKey]*modelMessage{}}
}

var modelDates = []string{"2026-12-20T10:00", "2026-12-21T10:00", "2026-11-21T18:00", "2026-12-22T10:00"}

func (m *bookingModel) play(steps int) bool {
	m.clock.Set(morning)
	m.phone, m.name, m.date, m.status, m.by, m.created = "+393331110001", "Ada", m.instant(modelDates[0]), "open", "api", m.clock.Now()
	m.revision = 1
	m.put(`{"sequence":"` + m.sequence + `","phone":"` + m.phone + `","nome":"Ada","appuntamento":"` + modelDates[0] + `"}`)
	m.settle()
	if !m.same() {
		return false
	}
	for range steps {
		m.step()
		if !m.same() {
			return false
		}
	}
	return true
}

func (m *bookingModel) instant(text string) time.Time {
	at, err := time.ParseInLocation("2006-01-02T15:04", text, rome)
	if err != nil {
		m.t.Fatal(err)
	}
	return at.UTC()
}

var rome = func() *time.Location {
	loc, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		panic(err)
	}
	return loc
}()

func (m *bookingModel) put(body string) {
	m.log = append(m.log, body)
	m.must(nil, "PUT", "/api/bookings/"+m.reference, m.Key, body)
}

func (m *bookingModel) change(kind string) {
	m.changes[kind] = modelChange{m.revision + 1, m.clock.Now()}
}

// step does one random thing to the booking and to the model.
func (m *bookingModel) step() {
	before := say(m.phone, m.name, m.status, m.date)
	switch m.rand.IntN(10) {
	case 0, 1:
		text := modelDates[m.rand.IntN(len(modelDates))]
		m.move(m.instant(text))
		m.put(`{"appuntamento":"` + text + `"}`)
	case 2:
		m.name = []string{"Ada", "Ada Rossi"}[m.rand.IntN(2)]
		m.put(`{"nome":"` + m.name + `"}`)
	case 3:
		m.phone = []string{"+393331110001", "+393331110002"}[m.rand.IntN(2)]
		m.put(`{"phone":"` + m.phone + `"}`)
	case 4, 5:
		status := []string{"confirmed", "cancelled", "open", "arrived"}[m.rand.IntN(4)]
		m.set(status)
		m.put(`{"status":"` + status + `"}`)
	case 6:
		m.clock.Advance([]time.Duration{30 * time.Second, 2 * time.Minute, 20 * time.Minute, 6 * time.Hour}[m.rand.IntN(4)])
		m.log = append(m.log, "clock "+m.clock.Now().Format(time.RFC3339))
		return
	case 7, 8:
		m.send()
		return
	case 9:
		m.cancelOne()
		return
	}
	if before != say(m.phone, m.name, m.status, m.date) {
		m.revision++
		m.settle()
	}
}

func (m *bookingModel) move(to time.Time) {
	if to.Equal(m.date) {
		return
	}
	heard := false
	for key, x := range m.got {
		heard = heard || key.step == "2" && key.occurrence == strconv.Itoa(m.changes["moved"].revision) && x.state == "sent"
	}
	if m.told.IsZero() || heard {
		m.told = m.date
	}
	m.date = to
	m.change("moved")
	if m.status == "confirmed" || m.status == "arrived" && to.After(m.clock.Now()) {
		m.status = "open"
	}
}

func (m *bookingModel) set(status string) {
	if status == m.status || status == "open" && m.status != "cancelled" {
		return
	}
	m.status = status
	if status != "open" {
		m.change(status)
	}
}

// wanted returns what the state wants: the text and the moment of each key.
func (m *bookingModel) wanted() map[modelKey]struct {
	text string
	due  time.Time
} {
	all := map[modelKey]struct {
		text string
		due  time.Time
	}{}
	add := func(step, occurrence, text string, due time.Time) {
		all[modelKey{m.phone, step, occurrence}] = struct {
			text string
			due  time.Time
		}{text, due}
	}
	shown := m.date.In(rome).Format("02/01/2006 15:04")
	live := m.status == "open" || m.status == "confirmed"
	if live {
		add("0", stampOf(m.created), "Benvenuta "+m.name, m.created)
		add("1", stampOf(m.date), m.name+", ti aspettiamo "+shown, m.date.In(rome).AddDate(0, 0, -1))
	}
	if c, ok := m.changes["moved"]; ok && live && !m.told.IsZero() && !m.told.Equal(m.date) {
		add("2", strconv.Itoa(c.revision), "Spostato a "+shown, c.at.Add(time.Minute))
	}
	if c, ok := m.changes["confirmed"]; ok && m.status == "confirmed" {
		add("3", strconv.Itoa(c.revision), "Confermato", c.at.Add(time.Minute))
	}
	if c, ok := m.changes["cancelled"]; ok && m.status == "cancelled" {
		add("4", strconv.Itoa(c.revision), "Annullato", c.at.Add(time.Minute))
	}
	if m.status == "arrived" {
		add("5", stampOf(m.date), "Come è andata?", m.date.Add(2*time.Hour))
	}
	return all
}

func stampOf(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000Z") }

// settle applies the difference to the model.
func (m *bookingModel) settle() {
	wanted := m.wanted()
	for key, w := range wanted {
		x := m.got[key]
		switch {
		case x == nil || x.state == "taken":
			if m.clock.Now().Sub(w.due) <= 5*time.Minute {
				m.got[key] = &modelMessage{state: "pending", text: w.text}
			}
		case x.state == "pending":
			x.text = w.text
		}
	}
	for key, x := range m.got {
		if _, ok := wanted[key]; !ok && x.state == "pending" {
			x.state = "taken"
		}
	}
}

// send lets a pending message leave that is due, if there is one.
func (m *bookingModel) send() {
	for _, key := range m.keys() {
		x := m.got[key]
		if x.state != "pending" || x.id == "" {
			continue
		}
		d := m.details(m.Key, x.id)[0]
		if due, err := time.Parse("2006-01-02T15:04:05.000000Z", d.Planned); err != nil || due.After(m.clock.Now()) {
			continue
		}
		item, granted := m.begin(m.clientAccount, x.id, d.Telefono)
		if granted != puntuale.ClaimGranted { // it expired meanwhile
			m.log = append(m.log, "expired "+key.step)
			continue
		}
		m.record(sent, item)
		m.log = append(m.log, "sent "+key.step)
		x.state = "sent"
		return
	}
}

// cancelOne cancels a pending message by hand.
func (m *bookingModel) cancelOne() {
	for _, key := range m.keys() {
		if x := m.got[key]; x.state == "pending" && x.id != "" {
			m.must(nil, "POST", "/api/messages/cancel", m.Key, `{"id":["`+x.id+`"]}`)
			m.log = append(m.log, "cancelled by hand "+key.step)
			x.state = "ended"
			return
		}
	}
}

func (m *bookingModel) keys() []modelKey {
	return slices.SortedFunc(maps.Keys(m.got), func(a, b modelKey) int { return strings.Compare(say(a), say(b)) })
}

// same compares the ledger and the messages with the model.
func (m *bookingModel) same() bool {
	rows, err := m.db.SQL.Query(`select s.step, s.occurrence, s.phone, s.message_id, m.state, s.fate from booking b
 join booking_step s on s.client_id = b.client_id and s.booking_id = b.id join message m on m.client_id = s.client_id and m.id = s.message_id
 where b.reference = $1 order by s.message_id`, m.reference)
	if err != nil {
		m.t.Fatal(err)
	}
	defer rows.Close()
	found := map[modelKey]string{}
	for rows.Next() {
		var key modelKey
		var occurrence, id int64
		var state, fate int
		if err := rows.Scan(&key.step, &occurrence, &key.phone, &id, &state, &fate); err != nil {
			m.t.Fatal(err)
		}
		if key.occurrence = strconv.FormatInt(occurrence, 10); occurrence > 1e9 {
			key.occurrence = stampOf(time.UnixMicro(occurrence))
		}
		found[key] = map[int]string{0: "pending", 1: "sent", 3: "ended"}[state]
		if fate == 1 {
			found[key] = "taken"
		}
		if x := m.got[key]; x != nil {
			x.id = strconv.FormatInt(id, 10)
		}
	}
	if err := rows.Err(); err != nil {
		m.t.Fatal(err)
	}
	good := len(found) == len(m.got)
	for key, x := range m.got {
		good = good && found[key] == x.state
		if x.state == "pending" && good {
			good = m.details(m.Key, x.id)[0].Contenuto == x.text
		}
	}
	if !good {
		m.t.Errorf("%s\nfound %v\nwant  %v", strings.Join(m.log, "\n"), found, m.wantedStates())
	}
	return good
}

func (m *bookingModel) wantedStates() map[modelKey]string {
	all := map[modelKey]string{}
	for key, x := range m.got {
		all[key] = x.state
	}
	return all
}
