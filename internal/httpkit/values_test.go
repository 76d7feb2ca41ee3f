package httpkit_test

import (
	"strings"
	"testing"

	"puntuale/internal/httpkit"
)

// Values at any depth are counted. Characters inside a string are not counted.
func TestTooManyValues(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		many bool
	}{
		"empty":            {"", false},
		"a usual body":     {`{"phone":"+39333","fields":["a","b"]}`, false},
		"commas in a text": {`{"text":"` + strings.Repeat(`,[{\"`, httpkit.MaxValues) + `"}`, false},
		"a long array":     {"[" + strings.Repeat("1,", httpkit.MaxValues) + "1]", true},
		"empty objects":    {"[" + strings.Repeat("{},", httpkit.MaxValues/2) + "{}]", true},
		"after a text":     {`["\\",` + strings.Repeat("{},", httpkit.MaxValues/2) + "{}]", true},
		"deep":             {strings.Repeat("[", httpkit.MaxValues+1), true},
		"an open text":     {`"` + strings.Repeat(",", httpkit.MaxValues+1), false},
	} {
		if many := httpkit.TooManyValues([]byte(c.text)); many != c.many {
			t.Errorf("%s: %v", name, many)
		}
	}
}
