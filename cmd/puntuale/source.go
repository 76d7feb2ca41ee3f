package main

import (
	"cmp"
	"encoding"
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

// fromLine is the source of a setting in the command line.
const fromLine = "command line"

// sources finds the values of settings: in the command line, then in the environment, and then in the file.
type sources struct {
	line      map[string]string // the values in the command line, by the flag's name
	lookupEnv func(string) (string, bool)
	file      string            // the name of the configuration file; "": there is none
	values    map[string]string // the values in the file
}

// text returns a setting's value, and where it came from. If from is "", the value is the default.
func (s *sources) text(flag *kong.Flag) (text, from string) {
	if text, ok := s.line[flag.Name]; ok {
		return text, fromLine
	}
	if text, ok := s.lookupEnv(envName(flag.Name)); ok && (!local(flag) || flag.Tag.Get("local") == "env") {
		return text, envName(flag.Name)
	}
	if text, ok := s.values[flag.Name]; ok && !local(flag) {
		return text, s.file
	}
	return flag.Default, ""
}

// local reports whether a flag belongs only to its command, such as --json or --help, and is no setting.
func local(flag *kong.Flag) bool { return flag.Tag.Has("local") || flag.Name == "help" }

// readFile finds and reads the configuration file, if the command has the setting that names it. If the setting has a
// value, the file must exist. A file with the default name need not exist, and is as good as absent in a folder that
// the user may not enter. The argument known contains the names of all settings.
func (s *sources) readFile(p *program, flags []*kong.Flag, known []string) (faults []fault) {
	texts := map[string]string{}
	for _, flag := range flags {
		if !local(flag) {
			texts[flag.Name], _ = s.text(flag)
		}
	}
	named, ok := texts["config"]
	candidates := []string{p.path(named)}
	switch {
	case !ok:
		return nil
	case named == "":
		candidates = []string{p.path(configFile), filepath.Join(p.path(texts["data"]), configFile)}
	}
	for _, name := range candidates {
		text, err := os.ReadFile(name)
		if named == "" && (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || hidden(name)) {
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

// hidden reports whether a file is in a folder that the user may not enter. This is so in /root for a command that runs
// as the server's user. A file that the user sees but may not read is not hidden: its settings would be missing.
func hidden(name string) bool {
	_, err := os.Lstat(name)
	return errors.Is(err, fs.ErrPermission)
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

// setField parses a setting's text into its field. The error says which form the text must have.
func setField(field reflect.Value, text string) error {
	if field.Kind() == reflect.Pointer {
		value := reflect.New(field.Type().Elem())
		err := setField(value.Elem(), text)
		if err == nil {
			field.Set(value)
		}
		return err
	}
	switch f := field.Addr().Interface().(type) {
	case *string:
		*f = text
		return nil
	case *bool:
		return parseInto(f, text, "true or false", strconv.ParseBool)
	case *time.Duration:
		return parseInto(f, text, "a duration such as 500ms, 15s or 24h", time.ParseDuration)
	case *slog.Level:
		return parseInto(f, text, "one of debug, info, warn, error", parseLevel)
	case *float64:
		return parseInto(f, text, "a number such as 10 or 0.5", parseNumber)
	case *[]string:
		return parseInto(f, text, "a list", parseList)
	case encoding.TextUnmarshaler:
		return f.UnmarshalText([]byte(text))
	}
	n, err := strconv.ParseInt(text, 10, field.Type().Bits())
	if err != nil {
		return fmt.Errorf("%q is not a whole number", text)
	}
	field.SetInt(n)
	return nil
}

func parseInto[T any](field *T, text, form string, parse func(string) (T, error)) error {
	value, err := parse(strings.TrimSpace(text))
	if err != nil {
		return fmt.Errorf("%q is not %s", text, form)
	}
	*field = value
	return nil
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
