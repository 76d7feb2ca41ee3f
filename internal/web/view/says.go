package view

import "context"

// Says is a sentence of the service's for people, which is Italian, in the reader's language where it has one.
func Says(ctx context.Context, sentence string) string {
	return Of(ctx).Language.Says(sentence)
}
