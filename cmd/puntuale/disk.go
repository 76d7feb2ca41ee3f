package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"
)

// A disk is nearly full when less than a tenth of it, and less than lowBytes, is free. A tenth of a large disk lasts
// for long.
const (
	lowShare = 10
	lowBytes = 5 << 30
)

// disks warns before a disk is full on which the server writes. PostgreSQL's disk is not watched here.
type disks struct {
	folders map[string]string // by what they are for
	low     map[string]bool
	space   func(folder string) (free, size uint64, err error)
	free    *prometheus.GaugeVec
	size    *prometheus.GaugeVec
	logger  *slog.Logger
}

func newDisks(cfg *serverConfig, m *meter) *disks {
	d := &disks{folders: map[string]string{"data": cfg.Data}, low: map[string]bool{}, space: diskSpace, free: m.alerts.diskFree, size: m.alerts.diskSize, logger: cfg.Logger}
	if file := databaseFile(&cfg.baseSettings, cfg.Data); file != "" {
		if d.folders["database"] = filepath.Dir(file); d.folders["database"] == d.folders["data"] {
			delete(d.folders, "data")
		}
	}
	if cfg.Archive != "" {
		d.folders["archive"] = cfg.Archive
	}
	return d
}

// look measures, and says when a disk begins to be nearly full, and when it no longer is.
func (d *disks) look(context.Context) error {
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
		d.free.WithLabelValues(use).Set(float64(free))
		d.size.WithLabelValues(use).Set(float64(size))
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
