package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// Restart makes the server begin again on the data that it keeps for resets: the modules are built again, so that nothing in memory is of
// the former data. With keep, the present data become those. The channel gets the outcome when requests are answered again.
type Restart func(keep bool) <-chan error

func (s *Service) resetRows() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "sandbox.reset", Path: "/v1/sandbox/reset", Summary: "Go back to the kept state, which is that after the first start unless another was kept",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{{Status: http.StatusOK, Body: resetAnswer{},
				Says: "The reset is done. Records, sessions and the clock are those of the kept state; streams reconnect."}}},
			Handle: endpoint.Raw(nil, s.serveReset(false))},
		{Name: "sandbox.keep", Path: "/v1/sandbox/keep", Summary: "Keep the present state, so that resets go back to it",
			Doc:    endpoint.Doc{Answers: []endpoint.Answer{{Status: http.StatusOK, Body: resetAnswer{}, Says: "The state is kept; streams reconnect."}}},
			Handle: endpoint.Raw(nil, s.serveReset(true))},
	}
	for i := range rows {
		rows[i].Method, rows[i].OwnTime, rows[i].Faults = http.MethodPost, true, []apierr.Kind{apierr.ClockBusy}
	}
	return rows
}

// resetAnswer is the answer to both.
type resetAnswer struct {
	TookMS int64 `json:"took_ms" doc:"How long it took, in milliseconds." example:"350"`
}

// serveReset resets the sandbox. The connection outlives the server that took the request, because the next one answers it.
func (s *Service) serveReset(keep bool) func(ctx context.Context, r *endpoint.Request) error {
	return func(_ context.Context, r *endpoint.Request) error {
		done, err := s.Reset(keep)
		if err != nil {
			return err
		}
		began := time.Now()
		connection := r.Fiber.Context()
		connection.HijackSetNoResponse(true)
		connection.Hijack(func(client net.Conn) {
			defer client.Close()
			if err := <-done; err == nil {
				_ = writeReset(client, time.Since(began)) // the client may have gone
			}
		})
		return nil
	}
}

// Reset begins to go back to the kept state, or to keep the present one. The clock does not move meanwhile, and this Service ends.
func (s *Service) Reset(keep bool) (<-chan error, error) {
	if !s.moving.TryLock() {
		return nil, apierr.ClockBusy
	}
	return s.Restart(keep), nil
}

func writeReset(to net.Conn, took time.Duration) error {
	body, err := json.Marshal(resetAnswer{TookMS: took.Milliseconds()})
	if err != nil {
		return err
	}
	if err := to.SetWriteDeadline(time.Now().Add(10 * time.Second)); err != nil {
		return err
	}
	_, err = fmt.Fprintf(to, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nCache-Control: no-store\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return err
}
