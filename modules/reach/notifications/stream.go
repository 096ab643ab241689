package notifications

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/gofiber/fiber/v2"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/endpoint"
	"kontor/server/metrics"
	"kontor/server/sse"
)

const (
	streamPath = "/v1/notifications/sse"
	// drainingText is the answer while the server shuts down, in English whatever the language of the request.
	drainingText = "server shutting down"

	maxEventID = 200 // bytes of a Last-Event-ID that are looked up
)

var (
	openFrame  = sse.Event("", "open", []byte(`{"message":"Connection established"}`))
	closeFrame = sse.Event("", "close", []byte(`{"reason":"server_shutdown"}`))
	resetFrame = sse.Event("", "reset", []byte(`{"reason":"unknown_event_id"}`))
)

// openStream opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user.
func (s *Service) openStream(ctx context.Context, r *endpoint.Request) error {
	stream, err := s.streams.Open(ctx, r)
	if errors.Is(err, sse.ErrDraining) {
		r.Fiber.Response().Header.SetContentType(fiber.MIMETextPlainCharsetUTF8)
		return r.Fiber.Status(http.StatusServiceUnavailable).SendString(drainingText)
	}
	if stream == nil {
		return err
	}
	if err := s.admit(stream); err != nil {
		return err
	}
	// The hub notes notifications that are published from here on; earlier ones are read from the table.
	start, err := s.readStart(ctx, stream, string(r.Fiber.Request().Header.Peek("Last-Event-ID")))
	if err != nil {
		stream.End()
		return apierr.AuthUnavailable.Wrap(err) // the answer of this route while the database cannot be read
	}
	s.streams.Serve(r, stream, start.first, func() { s.replay(stream, start) })
	return nil
}

// admit applies the limit of a user over all nodes, and ends a stream beyond it.
func (s *Service) admit(stream *sse.Stream) error {
	err := s.counts.admit(stream)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sse.ErrTooMany):
		s.streams.Refuse(stream)
		return apierr.TooManyStreams.Wrap(err)
	default:
		stream.End()
		return apierr.AuthUnavailable.Wrap(err)
	}
}

// replay writes the missed notifications to a stream and passes it to the hub.
func (s *Service) replay(stream *sse.Stream, start streamStart) {
	s.sent.add(start.replayed)
	if err := s.catchUp(stream, start.position); err != nil {
		s.options.Log.Warn("could not replay notifications on a stream", "cause", err)
		stream.End()
	}
}

// readTime is how long a read for streams may take.
const readTime = 2 * time.Second

// mayWrite reports whether all ends of sessions and of rights have reached the streams of this process.
func (s *Service) mayWrite() bool { return s.db.Remembers() && !s.options.TermsDue() }

// mayOpen reports whether a caller may have a stream, from memory alone.
func mayOpen(caller *access.Caller, endpoint string) bool { return caller.MayCall(endpoint) }

// SessionsChanged ends the streams of a user whose session or right has ended, see [streams.Streams.SessionsChanged].
func (s *Service) SessionsChanged(userID string) { s.streams.SessionsChanged(userID) }

// streamEnded corrects the number of streams that other nodes see. The hub calls it.
func (s *Service) streamEnded(user string) { s.counts.ended(user) }

// recordSent records which notifications were written to a stream.
func (s *Service) recordSent(positions []sse.Position) {
	ids := make([]string, len(positions))
	for i, p := range positions {
		ids[i] = p.ID
	}
	s.sent.add(ids)
}

// AddMetrics adds the metrics of streams to a scrape.
func (s *Service) AddMetrics(scrape *metrics.Scrape) {
	gauge := func(name, help string, value float64, labels ...string) {
		scrape.Gauge("kontor_"+name, help, value, labels...)
	}
	counter := func(name, help string, value uint64, labels ...string) {
		scrape.Counter("kontor_"+name, help, float64(value), labels...)
	}
	streams := s.streams.Stats()
	gauge("streams_open", "Open event streams.", float64(streams.Open))
	counter("stream_frames_total", "Frames written to event streams.", streams.Frames)
	counter("streams_refused_total", "Event streams refused because their user had too many.", streams.Refused)
	ended := func(reason string, n uint64) {
		counter("streams_ended_total", "Ended event streams by reason.", n, "reason", reason)
	}
	ended("left", streams.Left)
	ended("slow", streams.Slow)
	ended("revoked", streams.Revoked)
}
