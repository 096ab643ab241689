package testenv

import (
	"bufio"
	"math/rand/v2"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// Program is a program that runs beside a test, such as a proxy or a provider.
type Program struct {
	tb    testing.TB
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// Background starts a program that ends with its test, and at the latest with the test process. Its standard error
// appears with a test that fails. Its standard output is for [Program.Line], unless the caller has set it.
func Background(tb testing.TB, cmd *exec.Cmd) *Program {
	tb.Helper()
	p := &Program{tb: tb, cmd: cmd}
	if cmd.Stderr == nil {
		cmd.Stderr = tb.Output()
	}
	if cmd.Stdout == nil {
		output, err := cmd.StdoutPipe()
		if err != nil {
			tb.Fatal(err)
		}
		p.lines = bufio.NewScanner(output)
	}
	if err := Start(cmd); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(p.Stop)
	return p
}

// Line returns the next line of the standard output that begins with a prefix. It fails the test if the program ends before.
func (p *Program) Line(prefix string) string {
	p.tb.Helper()
	for p.lines.Scan() {
		if strings.HasPrefix(p.lines.Text(), prefix) {
			return p.lines.Text()
		}
	}
	p.tb.Fatalf("%s has ended without a line %q", p.cmd.Path, prefix)
	return ""
}

// IgnoreOutput reads the rest of the standard output, so that the program never waits for a reader.
func (p *Program) IgnoreOutput() {
	go func() {
		for p.lines.Scan() {
		}
	}()
}

// Stop kills the program, which may have ended already. A program must not have processes of its own.
func (p *Program) Stop() {
	if p.cmd.ProcessState != nil {
		return
	}
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}

// The ports of FreeAddress are below those that systems give to outgoing connections, one of which could take the port before the program.
const (
	firstPort = 15_000
	lastPort  = 32_000
)

// FreeAddress returns an address of this machine on which no program listens at the moment.
func FreeAddress(tb testing.TB) string {
	tb.Helper()
	for range 100 {
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(firstPort+rand.IntN(lastPort-firstPort)))
		if listener, err := net.Listen("tcp", address); err == nil {
			listener.Close()
			return address
		}
	}
	tb.Fatal("100 ports of this machine are in use")
	return ""
}

// WaitForListener waits until a program accepts connections at an address.
func WaitForListener(tb testing.TB, address string) {
	tb.Helper()
	Wait(tb, "a program to listen at "+address, func() bool {
		connection, err := net.Dial("tcp", address)
		if err == nil {
			connection.Close()
		}
		return err == nil
	})
}
