//go:build figures

package httpapi_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// A search beside as many contacts and messages of one client may take searchBound at the median, on both databases.
const (
	searchPeople = 1_000_000
	searchBound  = 100 * time.Millisecond
	searchRounds = 21
)

var (
	commonNames    = strings.Fields("Mario Anna Giuseppe Maria Luca Giulia Marco Francesca Antonio Rosa Giovanni Elena Paolo Sara Andrea Laura Stefano Chiara Roberto Lucia")
	commonSurnames = strings.Fields("Rossi Russo Ferrari Esposito Bianchi Romano Colombo Ricci Marino Greco Bruno Gallo Conti DeLuca Mancini Costa Giordano Rizzo Lombardi Moretti")
	nameParts      = strings.Fields("ro bi ver di fer ra ri es po si to col om bo ma no gre co con ti lu ca bar be zan pel gri mon tel las")
)

// searchName returns the name of contact number i: half of the surnames are common ones, the others are of about 400,000.
func searchName(i int) string {
	r := rand.New(rand.NewPCG(uint64(i), 7))
	surname := commonSurnames[r.IntN(len(commonSurnames))]
	if r.IntN(2) == 0 {
		surname = ""
		for range 2 + r.IntN(3) {
			surname += nameParts[r.IntN(len(nameParts))]
		}
	}
	return commonNames[r.IntN(len(commonNames))] + " " + surname
}

// TestSearchFigures measures searches through the API. PUNTUALE_PEOPLE sets another number of contacts and messages.
func TestSearchFigures(t *testing.T) {
	people := searchPeople
	if n, err := strconv.Atoi(os.Getenv("PUNTUALE_PEOPLE")); err == nil {
		people = n
	}
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			b := newBooked(t, newService(t, options{driver: driver}))
			fillForSearch(t, b, people)
			for _, text := range []string{
				"mario rossi", "rosi mario", "mrio rsosi", "mario", "ros", "m", "giuseppe lombardi", "giusepe lombrdi", "zanpelgri", "anna zanpelgri", "m r", "mario rossi ferrari", "nessunissimo",
				"+39 333 05 00 123", "3330500123", "333 05", "333", "R123456", "900001", "appuntamento", "appuntamento xyz", "mario qwertyuiop",
			} {
				took, size := make([]time.Duration, searchRounds), 0
				for i := range took {
					r := httptest.NewRequestWithContext(t.Context(), "GET", "/api/search?"+url.Values{"text": {text}}.Encode(), nil)
					r.Header.Set("Authorization", "Bearer "+b.Key)
					w := httptest.NewRecorder()
					begun := time.Now()
					b.handler.ServeHTTP(w, r)
					if took[i] = time.Since(begun); w.Code != http.StatusOK {
						t.Fatalf("%q: %d %s", text, w.Code, w.Body)
					}
					size = w.Body.Len()
				}
				slices.Sort(took)
				f := b.find(b.Key, text)
				first := ""
				if len(f.People) > 0 {
					first = f.People[0].Name
				}
				t.Logf("%-22q median %6.1f ms, most %6.1f ms, %5d bytes, %d people (%s), %d messages", text, took[searchRounds/2].Seconds()*1000, took[searchRounds-1].Seconds()*1000, size, len(f.People), first, len(f.Messages))
				if took[searchRounds/2] > searchBound {
					t.Errorf("%q takes %v at the median", text, took[searchRounds/2])
				}
			}
		})
	}
}

// fillForSearch makes contacts, and as many messages to them, two in a call.
func fillForSearch(t *testing.T, b *booked, people int) {
	t.Helper()
	client, err := puntuale.ParseID[puntuale.ClientID](b.ID)
	if err != nil {
		t.Fatal(err)
	}
	tenant := b.store.Tenant(client)
	begun := time.Now()
	for from := 0; from < people; from += 1000 {
		all := make([]puntuale.Contact, 1000)
		for i := range all {
			all[i] = puntuale.Contact{Phone: fmt.Sprintf("+39333%07d", from+i), Name: searchName(from + i)}
		}
		if _, err := tenant.MergeContacts(t.Context(), puntuale.ContactBatch{All: all, Now: storetest.Begin}); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d contacts in %v", people, time.Since(begun).Round(time.Second))
	n := fmt.Sprintf("(with recursive n(i) as (select 1 union all select i + 1 from n where i < %d) select i from n) as n", people/2)
	request := `cast('{"nome":"Persona"}' as blob)`
	if b.db.Postgres {
		n, request = fmt.Sprintf("generate_series(1::bigint, %d) as n(i)", people/2), `convert_to('{"nome":"Persona"}', 'UTF8')`
	}
	now := b.clock.Now().UnixMicro()
	for _, text := range []string{
		fmt.Sprintf(`insert into run (client_id, id, sequence_id, session_id, phone, origin, messages, name, zone, received_at, request, client_name, sequence_name, content, reference)
 select %d, 900000 + i * 2, 1, 1, '+39333' || substr('0000000' || (i * 2 %% %d), -7), 2, 2, '', 'Europe/Rome', %d - (%d - i) * 1000000, %s, 'Studio', 'Promemoria',
 '[{"step":0,"content":{"text":"Gentile cliente, le ricordiamo l''appuntamento di venerdì 20 novembre alle 10:30 in via Roma 12. Per spostarlo risponda a questo messaggio."}},{"step":1,"content":{"text":"A domani!"}}]', 'R' || i
 from %s`, client, people, now, people, request, n),
		fmt.Sprintf(`insert into message (client_id, id, session_id, run_id, desired_at, due_at, next_at, valid_until, step, origin, phone, intent, intent_at, attempt, state, done_at, outcome)
 select r.client_id, r.id + k.s, 1, r.id, 0, r.received_at, r.received_at, r.received_at + 86400000000, k.s, 2, r.phone, -1, r.received_at, 1, 1, r.received_at + 1000000, 1
 from run r cross join (select 0 as s union all select 1) as k where r.client_id = %d`, client),
	} {
		if b.db.Postgres {
			text = strings.ReplaceAll(text, "substr('0000000' || (i * 2 % "+strconv.Itoa(people)+"), -7)", "right('0000000' || (i * 2 % "+strconv.Itoa(people)+"), 7)")
		}
		if _, err := b.db.SQL.ExecContext(t.Context(), text); err != nil {
			t.Fatalf("%.60s: %v", text, err)
		}
	}
	if b.db.Postgres {
		if _, err := b.db.SQL.ExecContext(t.Context(), "vacuum analyze"); err != nil {
			t.Fatal(err)
		}
	}
	var words, terms int
	if err := b.db.SQL.QueryRowContext(t.Context(), "select (select count(*) from person_word), (select count(*) from person_term)").Scan(&words, &terms); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows of forms, %d terms", words, terms)
}
