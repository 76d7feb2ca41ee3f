// Package language holds the words of the pages in Italian and English, and how each writes moments, days and numbers.
// The words are in text/NOUN.it.toml and text/NOUN.en.toml. New pages bring a pair of files, and a test compares their
// keys.
package language

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/nicksnyder/go-i18n/v2/i18n"
	"github.com/pelletier/go-toml/v2"
	tag "golang.org/x/text/language"
)

//go:embed text/*.toml
var texts embed.FS

// Language is a language of the pages. It may be used by many goroutines at once.
type Language struct {
	Code  string // "it", "en": what the attribute lang says
	words func() *words
}

// words are the texts of a language, which are read for the first page. Commands, and servers without visitors, do not need them.
type words struct {
	localizer *i18n.Localizer
}

// The languages that there are; Italian is the default.
var (
	Italian = inCode("it")
	English = inCode("en")
)

// All are the languages in the order in which they are offered.
var All = []*Language{Italian, English}

func inCode(code string) *Language {
	return &Language{Code: code, words: sync.OnceValue(func() *words { return load(code) })}
}

func load(code string) *words {
	bundle := i18n.NewBundle(tag.Make(code))
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	files, err := texts.ReadDir("text")
	if err != nil {
		panic(err) // the texts are part of the program
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), "."+code+".toml") {
			if _, err := bundle.LoadMessageFileFS(texts, "text/"+f.Name()); err != nil {
				panic(err)
			}
		}
	}
	return &words{localizer: i18n.NewLocalizer(bundle, code)}
}

// Named returns the language with the code, nil for another.
func Named(code string) *Language {
	for _, l := range All {
		if l.Code == code {
			return l
		}
	}
	return nil
}

// Asked is the language that a browser asks for by its header Accept-Language.
func Asked(header string) *Language {
	tags, _, err := tag.ParseAcceptLanguage(header)
	if err != nil {
		return Italian
	}
	for _, t := range tags {
		base, _ := t.Base()
		if l := Named(base.String()); l != nil {
			return l
		}
	}
	return Italian
}

// T returns the text with the key. pairs are names and values for the text: T("clients.found", "N", 3). N also chooses between one and
// many. A missing key comes back between ⟦ ⟧, and a test searches for that.
func (l *Language) T(key string, pairs ...any) string {
	config := i18n.LocalizeConfig{MessageID: key}
	if len(pairs) > 0 {
		data := make(map[string]any, len(pairs)/2)
		for i := 0; i+1 < len(pairs); i += 2 {
			name := fmt.Sprint(pairs[i])
			data[name] = pairs[i+1]
			if name == "N" {
				config.PluralCount = pairs[i+1]
				data[name] = l.count(pairs[i+1])
			}
		}
		config.TemplateData = data
	}
	text, err := l.words().localizer.Localize(&config)
	if err != nil {
		return "⟦" + key + "⟧"
	}
	return text
}

// Has reports whether there is a text with the key.
func (l *Language) Has(key string) bool {
	text := l.T(key)
	return !strings.HasPrefix(text, "⟦")
}

func (l *Language) count(n any) string {
	switch n := n.(type) {
	case int:
		return l.Number(int64(n))
	case int64:
		return l.Number(n)
	}
	return fmt.Sprint(n)
}
