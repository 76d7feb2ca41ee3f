package view

import (
	"context"
	"fmt"
	"net/url"
	"puntuale"
)

func SessionURL(ctx context.Context, id puntuale.SessionID, more string) string {
	return Base(ctx) + "/sessions/" + id.String() + more
}

func MessageURL(ctx context.Context, id puntuale.MessageID) string {
	return fmt.Sprintf("%s/messages/%d", Base(ctx), id)
}

// PersonURL returns the address of the page of a person or a group. more is the end of the path, such as "/erase".
func PersonURL(ctx context.Context, phone, more string) string {
	return Base(ctx) + "/person" + more + "?phone=" + url.QueryEscape(phone)
}
