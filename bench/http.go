package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/control"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit/admission"
)

// Names of stores that are measured in addition to the product's store.
const (
	noStore   = "without the store"
	aloneText = "one transaction a request"
)

// call returns the name of the figure for start calls. wholeCall returns the name for start calls with a cap and an
// idempotency key.
func call(connections int, engine string) string {
	return onEngine(fmt.Sprintf("start calls of 3 messages over HTTP, %d connections", connections), engine)
}

func wholeCall(connections int, engine string) string {
	return onEngine(fmt.Sprintf("start calls with cap and idempotency, %d connections", connections), engine)
}

const storeCall = "start calls of 3 messages, store only"

// httpCalls measures complete start calls: HTTP, authentication, decoding, validation, planning, rendering, the commit
// and the answer. Then it measures the same calls with a store in memory, which costs almost nothing.
func (b *bench) httpCalls(ctx context.Context) (failed error) {
	for _, engine := range b.engines() {
		failed = errors.Join(failed, b.storeCalls(ctx, engine))
	}
	for _, connections := range []int{64, 256} {
		for _, v := range b.variants() {
			failed = errors.Join(failed, b.call(ctx, connections, v))
		}
	}
	return failed
}

// variant is one combination of a store and a kind of start call.
type variant struct {
	name   func(connections int, where string) string
	where  string
	engine string
	over   func(context.Context, *fixture) (puntuale.Operator, func(), error) // replaces the store; nil: the store is not replaced
	whole  bool                                                               // the client has a daily cap, and the call has an idempotency key
}

func (b *bench) variants() (all []variant) {
	for _, engine := range b.engines() {
		all = append(all, variant{name: call, where: engine, engine: engine}, variant{name: wholeCall, where: engine, engine: engine, whole: true})
	}
	all = append(all, variant{name: call, where: noStore, engine: sqlite, over: inMemory})
	for _, engine := range b.engines() {
		if b.ours {
			break
		}
		all = append(all, variant{name: call, where: aloneText + ", " + engine, engine: engine, over: oneByOne})
	}
	return all
}

// call measures one variant.
func (b *bench) call(ctx context.Context, connections int, v variant) error {
	f, err := b.fixture(ctx, v.engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	if v.whole {
		if err := f.setCaps(ctx); err != nil {
			return err
		}
	}
	var operator puntuale.Operator = f.store
	if v.over != nil {
		o, done, err := v.over(ctx, f)
		if err != nil {
			return err
		}
		defer done()
		operator = o
	}
	name, calls, deadline := v.name(connections, v.where), b.calls, time.Duration(0)
	if v.over != nil && v.where != noStore {
		calls /= 4 // this variant is slow, and no target uses it
		deadline = 30 * time.Second
	}
	address, stop, err := serve(operator, deadline)
	if err != nil {
		return err
	}
	defer stop()
	if err := f.callAll(ctx, address, connections, 4*connections, 0, v.whole); err != nil { // warms up connections, query plans and statements
		return err
	}
	w := b.watch(v.engine)
	took, err := f.drive(ctx, address, connections, calls, 4*connections, v.whole)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	b.sheet.note(name, perSecond, float64(calls)/took.Seconds())
	w.note(name, calls)
	return nil
}

// storeCalls measures starts in the store, without HTTP.
func (b *bench) storeCalls(ctx context.Context, engine string) error {
	f, err := b.fixture(ctx, engine, 0)
	if err != nil {
		return err
	}
	defer f.close()
	now := clock.System().Now()
	due := now.AddDate(0, 0, 1)
	w := b.watch(engine)
	took, err := each(b.calls, b.workers, func(_, i int) error {
		id, run := f.startRun(i, 3, due, now)
		_, err := f.store.Tenant(id).Start(ctx, run)
		return err
	})
	if err == nil {
		b.sheet.note(onEngine(storeCall, engine), perSecond, float64(b.calls)/took.Seconds())
		w.note(onEngine(storeCall, engine), b.calls)
	}
	return err
}

// serve answers API calls on a port of its own.
func serve(operator puntuale.Operator, deadline time.Duration) (address string, stop func(), err error) {
	api, err := httpapi.New(httpapi.Config{
		Logger: slog.New(slog.NewJSONHandler(io.Discard, nil)), Now: clock.System().Now, // a real server logs each call, so this one does too
		Admit:   admission.Limits{Gate: admission.NewGate(admission.GateConfig{Seats: 256, LongestWait: deadline, Now: clock.System().Now})},
		Control: control.New(control.Config{Tenants: operator, Devices: operator, Maintenance: operator, Clock: clock.System(), Sandbox: true}),
	})
	if err != nil {
		return "", nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	server := &http.Server{Handler: api}
	go func() { _ = server.Serve(l) }()
	return l.Addr().String(), func() { _ = server.Close() }, nil
}

// caller is one connection of a load generator. It uses little processor time, because the measured server runs on the
// same processors.
type caller struct {
	net.Conn
	in  *bufio.Reader
	out bytes.Buffer
}

func dial(address string) (*caller, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	return &caller{Conn: conn, in: bufio.NewReader(conn)}, nil
}

// post sends a body as JSON and reads the answer. The argument once is the idempotency key; "": none. post returns an
// error if the status is an error.
func (c *caller) post(path, key, once string, body []byte) error {
	headers := "Authorization: Bearer " + key + "\r\n"
	if once != "" {
		headers += "Idempotency-Key: " + once + "\r\n"
	}
	return c.send(path, headers, body)
}

// send is like post, with headers instead of a key. Each header must end with a line break.
func (c *caller) send(path, headers string, body []byte) error {
	c.out.Reset()
	fmt.Fprintf(&c.out, "POST %s HTTP/1.1\r\nHost: bench\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, headers, len(body))
	c.out.Write(body)
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := c.Write(c.out.Bytes()); err != nil {
		return err
	}
	status, err := c.in.ReadString('\n')
	if err != nil {
		return err
	}
	length := -1
	for {
		line, err := c.in.ReadSlice('\n')
		if err != nil {
			return err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		if value, ok := bytes.CutPrefix(line, []byte("Content-Length: ")); ok {
			if length, err = strconv.Atoi(string(value)); err != nil {
				return err
			}
		}
	}
	if length < 0 {
		return errors.New("an answer without a length")
	}
	if status != "HTTP/1.1 200 OK\r\n" {
		text, _ := io.ReadAll(io.LimitReader(c.in, int64(length)))
		return fmt.Errorf("%s: %s", status, text)
	}
	_, err = c.in.Discard(length)
	return err
}
