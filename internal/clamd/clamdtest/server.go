// Package clamdtest simulates clamd. It checks how files are sent, and keeps a ledger of them.
package clamdtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// Virus is the text in which the simulated clamd, as any scanner, finds EICAR's test virus. It has two parts here, so that no
// scanner finds it in this file.
const Virus = `X5O!P%@AP[4\PZX54(P^)7CC)7}$EICAR-` + `STANDARD-ANTIVIRUS-TEST-FILE!$H+H*`

// Finding is what it calls the virus.
const Finding = "Eicar-Test-Signature"

// maxChunk is the longest chunk that it takes.
const maxChunk = 1 << 20

// Server is a simulated clamd. Set its fields before the first call, or with Change.
type Server struct {
	Address string
	Limit   int64  // StreamMaxLength; 0: 25 MB
	Answer  string // instead of the verdict, written as it is; "": the verdict
	Hang    bool   // it answers nothing

	mu      sync.Mutex
	scanned [][]byte
	faults  []string
	pings   int
	network net.Listener
	open    map[net.Conn]bool
}

// New starts a server at an address, such as 127.0.0.1:0 or the path of a unix socket. It ends with the test, which fails if a
// file was not sent as clamd demands.
func New(t testing.TB, address string) *Server {
	t.Helper()
	network := "tcp"
	if strings.HasPrefix(address, "/") {
		network = "unix"
	}
	l, err := net.Listen(network, address) //nolint:noctx // the test ends it
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: l.Addr().String(), network: l, open: map[net.Conn]bool{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[conn] = true
			s.mu.Unlock()
			all.Go(func() { s.serve(conn) })
		}
	})
	t.Cleanup(func() {
		s.Stop()
		all.Wait()
		for _, f := range s.faults {
			t.Errorf("clamd: %s", f)
		}
	})
	return s
}

// Stop ends the server: from then on, nobody reaches it.
func (s *Server) Stop() {
	_ = s.network.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

// Change changes the server's fields between calls.
func (s *Server) Change(change func(*Server)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// Scanned returns all files that came whole, in their order.
func (s *Server) Scanned() [][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([][]byte{}, s.scanned...)
}

// Pings returns how often somebody asked whether it is there.
func (s *Server) Pings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pings
}

func (s *Server) serve(conn net.Conn) {
	answer := s.answer(conn)
	s.mu.Lock()
	if s.Answer != "" {
		answer = s.Answer
	}
	hang := s.Hang
	s.mu.Unlock()
	if hang {
		_, _ = io.Copy(io.Discard, conn) // until the caller gives up
	} else if answer != "" {
		_, _ = io.WriteString(conn, answer)
	}
	_ = conn.Close()
	s.mu.Lock()
	delete(s.open, conn)
	s.mu.Unlock()
}

func (s *Server) fault(format string, args ...any) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
	return "UNKNOWN COMMAND\x00"
}

func (s *Server) answer(conn net.Conn) string {
	command := make([]byte, 0, 16)
	for one := make([]byte, 1); ; {
		if _, err := io.ReadFull(conn, one); err != nil || len(command) == cap(command) {
			return s.fault("the command %q has no end: %v", command, err)
		}
		if one[0] == 0 {
			break
		}
		command = append(command, one[0])
	}
	switch string(command) {
	case "zPING":
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pings++
		return "PONG\x00"
	case "zINSTREAM":
		return s.stream(conn)
	}
	return s.fault("unknown command %q", command)
}

func (s *Server) stream(conn net.Conn) string {
	s.mu.Lock()
	limit := s.Limit
	s.mu.Unlock()
	if limit == 0 {
		limit = 25 << 20
	}
	var content bytes.Buffer
	for length := make([]byte, 4); ; {
		if _, err := io.ReadFull(conn, length); err != nil {
			return "" // the caller broke off
		}
		n := int64(binary.BigEndian.Uint32(length))
		switch {
		case n == 0:
			s.mu.Lock()
			s.scanned = append(s.scanned, content.Bytes())
			s.mu.Unlock()
			if bytes.Contains(content.Bytes(), []byte(Virus)) {
				return "stream: " + Finding + " FOUND\x00"
			}
			return "stream: OK\x00"
		case n > maxChunk:
			return s.fault("a chunk of %d bytes", n)
		case int64(content.Len())+n > limit:
			return "INSTREAM size limit exceeded. ERROR\x00"
		}
		if _, err := io.CopyN(&content, conn, n); err != nil {
			return ""
		}
	}
}
