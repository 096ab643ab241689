package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"time"
)

// A data set that is made for the table has these numbers of records.
const smallCustomers, smallNotifications = "20000", "200000"

// startLimit is how long a server may take to start; with a data set of an earlier version it changes the tables first.
const startLimit = 5 * time.Minute

// measureLists measures every list of a server with a data set.
func measureLists(ctx context.Context, data string, found map[string]float64) (err error) {
	dir, err := os.MkdirTemp("", "kontor-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if data == "" {
		data = filepath.Join(dir, "data")
		fmt.Fprintln(os.Stderr, "==> a data set of", smallCustomers, "customers and", smallNotifications, "notifications")
		if err := command(ctx, "go", "run", "./modules/demo/dataset", "-data.dir", data, "-customers", smallCustomers, "-notifications", smallNotifications).Run(); err != nil {
			return fmt.Errorf("make a data set: %w", err)
		}
	}
	fmt.Fprintln(os.Stderr, "==> lists")
	program := filepath.Join(dir, "kontor")
	if err := command(ctx, "go", "build", "-o", program, ".").Run(); err != nil {
		return fmt.Errorf("build: %w", err)
	}
	address, err := freeAddress(ctx)
	if err != nil {
		return err
	}
	server := command(ctx, program, "serve", "--data.dir", data, "--server.listen", address, "--metrics.listen", "", "--log.level", "error")
	if err := server.Start(); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(syscall.SIGTERM), server.Wait())
	}()
	if err := waitReady(ctx, "http://"+address); err != nil {
		return err
	}
	out, err := command(ctx, "go", "run", "./modules/demo/listtimes", "-url", "http://"+address, "-pid", strconv.Itoa(server.Process.Pid)).Output()
	if err != nil {
		return fmt.Errorf("measure: %w", err)
	}
	fmt.Fprintf(os.Stderr, "%s", out)
	return readLists(string(out), found)
}

// summary matches the last line of listtimes.
var summary = regexp.MustCompile(`lists; (\d+) took longer than .* or were rejected; the slowest (\S+)\n`)

func readLists(output string, found map[string]float64) error {
	m := summary.FindStringSubmatch(output)
	if m == nil {
		return fmt.Errorf("no summary in %q", output)
	}
	slow, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return err
	}
	slowest, err := time.ParseDuration(m[2])
	if err != nil {
		return err
	}
	found[lists+"  slow"], found[lists+"  slowest"] = slow, float64(slowest.Milliseconds())
	return nil
}

// freeAddress returns an address on which no program listens at the moment.
func freeAddress(ctx context.Context) (string, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func waitReady(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/readyz", nil)
		if err != nil {
			return err
		}
		if response, err := http.DefaultClient.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the server is not ready: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
