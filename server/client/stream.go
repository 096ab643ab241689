package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// follow reads an event stream and reconnects it. make fills a frame from an event of the stream.
func follow[T any](ctx context.Context, c *Client, op operation, in input, options []CallOption, fill func(*T, streamEvent) error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		p, err := c.prepare(op, in, options)
		if err != nil {
			yield(none, err)
			return
		}
		stream := &follower{client: c, call: p, wait: c.config.firstWait}
		for {
			err := stream.read(ctx, func(e streamEvent) (bool, error) {
				var frame T
				if err := fill(&frame, e); err != nil {
					return false, fmt.Errorf("%s: %w: frame %s: %w", op.name, ErrUnexpected, e.name, err)
				}
				return yield(frame, nil), nil
			})
			if errors.Is(err, errStopped) {
				return
			}
			if err = stream.pause(ctx, err); err != nil {
				yield(none, err)
				return
			}
		}
	}
}

// errStopped means that the caller has left its loop.
var errStopped = errors.New("stopped")

// follower is the state of a stream over its connections.
type follower struct {
	client *Client
	call   *prepared
	wait   time.Duration // before the next connection
}

// read opens the stream and reads it to its end. use reports whether to continue.
func (f *follower) read(ctx context.Context, use func(streamEvent) (bool, error)) error {
	response, err := f.open(ctx)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	idle := time.AfterFunc(f.client.config.idle, func() { response.Body.(*attemptBody).cancel(errSilent) })
	defer idle.Stop()
	reader := newEventReader(&awake{response.Body, idle, f.client.config.idle}, f.client.config.maxAnswer)
	for {
		e, err := reader.next()
		if reader.retry > 0 {
			f.wait = min(reader.retry, f.client.config.maxWait)
		}
		if err != nil {
			return err
		}
		if reader.retry == 0 {
			f.wait = f.client.config.firstWait
		}
		if goOn, err := use(e); err != nil || !goOn {
			if err == nil {
				err = errStopped
			}
			return err
		}
		f.resumeAfter(e)
	}
}

// resumeAfter remembers after which frame the next connection continues. The service does not know the id any more after "reset".
func (f *follower) resumeAfter(e streamEvent) {
	switch {
	case e.id != "":
		f.call.call.header.Set(headerResume, e.id)
	case e.name == "reset":
		f.call.call.header.Del(headerResume)
	}
}

// open connects the stream.
func (f *follower) open(ctx context.Context) (*http.Response, error) {
	response, err := f.client.authorized(ctx, f.call)
	if err != nil {
		return nil, err
	}
	if got := mediaType(response.Header); got != "text/event-stream" {
		defer response.Body.Close()
		return nil, fmt.Errorf("%s: %w: the media type is %q, not text/event-stream", f.call.name, ErrUnexpected, got)
	}
	response.Body.(*attemptBody).timer.Stop() // from here on, the time without any byte counts
	return response, nil
}

// pause waits before the next connection. It returns the error that ends the stream, if there is one.
func (f *follower) pause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("%s: %w", f.call.name, context.Cause(ctx))
	}
	if final(err) {
		return err
	}
	pause := jitter(f.wait)
	var refused *Error
	if errors.As(err, &refused) {
		pause = min(max(pause, refused.RetryAfter), f.client.config.maxWait)
	}
	f.wait = min(2*f.wait, f.client.config.maxWait)
	if err := sleep(ctx, pause); err != nil {
		return fmt.Errorf("%s: %w", f.call.name, err)
	}
	return nil
}

// final reports whether a further connection would fail in the same way.
func final(err error) bool {
	var refused *Error
	if errors.As(err, &refused) {
		return refused.Status < 500 && refused.Status != http.StatusTooManyRequests && refused.Status != http.StatusRequestTimeout
	}
	return errors.Is(err, ErrUnexpected) || errors.Is(err, ErrTooLarge) || errors.Is(err, ErrNotSignedIn)
}

// errSilent ends a connection without a sign of life.
var errSilent = errors.New("the stream was silent for too long")

// awake restarts a timer with each read.
type awake struct {
	io.Reader
	timer *time.Timer
	idle  time.Duration
}

func (a *awake) Read(buffer []byte) (int, error) {
	n, err := a.Reader.Read(buffer)
	a.timer.Reset(a.idle)
	return n, err
}

// into decodes the data of an event into a frame.
func (e streamEvent) into(target any) error { return json.Unmarshal(e.data, target) }

// streamEvent is one event of a stream (HTML Living Standard, "Server-sent events").
type streamEvent struct {
	id   string
	name string
	data []byte
}

// eventReader reads the events of a stream.
type eventReader struct {
	source *bufio.Reader
	limit  int64         // bytes of one event
	retry  time.Duration // the pause that the service demands before the next connection; 0: none
	cr     bool          // the last line ended with CR: an LF that follows belongs to it
}

func newEventReader(r io.Reader, limit int64) *eventReader {
	return &eventReader{source: bufio.NewReader(r), limit: limit}
}

// next returns the next event that has data. An event that is cut off is dropped: it comes again after the reconnection.
func (r *eventReader) next() (streamEvent, error) {
	e := streamEvent{name: "message"}
	size, some := int64(0), false
	for {
		line, err := r.line(r.limit - size)
		if err != nil {
			return streamEvent{}, err
		}
		size += int64(len(line))
		if len(line) == 0 {
			if some {
				e.data = bytes.TrimSuffix(e.data, []byte("\n"))
				return e, nil
			}
			e, size = streamEvent{name: "message"}, 0
			continue
		}
		name, value, _ := strings.Cut(string(line), ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			some = true
			e.data = append(append(e.data, value...), '\n')
		case "event":
			e.name = value
		case "id":
			if !strings.Contains(value, "\x00") {
				e.id = value
			}
		case "retry":
			if milliseconds, err := strconv.ParseUint(value, 10, 31); err == nil {
				r.retry = time.Duration(milliseconds) * time.Millisecond
			}
		}
	}
}

// line reads a line that ends with LF, CR or both, without its end.
func (r *eventReader) line(limit int64) ([]byte, error) {
	var line []byte
	for {
		b, err := r.source.ReadByte()
		if err != nil {
			return nil, err
		}
		after := r.cr
		r.cr = b == '\r'
		switch {
		case b == '\n' && after:
			continue
		case b == '\n' || b == '\r':
			return line, nil
		case int64(len(line)) >= limit:
			return nil, ErrTooLarge
		}
		line = append(line, b)
	}
}
