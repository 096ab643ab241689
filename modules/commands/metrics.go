package commands

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kontor/server/metrics"
)

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

// serveHTTP answers small requests on a listener until stop is called.
func serveHTTP(listener net.Listener, handler http.Handler, log *slog.Logger) (stop func()) {
	web := &http.Server{
		Handler: handler, ReadTimeout: secondaryTimeout, WriteTimeout: secondaryTimeout, IdleTimeout: 3 * secondaryTimeout, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("an address failed", "address", listener.Addr().String(), "cause", err)
		}
	}()
	return func() { _ = web.Close() } // closes sockets only
}
