// Package language contains the texts of the pages in Italian and English. It also formats times, days and numbers in
// each language. The texts are in text/NOUN.it.toml and text/NOUN.en.toml. A new kind of page adds a pair of files. A
// test compares the keys of each pair.
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

// Language is a language of the pages. Many goroutines may use it at the same time.
type Language struct {
	Code  string // "it" or "en", the value of the attribute lang
	words func() *words
}

// words contains the texts of a language. They are loaded when the first page needs them. Commands, and servers without
// visitors, do not need them.
type words struct {
	localizer *i18n.Localizer
}

// The languages of the pages. Italian is the default.
var (
	Italian = inCode("it")
	English = inCode("en")
)

// All contains the languages, in the order in which pages offer them.
var All = []*Language{Italian, English}

func inCode(code string) *Language {
	return &Language{Code: code, words: sync.OnceValue(func() *words { return load(code) })}
}

func load(code string) *words {
	bundle := i18n.NewBundle(tag.Make(code))
	bundle.RegisterUnmarshalFunc("toml", toml.Unmarshal)
	files, err := texts.ReadDir("text")
	if err != nil {
		panic(err) // the texts are compiled into the program, so this cannot fail
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

// Named returns the language with this code, or nil if there is no such language.
func Named(code string) *Language {
	for _, l := range All {
		if l.Code == code {
			return l
		}
	}
	return nil
}

// Accepted returns the language that the header Accept-Language prefers.
func Accepted(header string) *Language {
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

// T returns the text with this text key. The argument pairs contains names and values for the text: T("clients.found",
// "N", 3). N also decides between singular and plural. If there is no such text, T returns the text key between ⟦ and
// ⟧. A test searches pages for these signs.
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
	if err != nil && config.PluralCount != nil { // a text with one form is good for every number
		config.PluralCount = nil
		text, err = l.words().localizer.Localize(&config)
	}
	if err != nil {
		return "⟦" + key + "⟧"
	}
	return text
}

// Has reports whether there is a text with this text key.
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
