//go:build !unix

package deviceclient

import (
	"context"
	"os/exec"
)

// shell runs a command. A kill ends only the shell, not the programs that it started.
func shell(ctx context.Context, text string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", text) //nolint:gosec // the operator chose the command
}
