package plan

import "testing"

func TestFromJSON(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]Value{
		``:                          {},
		`null`:                      {},
		` "Anna" `:                  {Text, "Anna"},
		`"caff\u00e8 \ud83d\ude00"`: {Text, "caffè 😀"},
		`""`:                        {Text, ""},
		`12`:                        {Number, "12"},
		"\n-1.50e+3\t":              {Number, "-1.50e+3"},
		`10.00`:                     {Number, "10.00"},
		`true`:                      {Kind: Other},
		`false`:                     {Kind: Other},
		`["a"]`:                     {Kind: Other},
		`{"a":1}`:                   {Kind: Other},
		`"unclosed`:                 {Kind: Other},
	} {
		if got := FromJSON([]byte(raw)); got != want {
			t.Errorf("%s became %+v, want %+v", raw, got, want)
		}
	}
}
