package puntuale_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"

	"puntuale"
)

func TestReasonsAreStored(t *testing.T) {
	for _, r := range []puntuale.Reason{
		{},
		puntuale.Quoted("wamid.1 (#131026) refused"),
		puntuale.Because("uncertain"),
		puntuale.Quoted(`["uncertain"]`),
		puntuale.Quoted(`["`),
		puntuale.Because("media.too_large", "100 MB", `a "quoted" word`),
		puntuale.Because("official.refused", puntuale.Because("media.empty").Stored()),
	} {
		if got := puntuale.ParseReason(r.Stored()); !got.Equal(r) {
			t.Errorf("%#v came back as %#v", r, got)
		}
	}
	for _, words := range []string{"Numero in blacklist", `["`, `["a"`, "[]", `["a", 1]`} {
		if got := puntuale.ParseReason(words); !got.Equal(puntuale.Quoted(words)) {
			t.Errorf("%q: %#v, want quoted words", words, got)
		}
	}
	if got := puntuale.Quoted("a\x00b\xff").Stored(); got != "ab\uFFFD" {
		t.Errorf("what no database takes is stored as %q", got)
	}
}

func TestReasonsAsJSON(t *testing.T) {
	t.Parallel()
	for _, r := range []puntuale.Reason{{}, puntuale.Quoted("Momento già passato"), puntuale.Because("sequence.past"), puntuale.Because("x", `"`)} {
		text, err := json.Marshal(puntuale.SkippedStep{Reason: r})
		var back puntuale.SkippedStep
		if err != nil || json.Unmarshal(text, &back) != nil || !back.Reason.Equal(r) {
			t.Errorf("%#v came back as %#v from %s, %v", r, back.Reason, text, err)
		}
	}
}

func TestColon(t *testing.T) {
	t.Parallel()
	one, two := puntuale.Because("one"), puntuale.Quoted("two")
	for _, test := range []struct{ first, second, want puntuale.Reason }{
		{one, puntuale.Reason{}, one}, {puntuale.Reason{}, two, two}, {puntuale.Reason{}, puntuale.Reason{}, puntuale.Reason{}},
		{one, two, puntuale.Because(puntuale.ReasonColon, `["one"]`, "two")},
	} {
		if got := puntuale.Colon(test.first, test.second); !got.Equal(test.want) {
			t.Errorf("%v and %v make %#v", test.first, test.second, got)
		}
	}
}

// TestReasonOf checks the three cases: an error with a reason, a refusal with its detail, and any other error's text.
func TestReasonOf(t *testing.T) {
	t.Parallel()
	refusal := &puntuale.SendError{Kind: puntuale.Transient, Reason: puntuale.Because("one"), Detail: puntuale.Quoted("two")}
	repeat := puntuale.Prepared{Envelope: puntuale.Envelope{Repeat: true}}
	for _, test := range []struct {
		err  error
		want puntuale.Reason
	}{
		{errors.New("EOF"), puntuale.Quoted("EOF")},
		{refusal, puntuale.Because(puntuale.ReasonBrackets, `["one"]`, "two")},
		{repeat.Unsure(refusal), puntuale.Because(puntuale.ReasonMaybeSecond, `["one"]`, "two")},
		{fmt.Errorf("send: %w", &puntuale.ReasonError{Reason: puntuale.Because("lost"), Err: io.EOF}), puntuale.Because("lost")},
	} {
		if got := puntuale.ReasonOf(test.err); !got.Equal(test.want) {
			t.Errorf("%v says %#v, want %#v", test.err, got, test.want)
		}
	}
}
