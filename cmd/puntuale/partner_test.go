package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runs runs the program once with a line of input. It returns the exit code and all output.
func (term *console) runs(input string, args ...string) (code int, out, errs string) {
	term.out.Reset()
	term.errs.Reset()
	term.stdin = strings.NewReader(input)
	code = term.run(context.Background(), args)
	return code, term.out.String(), term.errs.String()
}

// TestPartnerCreateRefuses: the refusal names the flags that have faults.
func TestPartnerCreateRefuses(t *testing.T) {
	t.Parallel()
	code, _, said := newConsole(t, nil).runs("\n", "partner", "create", "--name", " ", "--email", "nobody", "--password", "-")
	for _, flag := range []string{"--name", "--email", "--password"} {
		if !strings.Contains(said, flag) {
			t.Errorf("%s is not named in %s", flag, said)
		}
	}
	if code != exitFailed {
		t.Errorf("exit code %d", code)
	}
}

// TestSecondPartner: if the command is run twice, the second run is refused, and only one partner exists.
func TestSecondPartner(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	create := []string{"partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json"}
	code, out, said := term.runs("", create...)
	if code != exitDone || !strings.HasPrefix(out, `{"id":1,"api_key":"pk_`) {
		t.Fatalf("exit code %d, %s %s", code, out, said)
	}
	file := filepath.Join(term.dir, "puntuale-data", "puntuale.db")
	if said != "puntuale: there was no database; made a new one: "+file+"\n" {
		t.Errorf("of the new database it said %q", said)
	}
	create[5] = "Rossi@Example.com"
	code, out, said = term.runs("", create...)
	if code != exitFailed || out != "" || !strings.Contains(said, "exists already: number 1, Agenzia Rossi, of 20") {
		t.Errorf("the second time: exit code %d, %s %s", code, out, said)
	}
	code, out, said = term.runs("", append(create, "--another")...)
	if code != exitDone || !strings.HasPrefix(out, `{"id":2,`) || said != "" {
		t.Errorf("another one, on purpose: exit code %d, %s %s", code, out, said)
	}
}

// TestKeyRotate: the command reads the key only from standard input, because every user of the machine can see a
// command line.
func TestKeyRotate(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	if code, _, said := term.runs("pk_x\n", "key", "rotate"); code != exitFailed || !strings.Contains(said, "there is no database") {
		t.Errorf("without a database: exit code %d, %s", code, said)
	}
	if _, err := os.Stat(filepath.Join(term.dir, "puntuale-data")); err == nil {
		t.Error("it made one")
	}
	_, out, _ := term.runs("", "partner", "create", "--name", "A", "--email", "a@b", "--password", "una frase lunga 42", "--json")
	key := field(t, out, "api_key")
	if code, _, said := term.runs("", "key", "rotate", key); code != exitUsage || strings.Contains(said, key[3:]) {
		t.Errorf("as an argument: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs("pk_wrong\n", "key", "rotate"); code != exitFailed || !strings.Contains(said, "not valid") {
		t.Errorf("nobody's key: exit code %d, %s", code, said)
	}
	if code, out, said := term.runs(key+"\n", "key", "rotate"); code != exitDone || !strings.Contains(out, "stays valid for 24h") {
		t.Errorf("exit code %d, %s %s", code, out, said)
	}
}

// TestPartnerPassword: after the command, a user who was locked out can sign in.
func TestPartnerPassword(t *testing.T) {
	t.Parallel()
	term := newConsole(t, nil)
	create := []string{"partner", "create", "--name", "Agenzia Rossi", "--email", "rossi@example.com", "--password", "una frase lunga 42", "--json"}
	if code, _, said := term.runs("", create...); code != exitDone {
		t.Fatal(said)
	}
	for _, test := range []struct {
		input, email, want string
		code               int
	}{
		{"tramonto sul lago\n", "nessuno@example.com", "no partner has a user", exitFailed},
		{"corta\n", "rossi@example.com", "--password", exitFailed},
		{"tramonto sul lago\n", "Rossi@example.com", "has the new password", exitDone},
	} {
		code, out, said := term.runs(test.input, "partner", "password", "--email", test.email, "--no-second")
		if code != test.code || !strings.Contains(out+said, test.want) {
			t.Errorf("%q for %s: exit code %d, %s %s", test.input, test.email, code, out, said)
		}
	}
	if code, _, said := term.runs("", append(create, "--another")...); code != exitDone {
		t.Fatal(said)
	}
	if code, _, said := term.runs("tramonto sul lago\n", "partner", "password", "--email", "rossi@example.com"); code != exitFailed || !strings.Contains(said, "--partner says which") {
		t.Errorf("two partners: exit code %d, %s", code, said)
	}
	if code, _, said := term.runs("tramonto sul lago\n", "partner", "password", "--email", "rossi@example.com", "--partner", "2"); code != exitDone {
		t.Errorf("the second: exit code %d, %s", code, said)
	}
}
