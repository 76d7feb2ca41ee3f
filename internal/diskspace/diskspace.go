// Package diskspace warns before a disk of the server is full.
package diskspace

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
)

// A disk is nearly full if less than a tenth of it is free, and less than lowBytes are free. A tenth of a large disk is
// enough for a long time.
const (
	lowShare = 10
	lowBytes = 5 << 30
)

// Disks watches the disks of some folders. It does not watch PostgreSQL's disk. It is not safe for concurrent use.
type Disks struct {
	folders map[string]string // path of each folder; the key says what the folder contains
	low     map[string]bool
	space   func(folder string) (free, size uint64, err error)
	figure  func(use string, free, size uint64)
	logger  *slog.Logger
}

// New returns a Disks. folders contains the path of each folder; the key says what the folder contains. Look calls
// figure with each measurement, in bytes.
func New(folders map[string]string, figure func(use string, free, size uint64), logger *slog.Logger) *Disks {
	return &Disks{folders: folders, low: map[string]bool{}, space: Measure, figure: figure, logger: logger}
}

// Look measures the disks. It logs when a disk becomes nearly full, and when the disk has enough space again.
func (d *Disks) Look(context.Context) error {
	var failed error
	for use, folder := range d.folders {
		free, size, err := d.space(folder)
		if errors.Is(err, errors.ErrUnsupported) {
			return nil
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("look at the disk of %s: %w", folder, err))
			continue
		}
		d.figure(use, free, size)
		low := free < size/lowShare && free < lowBytes
		switch {
		case low && !d.low[use]:
			d.logger.Warn("a disk is nearly full", "holds", use, "folder", folder, "free_bytes", free, "size_bytes", size)
		case !low && d.low[use]:
			d.logger.Info("a disk has room again", "holds", use, "folder", folder, "free_bytes", free)
		}
		d.low[use] = low
	}
	return failed
}
