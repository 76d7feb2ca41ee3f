package httpapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/httpkit"
)

// readAll passes a body to the functions flaws and readObject, and returns the locations of the faults.
func readAll(t *testing.T, body string, read func(*object)) []string {
	t.Helper()
	o, err := readObject([]byte(body), httpkit.MaxValues)
	if err == nil {
		read(o)
		err = o.err()
	}
	if err == nil {
		return nil
	}
	if puntuale.CodeOf(err) != puntuale.CodeUnreadable {
		t.Fatalf("%s: code %s", body, puntuale.CodeOf(err))
	}
	var at []string
	for _, f := range err.(*puntuale.Error).Faults { //nolint:errorlint // readObject does not wrap this error
		at = append(at, f.Location)
	}
	return at
}

func TestObjectReads(t *testing.T) {
	t.Parallel()
	body := ` { "s" : "tè \u0041" , "n": 393331234567 , "i":"12","f":  true,"g":false, "w": 12,"x":-1.5e2 ,
	 "o":{"s":"in"}, "os":[ {"s":"1"}, {"s":"2"} ],"ids": [ "a" , 12 ], "ns":[1, 2],"z":null,"e":[], "s2":"\ud83d\ude00" } `
	at := readAll(t, body, func(o *object) {
		for name, want := range map[string]string{"s": "tè A", "z": "", "absent": "", "s2": "😀", "S": ""} {
			if got := o.text(name); got != want {
				t.Errorf("text %s: %q, want %q", name, got, want)
			}
		}
		for name, want := range map[string]string{"n": "393331234567", "i": "12", "x": "-1.5e2", "z": "", "absent": ""} {
			if got := o.id(name); got != want {
				t.Errorf("id %s: %q, want %q", name, got, want)
			}
		}
		if !*o.flag("f") || *o.flag("g") || o.flag("z") != nil || o.flag("absent") != nil {
			t.Error("flags")
		}
		if o.wholeNumber("w") != 12 || o.wholeNumber("z") != 0 || *o.number("x") != -150 || o.number("z") != nil {
			t.Error("numbers")
		}
		if o.object("o").text("s") != "in" || o.object("z") != nil || len(o.objects("os")) != 2 || o.objects("os")[1].text("s") != "2" {
			t.Error("objects")
		}
		if !slices.Equal(o.ids("ids"), []string{"a", "12"}) || o.ids("z") != nil || o.ids("absent") != nil {
			t.Error("lists of ids")
		}
		if empty := o.ids("e"); empty == nil || len(empty) != 0 {
			t.Error("an empty list is not an absent one")
		}
		if !slices.Equal(o.wholes("ns"), []int{1, 2}) {
			t.Error("lists of numbers")
		}
	})
	if at != nil {
		t.Errorf("faults at %v", at)
	}
}

func TestObjectNamesEveryFault(t *testing.T) {
	t.Parallel()
	body := `{"a":1,"b":"x","c":[],"d":{},"e":1.5,"f":"1","g":{"h":{"i":true}},"j":[1,{"k":1}],"l":[[],null],"m":["1"],"n":true}`
	got := readAll(t, body, func(o *object) {
		o.text("a")
		o.flag("b")
		o.id("c")
		o.text("d")
		o.wholeNumber("e")
		o.number("f")
		o.object("g").object("h").text("i")
		for _, inner := range o.objects("j") {
			inner.text("k")
		}
		o.ids("l")
		o.wholes("m")
		o.ids("n")
	})
	want := []string{"body.a", "body.b", "body.c", "body.d", "body.e", "body.f", "body.g.h.i", "body.j[0]", "body.j[1].k",
		"body.l[0]", "body.l[1]", "body.m[0]", "body.n"}
	if !slices.Equal(got, want) {
		t.Errorf("faults at %v\nwant      %v", got, want)
	}
}

func TestObjectRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 100_000)
	for _, body := range []string{
		"", " \n", "x", "null", "12", `"text"`, "[]", `[{"phone":"1"}]`, "{", `{"a":}`, `{"a":1}}`, `{"a":1} {"b":2}`,
		`{'a':1}`, `{"a":1,}`, "{\"a\":\"\xff\"}", "{\"a\":\"\x00\"}", "phone=%2B393331234567", "\x1f\x8b\x08", "\xff\xfe{\x00}\x00",
		deep, `{"a":` + deep, `{"a":` + deep + strings.Repeat("]", 100_000) + `}`, `{"a":` + strings.Repeat(`{"a":`, 100_000),
		`{"a":NaN}`, `{"a":0x1}`, `{"a":01}`, `{"a":"\x"}`, `{a:1}`,
	} {
		if _, err := readObject([]byte(body), httpkit.MaxValues); puntuale.CodeOf(err) != puntuale.CodeUnreadable {
			t.Errorf("%.30q: %v", body, err)
		}
	}
}

// Valid JSON that different JSON readers understand differently is refused at any depth. The fault contains the
// location.
func TestFlaws(t *testing.T) {
	t.Parallel()
	for body, want := range map[string][]string{
		`{}`: nil, `{"a":1,"b":{"a":2}}`: nil, `{"a":[{"b":1},{"b":1}]}`: nil, `{"a":"\\ud800","b":"\ud83d\ude00\uD83D\uDE00"}`: nil,
		`{"a":1,"b":[{"c":1},2],"a":3,"\u0061":4}`:                                  {"body.a", "body.a"},
		` { "steps" : [ {"x":1} , { "text":"a" , "timing" : {"at":1,"at":2} } ] } `: {"body.steps[1].timing.at"},
		`{"unused":[[],[[{"b":null,"b":true}]]]}`:                                   {"body.unused[1][0][0].b"},
		`{"a":"\ud800"}`: {"body.a"}, `{"a":"\udc00\ud800"}`: {"body.a"}, `{"a":["x","\ud800\u0041"]}`: {"body.a[1]"},
		`{"a":"\ud800x"}`: {"body.a"}, `{"a":"\ud83d\\ude00"}`: {"body.a"}, `{"\ud800":1}`: {"body.\ufffd"}, `{"a":{"b\udfff":1}}`: {"body.a.b\ufffd"},
	} {
		if got := readAll(t, body, func(*object) {}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	many := strings.Repeat(`,"a":1`, 1000)
	if got := readAll(t, `{"a":1`+many+`}`, func(*object) {}); len(got) != maxFlaws {
		t.Errorf("%d flaws", len(got))
	}
	deep := `{"a":` + strings.Repeat("[", 9000) + `"\ud800"` + strings.Repeat("]", 9000) + `}`
	if got := readAll(t, deep, func(*object) {}); len(got) != 1 || len(got[0]) > 250 {
		t.Errorf("%d flaws", len(got))
	}
}

// If a phone is a JSON number, it is read as the number's digits. A JSON number with other characters is not a phone.
func TestObjectPhones(t *testing.T) {
	t.Parallel()
	o, err := readObject([]byte(`{"a":393331234567,"b":"-1","c":-393331234567,"d":3331234567.0,"e":3.9e11,"f":[1,"2",-3,4E1],"g":null}`), httpkit.MaxValues)
	if err != nil {
		t.Fatal(err)
	}
	if o.phone("a") != "393331234567" || o.phone("b") != "-1" || o.phone("g") != "" || o.phone("c")+o.phone("d")+o.phone("e") != "" {
		t.Error("phones")
	}
	o.phones("f")
	var at []string
	for _, f := range *o.refused {
		at = append(at, f.Location)
	}
	if want := []string{"body.c", "body.d", "body.e", "body.f[2]", "body.f[3]"}; !slices.Equal(at, want) || o.err() != nil {
		t.Errorf("refused %v, %v", at, o.err())
	}
}

// No body makes the decoder panic. All its refusals have the code unreadable.
func FuzzReadObject(f *testing.F) {
	for _, seed := range []string{
		`{"phone":"+393331234567","n":12}`, `{"steps":[{"text":"x","timing":{"offset":{"amount":1}}}]}`, `{"phones":["1",2,null]}`,
		"\xef\xbb\xbf{}", `{"a":"\ud800\u0000"}`, `[]`, `null`, `{"a":1e999999999}`, `{"":""}`,
		`{"credits":"Illimitati","credits_add":-1,"daily_api_cap":null,"expiration_date":"2026-12-01","holidays":["2026-12-07"],"suspended":true}`,
		`{"client_ids":[1,"2"],"phone":-1}`, strings.Repeat("[", 1000), "\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := readObject(body, httpkit.MaxValues)
		if err != nil {
			if puntuale.CodeOf(err) != puntuale.CodeUnreadable {
				t.Fatalf("%q: %v", body, err)
			}
			return
		}
		if !json.Valid(body) || !utf8.Valid(body) || bytes.TrimLeft(body, " \t\r\n")[0] != '{' {
			t.Fatalf("%q passes", body)
		}
		for name := range o.members {
			o.text(name)
			o.id(name)
			o.ids(name)
			o.phone(name)
			o.phones(name)
			o.flag(name)
			o.wholeNumber(name)
			o.wholes(name)
			o.number(name)
			for _, inner := range append(o.objects(name), o.object(name)) {
				if inner != nil {
					readStep(inner)
				}
			}
		}
		readChange(o)
		(&call{body: body, query: url.Values{"phones[]": {"1"}, "client_ids[]": {"1"}, "start": {"x"}}}).period()
		if _, _, _, err := (&call{body: body}).clientIDs(); err != nil && puntuale.CodeOf(err) != puntuale.CodeUnreadable {
			t.Fatalf("%q: %v", body, err)
		}
		if again := flaws(body); len(again) > 0 {
			t.Fatalf("%q passes with %v", body, again)
		}
		if err := o.err(); err != nil && puntuale.CodeOf(err) != puntuale.CodeUnreadable {
			t.Fatalf("%q: %v", body, err)
		}
	})
}
