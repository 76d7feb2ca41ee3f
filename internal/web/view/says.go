package view

import (
	"context"

	"puntuale"
)

// Says is a sentence of the service's for people, which is Italian, in the reader's language where it has one.
func Says(ctx context.Context, sentence string) string {
	if Of(ctx).Language.Code == "en" {
		return puntuale.English(sentence)
	}
	return sentence
}
