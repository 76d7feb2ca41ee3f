package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"puntuale/internal/clock"
)

// console runs the program in a test: without a terminal, and with its own environment and folder.
type console struct {
	program
	out, errs bytes.Buffer
}

func newConsole(t *testing.T, env map[string]string) *console {
	t.Helper()
	term := &console{}
	term.program = program{
		stdin: strings.NewReader(""), stdout: &term.out, stderr: &term.errs, dir: t.TempDir(), clock: clock.System(),
		lookupEnv: func(name string) (string, bool) {
			if text, ok := env[name]; ok {
				return text, ok
			}
			return "30s", name == "PUNTUALE_PATIENCE" // so that a busy test machine does not refuse calls
		},
	}
	return term
}

func (term *console) file(t *testing.T, name, text string) {
	t.Helper()
	name = filepath.Join(term.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// setting runs "config" and returns the line of one setting, with single spaces.
func (term *console) setting(t *testing.T, name string, args ...string) string {
	t.Helper()
	if code := term.run(context.Background(), append([]string{"config"}, args...)); code != exitDone {
		t.Fatalf("exit code %d: %s", code, term.errs.String())
	}
	for line := range strings.SplitSeq(term.out.String(), "\n") {
		if line = strings.TrimPrefix(line, "# "); strings.HasPrefix(line, name+" = ") {
			return strings.ReplaceAll(strings.Join(strings.Fields(line), " "), term.dir+"/", "")
		}
	}
	t.Fatalf("no line of %s in:\n%s", name, term.out.String())
	return ""
}

// TestConfigIsAFile: the output of "config" works as a configuration file.
func TestConfigIsAFile(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code := term.run(context.Background(), []string{"config", "--data", "d", "--key", strings.Repeat("k", 40)}); code != exitDone {
		t.Fatal(term.errs.String())
	}
	term.file(t, "x.toml", term.out.String())
	again := newConsole(t, nil)
	again.dir = term.dir
	if got, want := again.setting(t, "data", "--config", "x.toml"), `data = "d" # x.toml`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSourcesHaveAnOrder sets one setting in every source, and removes the sources one by one. The first source that is
// left must decide.
func TestSourcesHaveAnOrder(t *testing.T) {
	t.Parallel()
	env := map[string]string{"PUNTUALE_LEASE": "3s"}
	term := newConsole(t, env)
	term.file(t, "puntuale.toml", `lease = "4s"`)
	if got, want := term.setting(t, "lease", "--lease", "2s"), `lease = "2s" # command line`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, want := range []string{`lease = "3s" # PUNTUALE_LEASE`, `lease = "4s" # puntuale.toml`, `lease = "6s" # default`} {
		term.out.Reset()
		if got := term.setting(t, "lease"); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if len(env) > 0 {
			delete(env, "PUNTUALE_LEASE")
			continue
		}
		_ = os.Remove(filepath.Join(term.dir, "puntuale.toml"))
	}
}

func TestFileIsFound(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		file string
		env  map[string]string
		args []string
		want string
	}{
		"in the working folder":              {"puntuale.toml", nil, nil, `addr = ":1" # puntuale.toml`},
		"in the data folder":                 {"puntuale-data/puntuale.toml", nil, nil, `addr = ":1" # puntuale-data/puntuale.toml`},
		"in another data folder":             {"d/puntuale.toml", nil, []string{"--data", "d"}, `addr = ":1" # d/puntuale.toml`},
		"in the environment's data folder":   {"d/puntuale.toml", map[string]string{"PUNTUALE_DATA": "d"}, nil, `addr = ":1" # d/puntuale.toml`},
		"by a flag":                          {"x.toml", nil, []string{"--config=x.toml"}, `addr = ":1" # x.toml`},
		"by the environment":                 {"x.toml", map[string]string{"PUNTUALE_CONFIG": "x.toml"}, nil, `addr = ":1" # x.toml`},
		"by a flag before the environment's": {"x.toml", map[string]string{"PUNTUALE_CONFIG": "y.toml"}, []string{"--config", "x.toml"}, `addr = ":1" # x.toml`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newConsole(t, test.env)
			term.file(t, test.file, `addr = ":1"`)
			if got := term.setting(t, "addr", test.args...); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestFileTakesEveryKind(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		`sandbox = true`:          `sandbox = true # puntuale.toml`,
		`migrate = false`:         `migrate = false # puntuale.toml`,
		`media = ["PDF", ".jpg"]`: `media = "pdf,jpg" # puntuale.toml`,
		`media = "pdf, jpg,"`:     `media = "pdf,jpg" # puntuale.toml`,
		`log-level = "WARN"`:      `log-level = "warn" # puntuale.toml`,
	} {
		term := newConsole(t, nil)
		term.file(t, "puntuale.toml", line)
		name, _, _ := strings.Cut(line, " ")
		if got := term.setting(t, name); got != want {
			t.Errorf("%s: got %s, want %s", line, got, want)
		}
	}
}

// TestSwitches: a switch needs no value, and the last one counts.
func TestSwitches(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"--migrate": "true", "--no-migrate": "false", "--migrate=false": "false", "--no-migrate=false": "true", "--migrate --no-migrate": "false",
	} {
		if got := newConsole(t, nil).setting(t, "migrate", strings.Fields(line)...); got != "migrate = "+want+" # command line" {
			t.Errorf("%s: %s", line, got)
		}
	}
}

// TestAllFaultsAtOnce puts faults in every source. The program reports all of them together.
func TestAllFaultsAtOnce(t *testing.T) {
	t.Parallel()
	term := newConsole(t, map[string]string{"PUNTUALE_DATABASE": "mysql://host/db", "PUNTUALE_SANDBOX": "perhaps"})
	term.file(t, "puntuale.toml", "adr = \":1\"\nstop-within = \"3h\"\nlog-level = \"loud\"\nmedia = [1]\n")
	code := term.run(context.Background(), []string{"serve", "--nope", "x", "--lease", "soon", "--addr=nowhere", "--neep"})
	if code != exitUsage {
		t.Errorf("exit code %d", code)
	}
	got := strings.Split(strings.TrimSpace(strings.ReplaceAll(term.errs.String(), term.dir+"/", "")), "\n")
	want := []string{
		`puntuale: 10 things are wrong with the configuration:`,
		`  - puntuale.toml: media must be a text, a number, true, false, or a list of texts`,
		`  - puntuale.toml: unknown key "adr"; did you mean "addr"?`,
		`  - unknown flag --nope`,
		`  - unknown flag --neep; did you mean "--help"?`,
		`  - --lease: "soon" is not a duration such as 500ms, 15s or 24h`,
		`  - puntuale.toml: log-level: "loud" is not one of debug, info, warn, error`,
		`  - PUNTUALE_SANDBOX: "perhaps" is not true or false`,
		`  - PUNTUALE_DATABASE: must begin with postgres:// or sqlite: (it begins with "mysql:")`,
		`  - --addr: "nowhere" is not of the form host:port`,
		`  - puntuale.toml: stop-within: must be from 0s to 10m0s (it is 3h0m0s)`,
		`See puntuale config, or the command with --help.`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestRateSetting: a rate is a number, which may be a fraction.
func TestRateSetting(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"0": "", "0.5": "", "250": "", "x": `"x" is not a number such as 10 or 0.5`,
		"-1": "must be 0, or from", "NaN": "must be 0, or from", "inf": "must be 0, or from", "1e-9": "must be 0, or from",
	} {
		term := newConsole(t, map[string]string{"PUNTUALE_RATE": text})
		code := term.run(context.Background(), []string{"config"})
		if (code == 0) != (want == "") || !strings.Contains(term.errs.String(), want) {
			t.Errorf("%s: %d %s", text, code, term.errs.String())
		}
		if want == "" && !strings.Contains(term.out.String(), "rate = "+text+" ") {
			t.Errorf("%s: %s", text, term.out.String())
		}
	}
}

// TestAllFaultsOfALine: kong treats some faults as the end of the flags. The program still reports all faults of the
// line.
func TestAllFaultsOfALine(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  map[string]string
		line string
		want []string // the expected faults, in the order of the output
	}{
		"meaning and form": {
			map[string]string{"PUNTUALE_ADDR": "nope", "PUNTUALE_LEASE": "1ms"},
			"serve --log-level loud --sandbox-latency -5s --database mysql://x --stop-within abc --uncertain-after 0 --data=",
			[]string{"--log-level: ", "--stop-within: ", "--data: ", "--database: ", "PUNTUALE_ADDR: ", "--sandbox-latency: ",
				"PUNTUALE_LEASE: ", "--uncertain-after: "},
		},
		"words that do not belong": {
			map[string]string{"PUNTUALE_ADDR": "nope"}, "serve --config bad.toml --log-level=loud --boh=1 x y -q --",
			[]string{"bad.toml: unknown key", "unknown flag --boh", `argument "x"`, `argument "y"`, "unknown flag -q", "--log-level: ", "PUNTUALE_ADDR: "},
		},
		"missing values and flags": {
			nil, "partner create --name --password",
			[]string{"--name: needs a value", "--password: needs a value", "missing flags: --email=EMAIL, --name=NAME, --password=PASSWORD"},
		},
		"missing flags, and settings": {
			map[string]string{"PUNTUALE_DATABASE": "mysql://x"}, "partner create",
			[]string{"missing flags: ", "PUNTUALE_DATABASE: "},
		},
		"no command":           {nil, "--sandbox serve --lease 1ms", []string{"--sandbox stands before the command", "--lease: "}},
		"media":                {nil, "serve --media=!!,ex/e,.PDF", []string{`--media: "!!"`, `--media: "ex/e"`}},
		"grace":                {nil, "key rotate --grace=-3s --log-level loud", []string{"--log-level: ", "--grace: must be from 0s to 2160h"}},
		"a key in the line":    {nil, "key rotate ck_secret --x pk_secret", []string{`unexpected argument "ck_…"`, "unknown flag --x"}},
		"nothing after a dash": {nil, "serve -", []string{`unexpected argument "-"`}},
		"numbers": {
			nil, "campaign --file a --text b --canary 1.5 --per-minute x",
			[]string{`--canary: "1.5" is not a whole number`, `--per-minute: "x" is not a whole number`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			term := newConsole(t, test.env)
			term.file(t, "bad.toml", "adr = 1")
			code := term.run(context.Background(), strings.Fields(test.line))
			said := strings.Split(strings.TrimSpace(term.errs.String()), "\n")
			if said = said[:len(said)-1]; len(said) > 1 {
				said = said[1:]
			}
			if code != exitUsage || len(said) != len(test.want) || strings.Contains(term.errs.String(), "secret") {
				t.Fatalf("exit code %d, %s", code, term.errs.String())
			}
			for i, want := range test.want {
				if !strings.Contains(said[i], want) {
					t.Errorf("line %d is %q, and lacks %q", i+1, said[i], want)
				}
			}
		})
	}
}

func TestFaultsOfFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a = = b":             "puntuale.toml, line 1, column 5: ",
		"lease = \"1s\"\n[x]": `unknown key "x"`,
		"config = \"x\"":      `unknown key "config"`,
		"email = \"x\"":       `unknown key "email"`,
	} {
		term := newConsole(t, nil)
		term.file(t, "puntuale.toml", text)
		if code := term.run(context.Background(), []string{"config"}); code != exitUsage || !strings.Contains(term.errs.String(), want) {
			t.Errorf("%q: exit code %d, %s, want %s", text, code, term.errs.String(), want)
		}
	}
	term := newConsole(t, nil)
	if code := term.run(context.Background(), []string{"config", "--config", "none.toml"}); code != exitUsage {
		t.Errorf("a named file that is not there: exit code %d, %s", code, term.errs.String())
	}
}

// TestSecretsAreMasked looks for a password in everything that config prints, for valid and for invalid settings.
func TestSecretsAreMasked(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"postgres://user:hunter2@host/db",
		"postgres://user@host/db?password=hunter2&sslmode=disable",
		"postgres://user@host/db?PassWord=hunter2",
		"postgres://user@host/db?sslmode=require&sslpassword=hunter2&options=-c%20x=hunter2",
		"postgres://user@host/db?pass%77ord=hunter2&hunter2",
		"postgresql://user:hunter2@host:5433/db",
		"mysql://user:hunter2@host/db",
		"postgres://user:hunter2@ho st/db",
		"postgres://user:hunter2%zz@host/db",
		"postgres://user:1/hunter2@host/db", // the password has unusual characters that are not escaped
		"postgres://user:1?hunter2=x@host/db",
		"postgres://user:1#hunter2@host/db",
		"postgres:user:hunter2@host/db",
		"user=u password=hunter2 host=h",
	} {
		term := newConsole(t, map[string]string{"PUNTUALE_DATABASE": address})
		term.run(context.Background(), []string{"config"})
		if said := term.out.String() + term.errs.String(); strings.Contains(said, "hunter2") {
			t.Errorf("%s: printed\n%s", address, said)
		}
	}
	term := newConsole(t, nil)
	const address = "postgres://user:hunter2@host:5433/db?sslmode=verify-full&Password=hunter2&connect_timeout=3"
	const shown = "postgres://user:xxxxx@host:5433/db?sslmode=verify-full&Password=xxxxx&connect_timeout=3"
	if got := term.setting(t, "database", "--database", address); !strings.Contains(got, shown) {
		t.Errorf("not what one needs to see: %s", got)
	}
}

func TestHelpAndVersion(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"--help"}, {"serve", "--help"}, {"partner", "create", "--help"}, {"version"}, {"--version"}} {
		term := newConsole(t, nil)
		if code := term.run(context.Background(), args); code != exitDone || term.out.Len() == 0 {
			t.Errorf("%v: exit code %d, printed %q %q", args, code, term.out.String(), term.errs.String())
		}
	}
	for _, args := range [][]string{{"partner"}, {"nothing"}, {"partner", "create"}, {"serve", "extra"}, {"--sandbox"}} {
		term := newConsole(t, nil)
		if code := term.run(context.Background(), args); code != exitUsage || term.errs.Len() == 0 {
			t.Errorf("%v: exit code %d, printed %q", args, code, term.errs.String())
		}
	}
}

// TestReferenceIsCurrent compares the manual's table with the settings. With UPDATE=1 it writes the table.
func TestReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	const manual, begin, end = "../../docs/operate.md", "<!-- settings -->\n", "<!-- /settings -->\n"
	term := newConsole(t, nil)
	if code := term.run(context.Background(), []string{"config", "--markdown"}); code != exitDone {
		t.Fatal(term.errs.String())
	}
	page, err := os.ReadFile(manual)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(page), begin)
	table, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the table", manual)
	}
	if table == term.out.String() {
		return
	}
	if os.Getenv("UPDATE") == "" {
		t.Fatalf("the table of %s is not current; make generate writes it:\n%s", manual, cmp.Diff(table, term.out.String()))
	}
	if err := os.WriteFile(manual, []byte(before+begin+term.out.String()+end+after), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestPublicURL: the setting is an address without a path, or empty.
func TestPublicURL(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		"": true, "https://messages.example.com": true, "https://messages.example.com:8443/": true, "http://127.0.0.1:8080": true,
		"messages.example.com": false, "ftp://messages.example.com": false, "https://": false, "https://:443": false, "https://a@messages.example.com": false,
		"https://messages.example.com/puntuale": false, "https://messages.example.com?x=1": false, "https://messages.example.com#x": false, "https://[": false,
	} {
		term := newConsole(t, map[string]string{"PUNTUALE_PUBLIC_URL": text})
		code := term.run(context.Background(), []string{"config"})
		if (code == 0) != ok || !ok && !strings.Contains(term.errs.String(), "must be an address without a path") {
			t.Errorf("%s: %d %s", text, code, term.errs.String())
		}
	}
}
