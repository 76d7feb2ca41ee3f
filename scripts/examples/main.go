// Command examples prints the commands of a manual, for tests outside of Go: examples docs/install.md "Debian and Ubuntu"
package main

import (
	"fmt"
	"os"

	"puntuale/internal/manual"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "examples:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: examples PAGE SECTION")
	}
	page, err := os.ReadFile(args[0]) //nolint:gosec // whoever runs it names the page
	if err != nil {
		return err
	}
	found := manual.Examples(string(page), args[1], "sh")
	if found == "" {
		return fmt.Errorf("%s has no commands in the section %q", args[0], args[1])
	}
	_, err = fmt.Print(found)
	return err
}
