package streams

import (
	"context"
	"time"

	"github.com/go-json-experiment/json"

	"kontor/server/access"
	"kontor/server/apierr"
	"kontor/server/sse"
)

// Feed is what streams follow from positions of type P.
type Feed[P any] struct {
	// Changed returns a channel that is closed at the next change. Poll is the longest time between two reads.
	Changed func() <-chan struct{}
	Poll    time.Duration
	// Read returns what comes after a position, for the caller of the context.
	Read func(ctx context.Context, after P) (Page[P], error)
}

// Page is a part of a feed.
type Page[P any] struct {
	Frames []byte
	Last   P    // where the next page begins
	More   bool // there is a next page already
}

const (
	readTime = 10 * time.Second // for one page
	// minInterval is the shortest time between two reads of a stream, so that a stream costs little on a busy server.
	minInterval = 50 * time.Millisecond
)

// Follow writes pages of a feed to a stream until it ends, and waits for changes between them. Every page is read with the rights of
// its moment. The last frame has the name "close" and a reason.
func Follow[P any](s *Streams, stream *sse.Stream, feed Feed[P], after P) {
	defer stream.End()
	heartbeat := s.options.Hub.Heartbeat
	quiet := time.Now() // when the client last got a frame
	for !stream.Ended() {
		changed, certain := feed.Changed(), s.options.Certain()
		page, err := readPage(s, stream, feed, after)
		if certain && s.options.Certain() { // else a session or a right may have ended unnoticed
			if err != nil {
				s.refuse(stream, err)
				return
			}
			after = page.Last
			if len(page.Frames) == 0 && time.Since(quiet) >= heartbeat {
				page.Frames = []byte(sse.Keepalive)
			}
			if len(page.Frames) > 0 {
				if !stream.Write(page.Frames) {
					return
				}
				quiet = time.Now()
			}
			if page.More {
				changed = nil
			}
		}
		if !s.pause(changed, min(feed.Poll, heartbeat)) {
			stream.Write(closeFrame("server_shutdown"))
			return
		}
	}
}

func readPage[P any](s *Streams, stream *sse.Stream, feed Feed[P], after P) (Page[P], error) {
	ctx, cancel := context.WithTimeout(context.Background(), readTime)
	defer cancel()
	return feed.Read(access.With(ctx, s.Caller(stream)), after)
}

// refuse tells a client why its stream ends.
func (s *Streams) refuse(stream *sse.Stream, err error) {
	reason := "unavailable"
	if apierr.Of(err).Kind == apierr.CursorExpired {
		reason = "cursor_expired"
	} else {
		s.log.Warn("could not read a feed for a stream", "cause", err)
	}
	stream.Write(closeFrame(reason))
}

// pause waits for the next change; nil does not wait for one. It reports false when the server stops.
func (s *Streams) pause(changed <-chan struct{}, most time.Duration) bool {
	least := time.NewTimer(minInterval)
	defer least.Stop()
	select {
	case <-s.draining:
		return false
	case <-least.C:
	}
	if changed == nil {
		return true
	}
	longest := time.NewTimer(most)
	defer longest.Stop()
	select {
	case <-s.draining:
		return false
	case <-changed:
	case <-longest.C:
	}
	return true
}

func closeFrame(reason string) []byte { return Frame("", "close", map[string]string{"reason": reason}) }

// Frame returns a frame with JSON data. An empty id is none.
func Frame(id, event string, data any) []byte {
	text, err := json.Marshal(data)
	if err != nil {
		return nil // frames hold types of their module, or records that endpoints encode too
	}
	return sse.Event(id, event, text)
}
