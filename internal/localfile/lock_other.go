//go:build !unix

package localfile

import "os"

// Lock keeps the file open. On Windows, this prevents that its folder is removed.
func Lock(name string) (release func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
