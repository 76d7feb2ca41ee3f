package roster_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"puntuale"
	"puntuale/internal/roster"
)

func TestGuess(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		columns string
		rows    []string
		want    string
	}{
		"plain":                           {"phone|nome|città", nil, "phone:phone,nome:nome,citta:città"},
		"case, accents, spaces and signs": {"NOME |_Citta_|Telefono cellulare", nil, "phone:Telefono cellulare,nome:NOME ,citta:_Citta_"},
		"a word among others":             {"Nome|N. Cell.|Nota", nil, "phone:N. Cell.,nome:Nome"},
		"mobile before landline":          {"Telefono|Cellulare", []string{"051123456|3331234567"}, "phone:Cellulare"},
		"landline where no mobile is":     {"Telefono|Cellulare", []string{"3331234567|"}, "phone:Telefono"},
		"WhatsApp that is yes or no":      {"WhatsApp|Telefono", []string{"sì|3331234567", "no|3331234568"}, "phone:Telefono"},
		"a house's number":                {"Numero|Contatto", []string{"12|333 1234567", "7/b|+39 334 1234567"}, "phone:Contatto"},
		"numero of phones":                {"Numero|Nome", []string{"333 1234567|Anna"}, "phone:Numero,nome:Nome"},
		"numero without rows":             {"Nome|Numero", nil, "phone:Numero,nome:Nome"},
		"numero of something else":        {"Numero|Cliente", []string{"12|Anna"}, ""},
		"tax numbers beside":              {"Partita IVA|Tel.", []string{"12345678901|"}, "phone:Tel."},
		"no name, by its looks":           {"A|B|C", []string{"1|333-1234567|x", "2|334 1234567|y", "3||z"}, "phone:B"},
		"spoilt numbers":                  {"A|B", []string{"x|3,93331E+11"}, "phone:B"},
		"nothing":                         {"A|B", []string{"x|y"}, ""},
		"the same name twice":             {"Nome|Tel|nome", nil, "phone:Tel,nome:Nome"},
		"fields that nobody has":          {"Tel|", nil, "phone:Tel"},
		"part of a word":                  {"Cancellato|Hotel", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			columns := strings.Split(test.columns, "|")
			var first [][]string
			for _, row := range test.rows {
				first = append(first, strings.Split(row, "|"))
			}
			if got := roster.Guess(columns, first, []string{"phone", "nome", "citta"}).Text(columns); got != test.want {
				t.Errorf("guessed %q, want %q", got, test.want)
			}
		})
	}
}

func TestParseMapping(t *testing.T) {
	t.Parallel()
	columns := []string{"Telefono", "Nome", "Note, varie", "Nome", "ora: quando", "2", "È", "perche", "Perché", ""}
	for text, want := range map[string]roster.Mapping{
		"phone:Telefono":                 {"phone": 0},
		" phone : telefono ":             {"phone": 0},
		"phone:1,nome:2,altro:4":         {"phone": 0, "nome": 1, "altro": 3},
		"phone:Telefono,note:3,quando:5": {"phone": 0, "note": 2, "quando": 4},
		"phone:2,x:6":                    {"phone": 1, "x": 5},
		"phone:e,a:perche,b:Perché,c:10": {"phone": 6, "a": 7, "b": 8, "c": 9},
		"phone:Telefono,nome:Telefono":   {"phone": 0, "nome": 0},
	} {
		got, err := roster.ParseMapping(text, columns)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                                       "columns[0] columns",
		"nome:2":                                 "columns",
		"phone:0":                                "columns[0]",
		"phone:11":                               "columns[0]",
		"phone:99999999999999999":                "columns[0]",
		"phone:Nome":                             "columns[0]", // two have it
		"phone:PERCHE":                           "columns[0]",
		"phone:Note, varie":                      "columns[0] columns[1]",
		"phone:ora: quando,x:zz,phone:1,:3,y:,z": "columns[1] columns[2] columns[3] columns[4] columns[5]",
		strings.Repeat("x:1,", 200) + "phone:1":  "columns",
	} {
		_, err := roster.ParseMapping(text, columns)
		e, ok := errors.AsType[*puntuale.Error](err)
		if !ok || e.Code != puntuale.CodeInvalid {
			t.Errorf("%q: %v", text, err)
			continue
		}
		var places []string
		for _, f := range e.Faults {
			places = append(places, f.Location)
			if text == "phone:Nome" && !strings.Contains(f.Message, "2 columns; use the number of one, such as 4") {
				t.Errorf("fault %v", f)
			}
			if f.Message == "" || len(fmt.Sprint(f.Value)) > 200 {
				t.Errorf("%q: fault %v", text, f)
			}
		}
		if got := strings.Join(places, " "); got != want {
			t.Errorf("%q: faults at %q, want %q: %v", text, got, want, err)
		}
	}
}

// What Text writes, ParseMapping reads, whatever the columns are called.
func TestMappingText(t *testing.T) {
	t.Parallel()
	columns := []string{"Nome", "Tel:", "nome", "a,b", "Telefono", "5", ""}
	m := roster.Mapping{"phone": 4, "z": 0, "nome": 2, "b": 1, "c": 3, "d": 5, "e": 6, "a": 1}
	if got, want := m.Text(columns), "phone:Telefono,z:Nome,a:2,b:2,nome:nome,c:4,d:6,e:7"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	rapid.Check(t, func(r *rapid.T) {
		name := rapid.Map(rapid.StringOf(rapid.SampledFrom([]rune("aAàb12,: _"))), strings.TrimSpace)
		columns := rapid.SliceOfN(name, 1, 6).Draw(r, "columns")
		m := roster.Mapping{"phone": 0, "nome": 0, "altro": 0}
		for _, field := range slices.Sorted(maps.Keys(m)) {
			m[field] = rapid.IntRange(0, len(columns)-1).Draw(r, field)
		}
		got, err := roster.ParseMapping(m.Text(columns), columns)
		if err != nil || !maps.Equal(got, m) {
			r.Fatalf("columns %q, mapping %v: %q reads %v, %v", columns, m, m.Text(columns), got, err)
		}
	})
}

func TestLostDigits(t *testing.T) {
	t.Parallel()
	for cell, want := range map[string]bool{
		"3,33E+09": true, "3.33E+09": true, " 3,93331234E+11 ": true, "4E+09": true, "3,33e+9": true, "-3,3E+10": true,
		"": false, "3331234567": false, "3,33": false, "E+09": false, "3,33E-09": false, "1E5": false, "33,3E+09": false, "3,33E+09x": false,
	} {
		if got := roster.LostDigits(cell); got != want {
			t.Errorf("%q: %v", cell, got)
		}
	}
}
