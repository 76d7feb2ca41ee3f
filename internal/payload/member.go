package payload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Member is one value of a payload, with its path.
type Member struct{ Path, Text string }

// Members lists the values that [Payload.Text] finds, at most limit values, in the order of their names. Where
// possible, the path of a list entry contains a value of the entry instead of its number. Such a path remains correct
// when other entries are missing.
func (p Payload) Members(limit int) []Member {
	l := memberList{payload: p, limit: limit}
	l.add(memberPath{}, p.root)
	return l.all
}

type memberList struct {
	payload Payload
	limit   int
	all     []Member
}

// memberPath contains two paths to one value. path is the path for people. pointer is a JSON Pointer, which identifies
// the entries of lists by their numbers. If a name in the path contains dots or brackets, path is the same as pointer.
type memberPath struct{ path, pointer string }

func (l *memberList) add(at memberPath, value any) {
	if len(l.all) >= l.limit {
		return
	}
	switch v := value.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			l.add(at.member(name), v[name])
		}
	case []any:
		l.list(at, v)
	case string, json.Number, bool:
		l.found(at, textOf(v))
	}
}

// found adds a value, unless no path leads to it: both paths may be too long, or a name may end with a space.
func (l *memberList) found(at memberPath, text string) {
	if text == "" {
		return
	}
	for _, path := range []string{at.path, at.pointer} {
		if read, err := ParsePath(path); err == nil && l.payload.Text(read) == text {
			l.all = append(l.all, Member{path, text})
			return
		}
	}
}

func (l *memberList) list(at memberPath, entries []any) {
	if text := textOf(entries); text != "" && at.path != "" {
		l.found(at, text)
		return
	}
	telling := tellingMember(entries)
	for i, entry := range entries {
		next := memberPath{path: fmt.Sprintf("%s[%d]", at.path, i), pointer: fmt.Sprintf("%s/%d", at.pointer, i)}
		if strings.HasPrefix(at.path, "/") {
			next.path = next.pointer
		} else if telling != "" {
			within, _ := ParsePath(telling) // no error is possible: the list contains only valid paths
			next.path = fmt.Sprintf("%s[%s=%s]", at.path, telling, textOf(within.lookUp(entry)))
		}
		l.add(next, entry)
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

// member returns the path of a member. If the name contains dots or brackets, its path is a JSON Pointer.
func (at memberPath) member(name string) memberPath {
	next := memberPath{pointer: at.pointer + "/" + escape.Replace(name)}
	switch plain := name != "" && name[0] != '/' && !strings.ContainsAny(name, ".[]") && strings.TrimSpace(name) == name; {
	case strings.HasPrefix(at.path, "/") || !plain:
		next.path = next.pointer
	case at.path == "":
		next.path = name
	default:
		next.path = at.path + "." + name
	}
	return next
}
