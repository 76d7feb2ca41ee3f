package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commands is the command line. A field with the tag "local" is a flag of one command, and not a setting.
type commands struct {
	Demo     demoCommand     `cmd:"" help:"Try it: fresh demo data in a folder of its own, messages that leave within seconds, a curl line to paste."`
	Serve    serveCommand    `cmd:"" help:"Serve the API and send what is due, until SIGTERM."`
	Health   healthCommand   `cmd:"" help:"Ask a running server whether it is ready; exit code 0 means yes."`
	Partner  partnerGroup    `cmd:"" help:"Partner accounts."`
	Key      keyGroup        `cmd:"" help:"API keys."`
	Link     linkCommand     `cmd:"" help:"Link a session to a phone: shows the code in this terminal until the phone has used it. Reads the client's API key from standard input."`
	Campaign campaignCommand `cmd:"" help:"Send a message or a sequence to every recipient of a list, through a running server, and show how far it is."`
	Device   deviceGroup     `cmd:"" help:"Send the messages of a Send_app session from this machine, with a command of your own."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the database up to date, and end."`
	Check    checkCommand    `cmd:"" help:"Read the whole database and say whether it is damaged, also beside a running server; exit code 0 means it is whole."`
	Export   exportCommand   `cmd:"" help:"Write the whole installation into one file, also beside running servers."`
	Import   importCommand   `cmd:"" help:"Fill an empty database, SQLite or PostgreSQL, with an exported installation."`
	Backup   backupCommand   `cmd:"" help:"Write a checked backup of the whole installation into one file, also beside running servers."`
	Restore  restoreCommand  `cmd:"" help:"Make an installation of a backup. What was due may have left: it is set aside and never sent by itself."`
	Restored restoredCommand `cmd:"" help:"Do the same with a database that was copied by other means, before the first server starts on it."`
	Unknown  unknownGroup    `cmd:"" help:"Messages that may have left before a restore: see them, send them again or close them."`
	Archive  archiveGroup    `cmd:"" help:"What was archived because it was old."`
	Reopen   reopenCommand   `cmd:"" help:"Let servers start again on an installation that was exported with --final and never served elsewhere."`
	Config   configCommand   `cmd:"" help:"Print every setting with its effective value and where it came from."`
	Version  versionCommand  `cmd:"" help:"Print the version."`

	ShowVersion kong.VersionFlag `local:"" name:"version" help:"Print the version."`
}

type partnerGroup struct {
	Create   partnerCreateCommand   `cmd:"" help:"Create a partner with its login and its first key, also beside a running server."`
	Password partnerPasswordCommand `cmd:"" help:"Set a new password for a partner's user, also beside a running server."`
	Host     partnerHostCommand     `cmd:"" help:"List the host names that partners ask for, and confirm or withdraw one, also beside a running server."`
}

type keyGroup struct {
	Rotate keyRotateCommand `cmd:"" help:"Give the owner of a key a new one; the old one stays valid for a grace period."`
}

type archiveGroup struct {
	List  archiveListCommand  `cmd:"" help:"List the archive's files."`
	Show  archiveShowCommand  `cmd:"" help:"Show archived messages, one a line, as the API showed them and with what else is known."`
	Check archiveCheckCommand `cmd:"" help:"Read all files and compare their sums; exit code 0 means all is well."`
	Begin archiveBeginCommand `cmd:"" help:"Archive into another folder from now on."`
}

// command is one command of the command line, with its settings filled in.
type command interface {
	Run(ctx context.Context, p *program) error
}

// checker is a command that checks its settings against each other.
type checker interface{ check() []fault }

// parse reads the command line, the environment and the configuration file, and reports all their faults together. If
// help was printed, the command is nil.
func (p *program) parse(args []string) (command, error) {
	p.source = map[string]string{}
	found := &sources{lookupEnv: p.lookupEnv, source: p.source}
	helped := false
	parser, err := kong.New(&commands{}, append(p.readers(),
		kong.Name("puntuale"),
		kong.Description("Puntuale schedules sequences of chat messages, sends each at its moment and keeps what became of it."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"media": defaultMedia(), "version": "puntuale " + versionText()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ValueFormatter(helpText),
		kong.Exit(func(int) { helped = true }),
		kong.Resolvers(found))...)
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	args, lineFaults := readable(parser, args)
	first, err := kong.Trace(parser, args)
	if err != nil {
		return nil, fmt.Errorf("read the command line: %w", err)
	}
	faults := append(p.findFile(first, found, settingNames(parser)), lineFaults...)

	p.faults = nil // kong parses the line a second time, and finds these faults again
	chosen, err := parser.Parse(args)
	if helped {
		return nil, nil
	}
	faults = append(faults, p.faults...)
	if err != nil {
		faults = append(faults, fault{"", err.Error()})
		chosen = applied(err)
	}
	if chosen != nil && chosen.Selected() != nil {
		noteCommandLine(chosen, p.source)
		if c, ok := chosen.Selected().Target.Addr().Interface().(checker); ok {
			faults = append(faults, c.check()...)
		}
	}
	if len(faults) > 0 {
		return nil, p.located(faults)
	}
	return chosen.Selected().Target.Addr().Interface().(command), nil
}

// applied returns the parsed command if kong refused only missing flags. kong checks for missing flags last, so all
// other flags are already in the settings.
func applied(err error) *kong.Context {
	if parse, ok := errors.AsType[*kong.ParseError](err); ok && parse.Context != nil && parse.Context.Error == nil {
		return parse.Context
	}
	return nil
}

// findFile reads the configuration file for a command that has settings.
func (p *program) findFile(line *kong.Context, found *sources, known []string) []fault {
	given := func(name string) (text string, ok bool) {
		for _, flag := range line.Flags() {
			if flag.Name != name || local(flag) {
				continue
			}
			ok, text = true, flag.Default
			if env, set := p.lookupEnv(envName(name)); set {
				text = env
			}
			for _, path := range line.Path {
				if path.Flag == flag {
					text = fmt.Sprint(line.FlagValue(flag))
				}
			}
		}
		return text, ok
	}
	named, ok := given("config")
	if !ok {
		return nil
	}
	data, _ := given("data")
	return found.readFile(p, named, []string{"", data}, known)
}

// settingNames returns the keys that a configuration file may contain: all settings except config, which names the file.
func settingNames(parser *kong.Kong) (names []string) {
	for _, flag := range settingFlags(parser.Model.Node) {
		if flag.Name != "config" {
			names = append(names, flag.Name)
		}
	}
	return names
}

// settingFlags returns every setting once, in the order of the fields in setting.go.
func settingFlags(node *kong.Node) (flags []*kong.Flag) {
	seen := map[string]bool{}
	leaves := node.Leaves(true)
	if len(leaves) == 0 {
		leaves = []*kong.Node{node}
	}
	for _, leaf := range leaves {
		for _, flag := range leaf.Flags {
			if !local(flag) && !seen[flag.Name] {
				seen[flag.Name] = true
				flags = append(flags, flag)
			}
		}
	}
	return flags
}

func noteCommandLine(chosen *kong.Context, source map[string]string) {
	for _, path := range chosen.Path {
		if path.Flag != nil && !path.Resolved {
			source[path.Flag.Name] = "command line"
		}
	}
}

// located adds to each fault where its setting came from, and removes repeated faults.
func (p *program) located(faults []fault) faultsError {
	var lines faultsError
	for _, f := range faults {
		line := f.text
		if f.setting != "" {
			switch from := p.source[f.setting]; {
			case strings.HasPrefix(from, envPrefix):
				line = from + ": " + line
			case from != "" && from != "command line":
				line = from + ": " + f.setting + ": " + line
			default:
				line = "--" + f.setting + ": " + line
			}
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// helpText returns the help of a setting, with its default and its environment variable.
func helpText(value *kong.Value) string {
	var lines []string
	if value.Default != "" && value.Default != "true" {
		lines = append(lines, "default "+value.Default)
	}
	if value.Flag != nil && !local(value.Flag) {
		lines = append(lines, envName(value.Name))
	}
	if len(lines) == 0 {
		return value.Help
	}
	return fmt.Sprintf("%s (%s)", value.Help, strings.Join(lines, ", "))
}
