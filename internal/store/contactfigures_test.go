//go:build figures

package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// With 1,000,000 contacts, the median time to read a list of contacts must not exceed 50 ms on either database.
const (
	figureContacts = 1_000_000
	figureBound    = 50 * time.Millisecond
	figureTimes    = 21
)

var (
	givenNames = []string{"Anna", "Annalisa", "Antonio", "Bruno", "Carla", "Dario", "Elena", "Fabio", "Giulia", "Giuseppe", "Ilaria", "Luca", "Marco", "Maria", "Martina", "Niccolò", "Olga", "Paolo", "Rosa", "Silvia"}
	syllables  = []string{"ro", "bi", "ver", "di", "fer", "ra", "ri", "es", "po", "si", "to", "col", "om", "bo", "ma", "ri", "no", "gre", "co", "con", "ti", "lu", "ca", "bar", "be"}
)

// figureContact returns contact number i. Each call with the same i returns the same contact.
func figureContact(i int) puntuale.Contact {
	r := rand.New(rand.NewPCG(uint64(i), 1))
	name := ""
	for range 2 + r.IntN(3) {
		name += syllables[r.IntN(len(syllables))]
	}
	c := puntuale.Contact{Phone: fmt.Sprintf("+39333%07d", i), Name: givenNames[r.IntN(len(givenNames))] + " " + name, Source: "fiera",
		Fields: map[string]puntuale.ContactField{"nascita": {Kind: puntuale.FieldDate, Value: "1990-02-28"}, "citta": {Kind: puntuale.FieldText, Value: "Torino"}}}
	for tag, per := range map[string]int{"cliente": 2, "newsletter": 3, "vip": 1000, "raro": 100_000} {
		if i%per == 0 {
			c.Tags = append(c.Tags, tag)
		}
	}
	slices.Sort(c.Tags)
	if i == figureContacts/2 {
		c.Name = "Zenobia Quaglia"
	}
	return c
}

func TestContactFigures(t *testing.T) {
	for name, driver := range map[string]storetest.Driver{"SQLite": storetest.SQLite, "PostgreSQL": storetest.Postgres} {
		t.Run(name, func(t *testing.T) {
			w := storetest.NewWorld(t, driver(t))
			c, ctx := w.Client(puntuale.AccountFull), t.Context()
			var err error
			merge := func() time.Duration {
				begun := time.Now()
				for from := 0; from < figureContacts; from += 1000 {
					all := make([]puntuale.Contact, 1000)
					for i := range all {
						all[i] = figureContact(from + i)
					}
					if _, err := c.MergeContacts(ctx, puntuale.ContactBatch{All: all, Now: storetest.Begin}); err != nil {
						t.Fatal(err)
					}
				}
				return time.Since(begun)
			}
			t.Logf("merge of %d new contacts: %v", figureContacts, merge().Round(time.Second))
			t.Logf("merge of the same again: %v", merge().Round(time.Second))
			deep := ""
			for range 40 {
				_, next, err := c.Contacts(ctx, puntuale.ContactFilter{}, puntuale.Page{Limit: 1000, Cursor: deep})
				if err != nil {
					t.Fatal(err)
				}
				deep = next
			}
			for _, q := range []struct {
				what string
				f    puntuale.ContactFilter
				page puntuale.Page
			}{
				{"all", puntuale.ContactFilter{}, puntuale.Page{}},
				{"all, 1,000 a page", puntuale.ContactFilter{}, puntuale.Page{Limit: 1000}},
				{"all, behind 40,000", puntuale.ContactFilter{}, puntuale.Page{Cursor: deep}},
				{"a common tag", puntuale.ContactFilter{Tag: "cliente"}, puntuale.Page{}},
				{"a rare tag", puntuale.ContactFilter{Tag: "raro"}, puntuale.Page{}},
				{"a number", puntuale.ContactFilter{Phone: "+393330500000"}, puntuale.Page{}},
				{"a common beginning", puntuale.ContactFilter{Phone: "+39*"}, puntuale.Page{}},
				{"a rare beginning", puntuale.ContactFilter{Phone: "+39333050000*"}, puntuale.Page{}},
				{"a common name", puntuale.ContactFilter{Name: "anna"}, puntuale.Page{}},
				{"one letter", puntuale.ContactFilter{Name: "a"}, puntuale.Page{}},
				{"a rare name", puntuale.ContactFilter{Name: "quagl"}, puntuale.Page{}},
				{"two common words", puntuale.ContactFilter{Name: "anna ros"}, puntuale.Page{}},
				{"two letters", puntuale.ContactFilter{Name: "a r"}, puntuale.Page{}},
				{"a common and a rare word", puntuale.ContactFilter{Name: "z quaglia"}, puntuale.Page{}},
				{"a common name and tag", puntuale.ContactFilter{Name: "maria", Tag: "cliente"}, puntuale.Page{}},
				{"a common name and a rare tag", puntuale.ContactFilter{Name: "m", Tag: "raro"}, puntuale.Page{}},
				{"a common name, beginning and tag", puntuale.ContactFilter{Name: "m", Phone: "+39333*", Tag: "newsletter"}, puntuale.Page{}},
				{"a name and a beginning that share nobody", puntuale.ContactFilter{Name: "giu", Phone: "+393339999*", Tag: "vip"}, puntuale.Page{}},
				{"any of three tags", puntuale.ContactFilter{Any: []string{"cliente", "raro", "vip"}}, puntuale.Page{}},
				{"a field that all have", puntuale.ContactFilter{Filled: "nascita"}, puntuale.Page{}},
				{"a field that nobody has", puntuale.ContactFilter{Filled: "altro"}, puntuale.Page{}},
			} {
				took := make([]time.Duration, figureTimes)
				n := 0
				for i := range took {
					begun := time.Now()
					rows, _, err := c.Contacts(ctx, q.f, q.page)
					if err != nil {
						t.Fatalf("%s: %v", q.what, err)
					}
					took[i], n = time.Since(begun), len(rows)
				}
				slices.Sort(took)
				t.Logf("%-42s %4d rows: median %6.1f ms, most %6.1f ms", q.what, n, took[figureTimes/2].Seconds()*1000, took[figureTimes-1].Seconds()*1000)
				if took[figureTimes/2] > figureBound {
					t.Errorf("%s takes %v at the median", q.what, took[figureTimes/2])
				}
			}
			for what, f := range map[string]puntuale.ContactFilter{"a common tag": {Tag: "cliente"}, "a common name": {Name: "anna"}, "one letter": {Name: "a"}, "a common name and tag": {Name: "m", Tag: "cliente"}, "two letters": {Name: "a r"}} {
				took := make([]time.Duration, figureTimes)
				var n int
				for i := range took {
					begun := time.Now()
					if n, _, err = c.CountContacts(ctx, f, puntuale.MaxCounted); err != nil {
						t.Fatal(err)
					}
					took[i] = time.Since(begun)
				}
				slices.Sort(took)
				t.Logf("count of %s: %d, median %v", what, n, took[figureTimes/2])
			}
			begun := time.Now()
			tags, err := c.ContactTags(ctx)
			t.Logf("tags %v: %v (%v)", tags, time.Since(begun), err)
			begun = time.Now()
			n, _, err := c.CountContacts(ctx, puntuale.ContactFilter{Any: []string{"cliente", "vip"}}, figureContacts)
			t.Logf("%d of any of two tags, counted in %v (%v)", n, time.Since(begun), err)
		})
	}
}
