package campaigncommand

import "testing"

// The command line that continues a campaign contains the flags that select the key, quoted for a shell.
func TestAgain(t *testing.T) {
	t.Parallel()
	r := &run{id: "7", cfg: Config{ServerFlags: []string{"--key-file", "my key's"}}}
	if got, want := r.commandLine(" --pause"), `puntuale campaign --id 7 --pause --key-file 'my key'\''s'`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
