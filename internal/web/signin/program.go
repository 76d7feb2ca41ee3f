package signin

import (
	"context"
	"strings"

	"puntuale/internal/web/view"
)

// A browser names itself in a text in which it also pretends to be others. In these lists, a name comes before those that
// the same text also contains.
var (
	browsers = []struct{ part, name string }{
		{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"}, {"CriOS/", "Chrome"},
		{"Chrome/", "Chrome"}, {"Safari/", "Safari"},
	}
	systems = []struct{ part, name string }{
		{"iPhone", "iPhone"}, {"iPad", "iPad"}, {"Android", "Android"}, {"Windows", "Windows"}, {"Macintosh", "Mac"}, {"CrOS", "ChromeOS"}, {"Linux", "Linux"},
	}
)

// programWords names a browser and its system, such as "Firefox su Windows".
func programWords(ctx context.Context, program string) string {
	find := func(list []struct{ part, name string }) string {
		for _, l := range list {
			if strings.Contains(program, l.part) {
				return l.name
			}
		}
		return ""
	}
	switch browser, system := find(browsers), find(systems); {
	case browser != "" && system != "":
		return view.T(ctx, "me.visit_program", "Browser", browser, "System", system)
	case browser != "":
		return browser
	case system != "":
		return system
	}
	return view.T(ctx, "me.visit_unknown")
}
