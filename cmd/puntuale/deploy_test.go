package main

import (
	"encoding/json"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
)

const deployFolder = "../../deploy"

var (
	envAssignment = regexp.MustCompile(`\b(PUNTUALE_[A-Z_]+)(?:=|:[ \t]+)["']?([^"'\s]+)`)
	envMention    = regexp.MustCompile(`\bPUNTUALE_[A-Z_]+`)
	flagMention   = regexp.MustCompile("(?:^|[\\s\"'`\\[(])(--[a-z][a-z-]+)")
	shellVariable = regexp.MustCompile(`\$\{[^}]*\}|\$\([^)]*\)`)
	arrayOfWords  = regexp.MustCompile(`\["[^\]\n]*"\]`)
	unitCommand   = regexp.MustCompile(`(?m)^Exec[A-Za-z]+=/usr/local/bin/puntuale (.*)$`)
	stopLimit     = regexp.MustCompile(`(?:TimeoutStopSec=|stop_grace_period: |terminationGracePeriodSeconds: )(\d+)`)
)

// othersFlags are flags of other programs in the files of deploy/.
var othersFlags = []string{
	"--from", "--mount", "--platform", "--build-arg", "--interval", "--timeout", "--start-period", "--retries", "--tags", "--always", // flags of docker and git
	"--build", "--no-build", "--stop-timeout", "--namespace", "--from-literal", "--ignore-not-found", "--now", // flags of docker, kubectl and systemctl
	"--system", "--quiet", "--no-reload", // flags of systemctl and deb-systemd-helper
}

func eachDeployFile(t *testing.T, visit func(t *testing.T, name, text string)) {
	t.Helper()
	files := 0
	err := fs.WalkDir(os.DirFS(deployFolder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(deployFolder + "/" + name)
		if err != nil {
			return err
		}
		files++
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			visit(t, name, string(text))
		})
		return nil
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files in %s, %v", files, deployFolder, err)
	}
}

// TestDeployNamesSettings: every setting that the files in deploy/ name exists, and serve accepts every value. The
// server ignores unknown variables (docs/decisions/interface.md), so only this test notices a wrong name.
func TestDeployNamesSettings(t *testing.T) {
	t.Parallel()
	parser, err := kong.New(&commands{}, kong.Vars{"media": defaultMedia(), "version": ""})
	if err != nil {
		t.Fatal(err)
	}
	flags, variables := slices.Clone(othersFlags), []string{}
	for _, leaf := range parser.Model.Leaves(true) {
		for _, flag := range leaf.Flags {
			flags = append(flags, "--"+flag.Name)
			if flag.Tag.Negatable != "" {
				flags = append(flags, "--no-"+flag.Name)
			}
			if !local(flag) {
				variables = append(variables, envName(flag.Name))
			}
		}
	}
	eachDeployFile(t, func(t *testing.T, _, text string) {
		for _, name := range envMention.FindAllString(text, -1) {
			if !slices.Contains(variables, name) {
				t.Errorf("%s is no setting", name)
			}
		}
		for _, m := range flagMention.FindAllStringSubmatch(text, -1) {
			if !slices.Contains(flags, m[1]) {
				t.Errorf("%s is no flag", m[1])
			}
		}
		for _, m := range envAssignment.FindAllStringSubmatch(shellVariable.ReplaceAllString(text, strings.Repeat("x", 40)), -1) {
			if _, err := newConsole(t, map[string]string{"PUNTUALE_PUBLIC_URL": "https://messages.example.com", m[1]: m[2]}).parse([]string{"serve"}); err != nil {
				t.Errorf("%s: %v", m[0], err)
			}
		}
	})
}

// TestDeployCommands: the program accepts each of its command lines in deploy/.
func TestDeployCommands(t *testing.T) {
	t.Parallel()
	found := make(chan string, 100)
	t.Run("files", func(t *testing.T) {
		eachDeployFile(t, func(t *testing.T, name, text string) {
			var lines [][]string
			for _, m := range unitCommand.FindAllStringSubmatch(text, -1) {
				lines = append(lines, strings.Fields(m[1]))
			}
			for _, array := range arrayOfWords.FindAllString(text, -1) {
				var words []string
				if err := json.Unmarshal([]byte(array), &words); err != nil {
					t.Errorf("%s: %v", array, err)
				}
				words = slices.DeleteFunc(words, func(w string) bool { return w == "CMD" || w == "/puntuale" })
				if len(words) > 0 && slices.Contains([]string{"serve", "migrate", "health"}, words[0]) {
					lines = append(lines, words)
				}
			}
			for _, line := range lines {
				found <- name
				if _, err := newConsole(t, nil).parse(line); err != nil {
					t.Errorf("%q: %v", line, err)
				}
			}
		})
	})
	close(found)
	seen := map[string]int{}
	for name := range found {
		seen[name]++
	}
	for _, name := range []string{"Dockerfile", "compose/compose.yaml", "kubernetes/api.yaml", "kubernetes/dispatch.yaml", "kubernetes/migrate.yaml", "systemd/puntuale.service"} {
		if seen[name] == 0 {
			t.Errorf("%s: no command line was found", name)
		}
	}
}

// TestDeployWaitsForAStop: everything in deploy/ that stops a server must wait longer than the server's own limit for a
// stop. Otherwise messages in flight are cut off.
func TestDeployWaitsForAStop(t *testing.T) {
	t.Parallel()
	parsed, err := newConsole(t, nil).parse([]string{"serve"})
	if err != nil {
		t.Fatal(err)
	}
	within := parsed.(*serveCommand).StopWithin
	eachDeployFile(t, func(t *testing.T, _, text string) {
		for _, m := range stopLimit.FindAllStringSubmatch(text, -1) {
			seconds, err := strconv.Atoi(m[1])
			if limit := time.Duration(seconds) * time.Second; err != nil || limit <= within+5*time.Second {
				t.Errorf("%s gives a server that stops within %v too little", m[0], within)
			}
		}
	})
}
