package transfer

import "puntuale/internal/store/archive"

// Progress is called to report the progress of a move: after each thousand rows, and at the end of each stage.
type Progress func(stage Stage, done, total int64)

// Stage is a part of a move.
type Stage string

const (
	Exporting Stage = "exporting"
	Loading   Stage = "loading"
	Checking  Stage = "checking"
)

// rowCounter counts rows, and reports them to a Progress.
type rowCounter struct {
	stage       Stage
	done, total int64
	report      Progress
}

func (c *rowCounter) row() {
	if c.done++; c.done%archive.StepRows == 0 && c.report != nil {
		c.report(c.stage, c.done, c.total)
	}
}

func (c *rowCounter) end() {
	if c.report != nil {
		c.report(c.stage, c.done, c.total)
	}
}
