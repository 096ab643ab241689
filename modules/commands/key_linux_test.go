package commands_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"kontor/modules/commands"
)

func TestKeyExport_DoesNotPrintToATerminal(t *testing.T) {
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer terminal.Close()
	dir := newDataDir(t)
	export := func(flags ...string) (code int, stderr string) {
		var out bytes.Buffer
		args := append([]string{"key", "export", "-", "--data.dir", dir}, flags...)
		code = commands.Run(context.Background(), commands.Process{Args: args, Stdin: strings.NewReader(""), Stdout: terminal, Stderr: &out})
		return code, out.String()
	}
	if code, stderr := export(); code != 1 || !strings.Contains(stderr, "--force") {
		t.Errorf("exit %d, stderr %q", code, stderr)
	}
	if code, stderr := export("--force"); code != 0 || stderr != "" {
		t.Errorf("with --force: exit %d, stderr %q", code, stderr)
	}
}
