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
	"puntuale/internal/outside"
)

const (
	claimed       = 16              // the most e-mails of one claim
	maxConcurrent = 4               // the most connections to the mail server at the same time
	endWrite      = 5 * time.Second // the time limit for recording the result, also while the server stops

	firstWait = time.Minute // the wait after the first failed attempt; it doubles after each further one
	longWait  = time.Hour
)

// Results of attempts, for the metrics.
const (
	Taken   = "taken"    // the mail server accepted the e-mail
	Failed  = "failed"   // another attempt will follow
	GivenUp = "given_up" // every further attempt would fail, or the attempts took too long
)

// Config is the configuration of a [Mailer].
type Config struct {
	Store   puntuale.MailStore
	Letter  func(context.Context, puntuale.Mail) (letter puntuale.Letter, needed bool, err error)
	Server  *Server
	Memory  outside.MemoryGrants // pays for what the mail server answers; nil: it is only bounded
	From    string               // the sender's address
	Observe func(result string)
	Clock   clock.Clock
	Logger  *slog.Logger
}

// Mailer sends the queued e-mails. It may run on any number of nodes, because only one node makes each attempt.
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

// Round sends the e-mails that are due. If the mail server refuses an e-mail, Round continues. If the mail server is
// away, Round returns an error, and the e-mails of that claim are sent later. A crash may repeat an e-mail, but loses
// none.
func (m *Mailer) Round(ctx context.Context) error {
	for {
		all, err := m.cfg.Store.ClaimMails(ctx, m.cfg.Clock.Now(), claimed)
		if err != nil {
			return fmt.Errorf("claim e-mails: %w", err)
		}
		var sending errgroup.Group
		sending.SetLimit(maxConcurrent)
		var away atomic.Bool // if the mail server is away, the other e-mails of the claim are not tried
		for _, one := range all {
			sending.Go(func() error {
				err := puntuale.Recovered(func() error { return m.attempt(ctx, one, &away) })
				if puntuale.Panicked(err) {
					return errors.Join(err, m.failed(ctx, one, err)) // otherwise it would be tried again for ever
				}
				return err
			})
		}
		if err := sending.Wait(); err != nil || len(all) == 0 || ctx.Err() != nil {
			return err
		}
	}
}

// Tell sends one e-mail about the installation, as plain text and without the queue.
func (m *Mailer) Tell(ctx context.Context, to, subject, text string) error {
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := errors.Join(message.FromFormat(productName, m.cfg.From), message.To(to)); err != nil {
		return err
	}
	message.Subject(oneLine(subject))
	message.SetDateWithValue(m.cfg.Clock.Now())
	message.SetMessageIDWithValue(fmt.Sprintf("puntuale.operator.%d@%s", m.cfg.Clock.Now().UnixMicro(), domain(m.cfg.From)))
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, text)
	ctx, done := m.cfg.Memory.Partner(ctx, 0)
	defer done()
	return m.cfg.Server.send(ctx, message)
}

// attempt makes one attempt and records its result.
func (m *Mailer) attempt(ctx context.Context, one puntuale.Mail, away *atomic.Bool) error {
	if away.Load() {
		return m.failed(ctx, one, errSkipped)
	}
	letter, needed, err := m.cfg.Letter(ctx, one)
	switch {
	case err != nil: // a failure of the store, or an e-mail of a newer version; the e-mail is due again when the claim ends
		return fmt.Errorf("write an e-mail: %w", err)
	case !needed:
		return m.end(ctx, one, time.Time{})
	}
	message, err := m.write(one, letter)
	if err == nil {
		ctx, done := m.cfg.Memory.Partner(ctx, one.Partner)
		defer done()
		err = m.cfg.Server.send(ctx, message)
	}
	if err != nil {
		away.CompareAndSwap(false, errors.Is(err, errAway))
		return m.failed(ctx, one, err)
	}
	m.cfg.Observe(Taken)
	return m.end(ctx, one, time.Time{})
}

// failed plans the next attempt, or gives up. It returns the cause if the mail server is away.
func (m *Mailer) failed(ctx context.Context, one puntuale.Mail, cause error) error {
	retryAt := m.cfg.Clock.Now().Add(min(firstWait<<min(one.Attempts-1, 10), longWait))
	answer, answered := errors.AsType[refusal](cause)
	if final := answered && answer.final() && !errors.Is(cause, errAway); final || errors.Is(cause, errAddress) || retryAt.After(one.Queued.Add(puntuale.GiveUpMailAfter)) {
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

// errAddress says that an address has no valid form, so that no e-mail can be sent to it.
var errAddress = errors.New("the address is none")

// write returns the e-mail. Each attempt has the same Message-ID, so that the mailbox can recognise a repeat.
func (m *Mailer) write(one puntuale.Mail, l puntuale.Letter) (*gomail.Msg, error) {
	content, err := m.layouts.content(l)
	if err != nil {
		return nil, err
	}
	message := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	if err := message.FromFormat(content.Sender, m.cfg.From); err != nil {
		return nil, fmt.Errorf("the sender's %w", errAddress)
	}
	if CheckAddress(l.To) != "" || message.To(l.To) != nil { // an address with a name could show another person than it reaches
		return nil, fmt.Errorf("the recipient's %w", errAddress) // without the cause, because its text contains the address
	}
	message.Subject(content.Subject)
	message.SetDateWithValue(m.cfg.Clock.Now())
	message.SetMessageIDWithValue(fmt.Sprintf("puntuale.%d.%d@%s", one.ID, one.Queued.UnixMicro(), domain(m.cfg.From)))
	message.SetGenHeader("Auto-Submitted", "auto-generated")
	message.SetBodyString(gomail.TypeTextPlain, content.Text)
	message.AddAlternativeString(gomail.TypeTextHTML, content.HTML)
	return message, nil
}
