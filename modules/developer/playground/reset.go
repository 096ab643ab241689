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
// the former data. With first, these are the data after the first start, and the server forgets those that were kept later. The channel
// gets the outcome when requests are answered again.
type Restart func(first bool) <-chan error

// Keep makes the present data those that resets go back to, while they are served.
type Keep func(ctx context.Context) error

func (s *Service) resetRows() []endpoint.Endpoint {
	rows := []endpoint.Endpoint{
		{Name: "sandbox.reset", Path: "/v1/sandbox/reset", Summary: "Go back to the kept state: that after the last seed file, or after the first start",
			Doc: endpoint.Doc{Answers: []endpoint.Answer{{Status: http.StatusOK, Body: resetAnswer{},
				Says: "The reset is done. Records, sessions and the clock are those of the kept state; streams reconnect."}}},
			Handle: endpoint.RawInput(s.serveReset)},
		{Name: "sandbox.keep", Path: "/v1/sandbox/keep", Summary: "Keep the present state, so that resets go back to it",
			Handle: endpoint.JSON(http.StatusOK, s.serveKeep)},
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

// resetInput says how far a reset goes.
type resetInput struct {
	First bool `query:"first" doc:"Go back to the state after the first start, and forget the one that was kept later."`
}

// serveReset resets the sandbox. The connection outlives the server that took the request, because the next one answers it.
func (s *Service) serveReset(_ context.Context, r *endpoint.Request, in resetInput) error {
	done, err := s.Reset(in.First)
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

// Reset begins to go back to the kept state, or to that after the first start. The clock does not move meanwhile, and this Service ends.
func (s *Service) Reset(first bool) (<-chan error, error) {
	if !s.moving.TryLock() {
		return nil, apierr.ClockBusy
	}
	return s.Restart(first), nil
}

func (s *Service) serveKeep(ctx context.Context, _ endpoint.None) (resetAnswer, error) {
	took, err := s.KeepState(ctx)
	return resetAnswer{TookMS: took.Milliseconds()}, err
}

// KeepState makes the present state the one that resets go back to. It returns how long that took.
func (s *Service) KeepState(ctx context.Context) (time.Duration, error) {
	if !s.moving.TryLock() {
		return 0, apierr.ClockBusy
	}
	defer s.moving.Unlock()
	began := time.Now()
	err := s.Keep(ctx)
	return time.Since(began), err
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
