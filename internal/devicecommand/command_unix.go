//go:build unix

package devicecommand

import (
	"context"
	"os/exec"
	"syscall"
)

// shell prepares a command in a new process group. An interrupt from the terminal does not reach the command. A kill
// ends the command and all programs that it started.
func shell(ctx context.Context, text string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", text) //nolint:gosec // the operator chose the command
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	return cmd
}
