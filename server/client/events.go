package client

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

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
