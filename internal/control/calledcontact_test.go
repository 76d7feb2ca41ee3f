package control

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"puntuale"
)

// TestCalledContact: a contact stores the members of a call that are fields. The contact gets the name of the person,
// and never the name of a single send.
func TestCalledContact(t *testing.T) {
	t.Parallel()
	c := New(Config{})
	for _, test := range []struct {
		origin         puntuale.Origin
		phone, request string
		want           string
	}{
		{puntuale.OriginSequence, "+393331234567", `{"phone":"333","nome":" Anna ","name":"x","quando":"20/11/2026 10:30","punti":7,"text":"t","a-b":"x","vuoto":" ","lista":[1],"timezone":"UTC"}`,
			"Anna map[punti:{number 7} quando:{date 2026-11-20T10:30}]"},
		{puntuale.OriginSequence, "+393331234567", `{"name":"Bruno","date":"2026-11-20T10:30:00Z"}`, "Bruno map[date:{date 2026-11-20T11:30}]"},
		{puntuale.OriginSingle, "+393331234567", `{"name":"Fattura 118","date":"2026-11-20","template":"x","cognome":"Rossi"}`, " map[cognome:{text Rossi}]"},
		{puntuale.OriginMassive, "+393331234567", `{"campaign":"7","nome":"Carla","citta":"Roma"}`, "Carla map[citta:{text Roma}]"},
		{puntuale.OriginSequence, "+393331234567", `[]`, " map[]"},
		{puntuale.OriginSequence, "+393331234567", "", " map[]"},
		{puntuale.OriginSequence, "", `{"nome":"x"}`, "none"},
		{puntuale.OriginSequence, "120363025246125486@g.us", `{"nome":"x"}`, "none"},
	} {
		made, ok := c.calledContact(puntuale.CalledRun{Phone: test.phone, Origin: test.origin, Zone: "Europe/Rome", Request: []byte(test.request)})
		got := "none"
		if ok {
			var fields []string
			for _, name := range slices.Sorted(maps.Keys(made.Fields)) {
				fields = append(fields, fmt.Sprintf("%s:{%s %s}", name, made.Fields[name].Kind, made.Fields[name].Value))
			}
			got = fmt.Sprintf("%s map%v", made.Name, fields)
		}
		if got != test.want {
			t.Errorf("%s %s: %s, want %s", test.origin, test.request, got, test.want)
		}
	}
}
