// Package mailtest is a mail server for tests. It uses real SMTP with TLS, and stores the e-mails that it accepted.
// Tests can make it refuse an e-mail, wait, or break a connection.
package mailtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
)

// The only user, and the host in the certificate.
const (
	Host     = "mail.example.com"
	User     = "puntuale@example.com"
	Password = "una parola: d'ordine/segreta"
)

// Received is an e-mail that the server accepted.
type Received struct {
	From, To string // the addresses of the envelope
	User     string // the user who signed in; "": nobody signed in
	TLS      bool
	Header   mail.Header
	Subject  string
	Text     string
	HTML     string
}

// Server is a mail server on this machine.
type Server struct {
	t     testing.TB
	addr  string
	roots *x509.CertPool
	tls   *tls.Config
	how   Options

	mu       sync.Mutex
	running  *smtp.Server
	received []Received
	asked    int
	recipe   func(to string) error
	data     func(to string) error
	took     func(to string)
}

// Options select the kind of server.
type Options struct {
	Implicit bool // true: connections use TLS from the first byte
	NoTLS    bool // true: the server offers no TLS
	Open     bool // true: the server accepts e-mails without a sign-in
}

// New starts a server, which stops at the end of the test.
func New(t testing.TB, how Options) *Server {
	t.Helper()
	s := &Server{t: t, how: how, addr: "127.0.0.1:0"}
	s.certify()
	s.Start()
	t.Cleanup(s.Stop)
	return s
}

// certify makes a self-signed certificate for Host.
func (s *Server) certify() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: Host}, DNSNames: []string{Host}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		s.t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		s.t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(parsed)
	s.tls = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// Start starts the server again after Stop, at the same address.
func (s *Server) Start() {
	s.t.Helper()
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	s.addr = l.Addr().String()
	out := smtp.NewServer(s)
	out.Domain, out.AllowInsecureAuth, out.ErrorLog = Host, s.how.NoTLS, quiet{}
	if !s.how.NoTLS {
		out.TLSConfig = s.tls
	}
	if s.how.Implicit {
		l = tls.NewListener(l, s.tls)
	}
	s.mu.Lock()
	s.running = out
	s.mu.Unlock()
	go func() { _ = out.Serve(l) }()
}

// Stop breaks all connections, and refuses new ones until Start.
func (s *Server) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		_ = s.running.Close()
		s.running = nil
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

// Addr returns the server's address, 127.0.0.1:PORT.
func (s *Server) Addr() string { return s.addr }

// Dial connects to this server for any address, so that tests need no DNS.
func (s *Server) Dial(ctx context.Context, network, _ string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, network, s.addr)
}

// Roots returns a pool with the server's certificate.
func (s *Server) Roots() *x509.CertPool { return s.roots }

// Recipients sets the function that answers each recipient. With nil, the server accepts all recipients.
func (s *Server) Recipients(answer func(to string) error) { s.set(func() { s.recipe = answer }) }

// Data sets the function that answers each complete e-mail. With nil, the server accepts all e-mails.
func (s *Server) Data(answer func(to string) error) { s.set(func() { s.data = answer }) }

// Took sets a function that the server calls after it stored an e-mail and before it answers.
func (s *Server) Took(report func(to string)) { s.set(func() { s.took = report }) }

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// Received returns the accepted e-mails, oldest first.
func (s *Server) Received() []Received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Received{}, s.received...)
}

// Asked returns how many recipients clients have sent.
func (s *Server) Asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// Refuse returns a function that makes an answer with this code. The text contains the recipient, as in the answers of real servers.
func Refuse(code int, enhanced ...int) func(to string) error {
	return func(to string) error {
		e := smtp.EnhancedCode{code / 100, 0, 0}
		copy(e[:], enhanced)
		return &smtp.SMTPError{Code: code, EnhancedCode: e, Message: "<" + to + ">: not here"}
	}
}

// NewSession is called by the SMTP library for each connection.
func (s *Server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	_, secured := c.TLSConnectionState()
	return &session{server: s, secured: secured}, nil
}

type session struct {
	server   *Server
	secured  bool
	user     string
	from, to string
}

func (s *session) AuthMechanisms() []string { return []string{sasl.Plain} }

func (s *session) Auth(string) (sasl.Server, error) {
	return sasl.NewPlainServer(func(_, user, password string) error {
		if user != User || password != Password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "no such user: " + user}
		}
		s.user = user
		return nil
	}), nil
}

func (s *session) Mail(from string, _ *smtp.MailOptions) error {
	if s.user == "" && !s.server.how.Open {
		return smtp.ErrAuthRequired
	}
	s.from = from
	return nil
}

func (s *session) Rcpt(to string, _ *smtp.RcptOptions) error {
	s.server.mu.Lock()
	answer := s.server.recipe
	s.server.asked++
	s.server.mu.Unlock()
	s.to = to
	if answer != nil {
		return answer(to)
	}
	return nil
}

func (s *session) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	s.server.mu.Lock()
	answer, took := s.server.data, s.server.took
	s.server.mu.Unlock()
	if answer != nil {
		if err := answer(s.to); err != nil {
			return err
		}
	}
	got, err := parse(content)
	if err != nil {
		s.server.t.Errorf("an e-mail that nobody can read: %v\n%s", err, content)
		return err
	}
	got.From, got.To, got.User, got.TLS = s.from, s.to, s.user, s.secured
	s.server.set(func() { s.server.received = append(s.server.received, got) })
	if took != nil {
		took(s.to)
	}
	return nil
}

func (s *session) Reset()        { s.from, s.to = "", "" }
func (s *session) Logout() error { return nil }

// parse decodes an e-mail that has a text part and an HTML part, or only text.
func parse(content []byte) (got Received, err error) {
	m, err := mail.ReadMessage(bytes.NewReader(content))
	if err != nil {
		return got, err
	}
	got.Header = m.Header
	if got.Subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject")); err != nil {
		return got, err
	}
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	if err != nil {
		return got, err
	}
	if kind == "text/plain" {
		text, err := io.ReadAll(quotedprintable.NewReader(m.Body))
		got.Text = string(text)
		return got, err
	}
	parts := multipart.NewReader(m.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err == io.EOF {
			return got, nil
		}
		if err != nil {
			return got, err
		}
		text, err := io.ReadAll(quotedprintable.NewReader(part))
		if err != nil {
			return got, err
		}
		if strings.HasPrefix(part.Header.Get("Content-Type"), "text/html") {
			got.HTML = string(text)
		} else {
			got.Text = string(text)
		}
	}
}
