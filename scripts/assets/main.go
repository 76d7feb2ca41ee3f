// Command assets stores front-end files of other projects in the form in which they were published. Beside the files is
// a manifest, vendored.json. It contains each package with its version and its archive's hash, and each file with its
// hash. Nobody changes a file in a package's folder by hand. Pages load these files only from this server.
//
//	go run ./scripts/assets                          compare every file below the working folder with its manifest
//	go run ./scripts/assets fetch FOLDER             get the packages of FOLDER/vendored.json again, with npm
//	go run ./scripts/assets fetch FOLDER NAME@1.2.3  put another version of a package, or a new one, into the manifest
//
// A new package needs the names of its files: fetch FOLDER NAME@1.2.3 LICENSE dist/name.min.js. Fetching needs npm.
// Comparing needs no other program.
package main

import (
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "assets:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 0:
		faults, err := verify(".")
		if err != nil {
			return err
		}
		for _, f := range faults {
			fmt.Fprintln(os.Stderr, f)
		}
		if len(faults) > 0 {
			return fmt.Errorf("%d differences", len(faults))
		}
		return nil
	case args[0] == "fetch" && len(args) == 2:
		return refresh(args[1])
	case args[0] == "fetch" && len(args) > 2:
		return replace(args[1], args[2], args[3:])
	}
	return errors.New("usage: assets [fetch FOLDER [NAME@VERSION [FILE ...]]]")
}
