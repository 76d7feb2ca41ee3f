package transfer

import "puntuale/internal/store/archive"

// Progress reports how far a move has come; it is called after each thousand rows and at the end of each stage.
type Progress func(stage Stage, done, total int64)

// Stage is a part of moving.
type Stage string

const (
	Exporting Stage = "exporting"
	Loading   Stage = "loading"
	Checking  Stage = "checking"
)

// rowCounter reports each row to a Progress.
type rowCounter struct {
	stage       Stage
	done, total int64
	tell        Progress
}

func (c *rowCounter) row() {
	if c.done++; c.done%archive.StepRows == 0 && c.tell != nil {
		c.tell(c.stage, c.done, c.total)
	}
}

func (c *rowCounter) end() {
	if c.tell != nil {
		c.tell(c.stage, c.done, c.total)
	}
}
