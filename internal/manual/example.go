// Package manual reads the commands in the manuals, so that tests paste what the manuals show.
package manual

import (
	"regexp"
	"strings"
)

// fence matches a block of code. A block in a list is indented.
var fence = regexp.MustCompile("(?sm)^( *)```([a-z]*)\n(.*?)\n *```$")

// Examples returns all blocks of one language in a section of a page, joined into one text. The section is named by its
// heading of the second level; "" is the whole page. Without such a block the text is empty.
func Examples(page, section, language string) string {
	if section != "" {
		_, page, _ = strings.Cut(page, "\n## "+section+"\n")
		page, _, _ = strings.Cut(page, "\n## ")
	}
	var all strings.Builder
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		if m[2] == language {
			all.WriteString(strings.ReplaceAll("\n"+m[3], "\n"+m[1], "\n")[1:] + "\n")
		}
	}
	return all.String()
}
