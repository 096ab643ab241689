package server

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/gofiber/fiber/v2"
)

// drainGrace is how long new requests are still answered, with 503, before the listener closes: a load balancer that
// probes once a second notices.
const drainGrace = time.Second

// Shutdown drains the server: new requests get 503, streams close, running requests finish. It returns
// when all have finished or the context ends.
func (s *Server) Shutdown(ctx context.Context) error {
	if s.draining.Swap(true) {
		return nil
	}
	for _, drain := range s.OnDrain {
		drain()
	}
	grace := time.NewTimer(drainGrace)
	defer grace.Stop()
	select {
	case <-grace.C:
	case <-ctx.Done():
	}
	return s.app.ShutdownWithContext(ctx)
}

// checkDraining answers new requests while the service shuts down, with the text of the row or with the health map. Liveness
// and metrics are still served.
func (s *Server) checkDraining(r *call) error {
	if !s.draining.Load() || r.row.Name == "operations.health" || r.row.Name == "operations.metrics" {
		return nil
	}
	response := r.fiber.Response()
	response.Header.Set(fiber.HeaderRetryAfter, strconv.Itoa(wholeSeconds(drainGrace)))
	response.Header.Set(fiber.HeaderCacheControl, "no-store")
	r.fiber.Context().SetConnectionClose()
	if r.row.Draining != "" {
		response.SetStatusCode(http.StatusServiceUnavailable)
		response.Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		response.SetBodyString(r.row.Draining)
		return errAnswered
	}
	body, _ := json.Marshal(health{OverallStatus: "unhealthy", Timestamp: s.timestamp(), // a struct of strings cannot fail
		Message: s.Texts.Text(r.Language, "health.shutting_down", nil)})
	s.writeJSON(r, http.StatusServiceUnavailable, body)
	return errAnswered
}
