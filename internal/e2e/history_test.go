//go:build e2e

package e2e

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A history contains everything that was done about one message. Each event took effect at some time between the times
// in its fields from and to. The history is right if the effects have an order that the state machine below allows. A
// message exists at the latest when the answer to its start names it. The next stop or cancel must name the message.
// After an answer named it as cancelled, it never leaves. It is sent at most once.
//
//	absent ──start──▶ open ──named by a stop or cancel──▶ cancelled
//	                   └──sent──▶ sent
type history []event

// event is one thing that was done about a message.
type event struct {
	kind     eventKind
	from, to int64 // in microseconds since 1970; if no answer came, the field to has the largest value
}

type eventKind string

const (
	starts     eventKind = "start"
	takes      eventKind = "cancelled it"     // the answer to a stop or cancel named the message
	passes     eventKind = "cancelled others" // the answer to a stop or cancel did not name the message
	unanswered eventKind = "cancel, no answer"
	sends      eventKind = "sent"
	isOpen     eventKind = "is PENDING"
	isTaken    eventKind = "is CANCELLED"
	isSent     eventKind = "is COMPLETED"
)

const endless = math.MaxInt64

// steps contains, for each kind of event, the states in which it is allowed, and the states that may follow.
var steps = map[eventKind]map[string][]any{
	starts:     {"absent": {"open"}},
	takes:      {"open": {"cancelled"}},
	passes:     {"absent": {"absent"}, "cancelled": {"cancelled"}, "sent": {"sent"}},
	unanswered: {"absent": {"absent"}, "open": {"open", "cancelled"}, "cancelled": {"cancelled"}, "sent": {"sent"}},
	sends:      {"open": {"sent"}},
	isOpen:     {"open": {"open"}},
	isTaken:    {"cancelled": {"cancelled"}},
	isSent:     {"sent": {"sent"}},
}

var messageModel = (&porcupine.NondeterministicModel{
	Init: func() []any { return []any{"absent"} },
	Step: func(state, input, _ any) []any { return steps[input.(eventKind)][state.(string)] },
}).ToModel()

// linearizable reports whether the history is right.
func (h history) linearizable() bool {
	operations := make([]porcupine.Operation, len(h))
	for i, e := range h {
		operations[i] = porcupine.Operation{ClientId: i, Input: e.kind, Call: e.from, Return: e.to}
	}
	return porcupine.CheckOperations(messageModel, operations)
}

func (h history) String() string {
	h = slices.SortedFunc(slices.Values(h), func(a, b event) int { return int(a.from - b.from) })
	var lines []string
	for _, e := range h {
		to := "no answer"
		if e.to != endless {
			to = fmt.Sprintf("%8.3f ms", float64(e.to-h[0].from)/1000)
		}
		lines = append(lines, fmt.Sprintf("%9.3f to %s: %s", float64(e.from-h[0].from)/1000, to, e.kind))
	}
	return strings.Join(lines, "\n")
}

// TestHistoriesAreJudged: the checker finds wrong histories. Each row has a history that a broken mechanism would
// cause.
func TestHistoriesAreJudged(t *testing.T) {
	for name, test := range map[string]struct {
		history history
		right   bool
	}{
		"sent":                                 {history{{starts, 0, 10}, {sends, 20, 30}, {isSent, 90, 90}}, true},
		"sent before its start was answered":   {history{{starts, 0, 10}, {sends, 5, 6}, {isSent, 90, 90}}, true},
		"cancelled":                            {history{{starts, 0, 10}, {takes, 20, 30}, {isTaken, 90, 90}}, true},
		"the second stop has nothing to name":  {history{{starts, 0, 10}, {takes, 20, 40}, {passes, 25, 45}, {isTaken, 90, 90}}, true},
		"a stop during the send":               {history{{starts, 0, 10}, {sends, 20, 40}, {passes, 30, 35}, {isSent, 90, 90}}, true},
		"an unanswered stop that came through": {history{{starts, 0, 10}, {unanswered, 20, endless}, {isTaken, 90, 90}}, true},
		"an unanswered stop that did not":      {history{{starts, 0, 10}, {unanswered, 20, endless}, {sends, 30, 40}, {isSent, 90, 90}}, true},
		"a stop beside the start":              {history{{starts, 0, 10}, {passes, 5, 15}, {isOpen, 90, 90}}, true},

		"cancelled, then sent":             {history{{starts, 0, 10}, {takes, 20, 30}, {sends, 40, 50}, {isSent, 90, 90}}, false},
		"cancelled during the send":        {history{{starts, 0, 10}, {takes, 20, 45}, {sends, 40, 50}, {isSent, 90, 90}}, false},
		"sent twice":                       {history{{starts, 0, 10}, {sends, 20, 30}, {sends, 25, 50}, {isSent, 90, 90}}, false},
		"sent, never started":              {history{{sends, 20, 30}, {isSent, 90, 90}}, false},
		"sent before its start":            {history{{sends, 1, 5}, {starts, 10, 20}, {isSent, 90, 90}}, false},
		"named by two stops":               {history{{starts, 0, 10}, {takes, 20, 40}, {takes, 25, 45}, {isTaken, 90, 90}}, false},
		"a stop that overlooked it":        {history{{starts, 0, 10}, {passes, 20, 30}, {sends, 40, 50}, {isSent, 90, 90}}, false},
		"overlooked, then taken":           {history{{starts, 0, 10}, {passes, 20, 30}, {takes, 40, 50}, {isTaken, 90, 90}}, false},
		"lost":                             {history{{isOpen, 90, 90}}, false},
		"cancelled by nobody":              {history{{starts, 0, 10}, {isTaken, 90, 90}}, false},
		"cancelled, still open":            {history{{starts, 0, 10}, {takes, 20, 30}, {isOpen, 90, 90}}, false},
		"a send that was recorded as none": {history{{starts, 0, 10}, {sends, 20, 30}, {isOpen, 90, 90}}, false},
	} {
		if test.history.linearizable() != test.right {
			t.Errorf("%s: right is %v, judged otherwise:\n%v", name, test.right, test.history)
		}
	}
}

// moment returns a time in the form of a history.
func moment(t time.Time) int64 { return t.UnixMicro() }
