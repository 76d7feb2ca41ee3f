package mail

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/textproto"
	"net/url"
	"strconv"
	"time"

	gomail "github.com/wneessen/go-mail"

	"puntuale"
	"puntuale/internal/outside"
)

// An attempt has two parts: to connect and sign in, and to send the e-mail. within is the time limit of each part.
const within = 20 * time.Second

// authentications are the methods to sign in to a mail server, the best first. The last two send the password
// unencrypted. So they require TLS, or a server on this machine.
var authentications = []gomail.SMTPAuthType{gomail.SMTPAuthSCRAMSHA256, gomail.SMTPAuthSCRAMSHA1, gomail.SMTPAuthPlain, gomail.SMTPAuthLogin}

// Server is a mail server that accepts e-mails to any address.
type Server struct {
	host     string
	port     int
	implicit bool // true: TLS from the first byte; false: STARTTLS
	plain    bool // the connection has no TLS, which is allowed only on this machine
	user     string
	password string

	dial func(ctx context.Context, network, addr string) (net.Conn, error)
	tls  *tls.Config
}

// ParseServer parses smtps://user:password@host:port, or smtp:// for STARTTLS. The default ports are 465 and 587. If
// the host is this machine, smtp:// has no TLS. The error never contains the address, because the address has a
// password.
func ParseServer(address string) (*Server, error) {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("must be an address such as smtps://user:password@mail.example.com")
	}
	s := &Server{host: u.Hostname(), user: u.User.Username()}
	s.password, _ = u.User.Password()
	switch u.Scheme {
	case "smtps":
		s.implicit, s.port = true, 465
	case "smtp":
		s.plain, s.port = loopback(s.host), 587
	default:
		return nil, fmt.Errorf("must begin with smtps:// or smtp:// (it begins with %q)", u.Scheme+":")
	}
	if text := u.Port(); text != "" {
		if s.port, err = strconv.Atoi(text); err != nil || s.port < 1 || s.port > 65535 {
			return nil, errors.New("must have a port from 1 to 65535, or none")
		}
	}
	if (s.user == "") != (s.password == "") {
		return nil, errors.New("must have both a user and a password, or neither")
	}
	s.dial = (&net.Dialer{}).DialContext
	s.tls = &tls.Config{ServerName: s.host, MinVersion: tls.VersionTLS12}
	return s, nil
}

// WithDialer sets a function that connects to the server. One of the roots must have signed the server's certificate.
// nil means the system's roots.
func (s *Server) WithDialer(dial func(ctx context.Context, network, addr string) (net.Conn, error), roots *x509.CertPool) *Server {
	s.dial, s.tls.RootCAs = dial, roots
	return s
}

func loopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// errAway says that the server accepts no e-mail at all: it is down, or it refuses our sign-in.
var errAway = errors.New("the mail server")

// refusal is a server's answer to one e-mail. It has only the code, because the server's text may contain the address.
type refusal struct {
	code     int
	enhanced string // the enhanced status code, such as 5.1.1
}

func (r refusal) Error() string {
	return fmt.Sprintf("the mail server answered %d %s", r.code, r.enhanced)
}

// final reports whether every further attempt would be refused, too.
func (r refusal) final() bool { return r.code >= 500 }

// send sends one e-mail. The error wraps errAway if the server accepts no e-mail at all. The error is a refusal if the
// server refused this e-mail.
func (s *Server) send(ctx context.Context, m *gomail.Msg) error {
	client, hangUp, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w", errAway, withoutText(err))
	}
	defer hangUp()
	err = client.Send(m)
	if err == nil || m.IsDelivered() { // an error after the server accepted the e-mail does not matter
		_ = client.Close()
		return nil
	}
	if answered, ok := errors.AsType[*gomail.SendError](err); ok && answered.ErrorCode() >= 400 {
		_ = client.Close()
		return refusal{answered.ErrorCode(), answered.EnhancedStatusCode()}
	}
	if answered, ok := errors.AsType[*gomail.SendError](err); ok { // err is left out, because its text contains the addresses
		return fmt.Errorf("%w broke off: %s", errAway, answered.Reason)
	}
	return fmt.Errorf("%w broke off", errAway)
}

// maxCheck is the memory that the answers to a sign-in may take, in bytes. A check may run in a command, which has no
// budget of memory.
const maxCheck = 64 << 10

type checkLimit struct{ left int64 }

func (l *checkLimit) Take(n int64) error {
	if l.left -= n; l.left < 0 {
		return errors.New("it answered too much")
	}
	return nil
}

// Check signs in, and sends nothing. The error contains no address.
func (s *Server) Check(ctx context.Context) error {
	ctx, done := outside.MemoryGrants(func(puntuale.Side, int64) (puntuale.MemoryGrant, func()) {
		return &checkLimit{maxCheck}, func() {}
	}).Client(ctx, 0)
	defer done()
	client, hangUp, err := s.connect(ctx)
	if err != nil {
		return withoutText(err)
	}
	defer hangUp()
	_ = client.Close()
	return nil
}

// connect returns a client that has signed in. The connection ends when ctx ends, or when the caller calls hangUp.
func (s *Server) connect(ctx context.Context) (client *gomail.Client, hangUp func(), err error) {
	hangUp = func() {}
	dial := func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := s.dial(dialing, network, addr)
		if err != nil {
			return nil, err
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		hangUp = func() { stop(); _ = conn.Close() }
		conn = outside.Mail.Conn(ctx, conn)
		if !s.implicit {
			return conn, nil
		}
		secured := tls.Client(conn, s.tls)
		if err := secured.HandshakeContext(dialing); err != nil {
			return nil, err
		}
		return secured, nil
	}
	policy := gomail.TLSMandatory
	if s.implicit || s.plain {
		policy = gomail.NoTLS // no STARTTLS, because the connection already has TLS, or needs none
	}
	options := []gomail.Option{
		gomail.WithPort(s.port), gomail.WithTimeout(within), gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(s.tls), gomail.WithDialContextFunc(dial), gomail.WithoutNoop(),
	}
	if s.user != "" {
		options = append(options, gomail.WithUsername(s.user), gomail.WithPassword(s.password), gomail.WithOpportunisticSMTPAuth(authentications...))
	}
	if client, err = gomail.NewClient(s.host, options...); err == nil {
		err = client.DialWithContext(ctx)
	}
	if err != nil {
		hangUp()
		return nil, nil, err
	}
	return client, hangUp, nil
}

// withoutText returns only the code of a server's answer, because the text may contain the user.
func withoutText(err error) error {
	if answer, ok := errors.AsType[*textproto.Error](err); ok {
		return refusal{code: answer.Code}
	}
	return err
}
