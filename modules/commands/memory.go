package commands

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

	"kontor/server/metrics"
)

// memoryShare is the share of the memory that the Go heap may use before the garbage collector runs more often. The rest
// is for the cache of the database and for other processes.
const memoryShare = 0.7

// memoryLimit returns the limit for the Go heap, or 0 when the size of the memory is unknown. It reads the memory of the
// machine and the limits of the control groups (containers) from root, the root of the file system.
func memoryLimit(root fs.FS) int64 {
	least := int64(math.MaxInt64)
	for _, n := range append(controlGroupLimits(root), machineMemory(root)) {
		if n > 0 && n < least {
			least = n
		}
	}
	if least == math.MaxInt64 {
		return 0
	}
	return int64(float64(least) * memoryShare)
}

func machineMemory(root fs.FS) int64 {
	data, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for lines := bufio.NewScanner(bytes.NewReader(data)); lines.Scan(); {
		if f := strings.Fields(lines.Text()); len(f) >= 2 && f[0] == "MemTotal:" {
			kib, err := strconv.ParseInt(f[1], 10, 52)
			if err != nil {
				return 0
			}
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
