package mail

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	gomail "github.com/wneessen/go-mail"
	"golang.org/x/sync/errgroup"

	"puntuale"
	"puntuale/internal/clock"
)

const (
	claimed  = 16              // e-mails of one claim
	atOnce   = 4               // connections to the mail server
	endWrite = 5 * time.Second // the time to record how an attempt ended, also while the server stops

	firstWait = time.Minute // after a failed attempt; it doubles with each
	longWait  = time.Hour
)

// Results of attempts, for figures.
const (
	Taken   = "taken"    // the mail server took it
	Failed  = "failed"   // it is tried again
	GivenUp = "given_up" // refused for good, or tried for too long
)

// Config is what a [Mailer] needs.
type Config struct {
	Store   puntuale.MailStore
	Letter  func(context.Context, puntuale.Mail) (letter puntuale.Letter, needed bool, err error)
	Server  *Server
	From    string // the address of the sender
	Observe func(result string)
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Mailer sends what waits in the queue. It may run on any number of nodes at once: only one node makes each attempt.
type Mailer struct {
	cfg     Config
	layouts layoutTable
}

// New returns a mailer.
func New(cfg Config) (*Mailer, error) {
	w, err := readLayouts()
	if err != nil {
		return nil, err
	}
	return &Mailer{cfg, w}, nil
}

// Round sends the e-mails that are due. An e-mail that was refused is no error. A mail server that is away is one; the
// e-mails of that claim are tried again later. A crash may repeat an e-mail and loses none.
func (m *Mailer) Round(ctx context.Context) error {
	for {
		all, err := m.cfg.Store.ClaimMails(ctx, m.cfg.Clock.Now(), claimed)
		if err != nil {
			return fmt.Errorf("claim e-mails: %w", err)
		}
		var sending errgroup.Group
		sending.SetLimit(atOnce)
		var away atomic.Bool // if the mail server is away, the rest of the claim is not tried
		for _, one := range all {
			sending.Go(func() error { return m.attempt(ctx, one, &away) })
		}
		if err := sending.Wait(); err != nil || len(all) == 0 || ctx.Err() != nil {
			return err
		}
	}
}

// attempt makes one attempt and records how it ended.
func (m *Mailer) attempt(ctx context.Context, one puntuale.Mail, away *atomic.Bool) error {
	if away.Load() {
		return m.failed(ctx, one, errSkipped)
	}
	letter, needed, err := m.cfg.Letter(ctx, one)
	switch {
	case err != nil: // the store's trouble, or a newer node's e-mail: due again after its claim
		return fmt.Errorf("write an e-mail: %w", err)
	case !needed:
		return m.end(ctx, one, time.Time{})
	}
	message, err := m.write(one, letter)
	if err == nil {
		err = m.cfg.Server.send(ctx, message)
	}
	if err != nil {
		away.CompareAndSwap(false, errors.Is(err, errAway))
		return m.failed(ctx, one, err)
	}
	m.cfg.Observe(Taken)
	return m.end(ctx, one, time.Time{})
}

// failed plans the next attempt, or gives up. It returns the error if the mail server is away.
func (m *Mailer) failed(ctx context.Context, one puntuale.Mail, cause error) error {
	retryAt := m.cfg.Clock.Now().Add(min(firstWait<<min(one.Attempts-1, 10), longWait))
	answer, answered := errors.AsType[refusal](cause)
	if final := answered && answer.final() && !errors.Is(cause, errAway); final || errors.Is(cause, errAddress) || retryAt.After(one.Queued.Add(puntuale.MailPatience)) {
		m.cfg.Observe(GivenUp)
		m.cfg.Logger.Warn("an e-mail is given up", "mail_id", int64(one.ID), "kind", int8(one.Kind), "partner_id", int64(one.Partner), "attempts", one.Attempts, "error", cause)
		return m.end(ctx, one, time.Time{})
	}
	m.cfg.Observe(Failed)
	if err := m.end(ctx, one, retryAt); err != nil {
		return err
	}
	if errors.Is(cause, errAway) {
		return cause
	}
	if !errors.Is(cause, errSkipped) {
		m.cfg.Logger.Info("an e-mail was not taken and is tried again", "mail_id", int64(one.ID), "attempts", one.Attempts, "error", cause)
	}
	return nil
}

func (m *Mailer) end(ctx context.Context, one puntuale.Mail, retryAt time.Time) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), endWrite)
	defer cancel()
	if err := m.cfg.Store.EndMail(ctx, one, retryAt); err != nil {
		return fmt.Errorf("record how an e-mail ended: %w", err)
	}
	return nil
}

// errSkipped says that an e-mail was not tried, because the mail server had just refused another e-mail of the same
// claim.
var errSkipped = errors.New("the mail server took no other e-mail")

// errAddress says that no e-mail can go to an address as it is written.
var errAddress = errors.New("the address is none")

// write makes the e-mail. Each attempt has the same Message-ID, so a mailbox can tell a repeat.
func (m *Mailer) write(one puntuale.Mail, l puntuale.Letter) (*gomail.Msg, error) {
	content, err := m.layouts.content(l)
	if err != nil {
		return nil, err
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.FromFormat(content.Sender, m.cfg.From); err != nil {
		return nil, fmt.Errorf("the sender's %w", errAddress)
	}
	if err := message.To(l.To); err != nil {
		return nil, fmt.Errorf("the recipient's %w", errAddress) // the cause is left out, because it repeats the address
	}
	message.Subject(content.Subject)
	message.SetDateWithValue(m.cfg.Clock.Now())
	message.SetMessageIDWithValue(fmt.Sprintf("puntuale.%d.%d@%s", one.ID, one.Queued.UnixMicro(), domain(m.cfg.From)))
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, content.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, content.HTML)
	return message, nil
}
