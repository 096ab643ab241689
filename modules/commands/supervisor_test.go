package commands

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSupervisor_ReportsOnlyAfterASuccessfulProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var sent []string
		var failure error
		fail := func(err error) {
			mu.Lock()
			defer mu.Unlock()
			failure = err
		}
		hold := make(chan struct{}, 1)
		hold <- struct{}{}
		s := &supervisor{
			send: func(state string) error {
				mu.Lock()
				defer mu.Unlock()
				sent = append(sent, state)
				return nil
			},
			every: 10 * time.Second,
			probe: func(context.Context) error {
				<-hold
				hold <- struct{}{}
				mu.Lock()
				defer mu.Unlock()
				return failure
			},
			log: slog.New(slog.DiscardHandler),
		}
		expect := func(when string, want ...string) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.Equal(sent, want) {
				t.Errorf("%s: sent %v, want %v", when, sent, want)
			}
			sent = nil
		}
		fail(errors.New("not yet"))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); s.run(ctx) }()
		expect("before the first success")
		fail(nil)
		time.Sleep(10 * time.Second)
		expect("at the first success", "READY=1", "WATCHDOG=1")
		time.Sleep(20 * time.Second)
		expect("while the probe succeeds", "WATCHDOG=1", "WATCHDOG=1")
		<-hold // the writer hangs
		time.Sleep(time.Minute)
		expect("while the probe hangs")
		hold <- struct{}{}
		expect("when the probe returns", "WATCHDOG=1")
		fail(errors.New("no answer"))
		time.Sleep(time.Minute)
		expect("while the probe fails")
		cancel()
		<-ended
		expect("at the end", "STOPPING=1")
	})
}

func TestNewSupervisor_ReadsTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	for environ, want := range map[string]time.Duration{"": 0, "WATCHDOG_USEC=30000000": 10 * time.Second, "WATCHDOG_USEC=x": 0, "WATCHDOG_USEC=-5": 0} {
		s, closeSocket, err := newSupervisor([]string{"NOTIFY_SOCKET=" + path, environ}, nil, nil)
		if err != nil || s.every != want {
			t.Fatalf("%s: %v, %v", environ, s, err)
		}
		closeSocket()
	}
	if s, _, err := newSupervisor([]string{"NOTIFY_SOCKET=" + path, "WATCHDOG_USEC=30000000", "WATCHDOG_PID=1"}, nil, nil); err != nil || s.every != 0 {
		t.Errorf("the watchdog of another process: %v, %v", s, err)
	}
	if s, _, err := newSupervisor([]string{"HOME=/"}, nil, nil); s != nil || err != nil {
		t.Errorf("without a manager: %v, %v", s, err)
	}
	if _, _, err := newSupervisor([]string{"NOTIFY_SOCKET=" + path + "-gone"}, nil, nil); err == nil {
		t.Error("a missing socket was accepted")
	}
}

func TestHTTPProbe_RequiresAResponse(t *testing.T) {
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	var status atomic.Int64
	web := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) })}
	go func() { _ = web.Serve(listener) }()
	probe := httpProbe(listener.Addr(), false, time.Minute)
	for code, want := range map[int]bool{200: true, 503: true, 500: false, 404: false} {
		status.Store(int64(code))
		if (probe(t.Context()) == nil) != want {
			t.Errorf("status %d: success of the probe is not %s", code, strconv.FormatBool(want))
		}
	}
	web.Close()
	if probe(t.Context()) == nil {
		t.Error("the probe of a closed listener succeeded")
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and never responds
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if httpProbe(silent.Addr(), false, 10*time.Millisecond)(t.Context()) == nil {
		t.Error("the probe of a silent listener succeeded")
	}
}
