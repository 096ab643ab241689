package commands

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttpadaptor"

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
