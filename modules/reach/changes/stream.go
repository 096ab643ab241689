package changes

import (
	"context"

	"kontor/modules/kit/change"
	"kontor/modules/kit/streams"
	"kontor/server/apierr"
	"kontor/server/endpoint"
)

// streamPage is the number of events that a stream reads at once.
const streamPage = 100

// openedFrame is the data of the first frame.
type openedFrame struct {
	Cursor string `json:"cursor" format:"uuid" doc:"The stream contains the events after it."`
}

// closedFrame is the data of the last frame before a shutdown or after an error: clients reconnect later.
type closedFrame struct {
	Reason string `json:"reason" enum:"server_shutdown,unavailable,cursor_expired" example:"server_shutdown"`
}

// positionFrame is the data of a frame without an event, whose id moves the cursor of a reader who may see few events.
type positionFrame struct{}

// changeFrame is the name of the frames with events.
const changeFrame = "change"

// streamFrames are the frames of the stream, for the API document.
var streamFrames = []endpoint.Frame{
	{Event: "open", Body: openedFrame{}}, {Event: changeFrame, Body: change.Event{}}, {Event: "position", Body: positionFrame{}},
	{Event: "close", Body: closedFrame{}},
}

const streamExample = "id: 00000000-0029-8001-b7d2-4e8a1c6f3b05\nevent: open\ndata: {\"cursor\":\"00000000-0029-8001-b7d2-4e8a1c6f3b05\"}\n\n" +
	"id: 00000000-002a-8001-a3f1-0c5d2b7e9f10\nevent: change\ndata: {\"id\":\"00000000-002a-8001-a3f1-0c5d2b7e9f10\"," +
	"\"type\":\"customers.updated\",\"timestamp\":\"2026-01-31T08:15:30.123Z\",\"rec_type\":\"customers\"," +
	"\"rec_id\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10\",\"version\":42,\"action\":\"customers.update\",\"actor\":\"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c13\"}\n\n" +
	": keepalive\n\n"

// open opens an event stream. It returns apierr.TooManyStreams beyond the limit of a user, and apierr.CursorExpired.
func (s *Service) open(ctx context.Context, r *endpoint.Request, in listInput) error {
	start, err := s.streamStart(ctx, string(r.Fiber.Request().Header.Peek("Last-Event-ID")), in)
	if err != nil {
		return err
	}
	stream, err := s.streams.Open(ctx, r)
	if stream == nil {
		return err
	}
	feed := streams.Feed[change.Position]{Changed: s.Changed, Poll: s.PollInterval(), Read: func(ctx context.Context, after change.Position) (streams.Page[change.Position], error) {
		return s.page(ctx, Query{After: after, Types: in.types, Limit: streamPage, Record: in.Include != ""})
	}}
	// The frame has an id, so that a client that is cut off before the first event resumes there.
	first := streams.Frame(start.ID(), "open", openedFrame{start.ID()})
	s.streams.Serve(r, stream, first, func() { streams.Follow(s.streams, stream, feed, start) })
	return nil
}

// streamStart returns the position after which a stream begins: Last-Event-ID, after, or now.
func (s *Service) streamStart(ctx context.Context, lastID string, in listInput) (change.Position, error) {
	start := change.Position{}
	var err error
	switch last, known := change.ParsePosition(lastID); {
	case known:
		start = last
	case lastID != "":
		return start, apierr.CursorExpired.Detail("reason", "unknown")
	case in.After == "":
		return s.Latest(ctx)
	default:
		if start, err = s.start(ctx, in); err != nil {
			return start, err
		}
	}
	end, err := s.end(ctx)
	if err != nil {
		return start, err
	}
	return start, s.checkCursor(ctx, start, end)
}

// page reads the next events of a stream and their frames.
func (s *Service) page(ctx context.Context, q Query) (streams.Page[change.Position], error) {
	b, err := s.After(ctx, q)
	page := streams.Page[change.Position]{Last: b.Last, More: b.More}
	for _, e := range b.Events {
		page.Frames = append(page.Frames, streams.Frame(e.ID, changeFrame, e)...)
	}
	if len(b.Events) == 0 && b.Last.Seq-q.After.Seq >= scanStep {
		page.Frames = streams.Frame(b.Last.ID(), "position", positionFrame{})
	}
	return page, err
}

// SessionsChanged ends the streams of a user whose session or right has ended, see [streams.Streams.SessionsChanged].
func (s *Service) SessionsChanged(userID string) { s.streams.SessionsChanged(userID) }
