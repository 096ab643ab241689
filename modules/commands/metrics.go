package commands

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"kontor/server"
)

// metricsTimeout bounds each phase of a scrape.
const metricsTimeout = 10 * time.Second

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
		w.Header().Set("Content-Type", server.MetricsType)
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, _ = w.Write(page.Bytes()) // the client may have left
	})
	web := &http.Server{
		Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, IdleTimeout: 6 * metricsTimeout, MaxHeaderBytes: 8 << 10,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	go func() {
		if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("the address of the metrics failed", "cause", err)
		}
	}()
	return func() { _ = web.Close() } // closes sockets only
}
