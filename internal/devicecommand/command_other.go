//go:build !unix

package devicecommand

import (
	"context"
	"os/exec"
)

// shell prepares a command. A kill ends only the shell, and not the programs that the shell started.
func shell(ctx context.Context, text string) *exec.Cmd {
	return exec.CommandContext(ctx, "cmd", "/C", text) //nolint:gosec // the operator chose the command
}
