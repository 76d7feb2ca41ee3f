package roster_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"puntuale/internal/catalogue"
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
		"mobile before phone":             {"Phone|Mobile", []string{"051 1234567|3331234567", "051 1234568|"}, "phone:Mobile"},
		"cell before telephone":           {"Telefono|N. Cell.", []string{"051 1234567|3331234567", "051 1234568|"}, "phone:N. Cell."},
		"WhatsApp before all":             {"Phone|Cell|WhatsApp", []string{"051 1234567|3331234567|3331234568"}, "phone:WhatsApp"},
		"the own export":                  {"phone|nome|language|source|tags|cellulare", []string{"+39051123456|||||+393331234567"}, "phone:phone,nome:nome"},
		"joined numbers":                  {"Phone 1 - Type|Phone 1 - Value", []string{"Mobile|333 1234567 ::: 333 1234568"}, "phone:Phone 1 - Value"},
		"name by another header":          {"Nominativo|Tel", nil, "phone:Tel,nome:Nominativo"},
		"nome before name":                {"First Name|Nome|Tel", nil, "phone:Tel,nome:Nome"},
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
			var got []string
			guessed := roster.Guess(columns, first, []string{"phone", "nome", "citta"})
			for _, field := range []string{"phone", "nome", "citta"} {
				if at, ok := guessed[field]; ok {
					got = append(got, field+":"+columns[at])
				}
			}
			if strings.Join(got, ",") != test.want {
				t.Errorf("guessed %q, want %q", got, test.want)
			}
		})
	}
}

// TestGuessExports: the files that Google, Outlook and Apple export have a column of mobile numbers and one of names.
func TestGuessExports(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][2]string{
		"google.csv":     {"Phone 1 - Value", "First Name"},
		"google-old.csv": {"Phone 1 - Value", "Name"},
		"outlook.csv":    {"Mobile Phone", "First Name"},
		"apple.csv":      {"Phone (mobile)", "First name"},
	} {
		file, err := os.ReadFile("testdata/exports/" + name)
		if err != nil {
			t.Fatal(err)
		}
		list := csvOf(t, string(file))
		var first [][]string
		for _, row := range list.rows {
			first = append(first, row.Cells)
		}
		got := roster.Guess(list.columns, first, []string{"nome"})
		if phone, nome := list.columns[got["phone"]], list.columns[got["nome"]]; phone != want[0] || nome != want[1] {
			t.Errorf("%s: guessed %q and %q, want %q", name, phone, nome, want)
		}
	}
	card, err := os.ReadFile("testdata/exports/apple.vcf")
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"text/vcard", "text/plain", "text/csv", ""} {
		expectProblem(t, drain(t, bytes.NewReader(card), kind).end, roster.VCard)
	}
}

func TestParseMapping(t *testing.T) {
	t.Parallel()
	columns := []string{"Telefono", "Nome", "Note, varie", "Nome", "ora: quando", "2", ""}
	for text, want := range map[string]map[string]int{
		"phone:Telefono":                 {"phone": 0},
		" phone : telefono ":             {"phone": 0},
		"phone:1,nome:4,note:3,quando:5": {"phone": 0, "nome": 3, "note": 2, "quando": 4},
		"phone:2,x:7":                    {"phone": 5, "x": 6}, // one column has the name "2", and "phone:2" means that column
		"phone:Telefono,nome:Telefono":   {"phone": 0, "nome": 0},
	} {
		got, err := roster.ParseMapping(text, columns)
		if err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"":                  "such as phone:Telefono",
		"phone":             "such as phone:Telefono",
		"phone:0":           `no column "0"`,
		"phone:11":          `no column "11"`,
		"phone:Nome":        "by its number",
		"phone:1,phone:2":   "phone twice",
		"phone:1,a:zz,b:yy": `"zz"; the list has no column "yy"; it has "Telefono"`,
		"phone:Note, varie": `no column "Note"`,
	} {
		_, err := roster.ParseMapping(text, columns)
		if e, ok := errors.AsType[*roster.MappingError](err); !ok || !strings.Contains(catalogue.Message(e.Reason()), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	long := slices.Repeat([]string{strings.Repeat("x", roster.MaxCell)}, roster.MaxColumns)
	if _, err := roster.ParseMapping("phone:y", long); err == nil || len(err.Error()) > 2000 {
		t.Errorf("%d bytes", len(err.Error()))
	}
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
