//go:build !linux

package doctor

import "errors"

// Synchronised does not know the clocks of this system.
func Synchronised() error { return errors.ErrUnsupported }

// OpenFiles does not know the limits of this system.
func OpenFiles() uint64 { return 0 }
