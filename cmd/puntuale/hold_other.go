//go:build !unix

package main

import "os"

// hold keeps the file open, which on Windows is enough to keep its folder from being removed.
func hold(name string) (release func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
