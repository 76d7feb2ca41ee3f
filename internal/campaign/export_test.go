package campaign

import (
	"context"
	"time"

	"puntuale"
)

// Round works on each campaign once.
func (f *Feeder) Round(ctx context.Context, node puntuale.NodeID) time.Duration {
	return f.round(ctx, node)
}
