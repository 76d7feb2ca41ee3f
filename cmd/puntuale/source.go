package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/alecthomas/kong"
	"github.com/pelletier/go-toml/v2"
)

// envPrefix begins the name of every environment variable that the program reads.
const envPrefix = "PUNTUALE_"

// configFile is the name of the configuration file that the program looks for if no flag names a file.
const configFile = "puntuale.toml"

// fault is one error in the configuration.
type fault struct {
	setting string // the flag's name without dashes; "" if the fault is not about one flag
	text    string
}

// faultsError reports all faults of the configuration together.
type faultsError []string

func (e faultsError) Error() string {
	var b strings.Builder
	if len(e) == 1 {
		fmt.Fprintf(&b, "puntuale: %s\n", e[0])
	} else {
		fmt.Fprintf(&b, "puntuale: %d things are wrong with the configuration:\n", len(e))
		for _, line := range e {
			fmt.Fprintf(&b, "  - %s\n", line)
		}
	}
	b.WriteString("See puntuale config, or the command with --help.\n")
	return b.String()
}

// envName returns the environment variable of a setting.
func envName(setting string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// sources finds the values of settings that the command line does not give: first in the environment, and then in the
// file.
type sources struct {
	lookupEnv func(string) (string, bool)
	file      string            // the name of the configuration file; "": there is none
	values    map[string]string // the values in the file
	source    map[string]string // where each setting came from; Resolve fills it
}

// kong requires the method Validate. It does nothing, because readFile finds unknown keys.
func (s *sources) Validate(*kong.Application) error { return nil }

// Resolve returns a setting's value from the environment or the file. It returns nil if the default applies.
func (s *sources) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if text, ok := s.lookupEnv(envName(flag.Name)); ok && !local(flag) {
		s.source[flag.Name] = envName(flag.Name)
		return text, nil
	}
	if text, ok := s.values[flag.Name]; ok && !local(flag) {
		s.source[flag.Name] = s.file
		return text, nil
	}
	return nil, nil
}

// local reports whether a flag belongs only to its command, such as --json or --help, and is no setting.
func local(flag *kong.Flag) bool { return flag.Tag.Has("local") || flag.Name == "help" }

// readFile finds and reads the configuration file. If a flag names the file, it must exist. A file with the default
// name need not exist. The argument known contains the names of all settings.
func (s *sources) readFile(p *program, named string, folders []string, known []string) (faults []fault) {
	candidates := []string{p.path(named)}
	if named == "" {
		candidates = nil
		for _, folder := range folders {
			candidates = append(candidates, filepath.Join(p.path(folder), configFile))
		}
	}
	for _, name := range candidates {
		text, err := os.ReadFile(name)
		if named == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) {
			continue
		}
		if err != nil {
			return []fault{{"config", fmt.Sprintf("cannot be read: %v", err)}}
		}
		s.file = name
		return s.decode(text, known)
	}
	return nil
}

func (s *sources) decode(text []byte, known []string) (faults []fault) {
	var keys map[string]any
	if err := toml.Unmarshal(text, &keys); err != nil {
		var where *toml.DecodeError
		if errors.As(err, &where) {
			line, column := where.Position()
			return []fault{{"", fmt.Sprintf("%s, line %d, column %d: %s", s.file, line, column, strings.TrimPrefix(where.Error(), "toml: "))}}
		}
		return []fault{{"", fmt.Sprintf("%s: %v", s.file, err)}}
	}
	s.values = map[string]string{}
	for key, value := range keys {
		if !slices.Contains(known, key) {
			faults = append(faults, fault{"", fmt.Sprintf("%s: unknown key %q%s", s.file, key, suggestion(key, known))})
			continue
		}
		text, ok := settingText(value)
		if !ok {
			faults = append(faults, fault{"", fmt.Sprintf("%s: %s must be a text, a number, true, false, or a list of texts", s.file, key)})
			continue
		}
		s.values[key] = text
	}
	slices.SortFunc(faults, func(a, b fault) int { return cmp.Compare(a.text, b.text) })
	return faults
}

// settingText returns a TOML value as a person would write it on the command line.
func settingText(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case bool, int64, float64:
		return fmt.Sprint(v), true
	case []any:
		var parts []string
		for _, member := range v {
			text, ok := member.(string)
			if !ok {
				return "", false
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}

// suggestion returns "; did you mean …?" if a known word is similar.
func suggestion(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(strings.ReplaceAll(word, "_", "-"), strings.ReplaceAll(k, "_", "-")); d < least {
			best, least = k, d
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// distance counts the letters that must be changed, added or removed to make b from a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			corner, row[j+1] = row[j+1], min(corner+cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// readers returns the readers of settings whose text may be wrong. kong would stop at the first wrong text. A reader
// stores the fault, keeps the default, and continues, so that all faults are reported together.
func (p *program) readers() []kong.Option {
	return []kong.Option{
		kong.TypeMapper(reflect.TypeFor[time.Duration](), reader[time.Duration]{p, "a duration such as 500ms, 15s or 24h", time.ParseDuration}),
		kong.TypeMapper(reflect.TypeFor[slog.Level](), reader[slog.Level]{p, "one of debug, info, warn, error", parseLevel}),
		kong.TypeMapper(reflect.TypeFor[float64](), reader[float64]{p, "a number such as 10 or 0.5", parseNumber}),
		kong.TypeMapper(reflect.TypeFor[[]string](), reader[[]string]{p, "a list", parseList}),
		kong.KindMapper(reflect.Bool, boolReader{reader[bool]{p, "true or false", strconv.ParseBool}}),
	}
}

// reader reads one kind of setting.
type reader[T any] struct {
	p     *program
	form  string // the form that the text must have
	parse func(string) (T, error)
}

func (r reader[T]) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	token, err := ctx.Scan.PopValue(r.form)
	if err != nil {
		return err
	}
	return r.set(ctx, fmt.Sprint(token.Value), target)
}

func (r reader[T]) set(ctx *kong.DecodeContext, text string, target reflect.Value) error {
	value, err := r.parse(strings.TrimSpace(text))
	if err != nil {
		r.p.faults = append(r.p.faults, fault{ctx.Value.Name, fmt.Sprintf("%q is not %s", text, r.form)})
		if value, err = r.parse(ctx.Value.Default); err != nil {
			return nil //nolint:nilerr // the setting has no default, and the fault is already stored
		}
	}
	target.Set(reflect.ValueOf(value).Convert(target.Type()))
	return nil
}

// boolReader reads a switch. In the command line, a switch needs no value.
type boolReader struct{ reader[bool] }

func (r boolReader) IsBool() bool { return true }

func (r boolReader) Decode(ctx *kong.DecodeContext, target reflect.Value) error {
	if ctx.Scan.Peek().Type != kong.FlagValueToken {
		target.SetBool(true)
		return nil
	}
	return r.set(ctx, fmt.Sprint(ctx.Scan.Pop().Value), target)
}

func parseLevel(text string) (slog.Level, error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(text, level.String()) {
			return level, nil
		}
	}
	return 0, errors.New("unknown level")
}

func parseNumber(text string) (float64, error) { return strconv.ParseFloat(text, 64) }

// parseList reads words between commas. It removes blanks and leading dots, and makes all letters small.
func parseList(text string) (words []string, _ error) {
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(word), ".")); word != "" {
			words = append(words, word)
		}
	}
	return words, nil
}
