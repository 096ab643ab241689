package commands

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"kontor/server/metrics"
)

// supervisor reports to the service manager that the process is ready and makes progress, as sd_notify(3) describes. It
// reports only after the probe has succeeded: the manager restarts a process that is frozen or whose probe hangs.
type supervisor struct {
	send  func(state string) error
	every time.Duration // interval of keep-alive messages; 0 means only readiness is reported
	probe func(ctx context.Context) error
	log   *slog.Logger
}

const (
	// pingsPerTimeout is the number of keep-alive messages per watchdog timeout.
	pingsPerTimeout = 3
	// readyRetry is the interval of probes until the first success where no watchdog is configured.
	readyRetry = time.Second
)

// newSupervisor reads the configuration of the service manager from the environment. It returns nil where no manager runs.
func newSupervisor(environ []string, probe func(ctx context.Context) error, log *slog.Logger) (s *supervisor, closeSocket func(), err error) {
	environment := map[string]string{}
	for _, entry := range environ {
		if name, value, ok := strings.Cut(entry, "="); ok {
			environment[name] = value
		}
	}
	path := environment["NOTIFY_SOCKET"]
	if path == "" {
		return nil, func() {}, nil
	}
	socket, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		return nil, nil, fmt.Errorf("NOTIFY_SOCKET: %w", err)
	}
	s = &supervisor{probe: probe, log: log}
	s.send = func(state string) error {
		_, err := io.WriteString(socket, state)
		return err
	}
	if pid := environment["WATCHDOG_PID"]; pid == "" || pid == strconv.Itoa(os.Getpid()) {
		if microseconds, err := strconv.ParseInt(environment["WATCHDOG_USEC"], 10, 64); err == nil && microseconds > 0 {
			s.every = time.Duration(microseconds) * time.Microsecond / pingsPerTimeout
		}
	}
	return s, func() { _ = socket.Close() }, nil // nothing is buffered
}

// run reports readiness once, and then sends a keep-alive message after each probe that succeeds, until the context ends.
func (s *supervisor) run(ctx context.Context) {
	pause := s.every
	if pause == 0 {
		pause = readyRetry
	}
	timer := time.NewTimer(0)
	defer timer.Stop()
	for ready := false; ; timer.Reset(pause) {
		select {
		case <-ctx.Done():
			s.notify("STOPPING=1")
			return
		case <-timer.C:
		}
		if err := s.probe(ctx); err != nil {
			if ctx.Err() == nil {
				s.log.Warn("the probe failed; no keep-alive message is sent to the service manager", "cause", err)
			}
			continue
		}
		if !ready {
			ready = true
			s.notify("READY=1")
		}
		if s.every == 0 {
			<-ctx.Done()
			continue
		}
		s.notify("WATCHDOG=1")
	}
}

func (s *supervisor) notify(state string) {
	if err := s.send(state); err != nil {
		s.log.Warn("the service manager could not be notified", "state", state, "err", err)
	}
}

// httpProbe returns a probe that sends a request on a new connection. A response of 503 counts as success, so that an
// overload does not end the process.
func httpProbe(listener net.Addr, overTLS bool, timeout time.Duration) func(ctx context.Context) error {
	client, origin := ownClient(listener.String(), overTLS, probeName, timeout)
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, origin+"/healthz", nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusServiceUnavailable {
			return fmt.Errorf("/healthz returned status %d", answer.StatusCode)
		}
		return nil
	}
}

// memoryShare is the share of the memory that the Go heap may use before the garbage collector runs more often. The rest
// is for the cache of the database and for other processes.
const memoryShare = 0.7

// memoryLimit returns the limit for the Go heap, or 0 when the size of the memory is unknown. It reads the memory of the
// machine and the limits of the control groups (containers) from root, the root of the file system.
func memoryLimit(root fs.FS) int64 {
	limits := slices.DeleteFunc(append(controlGroupLimits(root), machineMemory(root)), func(n int64) bool { return n <= 0 })
	if len(limits) == 0 {
		return 0
	}
	return int64(float64(slices.Min(limits)) * memoryShare)
}

func machineMemory(root fs.FS) int64 {
	data, _ := fs.ReadFile(root, "proc/meminfo") // other systems have none
	for line := range strings.Lines(string(data)) {
		var kib int64
		if _, err := fmt.Sscanf(line, "MemTotal: %d kB", &kib); err == nil {
			return kib << 10
		}
	}
	return 0
}

// controlGroupLimits returns the limits of the control group of the process and of its ancestors.
func controlGroupLimits(root fs.FS) []int64 {
	var limits []int64
	for _, file := range controlGroupFiles(root) {
		data, err := fs.ReadFile(root, file)
		if err != nil {
			continue // a group may have no limit, and a container may not see the ancestors of its group
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64); err == nil { // else "max"
			limits = append(limits, n)
		}
	}
	return limits
}

func controlGroupFiles(root fs.FS) []string {
	const v1, v2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
	files := []string{v1 + "/memory.limit_in_bytes", v2 + "/memory.max"}
	data, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return files
	}
	for line := range strings.Lines(string(data)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		base, file := v2, "memory.max"
		if parts[1] == "memory" {
			base, file = v1, "memory.limit_in_bytes"
		} else if parts[1] != "" {
			continue
		}
		for group := path.Clean("/" + parts[2]); group != "/"; group = path.Dir(group) {
			files = append(files, base+group+"/"+file)
		}
	}
	return files
}

// serveMetrics answers GET /metrics on a listener until stop is called. Every client that reaches the address may read them.
func serveMetrics(listener net.Listener, write func(io.Writer) error, log *slog.Logger) (stop func()) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		var page bytes.Buffer
		if err := write(&page); err != nil {
			log.Error("the metrics could not be written", "cause", err)
			http.Error(w, "the metrics could not be written", http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", metrics.MediaType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(page.Bytes()) // the client may have left
	})
	return serveHTTP(listener, mux, log)
}

// secondaryTimeout bounds the phases of a request to an address beside that of the API.
const secondaryTimeout = 10 * time.Second

// secondaryStop bounds how long a client of such an address may delay the end of the process.
const secondaryStop = 100 * time.Millisecond

// serveHTTP answers small requests on a listener until stop is called. It uses the HTTP server of the API, so that the program has only
// one.
func serveHTTP(listener net.Listener, handler http.Handler, log *slog.Logger) (stop func()) {
	web := &fasthttp.Server{
		Handler:     fasthttpadaptor.NewFastHTTPHandler(handler),
		ReadTimeout: secondaryTimeout, WriteTimeout: secondaryTimeout, IdleTimeout: 3 * secondaryTimeout,
		ReadBufferSize: 8 << 10, MaxRequestBodySize: 1, NoDefaultServerHeader: true, CloseOnShutdown: true,
		Logger: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := web.Serve(listener); err != nil {
			log.Error("an address failed", "address", listener.Addr().String(), "cause", err)
		}
	}()
	return func() {
		ctx, cancel := context.WithTimeout(context.Background(), secondaryStop)
		defer cancel()
		_ = web.ShutdownWithContext(ctx) // the process ends in any case
	}
}
