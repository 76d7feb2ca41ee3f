//go:build !unix

package localfile

import "os"

// Lock keeps the file open until release. On Windows, nobody can remove the folder of an open file.
func Lock(name string) (release func(), err error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return func() { _ = f.Close() }, nil
}
