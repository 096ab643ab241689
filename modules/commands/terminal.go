package commands

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"golang.org/x/term"
)

// isTerminal reports whether stream, one of a [Process], is a terminal.
func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// maxPasswordBytes exceeds the length of every password that is accepted.
const maxPasswordBytes = 4 << 10

// readPassword reads a new password: at a terminal twice, without echo; otherwise from the first line of standard input. A
// password is never an argument, because every user of the machine can see arguments.
func (p Process) readPassword() (string, error) {
	if !isTerminal(p.Stdin) {
		return firstLine(p.Stdin)
	}
	first, err := p.askHidden("Password: ")
	if err != nil {
		return "", err
	}
	second, err := p.askHidden("Password again: ")
	if err != nil {
		return "", err
	}
	if first != second {
		return "", errors.New("the two passwords differ; run the command again")
	}
	return first, nil
}

func (p Process) askHidden(prompt string) (string, error) {
	fd := int(p.Stdin.(*os.File).Fd())
	defer restoreOnInterrupt(fd)()
	fmt.Fprint(p.Stderr, prompt)
	typed, err := term.ReadPassword(fd)
	fmt.Fprintln(p.Stderr)
	if err != nil {
		return "", fmt.Errorf("read password: %w", err)
	}
	return string(typed), nil
}

// restoreOnInterrupt restores the echo of the terminal on Ctrl-C, and ends the process. Call done after the prompt.
func restoreOnInterrupt(fd int) (done func()) {
	state, err := term.GetState(fd)
	if err != nil {
		return func() {}
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt)
	go func() {
		if _, ok := <-interrupted; ok {
			_ = term.Restore(fd, state) // the process ends anyway
			os.Exit(1)
		}
	}()
	return func() {
		signal.Stop(interrupted)
		close(interrupted)
	}
}

func firstLine(r io.Reader) (string, error) {
	line, err := bufio.NewReader(io.LimitReader(r, maxPasswordBytes)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read password: %w", err)
	}
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if line == "" {
		return "", errors.New("no password on standard input; write it to the first line")
	}
	return line, nil
}

// fatalTimeout bounds writing the last line: a blocked standard error must not keep the process alive.
const fatalTimeout = time.Second

// fatal returns the function that the store calls when it could not write or sync a data file. The function prints one line
// and exits with 1. No deferred function runs, because it might write to the disk that has failed. The log is closed first,
// so that the last line does not split one of its lines.
func (p Process) fatal(closeLog func() error) func(error) {
	return func(err error) {
		written := make(chan struct{})
		go func() {
			_ = closeLog() // the process ends anyway
			p.fail(fmt.Errorf("%w; the process was stopped at once, start it again to continue with the data on the disk", err))
			close(written)
		}()
		select {
		case <-written:
		case <-time.After(fatalTimeout):
		}
		os.Exit(1)
	}
}
