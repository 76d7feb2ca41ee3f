package view

import (
	"context"

	"puntuale"
)

// Says makes a reason's sentence in the reader's language.
func Says(ctx context.Context, why puntuale.Reason) string {
	return Of(ctx).Language.Says(why)
}
