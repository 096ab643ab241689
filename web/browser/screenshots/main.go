// Command screenshots writes the pictures in docs/images. It builds Kontor, starts it as a demo in a temporary directory,
// signs in, and takes screenshots with chromium. Run it with "make screenshots".
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

const startLimit = 3 * time.Minute

func main() {
	out := flag.String("out", "docs/images", "directory of the pictures")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *out)
	stop()
	if err != nil {
		slog.Error("no screenshots", "err", err)
		os.Exit(1) //nolint:forbidigo // this is main
	}
}

func run(ctx context.Context, out string) error {
	dir, err := os.MkdirTemp("", "kontor-screenshots")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := openDemo(ctx, dir)
	if err != nil {
		return err
	}
	defer b.close()
	return takeAll(ctx, b, out)
}

// demo is a running demo bank.
type demo struct {
	address string
	bills   string // the directory of its sample bills
	command *exec.Cmd

	passwords map[string]string // by login
}

// openDemo builds Kontor and starts it with a fresh demo below dir.
func openDemo(ctx context.Context, dir string) (*demo, error) {
	program := filepath.Join(dir, "kontor")
	if text, err := exec.CommandContext(ctx, "go", "build", "-o", program, "kontor").CombinedOutput(); err != nil { //nolint:gosec // our own program in our own directory
		return nil, fmt.Errorf("build: %w\n%s", err, text)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &demo{address: listener.Addr().String(), bills: filepath.Join(dir, "data", "sample-bills")}
	listener.Close()
	d.command = exec.CommandContext(ctx, program, "serve", "--demo", "--server.listen", d.address, "--data.dir", filepath.Join(dir, "data"), "--log.level", "warn") //nolint:gosec // as above
	d.command.Stderr = os.Stderr
	if err := d.command.Start(); err != nil {
		return nil, err
	}
	if err := d.wait(ctx); err != nil {
		d.close()
		return nil, err
	}
	if err := d.readPasswords(filepath.Join(dir, "data", "demo.json")); err != nil {
		d.close()
		return nil, err
	}
	return d, nil
}

// readPasswords reads the demo's passwords: one for the administrator, and one for each role.
func (d *demo) readPasswords(path string) error {
	var mark struct {
		Password  string            `json:"password"`
		Passwords map[string]string `json:"passwords"`
	}
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &mark)
	}
	d.passwords = map[string]string{
		"admin@kontor.localhost": mark.Password, "advisor@kontor.localhost": mark.Passwords["Advisor"],
		"customer@kontor.localhost": mark.Passwords["Customer"],
	}
	return err
}

func (d *demo) url(path string) string { return "http://" + d.address + path }

// wait returns once the demo is ready.
func (d *demo) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		if d.ready(ctx) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the demo does not start: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

func (d *demo) ready(ctx context.Context) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url("/readyz"), nil)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return err == nil && answer.StatusCode == http.StatusOK
}

// close stops the demo and waits for it.
func (d *demo) close() {
	if err := d.command.Process.Signal(syscall.SIGTERM); err != nil {
		slog.Warn("the demo has already ended", "err", err)
	}
	if err := d.command.Wait(); err != nil {
		slog.Warn("the demo failed to stop", "err", err)
	}
}
