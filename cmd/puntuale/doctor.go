package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"puntuale"
	"puntuale/internal/backup"
	"puntuale/internal/clamd"
	"puntuale/internal/client"
	"puntuale/internal/clock"
	"puntuale/internal/diskspace"
	"puntuale/internal/doctor"
	"puntuale/internal/localfile"
	"puntuale/internal/logging"
	"puntuale/internal/mail"
	"puntuale/internal/metrics"
	"puntuale/internal/objectstore"
	"puntuale/internal/operator"
	"puntuale/internal/store"
	"puntuale/internal/terminal"
)

// doctorCommand looks at an installation, and says what to do.
type doctorCommand struct {
	serveSettings `embed:""`
	JSON          bool `local:"" name:"json" help:"Print the findings as JSON."`
}

var errFaults = errors.New("something does not work; what to do is written above")

func (c *doctorCommand) Run(ctx context.Context, p *program) (err error) {
	c.Data = p.path(c.Data)
	if c.KeyFile != "" {
		c.KeyFile = p.path(c.KeyFile)
	}
	c.place(p)
	examined := c.facts()
	examined.Now = p.clock.Now()
	examined.Server = func(ctx context.Context) error {
		asker := client.New("http://"+askedAt(c.Addr), "", p.clock)
		asker.Transport = &http.Transport{Proxy: nil, DisableKeepAlives: true}
		within, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		return asker.Ready(within)
	}
	logger := logging.New(p.stderr, p.logColor, c.LogLevel)
	opened, problem := (*store.Store)(nil), error(nil)
	if fresh := newFile(&c.baseSettings, c.Data); fresh != "" {
		problem = fmt.Errorf("there is no database %s yet; the first start of the server makes it", fresh)
	} else if opened, problem = store.Open(ctx, storeConfig(&c.baseSettings, p.clock, nil, logger, true)); problem != nil {
		problem = errors.New(terminalText(opening(problem, &c.baseSettings)))
	}
	if problem == nil {
		defer func() { err = errors.Join(err, opened.Close()) }()
		c.lookInto(examined, opened)
	} else {
		examined.Database = func(context.Context) (doctor.DatabaseFacts, error) { return doctor.DatabaseFacts{}, problem }
	}
	all := doctor.Look(ctx, examined)
	if err := c.print(p, all); err != nil {
		return err
	}
	if doctor.Worst(all) == doctor.Fault {
		return errFaults
	}
	return nil
}

func (c *doctorCommand) print(p *program, all []doctor.Finding) error {
	if c.JSON {
		out := json.NewEncoder(p.stdout)
		out.SetIndent("", "  ")
		return out.Encode(struct {
			Level    doctor.Level     `json:"level"`
			Findings []doctor.Finding `json:"findings"`
		}{doctor.Worst(all), all})
	}
	for _, f := range all {
		fmt.Fprintf(p.stdout, "%-8s %s\n%s\n", f.Level, f.Subject, terminal.Wrap(f.Text, "         ", 96))
		if f.Do != "" {
			fmt.Fprintf(p.stdout, "%s\n", terminal.Wrap("→ "+f.Do, "         ", 96))
		}
	}
	return nil
}

// facts returns what the doctor looks at without the database.
func (s *serveSettings) facts() *doctor.Config {
	d := &doctor.Config{
		PublicURL: s.PublicURL, Local: onlyThisMachine(s.Addr), Folders: map[string]string{}, Space: diskspace.Measure, Open: localfile.OthersMayEnter, Key: s.keyFacts(),
		Mails: s.SMTP != "", Clock: doctor.Synchronised, Files: doctor.OpenFiles(), Needed: uint64(s.Connections) + 300,
	}
	for use, folder := range diskFolders(&serverConfig{serveSettings: *s}) {
		d.Folders[use] = folder
	}
	if s.FilesTo != "" {
		d.Storage = func(ctx context.Context) error { return s.probe(ctx, "") }
	}
	if s.SMTP != "" {
		d.Mail = func(ctx context.Context) error {
			server, err := mail.ParseServer(s.SMTP)
			if err != nil {
				return err
			}
			within, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return server.Check(within)
		}
	}
	if s.Clamd != "" {
		d.Scanner = clamd.Scanner{Address: s.Clamd}.Ping
	}
	return d
}

func (s *serveSettings) keyFacts() (k doctor.KeyFacts) {
	k.Given, k.File = s.Key != "", s.KeyFile
	if own := databaseFile(&s.baseSettings, s.Data); k.File == "" && own != "" {
		k.File = own + ".key"
	}
	if k.File != "" {
		_, err := os.Stat(k.File)
		k.Absent, k.Open = errors.Is(err, fs.ErrNotExist), localfile.OthersMayRead(k.File)
	}
	return k
}

// onlyThisMachine reports whether only programs on this machine reach an address to listen at.
func onlyThisMachine(addr string) bool {
	host, _, err := net.SplitHostPort(addr)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}

// probe stores, reads and removes a file where the bytes of uploaded files are. marker is what the place must have; "": the
// database does not say.
func (s *serveSettings) probe(ctx context.Context, marker string) error {
	parts, err := s.objects(clock.System(), nil)
	if err != nil {
		return err
	}
	parts.Expect(marker)
	return parts.Probe(ctx)
}

// lookInto lets the doctor look into an open store.
func (s *serveSettings) lookInto(d *doctor.Config, opened *store.Store) {
	if s.FilesTo != "" {
		d.Storage = func(ctx context.Context) error {
			marker, err := opened.StorageMarker(ctx)
			if err != nil {
				return err
			}
			return s.probe(ctx, marker)
		}
	}
	d.Database = func(ctx context.Context) (doctor.DatabaseFacts, error) {
		f := doctor.DatabaseFacts{Name: databaseName(&s.baseSettings), Damage: opened.Damage()}
		made, old, err := opened.DatabaseVersion(ctx)
		if err != nil {
			return f, err
		}
		f.Made, f.Old = made, old
		f.Ahead, err = opened.ClockOffset(ctx, opened.CallReads)
		return f, err
	}
	d.Backup = func(ctx context.Context) (f doctor.BackupFacts, err error) {
		f.Scheduled, f.Remote, f.Encrypted = s.BackupTo != "", objectstore.IsS3(s.BackupTo), len(s.BackupRecipient) > 0
		if f.Last, err = opened.LastBackup(ctx); err != nil {
			return f, err
		}
		made, err := opened.BackupState(ctx, puntuale.JobBackup)
		if err != nil {
			return f, err
		}
		rehearsed, err := opened.BackupState(ctx, puntuale.JobRehearsal)
		if err != nil {
			return f, err
		}
		result, err := backup.ParseRehearsalResult(rehearsed.Result)
		f.Fault, f.Rehearsed, f.RehearsalIs, f.Failed = made.Fault, rehearsed.DoneAt, result.String(), rehearsed.Fault
		return f, err
	}
}

// operatorPage makes the operator's page of this server.
func (s *server) operatorPage(cfg *serverConfig, m *metrics.Meter) *operator.Page {
	probes := cfg.facts()
	storage, mails := held(cfg.Clock.Now, probes.Storage), held(cfg.Clock.Now, probes.Mail)
	return operator.New(operator.Config{
		Collect: func(ctx context.Context) operator.Report {
			within, cancel := context.WithTimeout(ctx, 30*time.Second)
			defer cancel()
			r := s.operatorReport(within, cfg, m)
			examined := cfg.facts()
			examined.Now, examined.Storage, examined.Mail = cfg.Clock.Now(), storage, mails
			cfg.lookInto(examined, s.store)
			r.Findings = doctor.Look(within, examined)
			return r
		},
		Now: cfg.Clock.Now, Logger: cfg.Logger,
	})
}

// The operator's page uses the answer of somebody else's server for probeHolds, and a failure for failureHolds. An open page
// asks again and again, and a mail server takes many sign-ins for an attack.
const (
	probeHolds   = 10 * time.Minute
	failureHolds = 2 * time.Minute
	probeWithin  = 10 * time.Second
)

// held returns probe with its answer kept, or nil for nil. A probe that takes too long is a failure like any other. A clock
// that was set back ends what is kept. One call runs at a time, see [operator.Config].
func held(now func() time.Time, probe func(context.Context) error) func(context.Context) error {
	if probe == nil {
		return nil
	}
	var asked time.Time
	var answer error
	return func(ctx context.Context) error {
		holds := probeHolds
		if answer != nil {
			holds = failureHolds
		}
		if at := now(); asked.IsZero() || at.Sub(asked) >= holds || at.Before(asked) {
			within, cancel := context.WithTimeout(context.WithoutCancel(ctx), probeWithin) // the answer serves later reports, too
			defer cancel()
			asked, answer = at, probe(within)
		}
		return answer
	}
}

// operatorReport collects all but the findings, which wait for servers of others.
func (s *server) operatorReport(ctx context.Context, cfg *serverConfig, m *metrics.Meter) (r operator.Report) {
	r.Version, r.Database, r.Roles = versionText(), databaseName(&cfg.baseSettings), cfg.Roles
	overview, err := s.store.Overview(ctx)
	if err != nil {
		cfg.Logger.Warn("the operator's page lacks nodes and sessions", "error", err)
		r.Problem = "The database does not answer, so nodes and sessions are missing."
	}
	for _, n := range overview.Nodes {
		r.Nodes = append(r.Nodes, operator.Row{Cells: []string{strconv.FormatInt(int64(n.Node), 10), n.Left.Round(100 * time.Millisecond).String(), strconv.Itoa(n.Owns)}, Bad: n.Left <= 0})
	}
	r.Servers = serversShown(overview.Servers, release())
	for _, c := range overview.Sessions {
		kind := string(c.Type)
		if c.Sandbox {
			kind += " (sandbox)"
		}
		r.Sessions = append(r.Sessions, operator.Row{Cells: []string{kind, c.State, strconv.Itoa(c.Count)}, Bad: c.State != puntuale.LinkOnline.String()})
	}
	slowest := m.Transactions()
	for _, t := range slowest[:min(8, len(slowest))] {
		r.Tasks = append(r.Tasks, operator.Row{Cells: []string{t.Name, backup.Grouped(int64(t.Count)), t.Mean.Round(10 * time.Microsecond).String(), backup.Grouped(int64(t.Slow))}})
	}
	r.Figures = append(s.backlogFigures(cfg), latenessFigure(m.Lateness()), s.backupFigure(ctx, cfg))
	return r
}

// serversShown counts the servers by version and roles. ids are those of [server.readKeys]. A version that is not this
// server's is marked: either an upgrade runs, or a server was forgotten.
func serversShown(ids []string, own string) (all []operator.Row) {
	type kind struct{ version, roles string }
	counts := map[kind]int{}
	for _, id := range ids {
		k := kind{"of a version before this figure", "—"}
		if words := strings.Fields(id); len(words) == 3 {
			k = kind{words[1], words[2]}
		}
		counts[k]++
	}
	kinds := slices.SortedFunc(maps.Keys(counts), func(a, b kind) int {
		return cmp.Or(strings.Compare(a.version, b.version), strings.Compare(a.roles, b.roles))
	})
	for _, k := range kinds {
		all = append(all, operator.Row{Cells: []string{k.version, k.roles, strconv.Itoa(counts[k])}, Bad: k.version != own})
	}
	return all
}

// backlogFigures are about the messages that are due.
func (s *server) backlogFigures(cfg *serverConfig) []operator.Count {
	due := s.due.Load()
	if due == nil {
		return []operator.Count{{Name: "backlog", Value: "—", Note: "this server does not count it"}}
	}
	age := func(at time.Time) (string, bool) {
		if at.IsZero() {
			return "—", false
		}
		late := cfg.Clock.Now().Sub(at)
		return late.Round(time.Second).String(), late > 5*time.Minute
	}
	oldest, bad := age(due.ready.Oldest)
	return []operator.Count{
		{Name: "due, can leave", Value: backup.Grouped(due.ready.Messages), Note: "of the whole installation", Bad: bad},
		{Name: "oldest due", Value: oldest, Note: "of those", Bad: bad},
		{Name: "due, cannot leave", Value: backup.Grouped(due.waiting.Messages), Note: "their session is not linked"},
	}
}

func latenessFigure(l metrics.LatenessSummary) operator.Count {
	f := operator.Count{Name: "lateness, p99", Value: "—", Note: "no message left yet"}
	if l.Messages > 0 {
		f.Value, f.Note, f.Bad = "≤ "+l.P99.String(), fmt.Sprintf("median ≤ %v, %s messages of this server", l.Median, backup.Grouped(int64(l.Messages))), l.P99 > 5*time.Second
	}
	if l.P99 < 0 {
		f.Value, f.Bad = "> 1m", true
	}
	return f
}

func (s *server) backupFigure(ctx context.Context, cfg *serverConfig) operator.Count {
	f := operator.Count{Name: "last backup", Value: "none", Bad: true}
	at, err := s.store.LastBackup(ctx)
	switch {
	case err != nil:
		f.Value = "unknown"
	case !at.IsZero():
		age := cfg.Clock.Now().Sub(at)
		f.Value, f.Note, f.Bad = age.Round(time.Minute).String()+" ago", at.Format("2006-01-02 15:04 MST"), age > puntuale.BackupTooOld
	}
	return f
}
