package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/store/storetest"
)

// TestSameOnBoth makes the same random calls on both databases, one after another. It compares all answers, and at
// the end all stored rows. The seed is in the test's name: -run 'TestSameOnBoth/seed=7'.
func TestSameOnBoth(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			postgres := storetest.Postgres(t)
			a := newHistory(t, storetest.SQLite(t), seed).run(300)
			b := newHistory(t, postgres, seed).run(300)
			for i := range min(len(a), len(b)) {
				if a[i] != b[i] {
					t.Fatalf("after\n%s\nSQLite:     %s\nPostgreSQL: %s", strings.Join(a[max(0, i-5):i], "\n"), a[i], b[i])
				}
			}
			if len(a) != len(b) {
				t.Fatalf("%d and %d answers", len(a), len(b))
			}
		})
	}
}

// history is a store together with the calls that were made on it, and their answers. To make the answers of two stores
// comparable, each identifier is replaced by a number, in the order of appearance.
type history struct {
	w       *storetest.World
	r       *rand.Rand
	clients []*storetest.Client
	node    puntuale.NodeID
	log     []string

	names    map[puntuale.MessageID]int
	messages []puntuale.MessageRef
	claimed  []puntuale.Result // attempts without an outcome
	token    int64
	tokens   map[int64]int
}

func newHistory(t *testing.T, d *storetest.Database, seed uint64) *history {
	w := storetest.NewWorld(t, d)
	h := &history{w: w, r: rand.New(rand.NewPCG(seed, 1)), node: w.MustJoin(), names: map[puntuale.MessageID]int{}, tokens: map[int64]int{}}
	for i := range 2 {
		h.clients = append(h.clients, w.Client(puntuale.AccountTest, func(c *puntuale.Client) {
			c.Credits, c.Cap = new(int64(10+40*i)), new(int64(60))
		}))
	}
	return h
}

func (h *history) say(format string, args ...any) {
	h.log = append(h.log, fmt.Sprintf(format, args...))
}

func (h *history) name(ids []puntuale.MessageID) (names []int) {
	for _, id := range ids {
		if _, ok := h.names[id]; !ok {
			h.names[id] = len(h.names)
		}
		names = append(names, h.names[id])
	}
	return names
}

func (h *history) client() *storetest.Client { return h.clients[h.r.IntN(len(h.clients))] }
func (h *history) phone() string             { return fmt.Sprintf("+3933300000%d", h.r.IntN(5)) }
func (h *history) now() time.Time            { return h.w.DB.Clock.Now() }

func (h *history) run(steps int) []string {
	verbs := slices.Concat(slices.Repeat([]func(){h.start, h.claim, h.record, h.wait}, 5),
		slices.Repeat([]func(){h.settle, h.blacklist}, 2), []func(){h.stop, h.cancel})
	for range steps {
		verbs[h.r.IntN(len(verbs))]()
	}
	h.end()
	return h.log
}

func (h *history) start() {
	c := h.client()
	due := h.now().Add(time.Duration(h.r.IntN(30)) * time.Second)
	run := c.Run(h.phone(), due, h.r.IntN(5))
	run.IfRunning = []puntuale.IfRunning{puntuale.IfRunningAllow, puntuale.IfRunningSkip, puntuale.IfRunningRestart, puntuale.IfRunningReject}[h.r.IntN(4)]
	running := ""
	if h.r.IntN(3) == 0 {
		run.Idempotency = storetest.Keyed("s", fmt.Sprint(h.r.IntN(8)), fmt.Sprint(h.r.IntN(2)))
		running = run.Idempotency.Key + " " + run.Idempotency.Hash
	}
	r, err := storetest.Start(context.Background(), c, run)
	if err == nil && !r.Replayed {
		for _, id := range r.IDs {
			if ref := (puntuale.MessageRef{Client: c.ID, ID: id}); !slices.Contains(h.messages, ref) {
				h.messages = append(h.messages, ref)
			}
		}
	}
	h.say("start %s %s %v: %v %+v %v %v", run.Run.Phone, run.IfRunning, running, h.name(r.IDs), r.Usage, r.Replayed, puntuale.CodeOf(err))
}

func (h *history) claim() {
	due, err := h.w.Due(context.Background(), []puntuale.QueueCursor{{Session: h.clients[0].Session}, {Session: h.clients[1].Session}}, h.now(), 12)
	if err != nil {
		h.say("due: %v", err)
	}
	slices.SortFunc(due, func(a, b puntuale.DueMessage) int {
		return h.name([]puntuale.MessageID{a.ID})[0] - h.name([]puntuale.MessageID{b.ID})[0]
	})
	h.token++
	token := int64(h.node)<<32 | 1<<31 | h.token
	h.tokens[token] = int(h.token)
	var items []puntuale.ClaimItem
	for _, m := range due {
		if h.r.IntN(4) > 0 && (m.Intent == 0 || h.r.IntN(3) == 0) {
			items = append(items, puntuale.ClaimItem{MessageRef: puntuale.MessageRef{Client: m.Client, ID: m.ID}, Phone: m.Phone, Intent: m.Intent})
		}
	}
	granted, err := h.w.Claim(context.Background(), puntuale.Claim{Node: h.node, Token: token, Now: h.now(), Messages: items})
	for i, g := range granted {
		h.say("claim %v: %v", h.name([]puntuale.MessageID{items[i].ID}), g)
		if g == puntuale.ClaimGranted {
			h.claimed = append(h.claimed, puntuale.Result{MessageRef: items[i].MessageRef, Token: token})
		}
	}
	h.say("claimed %d of %d: %v", len(granted), len(due), err)
}

func (h *history) record() {
	var results []puntuale.Result
	for range h.r.IntN(6) {
		if len(h.claimed) == 0 {
			break
		}
		i := h.r.IntN(len(h.claimed))
		r := h.claimed[i]
		if h.r.IntN(4) > 0 { // a result that stays in claimed may be recorded again later
			h.claimed = slices.Delete(h.claimed, i, i+1)
		}
		if slices.ContainsFunc(results, func(o puntuale.Result) bool { return o.ID == r.ID }) {
			continue
		}
		r.Outcome = puntuale.Outcome{Verdict: puntuale.Verdict(1 + h.r.IntN(4)), Next: h.now().Add(time.Duration(h.r.IntN(20)) * time.Second),
			Reason: puntuale.Quoted("perché"), Detail: puntuale.Quoted("dettaglio"), Failed: h.r.IntN(2) == 0}
		results = append(results, r)
	}
	applied, err := h.w.Record(context.Background(), h.now(), results)
	for i, r := range results {
		h.say("record %v of %d: %v %v", h.name([]puntuale.MessageID{r.ID}), h.tokens[r.Token], r.Outcome.Verdict, applied[i])
	}
	h.say("recorded: %v", err)
}

func (h *history) settle() {
	if len(h.messages) == 0 {
		return
	}
	var all []puntuale.Settlement
	for range h.r.IntN(3) {
		ref := h.messages[h.r.IntN(len(h.messages))]
		s := puntuale.Settlement{MessageRef: ref, State: puntuale.State(2 * h.r.IntN(2)), Next: h.now().Add(time.Minute), Reason: puntuale.Because(puntuale.ReasonExpired)}
		if i := slices.IndexFunc(h.claimed, func(r puntuale.Result) bool { return r.ID == ref.ID }); i >= 0 && h.r.IntN(2) == 0 {
			s.Intent, s.Reason = h.claimed[i].Token, puntuale.Because(puntuale.ReasonUncertain)
		}
		if !slices.ContainsFunc(all, func(o puntuale.Settlement) bool { return o.ID == s.ID }) {
			all = append(all, s)
		}
	}
	h.say("settle %d: %v", len(all), h.w.Settle(context.Background(), h.node, h.now(), all))
}

func (h *history) stop() {
	c, phone := h.client(), h.phone()
	r, err := c.Stop(context.Background(), c.Sequence, []string{phone}, "", storetest.Day, h.now())
	h.say("stop %s: %v %+v %v", phone, h.name(r.IDs), r.Usage, err)
}

func (h *history) cancel() {
	all := h.r.IntN(8) == 0
	done, err := storetest.CancelPending(context.Background(), h.client(), []string{h.phone(), h.phone()}, all, storetest.Day, h.now())
	for _, m := range done {
		h.say("cancelled %v %v", h.name([]puntuale.MessageID{m.ID}), m.Desired)
	}
	h.say("cancel %v: %d %v", all, len(done), err)
}

func (h *history) blacklist() {
	c, phone := h.client(), h.phone()
	if h.r.IntN(3) == 0 {
		err := c.AddBlacklisted(context.Background(), puntuale.BlacklistEntry{Phone: phone, Added: h.now()}, storetest.Day, nil)
		h.say("blacklist %s: %v", phone, err)
		return
	}
	found, err := c.RemoveBlacklisted(context.Background(), puntuale.Person{Names: []string{phone}}, storetest.Day, storetest.Begin)
	h.say("unlist %s: %v %v", phone, found, err)
}

func (h *history) wait() { h.w.DB.Clock.Advance(time.Duration(h.r.IntN(20)) * time.Second) }

// end adds the stored rows to the log of the history.
func (h *history) end() {
	for i, c := range h.clients {
		var ids []puntuale.MessageID
		for _, ref := range h.messages {
			if ref.Client == c.ID {
				ids = append(ids, ref.ID)
			}
		}
		details, err := c.Details(context.Background(), ids)
		for _, d := range details {
			d.Client, d.Session, d.Run, d.Request = 0, 0, 0, nil
			if d.Intent > 0 {
				d.Intent = int64(h.tokens[d.Intent])
			}
			name := h.name([]puntuale.MessageID{d.ID})
			d.ID = 0
			h.say("message %v: %+v", name, d)
		}
		h.say("client %d: %d messages, %v, %d credits, ledger %d, used %d, events %d", i, len(details), err,
			h.w.Int("select credits from client where id = $1", c.ID), h.w.Int("select sum(amount) from credit_entry where client_id = $1", c.ID),
			h.w.Int("select coalesce(max(used), 0) from api_usage where client_id = $1", c.ID), h.w.Int("select count(*) from event where client_id = $1", c.ID))
	}
}
