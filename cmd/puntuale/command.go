package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// commands is the command line. A field with the tag "local" is a flag of one command, and not a setting.
// With the value "env", the environment may set it, but not the file of settings.
type commands struct {
	Demo     demoCommand     `cmd:"" help:"Try it: fresh demo data in a folder of its own, messages that leave within seconds, a curl line to paste."`
	Serve    serveCommand    `cmd:"" help:"Serve the API and send what is due, until SIGTERM."`
	Health   healthCommand   `cmd:"" help:"Ask a running server whether it is ready; exit code 0 means yes."`
	Doctor   doctorCommand   `cmd:"" help:"Look at what a new operator gets wrong, and say what to do; exit code 1 means that something does not work."`
	Partner  partnerGroup    `cmd:"" help:"Partner accounts."`
	Key      keyGroup        `cmd:"" help:"API keys."`
	Link     linkCommand     `cmd:"" help:"Link a session to a phone: shows the code in this terminal until the phone has used it. Reads the client's API key from standard input."`
	Campaign campaignCommand `cmd:"" help:"Send a message or a sequence to every recipient of a list, through a running server, and show how far it is."`
	Device   deviceGroup     `cmd:"" help:"Send the messages of a Send_app session from this machine, with a command of your own."`
	Migrate  migrateCommand  `cmd:"" help:"Bring the database up to date, and end."`
	Upgrade  upgradeCommand  `cmd:"" help:"With --check: say whether this program may be installed over a database, and which tables would change; also beside a running server of another version."`
	Check    checkCommand    `cmd:"" help:"Read the whole database and say whether it is damaged, also beside a running server; exit code 0 means it is whole."`
	Export   exportCommand   `cmd:"" help:"Write the whole installation into one file, also beside running servers."`
	Import   importCommand   `cmd:"" help:"Fill an empty database, SQLite or PostgreSQL, with an exported installation."`
	Backup   backupCommand   `cmd:"" help:"Write a checked backup of the whole installation into one file, also beside running servers."`
	Backups  backupsCommand  `cmd:"" help:"List the backups in a folder or in S3."`
	Restore  restoreCommand  `cmd:"" help:"Make an installation of a backup. What was due may have left: it is set aside and never sent by itself."`
	Restored restoredCommand `cmd:"" help:"Do the same with a database that was copied by other means, before the first server starts on it."`
	Unknown  unknownGroup    `cmd:"" help:"Messages that may have left before a restore: see them, send them again or close them."`
	Archive  archiveGroup    `cmd:"" help:"What was archived because it was old."`
	Recount  recountCommand  `cmd:"" help:"Count the messages of reports from scratch, beside running servers."`
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
	Second  keySecondCommand  `cmd:"" help:"Replace the second key, which seals all secrets in the database, also beside running servers."`
	Data    keyDataCommand    `cmd:"" help:"Replace the data key, and seal all secrets in the database again, also beside running servers. If it was interrupted, call it again."`
	Push    keyPushCommand    `cmd:"" help:"Replace the key that signs pushes to phones, also beside running servers."`
	Webhook keyWebhookCommand `cmd:"" help:"Replace the secret of a webhook, also beside running servers. Both secrets sign for a day."`
	Rotate  keyRotateCommand  `cmd:"" help:"Give the owner of a key a new one; the old one stays valid for a grace period."`
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
	helped := false
	parser, err := kong.New(&commands{},
		kong.Name("puntuale"),
		kong.Description("Puntuale schedules sequences of chat messages, sends each at its moment and keeps what became of it."),
		kong.Writers(p.stdout, p.stderr),
		kong.Vars{"media": defaultMedia(), "version": "puntuale " + versionText()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.ValueFormatter(helpText),
		kong.Exit(func(int) { helped = true }))
	if err != nil {
		return nil, fmt.Errorf("build the command line: %w", err)
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	l := readLine(parser.Model.Node, args)
	if l.helps || !l.node.Leaf() {
		if _, err := parser.Parse(l.words); err != nil && !helped { // the error lists the commands
			return nil, p.located(append(l.faults, fault{"", err.Error()}))
		}
		return nil, nil
	}
	found := &sources{line: l.texts, lookupEnv: p.lookupEnv}
	faults := append(found.readFile(p, l.node.Flags, settingNames(parser)), l.faults...)
	faults = append(faults, p.fill(slices.Concat(l.flags, l.node.Flags), found)...) // the faults of the line come first
	chosen := l.node.Target.Addr().Interface().(command)
	if c, ok := chosen.(checker); ok {
		faults = append(faults, c.check()...)
	}
	if len(faults) > 0 {
		return nil, p.located(faults)
	}
	p.settings = slices.DeleteFunc(l.node.Flags, local)
	return chosen, nil
}

// fill sets the fields of flags. If a text is wrong, it stores the fault, and sets the default.
func (p *program) fill(flags []*kong.Flag, found *sources) (faults []fault) {
	p.source = map[string]string{}
	var missing []string
	for _, flag := range flags {
		text, from := found.text(flag)
		_, filled := p.source[flag.Name]
		p.source[flag.Name] = from
		switch {
		case filled:
		case from == "" && flag.Required:
			missing = append(missing, flag.Summary())
		case from == "" && text == "":
		default:
			if err := setField(flag.Target, text); err != nil {
				faults = append(faults, fault{flag.Name, err.Error()})
				_ = setField(flag.Target, flag.Default)
			}
		}
	}
	if len(missing) > 0 {
		slices.Sort(missing)
		faults = append(faults, fault{"", "missing flags: " + strings.Join(missing, ", ")})
	}
	return faults
}

// settingNames returns the keys that a configuration file may contain: all settings except config, which names the file.
func settingNames(parser *kong.Kong) (names []string) {
	for _, leaf := range parser.Model.Leaves(true) {
		for _, flag := range leaf.Flags {
			if !local(flag) && flag.Name != "config" {
				names = append(names, flag.Name)
			}
		}
	}
	return names
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
			case from != "" && from != fromLine:
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
