package store_test

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

const linkPhone = "+393331234567"

// linkWorld is a client whose links are tracked, with one message that has three addresses, two of them different.
type linkWorld struct {
	*storetest.World
	*storetest.Client
	t    *testing.T
	node puntuale.NodeID
	id   puntuale.MessageID
	step puntuale.StepRef
}

const linkSite = "https://m.example.com/"

const linkText = "Ciao! Vedi https://negozio.example/orari?x=1, oppure (https://negozio.example/è). Di nuovo: https://negozio.example/orari?x=1"

func newLinkWorld(t *testing.T, driver storetest.Driver) *linkWorld {
	d := driver(t)
	d.Config.Public = linkSite
	w := storetest.NewWorld(t, d)
	l := &linkWorld{World: w, Client: w.Client(puntuale.AccountFull), t: t, node: w.MustJoin()}
	l.track(true)
	l.id = l.start(linkText)
	l.step = puntuale.StepRef{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(l.id)}}
	return l
}

func (l *linkWorld) ok(err error) {
	l.t.Helper()
	if err != nil {
		l.t.Fatal(err)
	}
}

func (l *linkWorld) track(on bool) {
	_, err := l.UpdateSettings(context.Background(), puntuale.SettingsPatch{TrackLinks: &on})
	l.ok(err)
}

func (l *linkWorld) start(text string) puntuale.MessageID {
	run := l.Run(linkPhone, storetest.Begin, 1)
	run.Messages[0].Content.Text = text
	r, err := l.Start(context.Background(), run)
	l.ok(err)
	return r.IDs[0]
}

func (l *linkWorld) read(step puntuale.StepRef) string {
	l.t.Helper()
	c, err := l.Contents(context.Background(), []puntuale.StepRef{step})
	l.ok(err)
	return c[step].Content.Text
}

var codeIn = regexp.MustCompile(`https://m\.example\.com/r/([0-9A-Za-z]{8})`)

func codesIn(text string) (codes []string) {
	for _, m := range codeIn.FindAllStringSubmatch(text, -1) {
		codes = append(codes, m[1])
	}
	return codes
}

func (l *linkWorld) click(code string, at time.Time, machine bool) {
	l.t.Helper()
	ref, _, err := l.Links.LinkOf(context.Background(), code)
	l.ok(err)
	_, err = l.Links.RecordClicks(context.Background(), at, []puntuale.Click{{LinkRef: ref, At: at, Machine: machine}})
	l.ok(err)
}

func (l *linkWorld) total() puntuale.ResultRow {
	l.t.Helper()
	for more := true; more; {
		var err error
		more, err = l.CountResults(context.Background(), 100)
		l.ok(err)
	}
	day := puntuale.DateOf(storetest.Begin)
	r, err := l.Client.Results(context.Background(), puntuale.ResultFilter{By: puntuale.ResultBySequence, Start: day, End: day}, storetest.Begin.Add(time.Hour))
	l.ok(err)
	return r.Total
}

func linksOnBoth(t *testing.T, test func(t *testing.T, l *linkWorld)) {
	t.Parallel()
	for name, driver := range map[string]storetest.Driver{"sqlite": storetest.SQLite, "postgres": storetest.Postgres} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, newLinkWorld(t, driver)) })
	}
}

// TestLinksReplaceAddresses: the same address has one code, which stays for each reader and for the message that is sent
// again; the text around stays.
func TestLinksReplaceAddresses(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		text := l.read(l.step)
		codes := codesIn(text)
		if len(codes) != 3 || codes[0] != codes[2] || codes[0] == codes[1] {
			t.Fatalf("%q", text)
		}
		back := codeIn.ReplaceAllStringFunc(text, func(link string) string {
			_, address, err := l.Links.LinkOf(context.Background(), link[len(link)-8:])
			l.ok(err)
			return address
		})
		if back != linkText {
			t.Errorf("%q, was %q", back, linkText)
		}
		l.Client.MustSend(l.node, storetest.Begin, l.id)
		again := l.Client.MustResend(l.id)
		if d := l.Client.Detail(again[0]); d.Content.Text != linkText || l.read(puntuale.StepRef{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: d.Run}, Step: d.Step}) != text {
			t.Errorf("sent again: %q", d.Content.Text)
		}
		l.track(false) // codes that left stay valid
		if _, _, err := l.Links.LinkOf(context.Background(), codes[0]); err != nil {
			t.Error(err)
		}
		if plain := l.read(l.step); plain != linkText {
			t.Errorf("off: %q", plain)
		}
		if _, _, err := l.Links.LinkOf(context.Background(), strings.ToLower(codes[0])+"x"); puntuale.CodeOf(err) != puntuale.CodeNotFound {
			t.Errorf("unknown code: %v", err)
		}
	})
}

// TestLinksEndWhereAddressesEnd: what is a part of an address stays in it, and what is not, stays in the text.
func TestLinksEndWhereAddressesEnd(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		for text, want := range map[string][]string{
			"https://www.instagram.com/studio_bianchi_":                             {"https://www.instagram.com/studio_bianchi_"},
			"codice_fiscale: https://x.it/a_ 3*4 https://x.it/b* https://x.it/c~.":  {"https://x.it/a_", "https://x.it/b*", "https://x.it/c~"},
			"*https://x.it/a* _https://x.it/b_! ~https://x.it/c~":                   {"https://x.it/a", "https://x.it/b", "https://x.it/c"},
			"*Prenota qui: https://x.it/a* e _(https://x.it/b_c_)_":                 {"https://x.it/a", "https://x.it/b_c_"},
			"_*https://x.it/a*_ **https://x.it/b**":                                 {"https://x.it/a", "https://x.it/b"},
			"*Novità* https://x.it/a*\n_sotto\nhttps://x.it/b_":                     {"https://x.it/a*", "https://x.it/b_"},
			"https://x.it/a\u00a0ora https://x.it/b\u200bpoi https://x.it/c\u2003e": {"https://x.it/a", "https://x.it/b", "https://x.it/c"},
			"https://x.it/a—subito, `https://x.it/b`":                               {"https://x.it/a", "https://x.it/b"},
			"[https://x.it/a] [vedi (https://x.it/b)]. https://x.it/c[1]":           {"https://x.it/a", "https://x.it/b", "https://x.it/c[1]"},
			"https://it.wikipedia.org/wiki/Gatto_(animale), https://x.it/d)…":       {"https://it.wikipedia.org/wiki/Gatto_(animale)", "https://x.it/d"},
		} {
			id := l.start(text)
			rewritten := l.read(puntuale.StepRef{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(id)}})
			var got []string
			back := codeIn.ReplaceAllStringFunc(rewritten, func(link string) string {
				_, address, err := l.Links.LinkOf(context.Background(), link[len(link)-8:])
				l.ok(err)
				got = append(got, address)
				return address
			})
			if back != text || !slices.Equal(got, want) {
				t.Errorf("%q becomes %q with %q, want %q", text, rewritten, got, want)
			}
		}
	})
}

// TestLinksFollowSequence: a sequence decides against the client's setting.
func TestLinksFollowSequence(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		ctx := context.Background()
		for _, c := range []struct {
			client bool
			own    puntuale.TrackLinks
			want   int
		}{{true, puntuale.TrackNever, 0}, {false, puntuale.TrackAlways, 3}, {false, puntuale.TrackAsClient, 0}, {true, puntuale.TrackAsClient, 3}} {
			l.track(c.client)
			q, err := l.Client.Tenant.Sequence(ctx, l.Client.Sequence)
			l.ok(err)
			q.TrackLinks = c.own
			l.ok(l.UpdateSequence(ctx, q))
			id := l.start(linkText)
			if n := len(codesIn(l.read(puntuale.StepRef{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(id)}}))); n != c.want {
				t.Errorf("%+v: %d links", c, n)
			}
		}
	})
}

// TestLinkClicks: machines and people are apart, the first click of a person is told once, and results count it.
func TestLinkClicks(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		ctx := context.Background()
		l.Exec("insert into event_stream (client_id, wanted, feed_until, last_seq) values ($1, 0, $2, 0)", l.Client.ID, storetest.Begin.AddDate(1, 0, 0).UnixMicro())
		_, err := l.CreateAutomation(ctx, puntuale.Automation{Name: "Regola", Active: true, Trigger: puntuale.Trigger{Kind: puntuale.TriggerOutcome, Is: puntuale.OutcomeClicked, Sequence: puntuale.SequenceChoice(l.Client.Sequence.String())},
			Actions: []puntuale.Action{{Kind: puntuale.ActionStop}}, Created: storetest.Begin, Updated: storetest.Begin}, nil, nil)
		l.ok(err)
		codes := codesIn(l.read(l.step))
		l.Client.MustSend(l.node, storetest.Begin, l.id)
		plain := l.start("senza")
		l.Client.MustSend(l.node, storetest.Begin, plain)
		if r := l.total(); r.Clicked != 0 || r.TellClicked != 2 || r.Sent != 2 {
			t.Errorf("before: %+v", r.ResultCounts)
		}
		l.click(codes[0], storetest.Begin.Add(500*time.Millisecond), false) // the network's own fetch
		l.click(codes[0], storetest.Begin.Add(time.Minute), true)
		if r := l.total(); r.Clicked != 0 {
			t.Errorf("machines: %+v", r.ResultCounts)
		}
		at := storetest.Begin.Add(2 * time.Minute)
		for i, code := range []string{codes[0], codes[1], codes[0]} {
			l.click(code, at.Add(time.Duration(i)*time.Second), false)
		}
		if r := l.total(); r.Clicked != 1 || r.Sent != 2 {
			t.Errorf("clicked: %+v", r.ResultCounts)
		}
		links := l.Client.Detail(l.id).Links
		want := []puntuale.TrackedLink{{N: 1, Address: "https://negozio.example/orari?x=1", Clicked: at, Clicks: 2, Machines: 2}, {N: 2, Address: "https://negozio.example/è", Clicked: at.Add(time.Second), Clicks: 1}}
		if !slices.EqualFunc(links, want, func(a, b puntuale.TrackedLink) bool {
			return a.N == b.N && a.Address == b.Address && a.Clicked.Equal(b.Clicked) && a.Clicks == b.Clicks && a.Machines == b.Machines
		}) {
			t.Errorf("links %+v", links)
		}
		if n := l.Int("select count(*) from event where kind = 'clicked' and message_id = $1", l.id); n != 1 {
			t.Errorf("%d entries of the history", n)
		}
		if n := l.Int("select count(*) from outbox_fact where type = $1 and subject = $2", puntuale.EventLinkClicked, l.id); n != 1 {
			t.Errorf("%d facts", n)
		}
		if n := l.Int("select count(*) from automation_trigger where kind = $1 and subject = $2", puntuale.FactClicked, l.id); n != 1 {
			t.Errorf("%d triggers of rules", n)
		}
		page, _, err := l.Client.ResultMessages(context.Background(), puntuale.ResultMessages{ResultFilter: puntuale.ResultFilter{Start: puntuale.DateOf(storetest.Begin), End: puntuale.DateOf(storetest.Begin)}, Is: puntuale.ResultClicked}, puntuale.Page{})
		if err != nil || len(page) != 1 || page[0].ID != l.id {
			t.Errorf("people: %+v, %v", page, err)
		}
	})
}

// TestLinksEnd: links end with the contents and with the person; what was counted stays.
func TestLinksEnd(t *testing.T) {
	for name, end := range map[string]func(l *linkWorld) error{
		"contents": func(l *linkWorld) error {
			return l.Maintain(context.Background(), storetest.Begin.AddDate(22, 0, 0), storetest.Begin.AddDate(20, 0, 0))
		},
		"person": func(l *linkWorld) error {
			_, err := l.Client.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{linkPhone}, Mark: func(string) string { return "~m" }}, Day: storetest.Day, Now: storetest.Begin.Add(time.Hour)})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			linksOnBoth(t, func(t *testing.T, l *linkWorld) {
				codes := codesIn(l.read(l.step))
				l.Client.MustSend(l.node, storetest.Begin, l.id)
				l.click(codes[0], storetest.Begin.Add(time.Minute), false)
				l.ok(end(l))
				if _, _, err := l.Links.LinkOf(context.Background(), codes[0]); puntuale.CodeOf(err) != puntuale.CodeNotFound {
					t.Errorf("the code still leads somewhere: %v", err)
				}
				if n := l.Int("select count(*) from link where address <> '' or code <> ''"); n != 0 {
					t.Errorf("%d addresses stay", n)
				}
				if r := l.total(); r.Clicked != 1 {
					t.Errorf("results: %+v", r.ResultCounts)
				}
			})
		})
	}
}

// TestLinksNeedAddress: without an address of the service, texts stay as they are.
func TestLinksNeedAddress(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		l.DB.Config.Public = ""
		other := &linkWorld{World: &storetest.World{Store: l.DB.Open(t), DB: l.DB}, Client: l.Client, t: t}
		id := l.start(linkText)
		c, err := other.World.Contents(context.Background(), []puntuale.StepRef{{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(id)}}})
		l.ok(err)
		for _, step := range c {
			if step.Content.Text != linkText {
				t.Errorf("%q", step.Content.Text)
			}
		}
		l.Exec("insert into brand (partner_id, host, mark, confirmed) values ($1, 'wa.agenzia.example', '', 'wa.agenzia.example')", l.Partner)
		c, err = other.World.Contents(context.Background(), []puntuale.StepRef{{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(id)}}})
		l.ok(err)
		for _, step := range c {
			if strings.Count(step.Content.Text, "https://wa.agenzia.example/r/") != 3 {
				t.Errorf("%q", step.Content.Text)
			}
		}
	})
}

// TestPostgresClickInDoubt breaks the connection while a click is committed. Nobody knows whether it was counted, so it is not
// counted again.
func TestPostgresClickInDoubt(t *testing.T) {
	t.Parallel()
	var p *proxy
	l := newLinkWorld(t, func(t testing.TB) *storetest.Database {
		d := storetest.Postgres(t)
		p = behindProxy(t.(*testing.T), d)
		return d
	})
	code := codesIn(l.read(l.step))[0]
	l.Client.MustSend(l.node, storetest.Begin, l.id)
	ref, _, err := l.Links.LinkOf(context.Background(), code)
	l.ok(err)
	at := storetest.Begin.Add(time.Minute)
	for cut, clicks := range map[int32]int64{cutBefore: 0, cutAfter: 1} {
		l.Exec("update link set clicks = 0")
		p.cut.Store(cut)
		left, err := l.Links.RecordClicks(context.Background(), at, []puntuale.Click{{LinkRef: ref, At: at}})
		if puntuale.CodeOf(err) != puntuale.CodeUnavailable || len(left) != 0 || p.cut.Load() != cutNothing {
			t.Errorf("cut %d: %d clicks wait, %v", cut, len(left), err)
		}
		if n := l.Int("select sum(clicks) from link"); n != clicks {
			t.Errorf("cut %d: %d clicks", cut, n)
		}
	}
}

// TestLinksThatDoNotFit: an address stays in a text that would become too long, and no link of it counts as one that nobody
// followed.
func TestLinksThatDoNotFit(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		l.Client.MustSend(l.node, storetest.Begin, l.id)
		text := strings.Repeat("a", puntuale.MaxText-len(" https://a.example")) + " https://a.example"
		id := l.start(text)
		if got := l.read(puntuale.StepRef{RunRef: puntuale.RunRef{Client: l.Client.ID, ID: puntuale.RunID(id)}}); got != text {
			t.Errorf("%d characters, ends with %q", len(got), got[len(got)-40:])
		}
		if n := l.Int("select count(*) from link where run_id = " + id.String()); n != 0 {
			t.Errorf("%d links that no text shows", n)
		}
	})
}

// TestErasedWordsStayCounted: a network's words that name an erased person go, and the failure keeps its reason.
func TestErasedWordsStayCounted(t *testing.T) {
	linksOnBoth(t, func(t *testing.T, l *linkWorld) {
		coded := l.start("Ciao")
		for id, reason := range map[puntuale.MessageID]puntuale.Reason{l.id: puntuale.Quoted("unknown number " + linkPhone), coded: puntuale.Because(puntuale.ReasonUnsent, "no route to "+linkPhone)} {
			token, _ := l.World.MustClaim(l.node, storetest.Begin, l.Client.Items("", 0, id)...)
			_, err := l.Record(context.Background(), storetest.Begin, []puntuale.Result{{MessageRef: puntuale.MessageRef{Client: l.Client.ID, ID: id}, Token: token, Outcome: puntuale.Outcome{Verdict: puntuale.Refused, Reason: reason}}})
			l.ok(err)
		}
		for _, when := range []string{"before", "after"} {
			if r := l.total().Reasons; r["network"] != 1 || r["connector.unsent"] != 1 {
				t.Errorf("%s the erasure: %v", when, r)
			}
			_, err := l.Client.Erase(context.Background(), puntuale.Erasure{Person: puntuale.Person{Names: []string{linkPhone}, Mark: func(name string) string { return mark(l.Client.ID, name) }}, Day: storetest.Day, Now: storetest.Begin})
			l.ok(err)
		}
		if d := l.Client.Detail(l.id); strings.Contains(d.Reason.String(), linkPhone[1:]) {
			t.Errorf("the reason is %q", d.Reason)
		}
	})
}
