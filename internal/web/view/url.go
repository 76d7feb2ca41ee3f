package view

import (
	"context"
	"fmt"
	"net/url"
	"puntuale"
	"strconv"
	"strings"
)

// cameFrom returns the address from which the reader came if it is the page url with other filters, or another page of its
// list. Otherwise it returns url. row is the id of an element of the list, to which the browser scrolls; "": none.
func cameFrom(ctx context.Context, address, row string) string {
	from, err := url.Parse(FrameOf(ctx).From)
	if err != nil || from.RawQuery == "" && row == "" {
		return address
	}
	to, err := url.Parse(address)
	if err != nil || from.Path != to.Path || from.Query().Get("phone") != to.Query().Get("phone") && strings.HasSuffix(to.Path, "/person") {
		return address
	}
	from.Fragment = row
	return from.String()
}

// RowOf returns the id of the row that leads to a page, if the path of the page ends with a number. Otherwise it returns "".
func RowOf(path string) string {
	id := path[strings.LastIndexByte(path, '/')+1:]
	if _, err := strconv.ParseUint(id, 10, 64); err != nil {
		return ""
	}
	return "row-" + id
}

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
