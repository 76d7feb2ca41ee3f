//go:build e2e

package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestDevicesKilled kills servers with SIGKILL while three devices take messages and report them. Each device calls any
// server that it can reach. If an answer is lost, the device repeats the call, as docs/device.md says. Each message is
// shown once, by only one device. Each message gets the outcome that its device declared.
func TestDevicesKilled(t *testing.T) {
	beside(t)
	kills, each := 5, 60
	if long {
		kills, each = 50, 100
	}
	databases(t, func(t *testing.T, database string) {
		p := newDevicePost(t, database)
		for range 3 {
			p.link()
		}
		p.work()
		for range kills {
			for i := range each {
				p.begin(i)
			}
			node := p.nodes[p.random.IntN(len(p.nodes))]
			p.await("some were declared", p.declared()+each/2)
			node.kill()
			node.start()
		}
		p.await("all were declared", len(p.ids))
		p.stop()
		p.compare()
	})
}

// devicePost is a session that sends through devices, on one or two servers that are killed.
type devicePost struct {
	t        *testing.T
	database string
	nodes    []*server
	key      string
	session  string
	random   *rand.Rand
	ids      []string
	devices  []*postDevice
	ended    chan struct{}
	working  sync.WaitGroup
}

// postDevice is a device with its own record of what it did.
type postDevice struct {
	p     *devicePost
	n     int
	token string
	rand  *rand.Rand
	takes int

	mu       sync.Mutex
	shown    map[string]int    // how many times the device showed each message
	outcomes map[string]string // by message: the outcome that the device declared, after the server acknowledged it
}

type takenMessage struct {
	ID      string `json:"message_id"`
	Attempt string
}

func newDevicePost(t *testing.T, database string) *devicePost {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	p := &devicePost{t: t, database: database, random: rand.New(rand.NewPCG(seed, 0)), ended: make(chan struct{})}
	p.nodes = append(p.nodes, serve(t, database, "--lease", "2s"))
	if database[0] == 'p' { // SQLite can have only one server
		p.nodes = append(p.nodes, serve(t, database, "--lease", "2s"))
	}
	who := createTenant(t, p.nodes[0].base, createPartner(t, database), "full", step("ciao", 0, "seconds"))
	var made struct{ ID string }
	must(t, "POST", p.nodes[0].base+"/api/sessions", who.key, map[string]any{
		"name": "telefoni", "connection_type": "Send_app", "sandbox": false, "device": map[string]any{}}).into(t, &made)
	p.key, p.session = who.key, made.ID
	return p
}

// link links one more device.
func (p *devicePost) link() {
	p.t.Helper()
	base := p.nodes[0].base
	var offered struct {
		Code string `json:"pairing_code"`
	}
	must(p.t, "POST", base+"/api/sessions/"+p.session+"/pair", p.key, map[string]any{}).into(p.t, &offered)
	n := len(p.devices)
	var linked struct {
		Token string `json:"device_token"`
	}
	must(p.t, "POST", base+"/device/link", "", map[string]any{"code": offered.Code, "name": fmt.Sprint("telefono ", n)}).into(p.t, &linked)
	p.devices = append(p.devices, &postDevice{p: p, n: n, token: linked.Token, rand: rand.New(rand.NewPCG(p.random.Uint64(), 0)),
		shown: map[string]int{}, outcomes: map[string]string{}})
}

// begin makes a message that is due immediately. It repeats the call until a server answers, because servers are
// killed.
func (p *devicePost) begin(i int) {
	p.t.Helper()
	body := map[string]any{"phone": fmt.Sprintf("+39347%07d", i%50), "text": "ciao", "id_sessione": p.session}
	var made struct{ ID []string }
	must(p.t, "POST", p.nodes[p.random.IntN(len(p.nodes))].base+"/api/messages", p.key, body).into(p.t, &made)
	p.ids = append(p.ids, made.ID...)
}

func (p *devicePost) work() {
	for _, d := range p.devices {
		p.working.Go(d.run)
	}
}

func (p *devicePost) stop() {
	close(p.ended)
	p.working.Wait()
}

// declared returns for how many messages a server acknowledged an outcome.
func (p *devicePost) declared() (n int) {
	for _, d := range p.devices {
		d.mu.Lock()
		n += len(d.outcomes)
		d.mu.Unlock()
	}
	return n
}

func (p *devicePost) await(what string, n int) {
	p.t.Helper()
	eventually(p.t, 90*time.Second, what, func() bool { return p.declared() >= min(n, len(p.ids)) })
}

// run takes messages, shows them, and declares their outcomes, until the test ends.
func (d *postDevice) run() {
	for {
		select {
		case <-d.p.ended:
			return
		default:
		}
		d.takes++
		var taken struct{ Messages []takenMessage }
		if !d.call("/device/take", map[string]any{"take": fmt.Sprint("take ", d.takes), "max": 1 + d.rand.IntN(5), "wait": 1, "lease": 600}, &taken) {
			return
		}
		for _, m := range taken.Messages {
			d.show(m)
		}
	}
}

// show acts as the person who reads the message. It repeats the declared outcome until a server answers.
func (d *postDevice) show(m takenMessage) {
	d.mu.Lock()
	d.shown[m.ID]++
	d.mu.Unlock()
	outcome := "sent"
	if d.rand.IntN(10) == 0 {
		outcome = "refused"
	}
	var answer struct{ Results []struct{ Result string } }
	if !d.call("/device/report", map[string]any{"reports": []any{map[string]any{"attempt": m.Attempt, "outcome": outcome}}}, &answer) {
		return
	}
	if r := answer.Results[0].Result; r != "recorded" && r != "known" { // "known" means that the answer to an earlier report was lost
		d.p.t.Errorf("message %s, %s: %s", m.ID, outcome, r)
	}
	d.mu.Lock()
	d.outcomes[m.ID] = outcome
	d.mu.Unlock()
}

// call repeats a call until a server accepts it. It returns false if the test has ended, or if a server refuses the call
// for another reason than overload. Such a refusal fails the test.
func (d *postDevice) call(path string, body, into any) bool {
	for {
		node := d.p.nodes[d.rand.IntN(len(d.p.nodes))]
		a, err := call("POST", node.base+path, d.token, body)
		switch {
		case err == nil && a.status == http.StatusOK:
			a.into(d.p.t, into)
			return true
		case err == nil && a.status < 500 && a.status != http.StatusTooManyRequests:
			d.p.t.Errorf("%s: %d %s", path, a.status, a.body)
			return false
		}
		select {
		case <-d.p.ended:
			return false
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// compare compares the devices' records with the answers of the client's API.
func (p *devicePost) compare() {
	p.t.Helper()
	declared := map[string]string{}
	for _, d := range p.devices {
		for id, n := range d.shown {
			if n != 1 || declared[id] != "" {
				p.t.Errorf("message %s was shown %d times, and by another device: %t", id, n, declared[id] != "")
			}
			declared[id] = d.outcomes[id]
		}
	}
	sent, refused := 0, 0
	for id, m := range details(p.t, p.nodes[0].base, p.key, p.ids) {
		want := map[string]string{"sent": "COMPLETED", "refused": "FAILED"}[declared[id]]
		if m.State != want {
			p.t.Errorf("message %s was declared %q and is %s", id, declared[id], m)
		}
		if want == "COMPLETED" {
			sent++
		} else {
			refused++
		}
	}
	p.t.Logf("%d messages by %d devices at %d servers: %d sent, %d refused", len(p.ids), len(p.devices), len(p.nodes), sent, refused)
	if n := rowsOf(p.t, p.database, "select count(*) from message where intent >= 0"); n != 0 {
		p.t.Errorf("%d messages are open", n)
	}
}
