package docs

import (
	_ "embed"
	"encoding/json"
	"sync"
)

// AnswersFile is the file with the example answers, below this folder. A test of the API writes it with UPDATE=1.
const AnswersFile = "answers.json"

//go:embed answers.json
var answersFile []byte

var answers = sync.OnceValue(func() (all map[string]json.RawMessage) {
	if err := json.Unmarshal(answersFile, &all); err != nil {
		panic(err) // the file is part of the program, and a test reads it
	}
	return all
})

// AnswerOf returns an example answer of an operation, or nil if there is none.
func AnswerOf(operation string) any {
	if example, ok := answers()[operation]; ok {
		return example
	}
	return nil
}
