package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/backup"
	"puntuale/internal/certificate"
	"puntuale/internal/chatwoot"
	"puntuale/internal/clock"
	"puntuale/internal/connector/official"
	"puntuale/internal/connector/sandbox"
	"puntuale/internal/connector/sendapp"
	"puntuale/internal/control"
	"puntuale/internal/control/account"
	"puntuale/internal/control/automation"
	"puntuale/internal/control/calendar"
	"puntuale/internal/control/link"
	"puntuale/internal/control/statement"
	"puntuale/internal/control/webhook"
	"puntuale/internal/delivery"
	"puntuale/internal/dispatch"
	"puntuale/internal/httpapi"
	"puntuale/internal/httpkit"
	"puntuale/internal/httpkit/admission"
	"puntuale/internal/intake"
	"puntuale/internal/logging"
	"puntuale/internal/mail"
	"puntuale/internal/media"
	"puntuale/internal/metrics"
	"puntuale/internal/price"
	"puntuale/internal/session"
	"puntuale/internal/store"
	"puntuale/internal/store/engine"
	"puntuale/internal/web"
	"puntuale/internal/web/page"
)

// refusalsPerProcessor is how many calls a second, for each processor, the server refuses without a delay. These
// refusals take a few per cent of a processor's time.
const refusalsPerProcessor = 500

// server is one running node: a store and, depending on its server roles, the API, the pages, and a dispatcher that
// sends due messages. [openServer] returns when the server is ready. Close stops the parts in this order: claiming, HTTP,
// dispatcher, store.
type server struct {
	store      *store.Store
	unlock     func() error
	media      *media.Fetcher // nil: this server fetches no files
	networks   networks
	dispatch   *dispatch.Dispatcher // nil: the server does not have the server role dispatch
	sessions   *session.Manager     // nil: the server does not have the server role dispatch
	feeding    *feeding             // nil: the server does not have the server role dispatch
	events     *delivery.Sender     // nil: the server does not have the server role dispatch
	caller     *delivery.Caller
	chatwoot   *chatwoot.Bridge
	agents     *chatwoot.Webhook // handles messages that agents write in Chatwoot
	desk       *webhook.Webhooks
	rules      *automation.Automations
	calendar   *calendar.Calendars
	statements *statement.Statements
	links      *link.Links
	control    *control.Control
	accounts   *account.Accounts
	mailer     *mail.Mailer                // nil: no e-mail is sent
	backups    *backup.Runner              // nil: this server makes no backups by schedule
	due        atomic.Pointer[dueMessages] // nil: they were not counted yet
	keyReader  string                      // names this process to a replacement of the data key; "": it has not read the keys
	tasks      *taskRunner
	health     *httpkit.Health
	http       *http.Server
	listener   net.Listener
	figures    *http.Server // a separate server for /metrics; nil: there is none
	served     chan error   // receives the error that ended an HTTP server
	open       *admission.ConnectionLimiter
	memory     *admission.MemoryBudget // for all requests, and for what other servers answer
	outage     *logging.Outage
	clock      clock.Clock
	logger     *slog.Logger
	within     time.Duration           // how long a stop may take
	stopping   chan struct{}           // closed when a stop begins; all calls that only wait then end
	cut        context.CancelCauseFunc // ends the contexts of all requests
}

// networks contains a server's connectors, and the parts that handle the networks' reports.
type networks struct {
	official *official.Connector
	sendapp  *sendapp.Connector
	socket   socketWay // nil: this build lacks the connector, or this server does not send
	intake   *intake.Intake
}

// serverConfig contains the settings of a server, and the parts that a command or a test chooses.
type serverConfig struct {
	serveSettings
	Clock   clock.Clock
	Logger  *slog.Logger
	Observe func(puntuale.DueMessage, puntuale.Content, puntuale.Outcome) // called for each outcome; nil: not called
	Listen  func(ctx context.Context, addr string) (net.Listener, error)  // how the server listens; nil: by TCP
	Files   media.Config                                                  // how files are fetched; the folder and the clock are added later

	WhatsApp *http.Client      // how linked numbers reach WhatsApp; nil: through the proxy in the environment
	Push     http.RoundTripper // how the server reaches push services; nil: only at public addresses
}

// openServer opens the store, joins the fleet and serves. If a part fails to open, it closes the parts that are open.
func openServer(ctx context.Context, cfg serverConfig) (_ *server, err error) {
	cfg.Logger = logging.WithoutRepeats(cfg.Logger, cfg.Clock)
	s := &server{
		logger: cfg.Logger, within: max(cfg.StopWithin, time.Second), served: make(chan error, 3), clock: cfg.Clock, stopping: make(chan struct{}),
		outage: logging.NewOutage(cfg.Clock, cfg.Logger),
	}
	defer func() {
		if err != nil {
			_ = s.Close() // the first error already explains the failure
		}
	}()
	prices, err := readPrices(cfg.Prices)
	if err != nil {
		return nil, err
	}
	meter := metrics.New(release(), cfg.Clock)
	s.open = admission.NewConnectionLimiter(cfg.Connections, meter.Closed)
	meter.WatchConnections(s.open.Count)
	meter.Roles(cfg.Roles)
	if err := s.openStore(ctx, &cfg, meter); err != nil {
		return nil, err
	}
	s.memory = admission.NewMemoryBudget(memoryBudget, meter.Refused)
	vault, err := s.openVault(ctx, &cfg)
	if err != nil {
		return nil, err
	}
	if s.listener, err = listen(ctx, &cfg, cfg.Addr); err != nil {
		return nil, err
	}
	if cfg.has(roleDispatch) {
		cfg.Files.Folder, cfg.Files.Clock = filepath.Join(cfg.Data, "media"), cfg.Clock
		s.media, err = media.New(cfg.Files)
		if err != nil {
			return nil, err
		}
	}
	pushes, pushKey, err := s.openPushes(ctx, &cfg, vault, meter)
	if err != nil {
		return nil, err
	}
	if err = s.openControl(&cfg, vault, prices, pushKey, meter); err != nil {
		return nil, err
	}
	s.openOfficial(cfg, vault, meter)
	s.openGateways(cfg, vault)
	s.openChatwoot(&cfg, vault)
	s.caller = s.openCaller(&cfg, vault)
	s.desk = webhook.New(webhook.Config{
		Tenants: s.store, Vault: vault, Clock: cfg.Clock, Caller: s.caller, Chatwoot: s.chatwoot, Public: cfg.PublicURL,
		Logger: cfg.Logger,
	})
	s.rules = automation.New(automation.Config{Control: s.control, Tenants: s.store, Hooks: s.store, Vault: vault, Clock: cfg.Clock, Media: cfg.Media})
	s.calendar = s.openCalendars(&cfg, vault)
	if cfg.has(roleDispatch) {
		if err = s.startDispatch(ctx, cfg, vault, meter); err != nil {
			return nil, err
		}
	}
	health := httpkit.HealthConfig{Now: cfg.Clock.Now, Check: s.store.Check, Roles: cfg.Roles, Logger: cfg.Logger, Figure: meter.Ready}
	if s.dispatch != nil {
		health.Working = s.dispatch.Healthy
	}
	s.health = httpkit.NewHealth(health)
	if s.http, err = s.newHTTP(cfg, meter); err != nil {
		return nil, err
	}
	if err = errors.Join(s.serveFigures(ctx, &cfg, meter), s.serveTLS(ctx, &cfg, vault)); err != nil {
		return nil, err
	}
	if s.backups, err = s.openBackups(&cfg, vault, meter); err != nil {
		return nil, err
	}
	s.tasks = startTasks(s.backgroundTasks(&cfg, vault, meter, pushes), cfg.Clock, cfg.Logger, meter)
	go func() { s.served <- s.http.Serve(s.listener) }()
	return s, nil
}

// openControl makes Control, Accounts, and the mailer.
func (s *server) openControl(cfg *serverConfig, vault *auth.Vault, prices *price.Table, pushKey func(context.Context) (string, error), meter *metrics.Meter) error {
	opener, err := s.openReplies(cfg)
	if err != nil {
		return err
	}
	s.statements = statement.New(statement.Config{Tenants: s.store, Maintenance: s.store, Budgets: s.store, Clock: cfg.Clock, Prices: prices})
	s.store.PriceMessages(s.statements.Priced, s.statements.Currency())
	s.links = link.New(s.store.Links, cfg.Clock)
	s.control = control.New(control.Config{
		Tenants: s.store, Devices: s.store, Maintenance: s.store, Clock: cfg.Clock, Wakeup: s.wake, Sandbox: cfg.Sandbox, Media: cfg.Media, Vault: vault, Links: linkable,
		Keep: cfg.KeepContents, Public: cfg.PublicURL, LargeDocuments: cfg.FilesTo != "",
		Files: s.fetched(), PlainGateways: len(cfg.GatewayAllow) > 0, UncertainAfter: cfg.UncertainAfter, PushKey: pushKey, Prices: prices, Scratch: filepath.Join(cfg.Data, "lists"),
		Reported: func(verdict string) { meter.Outcome("device", verdict, 1) },
		Take: func(ctx context.Context, session puntuale.SessionID, reported puntuale.InboundBatch) error {
			return s.networks.intake.Take(ctx, session, reported)
		},
		Opener: opener, Scan: cfg.scan(), Stopping: s.stopping, Connections: cfg.Connections, Logger: cfg.Logger,
	})
	meter.WatchStoredBytes(s.control.MostStored)
	var mails puntuale.MailStore
	if cfg.SMTP != "" {
		mails = s.store
	}
	s.accounts = account.New(account.Config{
		Control: s.control, Tenants: s.store, Partners: s.store, Clock: cfg.Clock, Wakeup: s.wake, Sandbox: cfg.Sandbox, Vault: vault,
		SignIn: s.store, Public: cfg.PublicURL, Resolver: net.DefaultResolver,
		Mails: mails, Currency: s.statements.Currency(),
	})
	return s.openMailer(cfg, meter)
}

// startDispatch begins to send due messages, and to manage the sessions that this node owns.
func (s *server) startDispatch(ctx context.Context, cfg serverConfig, vault *auth.Vault, meter *metrics.Meter) error {
	s.networks.socket = newSocket(s, cfg, vault)
	out := s.linking(cfg, vault, s.simulated(cfg))
	s.dispatch = dispatch.New(dispatch.Config{
		Queue: s.store, Fleet: s.store,
		Connector: func(session puntuale.Session) puntuale.Connector {
			switch {
			case session.Sandbox:
				return out
			case session.Type == puntuale.Official:
				return s.networks.official
			case session.Type == puntuale.SendApp && !session.ByDevice():
				return s.networks.sendapp
			case session.Type == puntuale.Socket && s.networks.socket != nil:
				return s.networks.socket
			}
			return nil // devices send this session's messages, or this build lacks the connector
		},
		Mark:  func(client puntuale.ClientID, phone string) string { return control.Mark(vault, client, phone) },
		Clock: cfg.Clock, Meter: metrics.Dispatch{Meter: meter}, Logger: cfg.Logger,
		Lease: cfg.Lease, Beat: cfg.Lease / 3, UncertainAfter: cfg.UncertainAfter,
		Sessions: s.sessions, Observe: cfg.Observe, Remote: s.store.Notify, Departed: s.store.Departed,
	})
	s.sessions.Start()
	meter.WatchSessions(func(report func(metrics.SessionState, int)) {
		for state, n := range s.sessions.States() {
			report(metrics.SessionState(state), n)
		}
	})
	if err := s.dispatch.Start(ctx); err != nil {
		return fmt.Errorf("start the dispatcher: %w", err)
	}
	s.store.Listen(s.takeWakeup)
	s.startFeeding(cfg)
	s.startEvents(&cfg, meter)
	return nil
}

// newHTTP makes the HTTP server, which does not serve yet.
func (s *server) newHTTP(cfg serverConfig, m *metrics.Meter) (*http.Server, error) {
	admit := newLimits(cfg, s.memory, m)
	api, err := s.newAPI(cfg, m, admit)
	if err != nil {
		return nil, err
	}
	pages, err := s.newPages(cfg, m, admit)
	if err != nil {
		return nil, err
	}
	shown := m
	if cfg.MetricsAddr != "" {
		shown = nil
	}
	handler := routes(api, pages, s.webhooks(cfg, m, admit), s.hooks(cfg, m, admit), s.uploaded(cfg, m), s.health, shown, cfg.Clock, cfg.Logger)
	server := admission.NewServer(s.open.Watch(handler), slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug)) // Watch notes which connections have not sent a complete request, so that a stop can close these connections
	server.ConnContext, server.ConnState = s.open.Began, s.open.Changed
	requests, cut := context.WithCancelCause(context.Background())
	server.BaseContext, s.cut = func(net.Listener) context.Context { return requests }, cut
	return server, nil
}

// serveFigures serves /metrics at a separate address, if the settings name one.
func (s *server) serveFigures(ctx context.Context, cfg *serverConfig, m *metrics.Meter) error {
	if cfg.MetricsAddr == "" {
		return nil
	}
	l, err := listen(ctx, cfg, cfg.MetricsAddr)
	if err != nil {
		return err
	}
	s.figures = admission.NewServer(onlyFigures(m, s.operatorPage(cfg, m), cfg.Clock, cfg.Logger), slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug))
	cfg.Logger.Info("serving figures", "addr", l.Addr().String())
	go func() { s.served <- s.figures.Serve(l) }()
	return nil
}

// serveTLS also serves the API and the pages over TLS, if the settings name an address for it.
func (s *server) serveTLS(ctx context.Context, cfg *serverConfig, vault *auth.Vault) error {
	if cfg.TLSAddr == "" {
		return nil
	}
	l, err := listen(ctx, cfg, cfg.TLSAddr)
	if err != nil {
		return err
	}
	certificates := certificate.New(certificate.Config{
		Hosts: s.ownHosts(cfg.PublicURL), Secrets: s.store, Vault: vault, Directory: cfg.ACMEURL, Email: cfg.ACMEEmail, Now: cfg.Clock.Now, Memory: s.payer(),
	})
	cfg.Logger.Info("serving TLS", "addr", l.Addr().String(), "authority", cfg.ACMEURL)
	go func() { s.served <- s.http.Serve(tls.NewListener(l, certificates)) }()
	return nil
}

// ownHosts returns a function that returns the host names for which this installation needs certificates.
func (s *server) ownHosts(public string) func(context.Context) ([]string, error) {
	return func(ctx context.Context) ([]string, error) {
		u, err := url.Parse(public)
		if err != nil {
			return nil, fmt.Errorf("read the public address: %w", err)
		}
		names := []string{strings.ToLower(u.Hostname())}
		hosts, err := s.store.Hosts(ctx)
		for _, h := range hosts {
			if h.Brand.Confirmed {
				names = append(names, h.Brand.Host)
			}
		}
		return names, err
	}
}

// newAPI makes the handler of API calls.
func (s *server) newAPI(cfg serverConfig, m *metrics.Meter, admit admission.Limits) (http.Handler, error) {
	if !cfg.has(roleAPI) {
		return withoutAPI(httpkit.Config{Logger: cfg.Logger, Now: cfg.Clock.Now, Observe: m.Request, Proxies: cfg.proxies()}), nil
	}
	api, err := httpapi.New(httpapi.Config{
		Admit: admit, Refuse: admission.NewRefusalPacer(refusalsPerProcessor*float64(runtime.GOMAXPROCS(0)), cfg.Clock.Now),
		Control: s.control, Accounts: s.accounts, Webhooks: s.desk, Automations: s.rules, Calendars: s.calendar, Statements: s.statements, Logger: s.outage.Watching(logging.Sampled(cfg.Logger, cfg.AccessLog)), Now: cfg.Clock.Now, Rate: cfg.Rate, Proxies: cfg.proxies(), Scratch: cfg.Data,
		Observe: func(route string, status int, took time.Duration) {
			m.Request(route, status, took)
			s.outage.Answered(route, status)
		},
	})
	if err != nil {
		return nil, fmt.Errorf("make the API: %w", err)
	}
	return api, nil
}

// newPages makes the handler of the pages. It returns nil if the server does not have the server role web.
func (s *server) newPages(cfg serverConfig, m *metrics.Meter, admit admission.Limits) (http.Handler, error) {
	if !cfg.has(roleWeb) {
		return nil, nil
	}
	pages, err := web.New(page.Config{Control: s.control, Accounts: s.accounts, Webhooks: s.desk, Automations: s.rules, Calendars: s.calendar, Statements: s.statements, Links: s.links, Logger: s.outage.Watching(logging.Sampled(cfg.Logger, cfg.AccessLog)), Now: cfg.Clock.Now, Observe: m.Request, Proxies: cfg.proxies(), Admit: admit})
	if err != nil {
		return nil, fmt.Errorf("make the pages: %w", err)
	}
	return pages, nil
}

// simulated makes the connector to the simulated network. The connector fetches media if the settings say so.
func (s *server) simulated(cfg serverConfig) *sandbox.Connector {
	out := sandbox.New(s.store, cfg.Clock, cfg.SandboxLatency)
	if cfg.SandboxMedia {
		return out.WithMedia(s.files())
	}
	return out
}

// openStore opens the store, and locks the role dispatch where only one server may have it.
func (s *server) openStore(ctx context.Context, cfg *serverConfig, m *metrics.Meter) error {
	config, err := serverStore(cfg, m)
	if err != nil {
		return err
	}
	if s.store, err = store.Open(ctx, config); err != nil {
		return opening(err, &cfg.baseSettings)
	}
	if cfg.has(roleDispatch) {
		if s.unlock, err = s.store.LockDispatch(ctx); err != nil {
			return opening(err, &cfg.baseSettings)
		}
	}
	return nil
}

// serverStore returns the engine's configuration for a server.
func serverStore(cfg *serverConfig, m *metrics.Meter) (engine.Config, error) {
	config := storeConfig(&cfg.baseSettings, cfg.Clock, m, cfg.Logger, !cfg.Migrate)
	config.Public = cfg.PublicURL
	return cfg.with(config, m.FileStorageFailed)
}

// storeConfig returns the engine's configuration. All commands that open the store use it.
func storeConfig(s *baseSettings, c clock.Clock, m engine.Meter, logger *slog.Logger, noMigrate bool) engine.Config {
	return engine.Config{Database: s.Database, Data: s.Data, Clock: c, Meter: m, Logger: logger, NoMigrate: noMigrate}
}

func listen(ctx context.Context, cfg *serverConfig, addr string) (net.Listener, error) {
	if cfg.Listen != nil {
		return cfg.Listen(ctx, addr)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen at %s: %w", addr, err)
	}
	return l, nil
}

// URL returns the base address of the API.
func (s *server) URL() string {
	addr := s.listener.Addr().String()
	host, port, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && ip != nil && ip.IsUnspecified() {
		addr = net.JoinHostPort("localhost", port)
	}
	return "http://" + addr
}

// Wait returns nil when ctx ends, or the error that ended the server earlier.
func (s *server) Wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.served:
		return fmt.Errorf("serve HTTP: %w", err)
	case <-s.store.Failed():
		if puntuale.CodeOf(s.store.Failure()) == puntuale.CodeStoreDamaged {
			return errors.New("the database file is damaged: restore a backup. The next start checks the whole file")
		}
		return errors.New("the disk failed under the database; start again once it is sound")
	}
}

// Close accepts no more calls, and claims no more messages. It finishes the calls that have begun, and the messages in
// flight. Then it closes the store. Close takes about the time in the settings at most: the last tenth is for what was
// cut off. The error names what did not end in time. Call Close once.
func (s *server) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), s.within-s.within/10)
	defer cancel()
	var problems []error
	note := func(part string, err error) {
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", part, err))
		}
	}
	close(s.stopping)
	if s.dispatch != nil {
		s.dispatch.Retire()
	}
	var parts sync.WaitGroup
	if s.http != nil {
		s.health.Stopping()
		parts.Go(func() { s.finishRequests(ctx) })
	} else if s.listener != nil {
		_ = s.listener.Close()
	}
	if s.figures != nil {
		_ = s.figures.Close()
	}
	if s.tasks != nil {
		parts.Go(s.tasks.stop)
	}
	parts.Go(s.feeding.stop)
	if s.control != nil {
		parts.Go(func() { s.control.Wait(ctx) })
	}
	if s.events != nil { // this must end before the dispatcher gives up the lease, because the same lease makes this node the owner of webhooks
		half, cancel := context.WithTimeout(ctx, s.within/2)
		note("record deliveries of events", s.events.Stop(half))
		cancel()
	}
	parts.Wait()
	if s.links != nil {
		note("count clicks of links", s.links.Flush(ctx))
	}
	s.outage.Stopped()
	if s.dispatch != nil {
		note("stop the dispatcher", s.dispatch.Stop(ctx))
	}
	if s.sessions != nil {
		s.sessions.Stop(ctx)
	}
	if s.networks.socket != nil {
		s.networks.socket.Stop()
	}
	if s.media != nil {
		note("close the media", s.media.Close())
	}
	if s.unlock != nil {
		note("free the dispatch lock", s.unlock())
	}
	if s.keyReader != "" {
		_ = s.store.ForgetKeyReader(ctx, s.keyReader) // if this fails, the server counts as gone after keyLease
	}
	if s.store != nil {
		note("close the store", s.store.Close())
	}
	return errors.Join(problems...)
}

// completeWithin is how long a stop waits for the rest of incomplete requests.
const completeWithin = time.Second

// finishRequests accepts no more requests. It answers the requests that have arrived completely. After half of the time
// for the stop, it ends their contexts, so that they are answered with [puntuale.ErrStopping]. After three quarters, it
// closes the connections of callers that do not read their answers.
func (s *server) finishRequests(ctx context.Context) {
	finished := make(chan struct{})
	defer close(finished)
	half, releaseHalf := s.clock.After(s.within / 2)
	defer releaseHalf()
	late, releaseLate := s.clock.After(s.within * 3 / 4)
	defer releaseLate()
	go func() {
		for wait := min(completeWithin, s.within/2); ; {
			fired, release := s.clock.After(wait)
			select {
			case <-fired:
				s.open.GiveUp() // again and again, because net/http also sets deadlines on these connections
				wait = completeWithin / 10
			case <-half:
				s.cut(puntuale.ErrStopping)
			case <-late:
				s.logger.Warn("connections are closed before their answers are complete", "connections", s.open.Count())
				_ = s.http.Close()
			case <-finished:
				release()
				return
			}
			release()
		}
	}()
	if s.http.Shutdown(ctx) != nil {
		_ = s.http.Close()
	}
}
