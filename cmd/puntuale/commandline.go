package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"puntuale/internal/logging"
)

// commandLine is a command line, as far as it can be read. kong itself would stop at the first fault, before it reads
// the rest of the line, the environment and the file. No command accepts arguments other than flags.
type commandLine struct {
	node   *kong.Node        // the command that the words name; if it is no leaf, a word is missing or unknown
	words  []string          // the words, and the flags that ask for the help or the version
	helps  bool              // true: the line asks for the help or the version
	flags  []*kong.Flag      // the flags with a value
	texts  map[string]string // their values, by the flag's name
	faults []fault
}

// readLine reads a command line. After an unknown word it stops, because kong's own error then lists the commands.
func readLine(root *kong.Node, args []string) *commandLine {
	l := &commandLine{node: root, texts: map[string]string{}}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, text, joined := strings.Cut(arg, "=")
		follows := i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") // a value may begin with one dash, as in -5s, or be a dash alone
		flag, known := l.flag(name)
		switch {
		case arg == "--": // no command needs it
		case l.node.Leaf() && (arg == "-" || !strings.HasPrefix(arg, "-")):
			l.fault("", "unexpected argument %q", logging.WithoutKeys(arg))
		case !strings.HasPrefix(arg, "-"):
			l.words = append(l.words, arg)
			if !l.enter(arg) {
				return l
			}
		case flag == nil && !l.node.Leaf():
			l.fault("", "%s stands before the command; flags go after it", logging.WithoutKeys(name))
		case flag == nil:
			l.fault("", "unknown flag %s%s", logging.WithoutKeys(name), suggestion(name, known))
			if !joined && follows && !strings.HasPrefix(args[i+1], "-") {
				i++ // the next word is most likely the value of this unknown flag
			}
		case flag.Name == "help" || flag.Name == "version":
			l.words, l.helps = append(l.words, "--"+flag.Name), true
		case flag.IsBool():
			l.take(flag, switched(text, joined, name != "--"+flag.Name))
		case joined:
			l.take(flag, text)
		case follows:
			i++
			l.take(flag, args[i])
		default:
			l.fault(flag.Name, "needs a value")
		}
	}
	return l
}

func (l *commandLine) fault(setting, form string, args ...any) {
	l.faults = append(l.faults, fault{setting, fmt.Sprintf(form, args...)})
}

func (l *commandLine) take(flag *kong.Flag, text string) {
	l.flags, l.texts[flag.Name] = append(l.flags, flag), text
}

// enter makes a child of the command the command, and reports whether there is one with this name.
func (l *commandLine) enter(name string) bool {
	for _, child := range l.node.Children {
		if child.Name == name {
			l.node = child
			return true
		}
	}
	return false
}

// flag returns the command's flag with this name, and the names of all its flags.
func (l *commandLine) flag(name string) (found *kong.Flag, known []string) {
	for _, group := range l.node.AllFlags(false) {
		for _, flag := range group {
			known = append(known, "--"+flag.Name)
			if name == "--"+flag.Name || name == "-"+string(flag.Short) || flag.Tag.Negatable != "" && name == "--no-"+flag.Name {
				found = flag
			}
		}
	}
	return found, known
}

// switched returns the value of a switch, which needs no text.
func switched(text string, joined, negated bool) string {
	if !joined {
		text = "true"
	}
	if on, err := strconv.ParseBool(text); err == nil && negated {
		return strconv.FormatBool(!on)
	}
	return text
}
