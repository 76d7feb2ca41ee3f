package storetest

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
)

// versioned is a thing that users edit. The function version returns its stored version. The function change stores
// other values, if its argument is the stored version.
type versioned struct {
	version func() (puntuale.Version, error)
	change  func(known ...puntuale.Version) error
}

// testVersions checks that a change with a version succeeds only while this version is stored. If two such changes are
// made at the same time, exactly one must succeed.
func testVersions(t *testing.T, w *World) {
	ctx := context.Background()
	c := w.Client(puntuale.AccountFull)
	for name, thing := range everyVersioned(t, w, c) {
		testVersioned(t, name, thing)
	}
	s, err := c.Tenant.Session(ctx, c.Session)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.SetDefaultPair(ctx, c.Session, c.Sequence, 0, s.PairVersion()); err != nil {
		t.Error(err)
	}
	WantCode(t, c.SetDefaultPair(ctx, c.Session, 0, 0, s.PairVersion()), puntuale.CodePrecondition)
}

func everyVersioned(t *testing.T, w *World, c *Client) map[string]versioned {
	t.Helper()
	ctx := context.Background()
	template, err := c.CreateTemplate(ctx, puntuale.Template{Name: "uno", Text: "Ciao", Created: Begin, Updated: Begin}, nil)
	if err != nil {
		t.Fatal(err)
	}
	p := w.Store.Partner(w.Partner)
	var later atomic.Int64
	next := func() time.Time { return Begin.Add(time.Duration(later.Add(1)) * time.Second) }
	text := func() string { return Unique("testo") }
	return map[string]versioned{
		"sequence": {
			func() (puntuale.Version, error) {
				q, err := c.Tenant.Sequence(ctx, c.Sequence)
				return q.Version(), err
			},
			func(known ...puntuale.Version) error {
				return c.UpdateSequence(ctx, puntuale.Sequence{ID: c.Sequence, Name: text(), Steps: []puntuale.Step{{Text: "a"}}, Updated: Begin}, known...)
			},
		},
		"template": {
			func() (puntuale.Version, error) { m, err := c.Template(ctx, template); return m.Version(), err },
			func(known ...puntuale.Version) error {
				return c.UpdateTemplate(ctx, puntuale.Template{ID: template, Name: text(), Text: "b", Updated: Begin}, known...)
			},
		},
		"session": {
			func() (puntuale.Version, error) { s, err := c.Tenant.Session(ctx, c.Session); return s.Version(), err },
			func(known ...puntuale.Version) error {
				return c.UpdateSession(ctx, c.Session, puntuale.SessionPatch{Name: puntuale.Change[string]{Set: true, To: text()}}, known...)
			},
		},
		"client": {
			func() (puntuale.Version, error) { a, err := p.Client(ctx, c.ID); return a.Version(), err },
			func(known ...puntuale.Version) error {
				_, err := p.UpdateClient(ctx, c.ID, puntuale.ClientPatch{Name: puntuale.Change[string]{Set: true, To: text()}, Known: known}, next())
				return err
			},
		},
		"brand": {
			func() (puntuale.Version, error) { h, err := p.Host(ctx); return h.Brand.Version(), err },
			func(known ...puntuale.Version) error { return p.SetBrand(ctx, puntuale.Brand{Name: text()}, known...) },
		},
	}
}

// testVersioned changes a thing with the stored version, with another version, and with two calls at the same time.
func testVersioned(t *testing.T, name string, thing versioned) {
	t.Helper()
	first, err := thing.version()
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	if again, err := thing.version(); err != nil || again != first {
		t.Errorf("%s: read twice, %s and %s, %v", name, first, again, err)
	}
	if err := thing.change("another", first); err != nil {
		t.Errorf("%s: a change of the stored version: %v", name, err)
	}
	WantCode(t, thing.change(first), puntuale.CodePrecondition)
	WantCode(t, thing.change(""), puntuale.CodePrecondition)
	second, err := thing.version()
	if err != nil || second == first {
		t.Errorf("%s: changed from %s to %s, %v", name, first, second, err)
	}
	results := make(chan error, 2)
	for range cap(results) {
		go func() { results <- thing.change(second) }()
	}
	a, b := <-results, <-results
	if (a == nil) == (b == nil) {
		t.Errorf("%s: of two changes at once: %v, %v", name, a, b)
	}
	if err := thing.change(); err != nil {
		t.Errorf("%s: a change of any version: %v", name, err)
	}
}
