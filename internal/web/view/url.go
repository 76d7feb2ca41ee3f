package view

import (
	"context"
	"fmt"
	"puntuale"
)

func SessionURL(ctx context.Context, id puntuale.SessionID, more string) string {
	return Base(ctx) + "/sessions/" + id.String() + more
}

func MessageURL(ctx context.Context, id puntuale.MessageID) string {
	return fmt.Sprintf("%s/messages/%d", Base(ctx), id)
}
