package view

import (
	"context"

	"puntuale"
)

// Says returns the sentence of a reason in the reader's language.
func Says(ctx context.Context, reason puntuale.Reason) string {
	return FrameOf(ctx).Language.Says(reason)
}
