package budget

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/plan"
)

// inMemory lists the operations that need no database.
var inMemory = []operation{
	{name: "plan/simple", messages: 3, few: 300, prepare: func(t testing.TB, _ *world, _ int) func(int) error {
		return build(t, reminder(), `{"nome":"Maria"}`)
	}},
	{name: "plan/full", messages: 3, few: 300, prepare: func(t testing.TB, _ *world, _ int) func(int) error {
		return build(t, appointment(), `{"nome":"Maria","quando":"2027-12-01T10:30"}`)
	}},
	{name: "control-start/remembered", messages: 3, few: 300, prepare: func(t testing.TB, _ *world, _ int) func(int) error {
		return startThroughControl(t, 0)
	}},
	{name: "control-start/read-afresh", messages: 3, few: 300, prepare: func(t testing.TB, _ *world, _ int) func(int) error {
		return startThroughControl(t, 2*time.Second) // longer than control remembers data of an earlier call
	}},
	{name: "http-start/store-in-memory", messages: 3, few: 300, prepare: func(t testing.TB, _ *world, _ int) func(int) error {
		m := newFields(t)
		return startOverHTTP(t, m, m.sequence.ID, m.key)
	}},
	{name: "dispatch/queue-in-memory", messages: batch, shared: true, few: 20, prepare: dispatchInMemory},
}

// appointment returns a sequence that uses every feature of planning: steps before and after an anchor, windows,
// holidays, jitter and media.
func appointment() puntuale.Sequence {
	office := &puntuale.Window{Weekdays: []int{1, 2, 3, 4, 5}, From: "09:00", To: "19:00", Holidays: puntuale.HolidaysAvoid}
	return puntuale.Sequence{Name: "Appuntamento", Steps: []puntuale.Step{
		{Text: "Ciao {{nome}}, a {{quando:giorno}} alle {{quando:ora}}", Timing: puntuale.Timing{Anchor: puntuale.AnchorStart}},
		{Text: "Ciao {{nome}}, domani alle {{quando:ora}}", Media: "https://example.com/{{nome}}.pdf", Timing: puntuale.Timing{
			Anchor: "quando", Offset: puntuale.Offset{Amount: 1, Unit: puntuale.Days, Direction: puntuale.Before}, At: "18:00", Window: office, Jitter: 600}},
		{Text: "Grazie", Timing: puntuale.Timing{
			Anchor: "quando", Offset: puntuale.Offset{Amount: 3, Unit: puntuale.Hours, Direction: puntuale.After}, Window: office}},
	}}
}

// build returns an operation that plans the same call every time. Its present time never changes.
func build(t testing.TB, s puntuale.Sequence, body string) func(int) error {
	t.Helper()
	rome, err := time.LoadLocation("Europe/Rome")
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		t.Fatal(err)
	}
	in := plan.Input{Sequence: s, Phone: "+393471234567", Location: rome, Now: time.Date(2027, 11, 17, 9, 0, 0, 0, time.UTC), Seed: 7, Fields: map[string]plan.Value{}}
	for name, text := range members {
		in.Fields[name] = plan.FromJSON(text)
	}
	return func(int) error {
		p, err := plan.Build(in)
		if err == nil && len(p.Messages) != 3 {
			err = fmt.Errorf("%d messages were planned", len(p.Messages))
		}
		return err
	}
}

// startThroughControl starts a sequence through control, beginning with authentication. between is the time between
// two calls.
func startThroughControl(t testing.TB, between time.Duration) func(int) error {
	t.Helper()
	m := newFields(t)
	stands := clock.NewFake(now())
	c := control.New(control.Config{Tenants: m, Devices: m, Maintenance: m, Clock: stands, Sandbox: true})
	call := control.StartCall{Sequence: m.sequence.ID.String(), Phone: "+393471234567", Fields: map[string]json.RawMessage{"nome": json.RawMessage(`"Maria"`)}, Body: []byte(startBody)}
	ctx := t.Context()
	start := func(int) error {
		stands.Advance(between)
		caller, ok := c.Recognize(m.key)
		if ok == (between > 0) {
			return fmt.Errorf("remembered: %v", ok)
		}
		if !ok {
			var err error
			if caller, err = c.Authenticate(ctx, m.key); err != nil {
				return err
			}
		}
		of, err := caller.Client()
		if err != nil {
			return err
		}
		started, err := of.Start(ctx, call)
		if err == nil && len(started.IDs) != 3 {
			err = fmt.Errorf("%d messages were started", len(started.IDs))
		}
		return err
	}
	if between == 0 {
		if _, err := c.Authenticate(ctx, m.key); err != nil { // after this, control remembers the key
			t.Fatal(err)
		}
	}
	if err := start(0); err != nil {
		t.Fatal(err)
	}
	return start
}

// startOverHTTP starts a sequence through the whole HTTP handler: edge, gate, access log, authentication, decoding,
// validation, planning, store and answer.
func startOverHTTP(t testing.TB, operator puntuale.Operator, sequence puntuale.SequenceID, key string) func(int) error {
	t.Helper()
	system := clock.System()
	handler, err := httpapi.New(httpapi.Config{
		Logger: quiet(), Now: system.Now, Admit: admission.Limits{Gate: admission.NewGate(admission.GateConfig{Seats: 256, Now: system.Now}), Budget: admission.NewMemoryBudget(96<<20, nil)},
		Control: control.New(control.Config{Tenants: operator, Devices: operator, Maintenance: operator, Clock: system, Sandbox: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, path, answer := t.Context(), "/api/start/"+sequence.String(), &reply{}
	start := func(int) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, path, bytes.NewReader([]byte(startBody)))
		if err != nil {
			return err
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("Content-Type", "application/json")
		*answer = reply{header: http.Header{}}
		handler.ServeHTTP(answer, r)
		if answer.status != http.StatusOK {
			return fmt.Errorf("%d %s", answer.status, answer.body.Bytes())
		}
		return nil
	}
	for range 3 { // the first calls fill caches
		if err := start(0); err != nil {
			t.Fatal(err)
		}
	}
	return start
}

// reply is an http.ResponseWriter that stores the answer and costs little.
type reply struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *reply) Header() http.Header { return r.header }

func (r *reply) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *reply) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	return r.body.Write(p)
}

// fields implements [puntuale.Operator] for one client. The client's tenant reads from memory. A call costs as much as
// a real call without the store.
type fields struct {
	puntuale.Operator // for the methods that a start does not call
	key               string
	principal         puntuale.Principal
	sequence          puntuale.Sequence
	ids               atomic.Int64
}

func newFields(t testing.TB) *fields {
	t.Helper()
	m := &fields{sequence: reminder()}
	m.sequence.ID = 1
	m.key, _ = newKey(t, puntuale.ClientSide)
	account := puntuale.NewAccount(puntuale.AccountFull, puntuale.DateOf(now()))
	account.ID, account.Name, account.Revision = 1, "Studio Bianchi", 1
	m.principal = puntuale.Principal{Side: puntuale.ClientSide, Partner: 1, Client: account, Key: 1}
	return m
}

func (*fields) UseKey(context.Context, puntuale.KeyID, time.Time) error { return nil }

func (m *fields) Principal(_ context.Context, hash puntuale.KeyHash, _ time.Time) (puntuale.Principal, error) {
	if known, _, _ := auth.ParseKey(m.key); known != hash {
		return puntuale.Principal{}, errors.New("an unknown key")
	}
	return m.principal, nil
}

func (m *fields) Tenant(puntuale.ClientID) puntuale.Tenant { return tenant{m: m} }

type tenant struct {
	puntuale.Tenant
	m *fields
}

func (t tenant) StartInfo(context.Context, puntuale.SequenceID) (puntuale.Sequence, puntuale.Session, error) {
	return t.m.sequence, puntuale.Session{ID: 1, Client: 1, Sandbox: true}, nil
}

func (t tenant) Start(_ context.Context, s puntuale.StartRun) (puntuale.StartedRun, error) {
	n := int64(len(s.Messages))
	last := t.m.ids.Add(n)
	started := puntuale.StartedRun{IDs: make([]puntuale.MessageID, n), Usage: puntuale.Usage{Cap: puntuale.UncountedCap, Used: last}}
	for i := range started.IDs {
		started.IDs[i] = puntuale.MessageID(last - n + int64(i) + 1)
	}
	return started, nil
}
