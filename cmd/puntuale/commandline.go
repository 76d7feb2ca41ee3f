package main

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"puntuale/internal/logging"
)

// readable returns the command line without the words at which kong would stop, and a fault for each such word. kong
// stops at the first unknown word, before it reads the rest of the line, the environment and the file. kong also
// mistakes a negative duration for a flag. No command accepts arguments other than flags.
func readable(parser *kong.Kong, args []string) (rest []string, faults []fault) {
	node := parser.Model.Node
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if node.Leaf() {
			more, faults2 := readableFlags(node, args[i:])
			return append(rest, more...), append(faults, faults2...)
		}
		switch child := childOf(node, arg); {
		case child != nil:
			node = child
		case arg == "-h" || arg == "--help" || arg == "--version":
		case strings.HasPrefix(arg, "-"):
			faults = append(faults, fault{"", fmt.Sprintf("%s stands before the command; flags go after it", logging.WithoutKeys(cutValue(arg)))})
			continue
		default:
			return append(rest, arg), faults // kong's own error lists the commands
		}
		rest = append(rest, arg)
	}
	return rest, faults
}

func childOf(node *kong.Node, name string) *kong.Node {
	for _, child := range node.Children {
		if child.Name == name {
			return child
		}
	}
	return nil
}

// readableFlags does the same as readable, for the part of the line after the command's name.
func readableFlags(leaf *kong.Node, args []string) (rest []string, faults []fault) {
	flags, names := map[string]*kong.Flag{}, []string{}
	for _, group := range leaf.AllFlags(false) {
		for _, flag := range group {
			flags["--"+flag.Name] = flag
			names = append(names, "--"+flag.Name)
			if flag.Tag.Negatable != "" {
				flags["--no-"+flag.Name] = flag
			}
		}
	}
	for i := 0; i < len(args); i++ {
		arg := args[i]
		name, _, joined := strings.Cut(arg, "=")
		follows := i+1 < len(args) && !strings.HasPrefix(args[i+1], "--") // a value may begin with one dash, as in -5s, or be a dash alone
		flag := flags[name]
		switch {
		case arg == "-h":
			rest = append(rest, arg)
		case arg == "--": // "--" is ignored, because no command accepts arguments other than flags
		case !strings.HasPrefix(arg, "-") || arg == "-":
			faults = append(faults, fault{"", fmt.Sprintf("unexpected argument %q", logging.WithoutKeys(arg))})
		case flag == nil:
			faults = append(faults, fault{"", fmt.Sprintf("unknown flag %s%s", logging.WithoutKeys(name), suggestion(name, names))})
			if !joined && follows && !strings.HasPrefix(args[i+1], "-") {
				i++ // the next word is most likely the value of this unknown flag
			}
		case joined || flag.IsBool():
			rest = append(rest, arg)
		case follows:
			i++
			rest = append(rest, arg+"="+args[i])
		default:
			faults = append(faults, fault{flag.Name, "needs a value"})
		}
	}
	return rest, faults
}

// cutValue returns the name of a flag, without the value that is written after "=".
func cutValue(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return name
}
