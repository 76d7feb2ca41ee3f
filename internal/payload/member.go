package payload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Member is one value of a payload, with its path.
type Member struct{ Path, Text string }

// Members lists the values that [Payload.Text] finds, at most limit values, in the order of their names. Where
// possible, the path of a list entry contains a value of the entry instead of its number. Such a path remains correct
// when other entries are missing.
func (p Payload) Members(limit int) []Member {
	l := memberList{limit: limit}
	l.add("", p.root)
	return l.all
}

type memberList struct {
	limit int
	all   []Member
}

func (l *memberList) add(path string, value any) {
	if len(l.all) >= l.limit {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.add(memberPath(path, name), v[name])
		}
	case []any:
		l.list(path, v)
	case string, json.Number, bool:
		if text := textOf(v); text != "" && utf8.RuneCountInString(path) <= MaxPath {
			l.all = append(l.all, Member{path, text})
		}
	}
}

func (l *memberList) list(path string, entries []any) {
	if text := textOf(entries); text != "" && path != "" {
		l.all = append(l.all, Member{path, text})
		return
	}
	telling := tellingMember(entries)
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		if strings.HasPrefix(path, "/") {
			at = fmt.Sprintf("%s/%d", path, i)
		} else if telling != "" {
			within, _ := ParsePath(telling) // no error is possible: the list contains only valid paths
			at = fmt.Sprintf("%s[%s=%s]", path, telling, textOf(within.lookUp(entry)))
		}
		l.add(at, entry)
	}
}

// tellingMembers are members whose values often distinguish the entries of a list: in Typeform, in WooCommerce, and in
// general.
var tellingMembers = []string{"field.ref", "key", "ref", "slug", "label", "name"}

// tellingMember returns a member that each entry has, with a different value in each entry. It returns "" if there is
// none.
func tellingMember(entries []any) string {
	for _, name := range tellingMembers {
		within, _ := ParsePath(name) // no error is possible: the list contains only valid paths
		seen := map[string]bool{}
		for _, entry := range entries {
			text, _ := within.lookUp(entry).(string)
			if text == "" || len(text) > 60 || strings.ContainsAny(text, "]\n") {
				break
			}
			seen[text] = true
		}
		if len(seen) == len(entries) {
			return name
		}
	}
	return ""
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// memberPath returns the path of a member. If the name contains dots or brackets, the path is a JSON Pointer.
func memberPath(path, name string) string {
	switch {
	case strings.HasPrefix(path, "/"):
		return path + "/" + escape.Replace(name)
	case name != "" && name[0] != '/' && !strings.ContainsAny(name, ".[]") && strings.TrimSpace(name) == name:
		if path == "" {
			return name
		}
		return path + "." + name
	case path == "":
		return "/" + escape.Replace(name)
	}
	return asPointer(path) + "/" + escape.Replace(name)
}

// asPointer converts a path into a JSON Pointer. A JSON Pointer cannot identify an entry by one of its values. In this
// case, the pointer finds nothing, and Members leaves the member out.
func asPointer(path string) string {
	p, err := ParsePath(path)
	if err != nil {
		return path
	}
	var b strings.Builder
	for _, s := range p.steps {
		b.WriteString("/" + escape.Replace(s.name))
	}
	return b.String()
}
