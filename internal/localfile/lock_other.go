//go:build !unix

package localfile

import "os"

// Lock keeps the file open, which on Windows is enough to keep its folder from being removed.
func Lock(name string) (release func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
