//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestAutomationsKilled kills the server with SIGKILL while rules act. Meanwhile people write, programs call hooks, and
// callers start sequences. At the end, the rules have acted exactly once for each occurrence that was acknowledged.
func TestAutomationsKilled(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		r := newRuled(t, database, 1)
		for range pick(3, 20) {
			r.happens(4)
			r.kill(r.nodes[0])
			r.hoursPass()
			r.nodes[0].start()
		}
		r.verify()
	})
}

// TestAutomationsTakenOver kills one of two servers while rules act. The other server does the rest of the work alone.
func TestAutomationsTakenOver(t *testing.T) {
	beside(t)
	r := newRuled(t, postgres(t), 2)
	for i := range pick(1, 5) {
		killed := r.nodes[i%2]
		r.happens(10)
		r.kill(killed)
		r.quiet("what the killed server began is done", notDone)
		r.hoursPass()
		if i+1 < pick(1, 5) {
			killed.start()
		}
	}
	r.verify()
}

// ruled is a client with rules. It has a ledger of what must happen to each person.
type ruled struct {
	*automated
	database string
	nodes    []*server
	random   *rand.Rand
	tellers  *deliverers

	sequences map[string]string // ids of sequences, by the text of their only step
	rules     map[string]string // ids of rules, by the text or the tag that a person gets from them
	hookPath  string            // the path of the hook; only one rule has a hook
	people    []*ruledPerson
	passes    []time.Time // times at which the test made all silences long enough
	kills     int
	waiting   int // how many triggers waited when a server was killed, summed over all kills
	taken     int // how many of these triggers a runner had taken
}

// ruledPerson is one person, with the effects that the rules must have for the person.
type ruledPerson struct {
	phone string
	wants map[string]int // how often the person must get each text or tag

	mu       sync.Mutex
	message  string // id of the message that the person answers
	unsure   bool   // the only call about the person got no answer, so it may have had its effect or not
	begun    time.Time
	answered time.Time
}

// Texts and tags that people get.
const (
	textWelcome  = "benvenuto"
	textThanks   = "grazie"
	textReminder = "promemoria"
	textLeft     = "il promemoria è partito"
	textQuestion = "viene domani?"
	textReply    = "ci vediamo"
	textSilence  = "ci ha pensato?"
	textForm     = "modulo ricevuto"
	textBirthday = "auguri"
	textBooked   = "prenotato"
	textNoted    = "appuntamento fissato"
	tagFirst     = "nuovo"
	tagWrote     = "ha scritto"
)

func newRuled(t *testing.T, database string, nodes int) *ruled {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := &ruled{database: database, random: rand.New(rand.NewPCG(seed, 0)), sequences: map[string]string{}, rules: map[string]string{}}
	for range nodes {
		r.nodes = append(r.nodes, serve(t, database, "--lease", "2s", "--sandbox-latency", "20ms"))
	}
	r.automated = newAutomated(t, r.nodes[0], step("x", 0, ""))
	birthday := map[string]any{"text": textBirthday, "timing": map[string]any{"anchor": "nascita", "if_past": "send_now", "at": "09:00",
		"offset": map[string]any{"amount": 3, "unit": "days", "direction": "before"}}}
	for text, steps := range map[string][]any{
		textWelcome: {step(textWelcome, 0, "")}, textReminder: {step(textReminder, 0, "")}, textQuestion: {step(textQuestion, 0, "")},
		textSilence: {step(textSilence, 0, "")}, textForm: {step(textForm, 0, "")}, textBirthday: {birthday},
	} {
		var made struct{ ID string }
		must(t, "POST", r.base+"/api/sequences", r.key, map[string]any{"name": text, "steps": steps}).into(t, &made)
		r.sequences[text] = made.ID
	}
	var made struct{ ID string }
	must(t, "POST", r.base+"/api/sequences", r.key, map[string]any{"name": textBooked, "booking": map[string]any{"date": "giorno"}, "steps": []any{step(textBooked, 0, "")}}).into(t, &made)
	r.sequences[textBooked] = made.ID
	start := func(text string) string { return `{"kind":"start","sequence":"` + r.sequences[text] + `"}` }
	send := func(text string) string { return `{"kind":"send","text":"` + text + `"}` }
	for of, rule := range map[string]struct{ trigger, actions string }{
		textWelcome:  {`"kind":"reply","words":["info"]`, start(textWelcome)},
		textThanks:   {`"kind":"reply"`, `{"kind":"tag","add":["` + tagWrote + `"]},` + send(textThanks)},
		tagFirst:     {`"kind":"reply","first":true`, `{"kind":"tag","add":["` + tagFirst + `"]}`},
		textReply:    {`"kind":"reply_to","sequence":"` + r.sequences[textQuestion] + `"`, send(textReply)},
		textSilence:  {`"kind":"no_reply","hours":1,"sequence":"` + r.sequences[textQuestion] + `"`, start(textSilence)},
		textLeft:     {`"kind":"outcome","is":"COMPLETED","sequence":"` + r.sequences[textReminder] + `"`, send(textLeft)},
		textForm:     {`"kind":"hook","map":{"phone":"tel","giorno":"giorno"}`, start(textForm) + `,{"kind":"book","sequence":"` + r.sequences[textBooked] + `"}`}, // each act makes a booking
		textNoted:    {`"kind":"booking","is":"created"`, send(textNoted)},
		textBirthday: {`"kind":"date","field":"nascita","repeat":"yearly"`, start(textBirthday)},
	} {
		id, path := r.rule(`{"name":"` + of + `","trigger":{` + rule.trigger + `},"actions":[` + rule.actions + `]}`)
		if r.rules[of] = id; path != "" {
			r.hookPath = path
		}
	}
	r.tellers = newDeliverers(seed)
	return r
}

// happens adds n new people of each kind, and causes the events that rules react to. It returns at a random time, while
// some events are still being delivered.
func (r *ruled) happens(n int) {
	var all [][]delivery
	for range n {
		for _, kind := range []func(*ruledPerson) []func() bool{r.asks, r.talks, r.mumbles, r.fillsForm, r.fillsFormOnce, r.isReminded, r.isSilent, r.answersQuestion, r.isBorn} {
			p := &ruledPerson{phone: fmt.Sprintf("+39346%07d", len(r.people)), begun: time.Now()}
			r.people = append(r.people, p)
			var part []delivery
			for _, tell := range kind(p) {
				part = append(part, delivery{tell, func() {}})
			}
			all = append(all, part)
		}
	}
	r.random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	enough := r.tellers.whenAnswered(1 + r.random.Int64N(int64(len(all))))
	for _, part := range all {
		r.tellers.queue <- part
	}
	select {
	case <-enough:
	case <-time.After(time.Minute):
		r.t.Errorf("the calls got too few answers")
	}
	time.Sleep(time.Duration(r.random.IntN(200)) * time.Millisecond) // the time of a kill must be random; a runner looks for triggers ten times a second
}

// address returns the address of a path on a random server.
func (r *ruled) address(path string) string { return r.nodes[rand.IntN(len(r.nodes))].base + path }

// done makes a call, and reports whether the status was 200.
func (r *ruled) done(method, path string, body, answered any, header ...string) bool {
	a, err := callWith(impatient, method, r.address(path), r.key, body, header...)
	if err == nil && a.status >= 400 && a.status < 500 && !busy(a) {
		r.t.Errorf("%s %s: %d %s", method, path, a.status, a.body)
	}
	return err == nil && a.status == http.StatusOK && (answered == nil || json.Unmarshal(a.body, answered) == nil)
}

// writes returns a function that delivers a reply. The network repeats this function, with the same id for the reply.
func (r *ruled) writes(p *ruledPerson, id, text string) func() bool {
	return func() bool {
		return r.done("POST", "/api/sandbox/replies", map[string]any{"phone": p.phone, "text": text, "network_id": p.phone + id}, nil)
	}
}

// starts returns a function that starts a sequence. The caller repeats this function, with the same idempotency key.
func (r *ruled) starts(p *ruledPerson, sequence string) func() bool {
	return func() bool {
		var made struct{ ID []string }
		if !r.done("POST", "/api/start/"+r.sequences[sequence], map[string]any{"phone": p.phone}, &made, "Idempotency-Key", p.phone) || len(made.ID) == 0 {
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.message = made.ID[0]
		return true
	}
}

// once returns a function that makes the call only the first time. So nobody repeats the call after a lost answer.
func (p *ruledPerson) once(call func() bool) func() bool {
	var once sync.Once
	return func() bool {
		once.Do(func() {
			answered := call()
			p.mu.Lock()
			defer p.mu.Unlock()
			p.unsure = !answered
		})
		return true
	}
}

func (r *ruled) asks(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textWelcome: 1, textThanks: 1, tagFirst: 1}
	return []func() bool{r.writes(p, "", "Info!")}
}

func (r *ruled) talks(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textThanks: 2, tagFirst: 1}
	return []func() bool{r.writes(p, "-1", "ciao"), r.writes(p, "-2", "a domani")}
}

func (r *ruled) mumbles(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textThanks: 1, tagFirst: 1}
	return []func() bool{p.once(func() bool {
		return r.done("POST", "/api/sandbox/replies", map[string]any{"phone": p.phone, "text": "ehm"}, nil)
	})}
}

func (r *ruled) fillsForm(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textForm: 1, textBooked: 1, textNoted: 1}
	return []func() bool{func() bool {
		return post(r.address(r.hookPath), []byte(`{"tel":"`+p.phone+`","giorno":"2099-01-20","at":"`+time.Now().String()+`"}`), "Idempotency-Key", p.phone)
	}}
}

func (r *ruled) fillsFormOnce(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textForm: 1, textBooked: 1, textNoted: 1}
	return []func() bool{p.once(func() bool {
		return post(r.address(r.hookPath), []byte(`{"tel":"`+p.phone+`","giorno":"2099-01-20"}`))
	})}
}

func (r *ruled) isReminded(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textReminder: 1, textLeft: 1}
	return []func() bool{r.starts(p, textReminder)}
}

func (r *ruled) isSilent(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textQuestion: 1, textSilence: 1}
	return []func() bool{r.starts(p, textQuestion)}
}

// answersQuestion returns the calls about a person who gets a question, and answers after the question has arrived.
func (r *ruled) answersQuestion(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textQuestion: 1, textReply: 1, textThanks: 1, tagFirst: 1}
	return []func() bool{r.starts(p, textQuestion), func() bool {
		p.mu.Lock()
		id := p.message
		p.mu.Unlock()
		var page struct{ Messages []detail }
		return r.done("GET", "/api/messages/details?"+url.Values{"message_ids[]": {id}}.Encode(), nil, &page) && len(page.Messages) == 1 && page.Messages[0].State == "COMPLETED"
	}, func() bool {
		if !r.writes(p, "", "va bene")() {
			return false
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.answered.IsZero() {
			p.answered = time.Now()
		}
		return true
	}}
}

// isBorn returns the call that adds a contact with a date. The rule's message for this date is due immediately.
func (r *ruled) isBorn(p *ruledPerson) []func() bool {
	p.wants = map[string]int{textBirthday: 1}
	day := time.Now().AddDate(-30, 0, 1).Format("2006-01-02")
	return []func() bool{func() bool {
		return r.done("POST", "/api/contacts", map[string]any{"phone": p.phone, "fields": map[string]any{"nascita": day}}, nil)
	}}
}

// kill kills a server, and counts the triggers that the server had not finished.
func (r *ruled) kill(s *server) {
	s.kill()
	r.kills++
	r.waiting += number(r.t, r.database, `select count(*) from automation_trigger`)
	r.taken += number(r.t, r.database, `select count(*) from automation_trigger where next_at > at`)
}

// hoursPass makes all timers due, as if the hours of each silence had passed.
func (r *ruled) hoursPass() {
	r.t.Helper()
	db := open(r.t, r.database)
	defer db.Close()
	r.passes = append(r.passes, time.Now())
	if _, err := db.Exec(`update automation_timer set due_at = since + 1`); err != nil {
		r.t.Fatal(err)
	}
}

// notDone counts the work that rules and sessions still have to do. It leaves out timers.
const notDone = `select (select count(*) from automation_trigger) + (select count(*) from message where state = 0) + (select count(*) from automation_date where run_id = 0)`

// quiet waits until the query in the argument left returns 0. If a killed server had taken a trigger, this lasts until
// the trigger's lease ends.
func (r *ruled) quiet(what, left string) {
	r.t.Helper()
	eventually(r.t, 90*time.Second, what, func() bool {
		return len(r.tellers.queue) == 0 && number(r.t, r.database, left) == 0
	})
}

// verify waits until all work is done. Then it compares the test's ledger with the simulated network's ledger and with
// the rules' logs.
func (r *ruled) verify() {
	r.t.Helper()
	r.tellers.end()
	r.quiet("rules and sessions have done everything", notDone)
	r.hoursPass()
	r.quiet("rules have done everything after the silence", notDone+` + (select count(*) from automation_timer)`)
	r.base = r.alive()
	arrived := map[string]map[string]int{textReminder: {}, textQuestion: {}, textBooked: {}} // how often each text arrived at each phone
	for of := range r.rules {
		arrived[of] = map[string]int{}
	}
	known := &replyClient{t: r.t, base: r.base, key: r.key}
	for _, m := range ledger(r.t, r.base, r.key) {
		arrived[m.Text][m.Phone]++
	}
	acted := map[string]map[string]int{}
	for of, rule := range r.rules {
		acted[of] = r.actedOf(known, of, rule)
	}
	arrived[tagFirst] = acted[tagFirst] // a tag that was added twice looks the same as a tag that was added once, so the log decides
	unsure, total := 0, 0
	for _, p := range r.people {
		for text, all := range arrived {
			n, want := all[p.phone], p.wants[text]
			total += n
			least := want
			switch {
			case p.unsure:
				least = 0
			case text == textSilence && r.passedBefore(p):
				want = 1
			case text == textReply && r.passedBefore(p): // the person may have answered the message that the rule sent after the silence
				least = 0
			}
			if n < least || n > want {
				r.t.Errorf("%s had %q %d times, not %d to %d (%v)", p.phone, text, n, least, want, p.wants)
			}
			if logged, ruled := acted[text]; ruled && logged[p.phone] != n {
				r.t.Errorf("%s had %q %d times, and the rule's log says %d", p.phone, text, n, logged[p.phone])
			}
			delete(all, p.phone)
		}
		if p.unsure {
			unsure++
		}
	}
	for text, all := range arrived {
		if len(all) > 0 {
			r.t.Errorf("people who do not exist had %q: %v", text, all)
		}
	}
	if long && (r.waiting == 0 || r.taken == 0) {
		r.t.Errorf("%d kills left %d triggers, %d of them taken: they hit nothing", r.kills, r.waiting, r.taken)
	}
	r.t.Logf("%d kills left %d triggers, %d of them taken; %d people, %d of them after a lost answer; %d effects; %d calls, of which %d had no answer",
		r.kills, r.waiting, r.taken, len(r.people), unsure, total, r.tellers.calls.Load(), r.tellers.lost.Load())
}

// alive returns the address of a running server.
func (r *ruled) alive() string {
	i := slices.IndexFunc(r.nodes, func(s *server) bool { return s.cmd != nil })
	return r.nodes[i].base
}

// passedBefore reports whether the rule's time for an answer may have passed before the person answered.
func (r *ruled) passedBefore(p *ruledPerson) bool {
	return !p.answered.IsZero() && slices.ContainsFunc(r.passes, func(at time.Time) bool { return at.After(p.begun) && at.Before(p.answered) })
}

// actedOf counts in a rule's log how often the rule acted for each person. It checks that the log has no occurrence
// twice, and that the rule's own count is the same.
func (r *ruled) actedOf(known *replyClient, of, rule string) map[string]int {
	r.t.Helper()
	acted, seen, n := map[string]int{}, map[string]bool{}, 0
	for _, f := range pages[struct {
		Phone, Occurrence, Code string
		Acted                   bool
	}](known, "/api/automations/"+rule+"/firings", "firings") {
		if seen[f.Phone+" "+f.Occurrence] {
			r.t.Errorf("the log of %q has the occurrence %s of %s twice", of, f.Occurrence, f.Phone)
		}
		seen[f.Phone+" "+f.Occurrence] = true
		if f.Acted {
			acted[f.Phone]++
			n++
		} else if f.Code != "automation.answered" {
			r.t.Errorf("%q did not act for %s: %s", of, f.Phone, f.Code)
		}
	}
	var itself struct{ Fired int }
	must(r.t, "GET", r.base+"/api/automations/"+rule, r.key, nil).into(r.t, &itself)
	if itself.Fired != n {
		r.t.Errorf("%q says that it acted %d times, and its log has %d", of, itself.Fired, n)
	}
	return acted
}

// TestRestoreRepeatsNoAutomation makes a backup before a silence is long enough. It lets the rule act, and then
// restores the backup. The rule does not act a second time, and its log says why. It still acts on later facts.
func TestRestoreRepeatsNoAutomation(t *testing.T) {
	beside(t)
	databases(t, func(t *testing.T, database string) {
		r := newRuled(t, database, 1)
		r.tellers.end()
		p := &ruledPerson{phone: "+393460000000"}
		r.isSilent(p)[0]()
		r.gets(p.phone, textQuestion)
		eventually(t, 20*time.Second, "the silence begins", func() bool { return number(t, database, `select count(*) from automation_timer`) == 1 })
		file := filepath.Join(t.TempDir(), "backup.zip")
		command(t, "backup", "--to", file, "--data", t.TempDir(), "--database", databaseFlag(database))
		r.hoursPass()
		r.gets(p.phone, textSilence)
		r.nodes[0].kill()

		if r.database = filepath.Join(t.TempDir(), "puntuale.db"); strings.HasPrefix(database, "postgres") {
			r.database = postgres(t)
		}
		command(t, "restore", "--from", file, "--data", t.TempDir(), "--database", databaseFlag(r.database))
		r.hoursPass()
		r.nodes[0] = serve(t, r.database)
		r.base = r.nodes[0].base
		eventually(t, 20*time.Second, "the rule misses the silence", func() bool { return len(r.log(r.rules[textSilence])) > 0 })
		if log := r.log(r.rules[textSilence]); len(log) != 1 || log[0].Acted || log[0].Code != "automation.missed" {
			t.Errorf("the log: %+v", log)
		}
		r.answers(p.phone, "Info!")
		r.gets(p.phone, textWelcome)
		if got := r.got(p.phone); slices.Contains(got, textSilence) {
			t.Errorf("after the restore the person got %v", got)
		}
	})
}
