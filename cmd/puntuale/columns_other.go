//go:build !unix

package main

import "os"

// columnsOf returns 0: how many characters a line of a terminal has is not known.
func columnsOf(*os.File) int { return 0 }
