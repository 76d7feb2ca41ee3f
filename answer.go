package puntuale

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of the buttons under a message.
const (
	MaxStepButtons = 3
	MaxButtonLabel = 20 // characters
	// MaxAsking is how many characters the text of a message with buttons may have, with the lines that networks without
	// buttons show instead of them. It is Meta's limit, and holds on every connection, because a sequence may change its
	// session.
	MaxAsking = 1024
	// AnswerTime is how long after a question the person may answer it in words. Buttons work longer.
	AnswerTime = 14 * 24 * time.Hour
)

// ButtonEffect says what a press of a button does.
type ButtonEffect string

const (
	ButtonConfirms ButtonEffect = "confirm" // confirms the booking
	ButtonCancels  ButtonEffect = "cancel"  // cancels the booking
	ButtonAnswers  ButtonEffect = "answer"  // is only told
)

// StepButton is a button under a message. The wire and stores use the same JSON form.
type StepButton struct {
	Label string       `json:"label"`
	Does  ButtonEffect `json:"does"`
}

// DefaultButtonLine is the line above the numbered lines that networks without buttons show.
const DefaultButtonLine = "Rispondi con il numero:"

// Shown returns the text of a content as networks without buttons show it: each button is a numbered line.
func (c Content) Shown() string {
	if len(c.Buttons) == 0 {
		return c.Text
	}
	return c.Text + ButtonLines(c.Buttons, c.ButtonLine)
}

// ButtonLines returns what [Content.Shown] adds to the text. above is the line above the numbers; "": the usual one.
func ButtonLines(all []StepButton, above string) string {
	if above == "" {
		above = DefaultButtonLine
	}
	var b strings.Builder
	b.WriteString("\n\n" + above)
	for i, button := range all {
		b.WriteString("\n" + strconv.Itoa(i+1) + ". " + button.Label)
	}
	return b.String()
}

// AnswerLength returns how many characters buttons may add to a text.
func AnswerLength(all []StepButton, above string) int {
	if len(all) == 0 {
		return 0
	}
	return utf8.RuneCountInString(ButtonLines(all, above))
}

// AnswerMatch says how an answer found its question, in the words of the API.
type AnswerMatch string

const (
	MatchPayload AnswerMatch = "payload" // the network told the button's payload
	MatchQuote   AnswerMatch = "quote"   // the person quoted the message
	MatchLatest  AnswerMatch = "latest"  // a number or a label answers the one open question
	MatchWord    AnswerMatch = "word"    // one of the client's words answers the one open question
	MatchPage    AnswerMatch = "page"    // the page of the confirmation
)

// GivenAnswer is what a person answered about a booking.
type GivenAnswer struct {
	Does    ButtonEffect `json:"does"`
	Label   string       `json:"label"`
	Step    string       `json:"step"`              // id of the step that asked; "": the page
	Message MessageID    `json:"message,omitempty"` // the message that asked; 0: the page
	At      time.Time    `json:"at"`
	Matched AnswerMatch  `json:"matched"`
	Stale   bool         `json:"stale"` // the question was about another date
}

// Question is a message with buttons that a booking sent to a person.
type Question struct {
	Booking   BookingID
	Reference string
	Sequence  SequenceID
	Step      string // the step's id
	Message   MessageID
	Session   SessionID // that sent it; 0: the message was archived
	Phone     string
	Buttons   []StepButton
	Date      time.Time // the main date that it asked about
	Now       time.Time // the booking's main date now
	Asked     time.Time // when it was sent; zero: the message was archived
	Answered  bool
}

// Open reports whether words can answer the question.
func (q *Question) Open(now time.Time, session SessionID) bool {
	return !q.Answered && q.Session == session && q.Date.After(now) && now.Sub(q.Asked) <= AnswerTime
}

// OpenQuestions returns the questions that words could answer now: of each booking, the latest one.
func OpenQuestions(all []Question, now time.Time, session SessionID) []Question {
	var open []Question
	for _, q := range all {
		if !q.Open(now, session) {
			continue
		}
		i := slices.IndexFunc(open, func(o Question) bool { return o.Booking == q.Booking })
		switch {
		case i < 0:
			open = append(open, q)
		case q.Asked.After(open[i].Asked):
			open[i] = q
		}
	}
	return open
}

// Tap names a button of a message, as a payload that only this server can have made does.
type Tap struct {
	Message MessageID
	Button  int // position
}

// Asked is what the store knows about the questions that a reply may answer.
type Asked struct {
	Questions []Question
	InReplyTo MessageID // the message whose button was pressed, or that was quoted; 0: none
	Matched   AnswerMatch
	Settings  ClientSettings
}
