package requestlog

import (
	"context"
	"strconv"

	"kontor/modules/kit/list"
	"kontor/modules/kit/streams"
	"kontor/server/access"
	"kontor/server/endpoint"
)

// streamPage is the number of requests that a stream reads at once.
const streamPage = 100

type openedFrame struct {
	Seq int64 `json:"seq" doc:"The stream has the requests after this number."`
}

type gapFrame struct{}

type closedFrame struct {
	Reason string `json:"reason" enum:"server_shutdown" example:"server_shutdown"`
}

const requestFrame = "request"

var streamFrames = []endpoint.Frame{
	{Event: "open", Body: openedFrame{}}, {Event: requestFrame, Body: Request{}}, {Event: "gap", Body: gapFrame{}}, {Event: "close", Body: closedFrame{}},
}

const streamExample = "id: 1767225600000041\nevent: open\ndata: {\"seq\":1767225600000041}\n\n" +
	"id: 1767225600000042\nevent: request\ndata: {\"seq\":1767225600000042,\"at\":\"2026-01-31T08:15:30.123Z\",\"node\":\"bank-1\",\"method\":\"GET\"," +
	"\"endpoint\":\"GET /v1/customers/{id}\",\"path\":\"/v1/customers/0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"query\":\"\",\"ignored\":\"\",\"status\":404,\"class\":\"4xx\"," +
	"\"code\":\"customers.customer_not_found\",\"microseconds\":840,\"caller_kind\":\"person\",\"caller\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\"," +
	"\"request_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c14\"}\n\n: keepalive\n\n"

// open opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user.
func (s *Service) open(ctx context.Context, r *endpoint.Request, in list.Input) error {
	matches, err := requests.Filter(in.Query)
	if err != nil {
		return err
	}
	_, start, _ := s.ring.after(0, 0)
	if last, err := strconv.ParseInt(string(r.Fiber.Request().Header.Peek("Last-Event-ID")), 10, 64); err == nil && last >= 0 && last < start {
		start = last
	}
	stream, err := s.streams.Open(ctx, r)
	if stream == nil {
		return err
	}
	feed := streams.Feed[int64]{Changed: s.ring.changed, Poll: s.options.Heartbeat,
		Read: func(_ context.Context, after int64) (streams.Page[int64], error) { return s.page(after, matches), nil }}
	s.streams.Serve(r, stream, frame(start, "open", openedFrame{start}), func() { streams.Follow(s.streams, stream, feed, start) })
	return nil
}

// frame returns a frame whose id is the number of a request.
func frame(seq int64, event string, data any) []byte {
	return streams.Frame(strconv.FormatInt(seq, 10), event, data)
}

// page returns the next requests that match, and a frame before them if others are missing.
func (s *Service) page(after int64, matches func(*Request) bool) streams.Page[int64] {
	entries, last, gap := s.ring.after(after, streamPage)
	page := streams.Page[int64]{Last: after, More: len(entries) == streamPage}
	if gap {
		if len(entries) == 0 { // the process is another one
			page.Last = last
		}
		page.Frames = frame(page.Last, "gap", gapFrame{})
	}
	for _, e := range entries {
		page.Last = e.seq
		if r := s.requestOf(e); matches(&r) {
			page.Frames = append(page.Frames, frame(e.seq, requestFrame, r)...)
		}
	}
	return page
}

// mayOpen reports whether a caller may have a stream, from memory alone.
func mayOpen(caller *access.Caller, _ string) bool {
	return caller.MayCall(Endpoint) && caller.InScope(prefix+"list")
}

// SessionsChanged ends the streams of a user whose session or right has ended, see [streams.Streams.SessionsChanged].
func (s *Service) SessionsChanged(userID string) { s.streams.SessionsChanged(userID) }
