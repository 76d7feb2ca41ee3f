package person_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"puntuale"
)

// model is a second, small implementation of what changes of numbers do.
type model struct {
	owner   map[string]int  // by number: the person to whom it leads
	former  map[string]bool // numbers that their persons left
	blocked map[string]bool // numbers on the blacklist
	all     []*modelMessage // in the order of their starts
	persons int             // how many there were
}

type modelMessage struct {
	id       puntuale.MessageID
	home, to string
	state    puntuale.State
}

func (m *model) person(number string) int {
	if m.owner[number] == 0 {
		m.persons++
		m.owner[number] = m.persons
	}
	return m.owner[number]
}

func (m *model) group(number string) (all []string) {
	for n, p := range m.owner {
		if p == m.person(number) {
			all = append(all, n)
		}
	}
	return append(all, number)
}

func (m *model) listed(number string) bool {
	return slices.ContainsFunc(m.group(number), func(n string) bool { return m.blocked[n] })
}

// part makes a former number one of somebody else.
func (m *model) part(number string) {
	delete(m.former, number)
	m.persons++
	m.owner[number] = m.persons
}

func (m *model) change(from, to string) {
	if m.former[to] && m.owner[to] != 0 { // somebody has the number again
		m.part(to)
	}
	if m.former[from] {
		if m.person(from) == m.person(to) {
			return
		}
		m.part(from)
	}
	p, q := m.person(from), m.person(to)
	if m.blocked[from] && !m.listed(to) {
		m.blocked[to] = true
	}
	for n, o := range m.owner {
		if o == p {
			m.owner[n] = q
		}
	}
	m.former[from] = true
	for _, x := range m.all {
		if x.home == from {
			if x.home = to; x.state == puntuale.Pending {
				x.to = to
			}
		}
	}
}

func (m *model) hear(number string) {
	if !m.former[number] {
		return
	}
	group := m.group(number)
	m.part(number)
	for _, n := range group {
		if n != number && !m.former[n] && m.blocked[number] && !m.listed(n) {
			m.blocked[n] = true
		}
	}
}

func (m *model) stop(number string) {
	group := m.group(number)
	for _, x := range m.all {
		if slices.Contains(group, x.home) && x.state == puntuale.Pending {
			x.state = puntuale.Cancelled
		}
	}
}

func (m *model) claim(x *modelMessage) puntuale.ClaimAnswer {
	switch {
	case x.state != puntuale.Pending:
		return puntuale.ClaimStale
	case m.former[x.to] && x.home != x.to:
		x.to = x.home
		return puntuale.ClaimStale
	case m.listed(x.to):
		x.state = puntuale.Blacklisted
		return puntuale.ClaimBlacklisted
	case m.former[x.to]:
		x.state = puntuale.Failed
		return puntuale.ClaimNumberChanged
	}
	x.state = puntuale.Completed
	return puntuale.ClaimGranted
}

// TestChangesLikeModel compares the store with the model, after each of many random steps.
func TestChangesLikeModel(t *testing.T) {
	t.Parallel()
	numbers := []string{"+393330000001", "+393330000002", "+393330000003", "+393330000004"}
	onBoth(t, func(w *world) {
		for seed := range uint64(12) {
			w.world(func(w *world) {
				r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a test that can be repeated
				m := &model{owner: map[string]int{}, former: map[string]bool{}, blocked: map[string]bool{}}
				var steps []string
				for i := range 40 {
					at := time.Duration(i+1) * time.Minute
					number, other := numbers[r.IntN(4)], numbers[r.IntN(4)]
					step := r.IntN(8)
					steps = append(steps, fmt.Sprint(step, number[11:], other[11:]))
					switch {
					case step < 2 && number != other:
						w.change(number, other, at)
						m.change(number, other)
					case step == 2:
						w.hear(number, at)
						m.hear(number)
					case step == 3:
						_, err := w.Stop(context.Background(), w.Sequence, []string{number}, "", day, begin.Add(at))
						w.must(err)
						m.stop(number)
					case step == 4:
						w.block(number)
						if !m.listed(number) {
							m.blocked[number] = true
						}
					case step == 5 && len(m.all) > 0:
						x := m.all[r.IntN(len(m.all))]
						to := x.to
						want := m.claim(x)
						if got := w.claim(x.id, to, at); got != want {
							w.t.Fatalf("seed %d, step %d: the claim of %s: %v, want %v: %v", seed, i, to, got, want, steps)
						}
					default:
						m.person(number)
						m.all = append(m.all, &modelMessage{id: w.MustStart(number, begin, 1)[0], home: number, to: number})
					}
					for _, x := range m.all {
						d := w.Detail(x.id)
						state := d.State
						if d.Intent > 0 { // granted
							state = puntuale.Completed
						}
						if state != x.state || d.Phone != x.to {
							w.t.Fatalf("seed %d, step %d: a message is %v to %s, want %v to %s: %v", seed, i, state, d.Phone, x.state, x.to, steps)
						}
					}
					listed, err := w.AmongBlacklisted(context.Background(), numbers, w.mark)
					w.must(err)
					for _, n := range numbers {
						if listed[n] != m.listed(n) {
							w.t.Fatalf("seed %d, step %d: %s on the blacklist: %v: %v", seed, i, n, listed[n], steps)
						}
					}
				}
			})
		}
	})
}
