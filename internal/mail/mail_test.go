package mail_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"puntuale"
	"puntuale/internal/clock"
	"puntuale/internal/mail"
	"puntuale/internal/mail/mailtest"
	"puntuale/internal/store/storetest"
)

const from = "no-reply@agenzia.example"

// world contains a mailer, its queue in a real store, and a mail server.
type world struct {
	*mail.Mailer
	*mailtest.Server
	t      *testing.T
	queue  puntuale.MailStore
	clock  *clock.Fake
	logged *strings.Builder

	mu      sync.Mutex
	letters map[puntuale.UserID]puntuale.Letter
	results map[string]int
	paid    map[string]int64 // how many bytes of answers each owner was charged for
}

// payer is the memory grant of an owner that has no memory left.
type payer struct {
	w     *world
	owner string
}

func (p payer) Take(n int64) error {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.paid[p.owner] += n
	return puntuale.Overloaded(0)
}

// secure returns the address of a server that requires TLS and a password.
func secure(scheme string) string {
	return scheme + "://" + url.QueryEscape(mailtest.User) + ":" + url.PathEscape(mailtest.Password) + "@" + mailtest.Host
}

func newWorld(t *testing.T, address string, how mailtest.Options) *world {
	t.Helper()
	db := storetest.SQLite(t)
	w := &world{t: t, Server: mailtest.New(t, how), queue: db.Open(t), clock: db.Clock, logged: &strings.Builder{}, letters: map[puntuale.UserID]puntuale.Letter{}, results: map[string]int{}, paid: map[string]int64{}}
	server, err := mail.ParseServer(address)
	if err != nil {
		t.Fatal(err)
	}
	w.Mailer, err = mail.New(mail.Config{
		Store: w.queue, Server: server.WithDialer(w.Dial, w.Roots()), From: from, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(w.logged, nil)),
		Letter: func(_ context.Context, m puntuale.Mail) (puntuale.Letter, bool, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			l, needed := w.letters[m.User]
			return l, needed, nil
		},
		Memory: func(side puntuale.Side, id int64) (puntuale.MemoryGrant, func()) {
			return payer{w, fmt.Sprint(side, " ", id)}, func() {}
		},
		Observe: func(result string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.results[result]++
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// write queues a letter to a user.
func (w *world) write(user puntuale.UserID, change ...func(*puntuale.Letter)) {
	w.t.Helper()
	l := puntuale.Letter{
		Kind: puntuale.MailReset, To: fmt.Sprintf("utente%d@example.com", user), Language: "it", Link: "https://app.example/reset?t=SEGRETO&x=1",
		Host: puntuale.Host{Partner: puntuale.Partner{Name: "Agenzia Aurora"}},
	}
	for _, f := range change {
		f(&l)
	}
	w.letters[user] = l
	if err := w.queue.QueueMails(w.t.Context(), []puntuale.Mail{{Partner: 1, User: user, Kind: l.Kind, Queued: w.clock.Now()}}, 0); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) round() {
	w.t.Helper()
	if err := w.Round(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// The method named is checks how many attempts had each result.
func (w *world) is(taken, failed, givenUp int) {
	w.t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.results[mail.Taken] != taken || w.results[mail.Failed] != failed || w.results[mail.GivenUp] != givenUp {
		w.t.Errorf("results: %v, want %d taken, %d failed, %d given up\n%s", w.results, taken, failed, givenUp, w.logged)
	}
}

// TestMail sends an e-mail through each kind of mail server, and checks what the reader gets.
func TestMail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		how     mailtest.Options
		tls     bool
		user    string
	}{
		"smtps":                     {secure("smtps"), mailtest.Options{Implicit: true}, true, mailtest.User},
		"starttls":                  {secure("smtp"), mailtest.Options{}, true, mailtest.User},
		"this machine":              {"smtp://127.0.0.1", mailtest.Options{NoTLS: true, Open: true}, false, ""},
		"this machine and password": {strings.Replace(secure("smtp"), mailtest.Host, "localhost", 1), mailtest.Options{NoTLS: true}, false, mailtest.User},
		"nobody signs in":           {"smtps://" + mailtest.Host, mailtest.Options{Implicit: true, Open: true}, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.address, c.how)
			w.write(1)
			w.round()
			w.is(1, 0, 0)
			all := w.Received()
			if len(all) != 1 {
				t.Fatalf("received %+v", all)
			}
			if r := all[0]; r.From != from || r.To != "utente1@example.com" || r.TLS != c.tls || r.User != c.user {
				t.Errorf("received %+v", r)
			}
			if n := w.paid["partner 1"]; n < 100 || len(w.paid) != 1 { // the partner has no memory left, yet the e-mail is sent once
				t.Errorf("paid for the mail server's answers: %v", w.paid)
			}
			w.round() // a second round, which must send nothing
			if len(w.Received()) != 1 {
				t.Error("sent twice")
			}
		})
	}
}

// TestLetter checks an e-mail's text and HTML in the reader's language. The partner's brand must not be able to change
// other parts of the e-mail.
func TestLetter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	w.write(1)
	w.write(2, func(l *puntuale.Letter) {
		l.Kind, l.Language = puntuale.MailInvitation, "en"
		l.Host.Brand = puntuale.Brand{Name: "Èlite & <b>Figli</b>\r\nBcc: x@example.com", Colour: "#ffe680"}
	})
	w.write(3, func(l *puntuale.Letter) { l.Language = "" })
	w.round()
	all := w.Received()
	slices.SortFunc(all, func(a, b mailtest.Received) int { return strings.Compare(a.To, b.To) })
	if len(all) != 3 {
		t.Fatalf("received %+v", all)
	}
	it, en := all[0], all[1]
	if it.Subject != "Una nuova password per Agenzia Aurora" || !strings.Contains(it.Text, "https://app.example/reset?t=SEGRETO&x=1") || !strings.Contains(it.Text, "Vale un’ora") ||
		!strings.Contains(it.HTML, `href="https://app.example/reset?t=SEGRETO&amp;x=1"`) || !strings.Contains(it.HTML, `background:#0b6e63;color:#ffffff`) || !strings.Contains(it.HTML, `lang="it"`) {
		t.Errorf("in Italian: %s\n%s\n%s", it.Subject, it.Text, it.HTML)
	}
	if it.Header.Get("Auto-Submitted") != "auto-generated" || !strings.HasSuffix(it.Header.Get("Message-Id"), "@agenzia.example>") || it.Header.Get("From") != `"Agenzia Aurora" <`+from+`>` {
		t.Errorf("header: %v", it.Header)
	}
	if date, err := it.Header.Date(); err != nil || !date.Equal(w.clock.Now().Truncate(time.Second)) {
		t.Errorf("date: %v, %v", date, err)
	}
	if en.Subject != "Your access to Èlite & <b>Figli</b> Bcc:" || en.Header.Get("Bcc") != "" || !strings.Contains(en.HTML, "Èlite &amp; &lt;b&gt;Figli") ||
		!strings.Contains(en.HTML, `background:#ffe680;color:#10181a`) || !strings.Contains(en.HTML, `lang="en"`) || strings.Contains(en.HTML, "<b>") {
		t.Errorf("in English: %s\n%s\n%v", en.Subject, en.HTML, en.Header)
	}
	if all[2].Subject != it.Subject {
		t.Errorf("without a language: %s", all[2].Subject)
	}
}

// TestBrandWithAddress: a brand's name cannot show an address as the sender's, or in the subject.
func TestBrandWithAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	for i, name := range []string{"Banca Etica <sicurezza@banca.example>", "sicurezza@banca.example", "sicurezza＠banca.example Banca"} {
		w.write(puntuale.UserID(i+1), func(l *puntuale.Letter) {
			l.Host.Brand.Name = name
			if i == 1 {
				l.Host.Partner.Name = name
			}
		})
	}
	w.round()
	all := w.Received()
	slices.SortFunc(all, func(a, b mailtest.Received) int { return strings.Compare(a.To, b.To) })
	for i, want := range []string{"Banca Etica", "Puntuale", "Banca"} {
		if r := all[i]; r.Header.Get("From") != `"`+want+`" <`+from+`>` || !strings.HasSuffix(r.Subject, want) || strings.Contains(r.Text+r.HTML, "banca.example") {
			t.Errorf("%q: %s, %s\n%s", want, r.Header.Get("From"), r.Subject, r.Text)
		}
	}
}

// TestRefused: after a code 4xx the e-mail is sent again, with growing waits. After a code 5xx only that e-mail is
// given up. No address is logged.
func TestRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtp"), mailtest.Options{})
	w.Recipients(mailtest.Refuse(451, 4, 7, 1))
	w.write(1)
	w.round()
	w.is(0, 1, 0)
	w.clock.Advance(time.Minute - time.Second)
	w.round()
	w.is(0, 1, 0)
	w.clock.Advance(time.Second)
	w.round()
	w.is(0, 2, 0)
	w.clock.Advance(time.Minute)
	w.round()
	w.is(0, 2, 0) // the round made no attempt, because the second wait is longer
	w.Recipients(nil)
	w.Data(mailtest.Refuse(452))
	w.clock.Advance(time.Minute)
	w.round()
	w.is(0, 3, 0)
	w.Data(nil)
	w.clock.Advance(4 * time.Minute)
	w.round()
	w.is(1, 3, 0)

	w.Recipients(func(to string) error {
		if to == "utente3@example.com" {
			return mailtest.Refuse(550, 5, 1, 1)(to)
		}
		return nil
	})
	w.write(2)
	w.write(3)
	w.write(4)
	w.round()
	w.is(3, 3, 1)
	w.Recipients(nil)
	w.Data(mailtest.Refuse(554))
	w.write(5)
	w.write(6, func(l *puntuale.Letter) { l.To = "questo @ non è un indirizzo" })
	w.round()
	w.is(3, 3, 3)
	w.Data(nil)
	w.write(7, func(l *puntuale.Letter) { l.To = "Banca <utente7@example.com>" })
	w.round()
	w.is(3, 3, 4)
	w.clock.Advance(48 * time.Hour)
	w.round()
	w.is(3, 3, 4)
	if log := w.logged.String(); strings.Contains(log, "utente") || strings.Contains(log, "indirizzo\"") || !strings.Contains(log, "550 5.1.1") || strings.Contains(log, "SEGRETO") {
		t.Errorf("logged:\n%s", log)
	}
}

// TestServerAway: while a mail server is down, each claim makes one attempt. No e-mail is lost, and each is tried for
// 24 hours.
func TestServerAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	for user := range puntuale.UserID(20) {
		w.write(user + 1)
	}
	w.Stop()
	if err := w.Round(t.Context()); err == nil {
		t.Error("nobody is told that the mail server is away")
	}
	w.clock.Advance(3 * time.Hour)
	w.Start()
	for len(w.Received()) < 20 { // the e-mails that were skipped after the failed attempt are due soon
		w.round()
		w.clock.Advance(time.Minute)
	}
	tos := map[string]bool{}
	for _, r := range w.Received() {
		tos[r.To] = true
	}
	if len(tos) != 20 || len(w.Received()) != 20 {
		t.Errorf("%d e-mails to %d people", len(w.Received()), len(tos))
	}
	w.Stop()
	w.write(100)
	began, attempts := w.clock.Now(), 0
	for w.results[mail.GivenUp] == 0 {
		if err := w.Round(t.Context()); err != nil {
			attempts++
		}
		w.clock.Advance(time.Minute)
		if w.clock.Now().Sub(began) > 25*time.Hour {
			t.Fatalf("still tried after %d attempts", attempts)
		}
	}
	if after := w.clock.Now().Sub(began); after < 22*time.Hour || attempts < 20 || attempts > 60 {
		t.Errorf("given up after %s and %d attempts", after, attempts)
	}
}

// TestBrokenOff: if the answer to an e-mail is lost, the e-mail is sent again with the same Message-ID.
func TestBrokenOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	w.Took(func(string) { w.Took(nil); w.Stop() })
	w.write(1)
	if err := w.Round(t.Context()); err == nil || strings.Contains(err.Error(), "utente") {
		t.Errorf("round: %v", err)
	}
	w.Start()
	w.clock.Advance(time.Minute)
	w.round()
	all := w.Received()
	if len(all) != 2 || all[0].Header.Get("Message-Id") == "" || all[0].Header.Get("Message-Id") != all[1].Header.Get("Message-Id") {
		t.Errorf("received %+v", all)
	}
}

// TestSlowServer: if a server hangs when the service stops, the attempt is ended. The e-mail waits for another attempt.
func TestSlowServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	hung, release := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(release) })
	w.Recipients(func(string) error { close(hung); <-release; return nil })
	w.write(1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-hung; cancel() }()
	began := time.Now()
	if err := w.Round(ctx); err == nil {
		t.Error("the round did not notice")
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the stop took %s", took)
	}
	w.is(0, 1, 0)
	w.Recipients(nil)
	w.clock.Advance(time.Minute)
	w.round()
	w.is(1, 1, 0)
}

// TestUntrusted: some servers get no e-mail and no password. They cannot prove their name, offer no TLS, or refuse our
// password.
func TestUntrusted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		address string
		how     mailtest.Options
		roots   bool
	}{
		"no STARTTLS":               {secure("smtp"), mailtest.Options{NoTLS: true}, true},
		"an unknown certificate":    {secure("smtps"), mailtest.Options{Implicit: true}, false},
		"another name's":            {strings.Replace(secure("smtps"), mailtest.Host, "other.example.com", 1), mailtest.Options{Implicit: true}, true},
		"unknown after STARTTLS":    {secure("smtp"), mailtest.Options{}, false},
		"a wrong password":          {"smtps://" + url.QueryEscape(mailtest.User) + ":x@" + mailtest.Host, mailtest.Options{Implicit: true}, true},
		"TLS at a port without it":  {secure("smtps"), mailtest.Options{}, true},
		"STARTTLS at a port of TLS": {secure("smtp"), mailtest.Options{Implicit: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, c.address, c.how)
			server, err := mail.ParseServer(c.address)
			if err != nil {
				t.Fatal(err)
			}
			roots := w.Roots()
			if !c.roots {
				roots = nil
			}
			dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := w.Dial(ctx, network, addr)
				if err == nil {
					err = conn.SetDeadline(time.Now().Add(2 * time.Second)) // in the case "STARTTLS at a port of TLS", client and server each wait for the other to begin
				}
				return shortened{conn}, err
			}
			out, err := mail.New(mail.Config{
				Store: w.queue, Server: server.WithDialer(dial, roots), From: from, Clock: w.clock, Logger: slog.New(slog.NewTextHandler(w.logged, nil)), Observe: func(string) {},
				Letter: func(context.Context, puntuale.Mail) (puntuale.Letter, bool, error) { return w.letters[1], true, nil },
			})
			if err != nil {
				t.Fatal(err)
			}
			w.write(1)
			err = out.Round(t.Context())
			if err == nil || w.Asked() != 0 || strings.Contains(err.Error(), mailtest.User) || strings.Contains(err.Error(), "ordine") {
				t.Errorf("%v; %d recipients were named", err, w.Asked())
			}
			w.clock.Advance(time.Minute)
			if all, err := w.queue.ClaimMails(t.Context(), w.clock.Now(), 10); err != nil || len(all) != 1 {
				t.Errorf("%d e-mails wait, %v", len(all), err)
			}
		})
	}
}

// shortened ignores later deadlines, so that the test's own deadline stays.
type shortened struct{ net.Conn }

func (shortened) SetDeadline(time.Time) error { return nil }

// TestNotNeeded: an e-mail that is no longer needed ends without an attempt. An e-mail that cannot be read now waits.
func TestNotNeeded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	w.write(1)
	delete(w.letters, 1)
	w.round()
	w.is(0, 0, 0)
	w.clock.Advance(puntuale.MailClaimTime)
	if all, err := w.queue.ClaimMails(t.Context(), w.clock.Now(), 10); err != nil || len(all) != 0 {
		t.Errorf("%d e-mails wait, %v", len(all), err)
	}
	troubled, err := mail.New(mail.Config{Store: w.queue, From: from, Clock: w.clock, Observe: func(string) {}, Letter: func(context.Context, puntuale.Mail) (puntuale.Letter, bool, error) {
		return puntuale.Letter{}, false, errors.New("the store is away")
	}})
	if err != nil {
		t.Fatal(err)
	}
	w.write(2)
	if err := troubled.Round(t.Context()); err == nil {
		t.Error("the trouble is not reported")
	}
	w.clock.Advance(puntuale.MailClaimTime)
	w.round()
	w.is(1, 0, 0)
}

// TestPanic: an attempt that panics counts as a failed one, even after the mail server took the e-mail. So the e-mail is
// tried again more and more rarely, and given up in the end. The other e-mails are sent.
func TestPanic(t *testing.T) {
	t.Parallel()
	w := newWorld(t, secure("smtps"), mailtest.Options{Implicit: true})
	server, err := mail.ParseServer(secure("smtps"))
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	results := map[string]int{}
	bad, err := mail.New(mail.Config{
		Store: w.queue, Server: server.WithDialer(w.Dial, w.Roots()), From: from, Clock: w.clock, Logger: slog.New(slog.DiscardHandler),
		Letter: func(_ context.Context, m puntuale.Mail) (puntuale.Letter, bool, error) {
			if m.User == 2 {
				panic("a bad e-mail")
			}
			return w.letters[m.User], true, nil
		},
		Observe: func(result string) {
			mu.Lock()
			defer mu.Unlock()
			if results[result]++; result == mail.Taken {
				panic("after the e-mail was taken")
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.write(1)
	w.write(2)
	for wait, sent := time.Minute, 1; wait <= 4*time.Minute; wait, sent = 2*wait, sent+1 {
		if _, panicked := errors.AsType[*puntuale.PanicError](bad.Round(t.Context())); !panicked {
			t.Error("the panic is not reported")
		}
		w.clock.Advance(wait - time.Second)
		if err := bad.Round(t.Context()); err != nil {
			t.Errorf("too early: %v", err)
		}
		if n := len(w.Received()); n != sent || results[mail.Failed] != 2*sent {
			t.Errorf("%d e-mails arrived, and %d attempts failed; want %d of each of the two", n, results[mail.Failed], sent)
		}
		w.clock.Advance(time.Second)
	}
	w.clock.Advance(puntuale.GiveUpMailAfter)
	_ = bad.Round(t.Context())
	w.clock.Advance(puntuale.GiveUpMailAfter)
	if err := bad.Round(t.Context()); err != nil || results[mail.GivenUp] != 2 {
		t.Errorf("%d e-mails are given up: %v", results[mail.GivenUp], err)
	}
}

// TestServerAddress: texts that are not the address of a mail server are refused. The error never contains the
// TestCheck: a check signs in and sends nothing. Its error has neither the user nor the password.
func TestCheck(t *testing.T) {
	t.Parallel()
	s := mailtest.New(t, mailtest.Options{Implicit: true})
	for password, ok := range map[string]bool{mailtest.Password: true, "segreta-sbagliata": false} {
		server, err := mail.ParseServer("smtps://" + url.QueryEscape(mailtest.User) + ":" + url.PathEscape(password) + "@" + mailtest.Host)
		if err != nil {
			t.Fatal(err)
		}
		err = server.WithDialer(s.Dial, s.Roots()).Check(t.Context())
		if (err == nil) != ok || err != nil && (strings.Contains(err.Error(), mailtest.User) || strings.Contains(err.Error(), password)) {
			t.Errorf("%s: %v", password, err)
		}
	}
	if s.Asked() != 0 || len(s.Received()) != 0 {
		t.Error("something was sent")
	}
}

// password.
func TestServerAddress(t *testing.T) {
	t.Parallel()
	for _, address := range []string{"", "mail.example.com", "http://a:segreta@mail.example.com", "smtp://", "smtps://a:segreta@mail.example.com:0", "smtps://a:segreta@mail.example.com:x",
		"smtps://a:segreta@mail.example.com/path", "smtps://a@mail.example.com", "smtps://a:segr%eta@mail.example.com", "smtps://a:segreta@mail.example.com:70000"} {
		if _, err := mail.ParseServer(address); err == nil || strings.Contains(err.Error(), "segr") {
			t.Errorf("%q: %v", address, err)
		}
	}
	for _, sender := range []string{"", "nessuno", "Nome <a@example.com>", "a@example.com, b@example.com", "a@example.com\r\nBcc: x@example.com"} {
		if mail.CheckAddress(sender) == "" {
			t.Errorf("the sender %q is taken", sender)
		}
	}
	if f := mail.CheckAddress(from); f != "" {
		t.Error(f)
	}
}
