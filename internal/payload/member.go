package payload

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// Member is one value of a payload, with the path that leads to it.
type Member struct{ Path, Text string }

// Members lists the values that [Payload.Text] finds, at most this many, in the order of their names. If a list allows it, its entries are
// named by what they hold. Such a path stays right when other entries are missing.
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
			within, _ := ParsePath(telling) // one of ours
			at = fmt.Sprintf("%s[%s=%s]", path, telling, textOf(within.lookUp(entry)))
		}
		l.add(at, entry)
	}
}

// tellingMembers are members that often tell entries of a list apart: of Typeform, of WooCommerce, and usual ones.
var tellingMembers = []string{"field.ref", "key", "ref", "slug", "label", "name"}

// tellingMember is a member that each entry has, with another value in each; "" if there is none.
func tellingMember(entries []any) string {
	for _, name := range tellingMembers {
		within, _ := ParsePath(name) // one of ours
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

// memberPath is the path of a member. A name that dots or brackets would break makes the path a JSON Pointer.
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

// asPointer writes a path as a JSON Pointer. An entry that is named by what it holds cannot be written so; its pointer leads nowhere, and
// the member is left out.
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
