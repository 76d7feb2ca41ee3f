package main

import (
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/idna"

	"puntuale"
	"puntuale/internal/auth"
	"puntuale/internal/certificate"
	"puntuale/internal/connector/official"
	"puntuale/internal/httpkit"
	"puntuale/internal/plan"
)

// The structs below are the only table of settings. Each field is a flag of the commands that embed the struct, and an
// environment variable (PUNTUALE_ and the name). It is also a key of the configuration file, and a row of the manual's
// table of settings. The field's type decides how its text is read. The tag "secret" hides the value. kong itself does
// not read the environment, because source.go decides the order: flag, environment, file, default.

// baseSettings are the settings of every command that works on stored data.
type baseSettings struct {
	Config   string     `placeholder:"FILE" help:"The configuration file. By default puntuale.toml in the working folder, or else in the data folder."`
	Data     string     `placeholder:"FOLDER" default:"puntuale-data" help:"The folder for everything that is not in PostgreSQL. The first start makes it."`
	Database string     `placeholder:"ADDRESS" secret:"" help:"postgres://user:password@host/name, or sqlite:/path of a file. By default puntuale.db in the data folder. Several servers may share one PostgreSQL."`
	LogLevel slog.Level `placeholder:"LEVEL" default:"info" help:"The lowest level that the program logs: debug, info, warn or error."`
}

// publicSettings say at which address the internet reaches the service.
type publicSettings struct {
	PublicURL string `name:"public-url" placeholder:"URL" help:"The address at which the internet reaches this service, such as https://messages.example.com. Pages and answers use it to show the webhook addresses and the clients' login. Use http only for trials: Meta calls https only, and Web Push needs https. Without it, a page uses the address that the browser asked for."`
}

// check returns the faults of the settings.
func (s *publicSettings) check() []fault {
	if f := checkPublic(s.PublicURL); f != "" {
		return []fault{{"public-url", f}}
	}
	return nil
}

// tlsSettings say how the server itself ends TLS.
type tlsSettings struct {
	TLSAddr   string `name:"tls-addr" placeholder:"HOST:PORT" help:"Where the server itself ends TLS, such as :443. It gets certificates for the host of public-url and for partners' confirmed host names from an authority by ACME, and renews them. The internet must reach this address at port 443. You accept the authority's terms. Without it, a proxy in front must provide TLS."`
	ACMEURL   string `name:"acme-url" placeholder:"URL" default:"https://acme-v02.api.letsencrypt.org/directory" help:"The directory of the authority for certificates. The default is Let's Encrypt."`
	ACMEEmail string `name:"acme-email" placeholder:"ADDRESS" help:"Where the authority for certificates may write."`
}

// check returns the faults of the settings. Without tls-addr the others have no effect.
func (s *tlsSettings) check(public string) (faults []fault) {
	if s.TLSAddr == "" {
		return nil
	}
	if f := checkAddr(s.TLSAddr); f != "" {
		faults = append(faults, fault{"tls-addr", f})
	}
	if !strings.HasPrefix(public, "https://") {
		faults = append(faults, fault{"tls-addr", "needs public-url, which begins with https:// and has the host name for the certificate"})
	}
	if u, err := url.Parse(s.ACMEURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		faults = append(faults, fault{"acme-url", "must be an address such as " + certificate.Directory})
	}
	return faults
}

// networkSettings are the settings of the connectors.
type networkSettings struct {
	Sandbox         bool          `help:"Every new session is a sandbox, unless the call says otherwise. A simulated network takes its messages, and nobody receives them."`
	SandboxLatency  time.Duration `placeholder:"DURATION" default:"0s" help:"How long the simulated network takes to accept a message."`
	SandboxMedia    bool          `help:"The simulated network fetches media as a real network does. A message whose media it cannot fetch is FAILED with the reason. Without it, the server calls no media address of a sandbox."`
	OfficialAPIURL  string        `name:"official-api-url" placeholder:"URL" default:"https://graph.facebook.com" help:"The address of Meta's Graph API, for Official sessions."`
	OfficialVersion string        `placeholder:"VERSION" default:"v27.0" help:"The version of the Graph API. The log warns when its end is near."`
	OfficialRate    float64       `placeholder:"MESSAGES" default:"80" help:"The most messages a second for one Official number. Meta's limit is 80, or 1000 if Meta raised it. It is 20 if the Business app uses the number, too."`
	GatewayAllow    []string      `sep:"," placeholder:"NETWORK,..." help:"Private networks where gateways of Send_app sessions may be, such as 10.1.2.0/24. The server may use http to a gateway only there."`
	WebhookAllow    []string      `sep:"," placeholder:"NETWORK,..." help:"Private networks where receivers of webhooks may be, such as 10.1.2.0/24 for a CRM in the LAN. The server may use http to a receiver only there. All others must have a public address and https."`
	CalendarAllow   []string      `sep:"," placeholder:"NETWORK,..." help:"Private networks where calendars may be, such as 10.1.2.0/24 for a server in the LAN. The server may use http to a calendar only there. All others must have a public address and https."`
	Media           []string      `placeholder:"EXTENSION" default:"${media}" help:"The file extensions that a media address may have."`
	Clamd           string        `placeholder:"ADDRESS" help:"The address of clamd, the daemon of ClamAV: host:port, or the path of its unix socket. It looks for viruses in every file that people upload or send. While it does not answer, uploads are refused, and files of replies wait. Without it, nobody looks."`
}

// admissionSettings limit how many calls and connections a server works on at the same time.
type admissionSettings struct {
	Rate          float64       `placeholder:"CALLS" default:"0" help:"The most calls a second under one key, for each server. 0.5 means one call every two seconds. Twice as many may come at once; the server answers more with 429. 0 sets no limit."`
	AnonymousRate float64       `placeholder:"CALLS" default:"20" help:"The most calls a second from one address without a valid key or a sign-in, for each server. It counts wrong keys, sign-in pages and webhooks of unknown sessions. An IPv6 network of 64 bits is one address. Ten times as many may come at once; the server answers more with 429. 0 sets no limit."`
	Calls         int           `placeholder:"NUMBER" default:"0" help:"How many calls the server works on at once. A few thousand more may wait for a moment. The server refuses more with 503 or 429. 0 means 128 for each processor, and at least 256."`
	Patience      time.Duration `placeholder:"DURATION" default:"2s" help:"How long a call may wait in all before the server refuses it with 503. A call that prevents sends, such as a stop, may wait five times as long."`
	Connections   int           `placeholder:"NUMBER" default:"4096" help:"How many connections the server keeps open. For a new one beyond them it closes an idle or incomplete connection of the caller that has the most."`
}

// keySettings are about the key that seals secrets.
type keySettings struct {
	KeyFile string `placeholder:"FILE" help:"A file with at least 32 random characters, which seal the secrets in the database. Use the same file on every server. On SQLite the default is a file beside the database, which the first start makes."`
	Key     string `placeholder:"TEXT" secret:"" help:"The same key as a text. Use PUNTUALE_KEY: every user of the machine can read a command line."`
}

// retentionSettings say how long contents and runs are kept.
type retentionSettings struct {
	KeepContents puntuale.Retention `placeholder:"TIME" default:"24mo" help:"How long the server keeps the request and the contents of a run after its last message ended. Then it blanks them and keeps the rest. 24mo, 90d, 12w, 2y, or never."`
	Archive      string             `placeholder:"FOLDER" help:"A folder for runs that ended long ago. The server writes them into compressed files there, and deletes them from the database. Of several servers only those with this setting do it, in one shared folder. Without it everything stays in the database."`
	ArchiveAfter puntuale.Retention `placeholder:"TIME" default:"36mo" help:"How long a run stays in the database after its last message ended, where archive is set. Not less than keep-contents. Runs that a statement still counts stay longer."`
}

// serveSettings are the settings of a server, in the order of the manual's table.
type serveSettings struct {
	baseSettings `embed:""`

	Addr              string `placeholder:"HOST:PORT" default:"127.0.0.1:8080" help:"Where the API and the dashboards listen. An empty host means every interface. Put a proxy with TLS in front."`
	publicSettings    `embed:""`
	tlsSettings       `embed:""`
	TrustedProxies    []string `placeholder:"NETWORK" default:"loopback,private" help:"The proxies whose X-Forwarded-For and X-Forwarded-Proto the server believes. Give networks such as 203.0.113.0/24, addresses, loopback or private. Name every proxy on the way, and nothing else: a machine in these networks can claim any address. Empty: the server believes no proxy."`
	MetricsAddr       string   `placeholder:"HOST:PORT" help:"An address of its own for /metrics. 127.0.0.1:9090 hides the figures from users of the API. Without it, /metrics is at the address of the API."`
	AccessLog         float64  `placeholder:"SHARE" default:"1" help:"The share of answered calls in the log: 1 all, 0.01 every hundredth, 0 none. The log always has refused and failed calls."`
	Roles             []string `placeholder:"ROLE" default:"api,web,dispatch" help:"What this server does: api answers calls, dispatch sends messages, web shows the dashboards. Servers on one database may share the roles. At least one must have dispatch."`
	networkSettings   `embed:""`
	mailSettings      `embed:""`
	admissionSettings `embed:""`
	Lease             time.Duration `placeholder:"DURATION" default:"6s" help:"On PostgreSQL: how long after its last heartbeat a server counts as dead. Other servers then take over its sessions. A server sends three heartbeats in this time."`
	Prices            string        `placeholder:"FILE" help:"A CSV file with Meta's prices by country and category, for the estimates of campaigns. Use the same file on every server. By default the server uses the table in the program."`
	keySettings       `embed:""`
	retentionSettings `embed:""`
	backupSettings    `embed:""`
	UncertainAfter    time.Duration `placeholder:"DURATION" default:"24h" help:"How long a message may have an unknown outcome. Then it is FAILED."`
	StopWithin        time.Duration `placeholder:"DURATION" default:"20s" help:"How long a stop may take, with open requests and messages in flight; at least 1 s."`
	Migrate           bool          `default:"true" negatable:"" help:"Bring an older database up to date at the start. With --no-migrate the server refuses an older database; run puntuale migrate first."`
}

// defaultMedia returns the default list of extensions as a person would write it on the command line.
func defaultMedia() string { return strings.Join(plan.DefaultMediaExtensions, ",") }

// check returns the faults that can be found only after all settings were parsed.
func (s *baseSettings) check() (faults []fault) {
	if s.Data == "" {
		faults = append(faults, fault{"data", "must name a folder"})
	}
	if s.Database != "" {
		u, err := url.Parse(s.Database)
		switch {
		case err != nil: // the error of package url contains the address with its password, so it is not shown
			faults = append(faults, fault{"database", "is not an address of the form postgres://user:password@host/name or sqlite:/path"})
		case !slices.Contains([]string{"postgres", "postgresql", "sqlite"}, u.Scheme):
			faults = append(faults, fault{"database", fmt.Sprintf("must begin with postgres:// or sqlite: (it begins with %q)", u.Scheme+":")})
		case u.Scheme == "sqlite" && u.Path == "" && u.Opaque == "":
			faults = append(faults, fault{"database", "sqlite: must be followed by the path of a file"})
		}
	}
	return faults
}

func (s *serveSettings) check() []fault {
	faults := s.baseSettings.check()
	if f := checkAddr(s.Addr); f != "" {
		faults = append(faults, fault{"addr", f})
	}
	if s.MetricsAddr != "" {
		if f := checkAddr(s.MetricsAddr); f != "" {
			faults = append(faults, fault{"metrics-addr", f})
		}
	}
	if !(s.AccessLog >= 0 && s.AccessLog <= 1) {
		faults = append(faults, fault{"access-log", fmt.Sprintf("must be from 0 to 1 (it is %v)", s.AccessLog)})
	}
	if f := checkRoles(s.Roles); f != "" {
		faults = append(faults, fault{"roles", f})
	}
	faults = append(faults, checkMedia(s.Media)...)
	if f := checkAddr(s.Clamd); s.Clamd != "" && !filepath.IsAbs(s.Clamd) && f != "" {
		faults = append(faults, fault{"clamd", f + ", nor the path of a unix socket"})
	}
	faults = append(faults, s.checkArchive()...)
	faults = append(faults, s.backupSettings.check()...)
	switch {
	case s.Key != "" && len(strings.TrimSpace(s.Key)) < auth.MinMasterKey:
		faults = append(faults, fault{"key", fmt.Sprintf("must have at least %d random characters, such as openssl rand -base64 32 gives", auth.MinMasterKey)})
	case s.Key != "" && s.KeyFile != "":
		faults = append(faults, fault{"key", "cannot go with key-file"})
	}
	if s.Rate != 0 && !(s.Rate >= minRate && s.Rate <= maxRate) {
		faults = append(faults, fault{"rate", fmt.Sprintf("must be 0, or from %v to %v calls a second (it is %v)", minRate, maxRate, s.Rate)})
	}
	if _, err := httpkit.ParseProxies(s.TrustedProxies); err != nil {
		faults = append(faults, fault{"trusted-proxies", err.Error()})
	}
	if s.AnonymousRate != 0 && !(s.AnonymousRate >= minRate && s.AnonymousRate <= maxRate) {
		faults = append(faults, fault{"anonymous-rate", fmt.Sprintf("must be 0, or from %v to %v calls a second (it is %v)", minRate, maxRate, s.AnonymousRate)})
	}
	faults = append(faults, s.publicSettings.check()...)
	faults = append(faults, s.tlsSettings.check(s.PublicURL)...)
	faults = append(faults, s.mailSettings.check(s.PublicURL)...)
	if s.MailOperator != "" && s.BackupTo == "" {
		faults = append(faults, fault{"mail-operator", "needs backup-to"})
	}
	faults = append(faults, s.checkOfficial()...)
	for name, list := range map[string][]string{"gateway-allow": s.GatewayAllow, "webhook-allow": s.WebhookAllow, "calendar-allow": s.CalendarAllow} {
		if _, err := networksOf(list); err != nil {
			faults = append(faults, fault{name, err.Error()})
		}
	}
	if s.Calls != 0 && (s.Calls < minCalls || s.Calls > maxCalls) {
		faults = append(faults, fault{"calls", fmt.Sprintf("must be 0, or from %d to %d (it is %d)", minCalls, maxCalls, s.Calls)})
	}
	if s.Connections < minConnections || s.Connections > maxConnections {
		faults = append(faults, fault{"connections", fmt.Sprintf("must be from %d to %d (it is %d)", minConnections, maxConnections, s.Connections)})
	}
	for _, d := range []struct {
		name       string
		value      time.Duration
		least, max time.Duration
	}{
		{"sandbox-latency", s.SandboxLatency, 0, time.Minute},
		{"lease", s.Lease, 300 * time.Millisecond, 10 * time.Minute},
		{"uncertain-after", s.UncertainAfter, time.Second, 30 * 24 * time.Hour},
		{"patience", s.Patience, 100 * time.Millisecond, time.Minute},
		{"stop-within", s.StopWithin, 0, 10 * time.Minute},
	} {
		if d.value < d.least || d.value > d.max {
			faults = append(faults, fault{d.name, fmt.Sprintf("must be from %v to %v (it is %v)", d.least, d.max, d.value)})
		}
	}
	return faults
}

// proxies returns the trusted proxies. [serveSettings.check] has already parsed them.
func (s *serveSettings) proxies() httpkit.Proxies {
	p, err := httpkit.ParseProxies(s.TrustedProxies)
	if err != nil {
		return httpkit.Proxies{} // trust no proxy
	}
	return p
}

// checkPublic returns what is wrong with the service's public address, or "" if it is valid. The address must have no
// path, because the pages are at the root of their host.
func checkPublic(address string) string {
	if address == "" {
		return ""
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || strings.Trim(u.Path, "/") != "" {
		return "must be an address without a path, such as https://messages.example.com"
	}
	if ascii, err := idna.Lookup.ToASCII(u.Hostname()); err == nil && ascii != strings.ToLower(u.Hostname()) {
		return "must have the host as browsers and certificates name it: " + ascii
	}
	return ""
}

// checkOfficial returns what is wrong with the settings of Official sessions.
func (s *serveSettings) checkOfficial() (faults []fault) {
	u, err := url.Parse(s.OfficialAPIURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		faults = append(faults, fault{"official-api-url", "must be an address such as https://graph.facebook.com"})
	}
	if !official.ValidVersion(s.OfficialVersion) {
		faults = append(faults, fault{"official-version", fmt.Sprintf("%q is not a version such as %s", s.OfficialVersion, official.DefaultVersion)})
	}
	if !(s.OfficialRate >= 1 && s.OfficialRate <= 1000) {
		faults = append(faults, fault{"official-rate", fmt.Sprintf("must be from 1 to 1000 messages a second (it is %v)", s.OfficialRate)})
	}
	return faults
}

// checkArchive refuses settings that would archive runs before their contents are blanked.
func (s *serveSettings) checkArchive() []fault {
	never, some := puntuale.Retention{}, time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)
	switch {
	case s.Archive == "":
		return nil
	case s.KeepContents == never:
		return []fault{{"archive", "needs keep-contents other than never: only what is blanked is archived"}}
	case s.ArchiveAfter != never && s.ArchiveAfter.Cutoff(some).After(s.KeepContents.Cutoff(some)):
		return []fault{{"archive-after", fmt.Sprintf("must not be less than keep-contents, which is %v (it is %v)", s.KeepContents, s.ArchiveAfter)}}
	}
	return nil
}

// Bounds of rates, in calls a second.
const (
	minRate = 0.001
	maxRate = 1_000_000
)

// Bounds of two numbers: the calls that the server works on at the same time, and the connections.
const (
	minCalls, maxCalls             = 8, 100_000
	minConnections, maxConnections = 16, 1_000_000
)

// calls returns how many calls the server works on at the same time.
func (s *serveSettings) calls() int {
	if s.Calls > 0 {
		return s.Calls
	}
	return max(256, 128*runtime.GOMAXPROCS(0))
}

// extensionShape is the form of an extension without its dot.
var extensionShape = regexp.MustCompile(`^[a-z0-9]{1,10}$`)

func checkMedia(extensions []string) (faults []fault) {
	if len(extensions) == 0 {
		return []fault{{"media", "must name at least one extension"}}
	}
	for _, e := range extensions {
		if !extensionShape.MatchString(e) {
			faults = append(faults, fault{"media", fmt.Sprintf("%q is not an extension such as pdf", e)})
		}
	}
	return faults
}

// checkAddr returns what is wrong with an address to listen at, or "" if it is valid.
func checkAddr(addr string) string {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Sprintf("%q is not of the form host:port", addr)
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Sprintf("%q is not a port from 0 to 65535", port)
	}
	return ""
}
