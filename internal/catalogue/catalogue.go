// Package catalogue contains the sentence of every reason and every fault, by its code. The sentences are in Italian
// for the contract, and in Italian and English for pages and programs. Their only source is the TOML files in the
// folder text.
package catalogue

import (
	"embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"puntuale"
)

// Language is a language of the catalogue.
type Language int

const (
	Italian Language = iota
	English
)

// sentence is one entry of the files. Its code is the entry's name. {1} stands for the first argument, {*} for all
// arguments.
type sentence struct {
	It  string
	En  string
	API string // the English sentence for programs, if it is different from the sentence on pages; "": the same as En
}

//go:embed text
var files embed.FS

var sentences = load()

func load() map[puntuale.ReasonCode]sentence {
	entries, err := files.ReadDir("text")
	if err != nil {
		panic(err) // the texts are compiled into the program, so this cannot fail
	}
	all := map[puntuale.ReasonCode]sentence{}
	for _, f := range entries {
		var file map[puntuale.ReasonCode]sentence
		content, err := files.ReadFile("text/" + f.Name())
		if err == nil {
			err = toml.Unmarshal(content, &file)
		}
		if err != nil {
			panic(fmt.Errorf("%s: %w", f.Name(), err))
		}
		for code, s := range file {
			if _, twice := all[code]; twice {
				panic(fmt.Errorf("%s: %s is there twice", f.Name(), code))
			}
			all[code] = s
		}
	}
	return all
}

// HasSentence reports whether the catalogue has a sentence for the code.
func HasSentence(code puntuale.ReasonCode) bool {
	_, ok := sentences[code]
	return ok
}

// Sentence returns the sentence of a reason. Quoted words are returned unchanged. The empty reason gives "". For a code
// without a sentence it returns the code, because a newer version of the program may have written this code.
func (l Language) Sentence(r puntuale.Reason) string {
	return sentenceOf(r, func(s sentence) string {
		if l == English {
			return s.En
		}
		return s.It
	})
}

// Message returns the English sentence that a program gets in an error.
func Message(r puntuale.Reason) string {
	return sentenceOf(r, func(s sentence) string {
		if s.API != "" {
			return s.API
		}
		return s.En
	})
}

func sentenceOf(r puntuale.Reason, in func(sentence) string) string {
	if r.Code == "" {
		return strings.Join(r.Args, " ")
	}
	s, ok := sentences[r.Code]
	if !ok {
		return strings.Join(append([]string{string(r.Code)}, r.Args...), " ")
	}
	said := make([]string, len(r.Args))
	pairs := make([]string, 0, 2*len(r.Args)+2)
	for i, arg := range r.Args {
		said[i] = sentenceOf(puntuale.ParseReason(arg), in)
		pairs = append(pairs, "{"+strconv.Itoa(i+1)+"}", said[i])
	}
	pairs = append(pairs, "{*}", strings.Join(said, "; "))
	return strings.NewReplacer(pairs...).Replace(in(s))
}
