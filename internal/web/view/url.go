package view

import (
	"context"
	"fmt"
	"puntuale"
)

func sessionURL(ctx context.Context, id puntuale.SessionID, more string) string {
	return Base(ctx) + "/sessions/" + id.String() + more
}

func messageURL(ctx context.Context, id puntuale.MessageID) string {
	return fmt.Sprintf("%s/messages/%d", Base(ctx), id)
}
