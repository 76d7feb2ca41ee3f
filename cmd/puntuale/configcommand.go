package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"puntuale/internal/logging"
	"puntuale/internal/terminal"
)

// configCommand prints every setting, with the value that the command serve would use.
type configCommand struct {
	serveSettings `embed:""`
	Markdown      bool `local:"" hidden:"" help:"Print the table of docs/operate.md."`
}

func (c *configCommand) Run(_ context.Context, p *program) error {
	if c.Markdown {
		writeReference(p.stdout, p.settings)
		return nil
	}
	fmt.Fprintf(p.stdout, "# Effective settings, in the form of a configuration file (%s).\n", configFile)
	fmt.Fprint(p.stdout, "# A flag goes before the environment, that before the file, that before the default.\n")
	for _, flag := range p.settings {
		fmt.Fprintf(p.stdout, "\n%s\n", terminal.Wrap(flag.Help, "# ", 96))
		from := cmp.Or(p.source[flag.Name], "default")
		line := fmt.Sprintf("%s = %s", flag.Name, tomlText(flag))
		if flag.Name == "config" || flag.Tag.Has("secret") { // a file cannot name itself, and a masked secret must not be read as a value
			line = "# " + line
		}
		fmt.Fprintf(p.stdout, "%-48s # %s\n", line, from)
	}
	return nil
}

// tomlText writes a setting's value in the form of the configuration file, and hides secrets.
func tomlText(flag *kong.Flag) string {
	value := flag.Target.Interface()
	switch v := value.(type) {
	case bool, float64:
		return fmt.Sprint(v)
	case time.Duration:
		return fmt.Sprintf("%q", durationText(v))
	case []string:
		return fmt.Sprintf("%q", strings.Join(v, ","))
	case string:
		switch {
		case v == "":
		case flag.Name == "key" || flag.Name == "s3-secret-key": // hide all of a key, because MaskedAddress hides only parts of an address
			v = logging.Hidden
		case flag.Tag.Has("secret"):
			v = logging.MaskedAddress(v)
		}
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprintf("%q", strings.ToLower(fmt.Sprint(value)))
}

// durationText shortens Go's form of a duration: 24h0m0s becomes 24h.
func durationText(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// writeReference writes the table of settings for the manual.
func writeReference(w io.Writer, flags []*kong.Flag) {
	fmt.Fprint(w, "| setting | default | what it does |\n|---|---|---|\n")
	for _, flag := range flags {
		name := "`--" + flag.Name + "`"
		if flag.Target.Kind() == reflect.Bool && flag.Tag.Negatable != "" {
			name = "`--[no-]" + flag.Name + "`"
		}
		def := strings.ReplaceAll(flag.Default, ",", ", ")
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(w, "| %s<br>`%s` | %s | %s |\n", name, envName(flag.Name), def, strings.ReplaceAll(flag.Help, "|", `\|`))
	}
}
