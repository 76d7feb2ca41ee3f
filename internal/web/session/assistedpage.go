package session

import (
	"context"
	"puntuale/internal/web/view"
)

// AssistedPage is the data of the phone app's page, in addition to the frame.
type AssistedPage struct {
	Icon string // the address of the icon
	Slug string // of the partner whose brand the page shows; "": of none
}

// assistedTexts are the endings of the text keys of texts that the app's script shows.
var assistedTexts = []string{
	"list", "link", "name", "gone", "later", "group_done", "waiting_1", "waiting_n", "late_1", "late_n", "left_1", "left_n",
	"no_name", "no_code", "no_network", "code_over", "full", "owes", "unlinked", "not_unlinked", "no_push",
}

func sayings(ctx context.Context) map[string]string {
	texts := make(map[string]string, len(assistedTexts))
	for _, name := range assistedTexts {
		texts[name] = view.T(ctx, "assisted.says."+name)
	}
	return texts
}
