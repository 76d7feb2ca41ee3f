//go:build !linux && !darwin

package diskspace

import "errors"

func Measure(string) (free, size uint64, err error) { return 0, 0, errors.ErrUnsupported }
