package language

import (
	"fmt"
	"regexp"
	"strings"

	"github.com/pelletier/go-toml/v2"
)

// wording is how a language says a fault that the service names in English. {n} stands for what differs.
type wording struct {
	says *regexp.Regexp
	text string
}

type faultFile struct {
	Fault []struct {
		Says string // word for word, with {n} for what differs
		Text string // in this language; "" in English: as it is
	}
}

var gap = regexp.MustCompile(`\\\{[a-z]+\\\}`)

func loadFaults(code string) (all []wording) {
	files, err := texts.ReadDir("text")
	if err != nil {
		panic(err) // the texts are part of the program
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "fault") || !strings.HasSuffix(f.Name(), "."+code+".toml") {
			continue
		}
		var file faultFile
		content, err := texts.ReadFile("text/" + f.Name())
		if err == nil {
			err = toml.Unmarshal(content, &file)
		}
		if err != nil {
			panic(fmt.Errorf("%s: %w", f.Name(), err))
		}
		for _, w := range file.Fault {
			names := gap.FindAllString(regexp.QuoteMeta(w.Says), -1)
			pattern := gap.ReplaceAllString(regexp.QuoteMeta(w.Says), "(.+?)")
			text := w.Text
			for i, name := range names {
				plain := strings.ReplaceAll(name, `\`, "")
				text = strings.ReplaceAll(text, plain, fmt.Sprintf("${%d}", i+1))
			}
			all = append(all, wording{regexp.MustCompile("^" + pattern + "$"), text})
		}
	}
	return all
}

// Fault says a fault in the language; what has no wording of its own comes back as it is. It begins with a capital.
func (l *Language) Fault(message string) string {
	text, _ := l.fault(message)
	return text
}

func (l *Language) fault(message string) (text string, known bool) {
	for _, w := range l.words().faults {
		if m := w.says.FindStringSubmatchIndex(message); m != nil {
			if w.text != "" {
				return capital(string(w.says.ExpandString(nil, w.text, message, m))), true
			}
			return capital(message), true
		}
	}
	return capital(message), false
}

func capital(text string) string {
	for i, r := range text {
		return strings.ToUpper(text[:i+len(string(r))]) + text[i+len(string(r)):]
	}
	return text
}
