package httpapi

import (
	"bytes"
	"encoding/json"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"puntuale"
	"puntuale/internal/httpkit"
)

// readAll passes a body to the functions flaws and readObject, reads its members into a struct, and returns the locations
// of the faults.
func readAll(t *testing.T, body string, to any) []string {
	t.Helper()
	o, err := readObject([]byte(body), httpkit.MaxValues)
	if err == nil {
		o.into(to)
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

type innerSample struct {
	S string `json:"s"`
}

// everySample has a member of each kind that a body may have.
type everySample struct {
	S      string                 `json:"s"`
	S2     *string                `json:"s2"`
	Upper  string                 `json:"S"`
	N      string                 `json:"n" read:"id"`
	I      *string                `json:"i" read:"id"`
	F      *bool                  `json:"f"`
	G      bool                   `json:"g"`
	W      int                    `json:"w"`
	W2     *int64                 `json:"w2"`
	X      *float64               `json:"x"`
	Exact  string                 `json:"x2" read:"id"`
	O      *innerSample           `json:"o"`
	Flat   innerSample            `json:"flat"`
	Os     []innerSample          `json:"os"`
	Map    map[string]string      `json:"map"`
	IDs    []string               `json:"ids" read:"id"`
	Ns     []int                  `json:"ns"`
	E      []string               `json:"e"`
	Absent []string               `json:"absent"`
	Z      *string                `json:"z"`
	Null   nullableMember[string] `json:"null"`
	Null2  nullableMember[string] `json:"null2"`
	Null3  nullableMember[string] `json:"null3"`
	Raw    json.RawMessage        `json:"raw"`
}

func TestObjectReads(t *testing.T) {
	t.Parallel()
	body := ` { "s" : "tè \u0041" , "n": 393331234567 , "i":"12","f":  true,"g":false, "w": 12,"w2":-9223372036854775808,"x":-1.5e2 ,"x2":-1.50e2,
	 "o":{"s":"in"},"flat":{"s":"flat"}, "os":[ {"s":"1"}, {"s":"2"} ],"map":{"a":"1","b":null},"ids": [ "a" , 12 ], "ns":[1, 2],"z":null,"e":[], "s2":"\ud83d\ude00",
	 "null":null,"null2":"2","raw": {"a":[1]} , "unknown":[[]] } `
	var got everySample
	if at := readAll(t, body, &got); at != nil {
		t.Errorf("faults at %v", at)
	}
	want := everySample{
		S: "tè A", S2: new("😀"), N: "393331234567", I: new("12"), F: new(true), W: 12, W2: new(int64(math.MinInt64)), X: new(-150.0), Exact: "-1.50e2",
		O: &innerSample{"in"}, Flat: innerSample{"flat"}, Os: []innerSample{{"1"}, {"2"}}, Map: map[string]string{"a": "1", "b": ""}, IDs: []string{"a", "12"}, Ns: []int{1, 2},
		E: []string{}, Null: nullableMember[string]{Set: true}, Null2: nullableMember[string]{Set: true, To: new("2")}, Raw: json.RawMessage(`{"a":[1]}`),
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestObjectNamesEveryFault(t *testing.T) {
	t.Parallel()
	body := `{"a":1,"b":"x","c":[],"d":{},"e":1.5,"f":"1","g":{"h":{"i":true}},"j":[{"k":1},1],"l":[[],null],"m":["1"],"n":true,"o":12345678901234567890,"p":1e400,"q":[1,"2"],"r":{"s":1},"t":[1]}`
	type deepest struct {
		I string `json:"i"`
	}
	type deep struct {
		H deepest `json:"h"`
	}
	type entry struct {
		K string `json:"k"`
	}
	got := readAll(t, body, new(struct {
		A string            `json:"a"`
		B bool              `json:"b"`
		C string            `json:"c" read:"id"`
		D *string           `json:"d"`
		E int               `json:"e"`
		F *float64          `json:"f"`
		G *deep             `json:"g"`
		J []entry           `json:"j"`
		L []string          `json:"l" read:"id"`
		M []int             `json:"m"`
		N []string          `json:"n" read:"id"`
		O int64             `json:"o"`
		P *float64          `json:"p"`
		Q []string          `json:"q" read:"strings"`
		R map[string]string `json:"r"`
		T []string          `json:"t"`
	}))
	want := []string{"body.a", "body.b", "body.c", "body.d", "body.e", "body.f", "body.g.h.i", "body.j[1]", "body.j[0].k",
		"body.l[0]", "body.l[1]", "body.m[0]", "body.n", "body.o", "body.p", "body.q", "body.r.s", "body.t[0]"}
	if !slices.Equal(got, want) {
		t.Errorf("faults at %v\nwant      %v", got, want)
	}
}

// Members that are missing or unknown, and numbers that are no recipients, are refused in the order of the fields.
func TestObjectRefusesMembers(t *testing.T) {
	t.Parallel()
	o, err := readObject([]byte(`{"a":null,"b":null,"p":-3,"x":1,"":2,"o":{"y":1}}`), httpkit.MaxValues)
	if err != nil {
		t.Fatal(err)
	}
	type inner struct {
		Z string `json:"z" read:"need"`
		_ closedCheck
	}
	o.into(new(struct {
		A string `json:"a" read:"need"`
		B string `json:"b" read:"given"`
		C string `json:"c" read:"given"`
		P string `json:"p" read:"phone"`
		O *inner `json:"o"`
		_ closedCheck
	}))
	var at []string
	for _, f := range *o.refused {
		at = append(at, f.Location)
	}
	if want := []string{"body.a", "body.c", "body.p", "body.o.z", "body.o.y", "body.", "body.x"}; !slices.Equal(at, want) || o.err() != nil {
		t.Errorf("refused %q, %v", at, o.err())
	}
}

// The types that document a form have no member that the type with this form does not have. Lists are read up to the
// number that control accepts.
func TestFormsFit(t *testing.T) {
	t.Parallel()
	for of := range jsonForms {
		if len(membersOf(of)) == 0 {
			t.Errorf("%s has no members", of)
		}
	}
	for at, want := range map[reflect.Type]map[string]int{
		reflect.TypeFor[sequenceBody]():        {"steps": puntuale.MaxSteps},
		reflect.TypeFor[automationBody]():      {"actions": puntuale.MaxActions},
		reflect.TypeFor[puntuale.Conditions](): {"fields": puntuale.MaxConditionFields},
	} {
		for _, m := range membersOf(at) {
			if m.most != want[m.name] {
				t.Errorf("%s: %d entries of %s are read, want %d", at, m.most, m.name, want[m.name])
			}
		}
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
		if got := readAll(t, body, &struct{}{}); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
	many := strings.Repeat(`,"a":1`, 1000)
	if got := readAll(t, `{"a":1`+many+`}`, &struct{}{}); len(got) != maxFlaws {
		t.Errorf("%d flaws", len(got))
	}
	deep := `{"a":` + strings.Repeat("[", 9000) + `"\ud800"` + strings.Repeat("]", 9000) + `}`
	if got := readAll(t, deep, &struct{}{}); len(got) != 1 || len(got[0]) > 250 {
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
	var got struct {
		A string   `json:"a" read:"phone"`
		B string   `json:"b" read:"phone"`
		C string   `json:"c" read:"phone"`
		D *string  `json:"d" read:"phone"`
		E string   `json:"e" read:"phone"`
		F []string `json:"f" read:"phone"`
		G *string  `json:"g" read:"phone"`
	}
	o.into(&got)
	if got.A != "393331234567" || got.B != "-1" || got.C+*got.D+got.E != "" || !slices.Equal(got.F, []string{"1", "2", "", ""}) || got.G != nil {
		t.Errorf("phones: %+v", got)
	}
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
			var steps []puntuale.Step
			for _, to := range []any{
				new(string), new([]string), new(bool), new(int), new(int64), new([]int), new(float64), new(map[string]string), new(recipientFields), new(contactFields), new(json.RawMessage),
				new(puntuale.Step), &steps, new(puntuale.Trigger), new(credits), new(nullableMember[string]),
			} {
				for _, tag := range []string{"", "id", "phone", "strings", "need", "given"} {
					o.read(name, tag, to)
				}
			}
		}
		for _, to := range []any{new(changeBody), new(sequenceBody), new(automationBody), new(campaignBody), new(sessionBody), new(templateBody), new(singleBody)} {
			o.into(to)
		}
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
