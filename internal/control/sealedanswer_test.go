package control

import (
	"bytes"
	"errors"
	"testing"

	"puntuale"
)

func TestSeal(t *testing.T) {
	t.Parallel()
	mine, err := newSealer("pk_mine")
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := newSealer("pk_theirs")
	if err != nil {
		t.Fatal(err)
	}
	call := &puntuale.Idempotency{Scope: "POST /api/client/create", Key: "k", Hash: "h"}
	answer := []byte(`{"api_key":"ck_secret"}`)
	box := mine.seal(call, answer)
	if bytes.Contains(box, []byte("secret")) || bytes.Equal(box, mine.seal(call, answer)) {
		t.Errorf("sealed as %s", box)
	}
	if got, err := mine.open(call, box); err != nil || !bytes.Equal(got, answer) {
		t.Errorf("opened as %s, %v", got, err)
	}
	if _, err := theirs.open(call, box); puntuale.CodeOf(err) != puntuale.CodeConflict {
		t.Errorf("another key: %v", err)
	}
	for _, other := range []puntuale.Idempotency{{Scope: "POST /api/x", Key: "k", Hash: "h"}, {Scope: call.Scope, Key: "l", Hash: "h"}, {Scope: call.Scope, Key: "k", Hash: "i"}} {
		if _, err := mine.open(&other, box); puntuale.CodeOf(err) != puntuale.CodeConflict {
			t.Errorf("another call: %v", err)
		}
	}
	if _, err := mine.open(call, []byte("{}")); err == nil {
		t.Error("what was not sealed opens")
	}
	// The method opened must open the sealed answer in a [*puntuale.Replayed] error, and must return any other error
	// unchanged.
	replay := &puntuale.Replayed{}
	if err := mine.opened(call, &puntuale.Replayed{Answer: box}); !errors.As(err, &replay) || !bytes.Equal(replay.Answer, answer) {
		t.Errorf("%v", err)
	}
	if err := mine.opened(call, puntuale.NotFound("client")); puntuale.CodeOf(err) != puntuale.CodeNotFound {
		t.Errorf("%v", err)
	}
}

// open returns an error for every text that seal did not make.
func FuzzOpen(f *testing.F) {
	s, err := newSealer("pk_mine")
	if err != nil {
		f.Fatal(err)
	}
	call := &puntuale.Idempotency{Scope: "POST /api/client/create", Key: "k", Hash: "h"}
	f.Add(s.seal(call, []byte("{}")))
	f.Add([]byte(""))
	f.Add([]byte("AAAA"))
	f.Fuzz(func(t *testing.T, kept []byte) {
		if answer, err := s.open(call, kept); err == nil && string(answer) != "{}" {
			t.Fatalf("%q opens as %q", kept, answer)
		}
	})
}
