// Package sse writes event streams (HTML standard, section 9.2): frames, the head of the response, and a hub that has the open
// streams of all users and writes to them without waiting for any client.
//
// A stream costs its connection and a few hundred bytes. All streams share a few writer goroutines and, on Linux, one that
// notices when clients disconnect. Callers decide which frames exist, who may see them, and which frames a client missed before
// it opened the stream.
package sse

import (
	"bytes"
	"strings"
)

// Position is a position in the order of the frames of one user. The zero Position is before all frames.
type Position struct {
	At int64
	ID string
}

// After reports whether p is after q.
func (p Position) After(q Position) bool { return p.At > q.At || p.At == q.At && p.ID > q.ID }

// Frame is written to a stream as a whole. Shared may belong to the frames of many streams and must not be changed.
type Frame struct {
	Position Position // zero for frames that are not part of the order
	Own      []byte   // written before Shared
	Shared   []byte
}

func (f Frame) size() int { return len(f.Own) + len(f.Shared) }

// Event returns a whole frame. An empty id is omitted.
func Event(id, event string, data []byte) []byte {
	b := Begin(make([]byte, 0, len(id)+len(event)+len(data)+32), id, event)
	for i, line := range bytes.Split(bytes.ReplaceAll(data, []byte("\r"), nil), []byte("\n")) {
		if i > 0 {
			b = append(b, "data: "...)
		}
		b = append(append(b, line...), '\n')
	}
	return append(b, '\n')
}

// Begin appends the lines of a frame up to the name of the data field. It is for frames whose data is one line that consists of
// parts. [End] must follow the data.
func Begin(b []byte, id, event string) []byte {
	if id = clean(id); id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), clean(event)...), '\n')
	return append(b, "data: "...)
}

// End ends a frame that [Begin] began.
const End = "\n\n"

// Keepalive is a comment, which clients ignore. Writing it detects dead connections.
const Keepalive = ": keepalive\n\n"

// clean removes characters that would end the line of an id or a name, or invalidate the id.
func clean(s string) string {
	if !strings.ContainsAny(s, "\r\n\x00") {
		return s
	}
	return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s)
}
