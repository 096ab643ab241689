// Package sse writes event streams (HTML standard, section 9.2): frames, the head of the response, and a hub that keeps
// the open streams of all users and writes to them without waiting for any.
//
// A stream costs its connection, a goroutine that notices when the client leaves, and a few hundred bytes; writing is
// done by a handful of goroutines that all streams share. What it leaves to others: which frames there are, who may
// see them, and what was missed before the stream was opened.
package sse

import (
	"bytes"
	"strings"
)

// Position is a place in the order of the frames of one user. The zero Position comes before all.
type Position struct {
	At int64
	ID string
}

// After reports whether p comes behind q.
func (p Position) After(q Position) bool { return p.At > q.At || p.At == q.At && p.ID > q.ID }

// Frame is what is written to a stream at once. Shared may belong to the frames of many streams and must not change any
// more.
type Frame struct {
	Position Position // zero for frames that are not part of the order
	Own      []byte   // comes first
	Shared   []byte
}

func (f Frame) size() int { return len(f.Own) + len(f.Shared) }

// Event makes a whole frame. An empty id leaves it out.
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

// Begin appends the lines of a frame before its data and the name of the data field, for frames whose data is one line
// that is put together of parts. [End] must come behind the data.
func Begin(b []byte, id, event string) []byte {
	if id = clean(id); id != "" {
		b = append(append(append(b, "id: "...), id...), '\n')
	}
	b = append(append(append(b, "event: "...), clean(event)...), '\n')
	return append(b, "data: "...)
}

// End closes a frame that [Begin] began.
const End = "\n\n"

// Keepalive is a comment: clients pass over it, and a peer that is gone shows itself.
const Keepalive = ": keepalive\n\n"

// clean drops what would end the line of an id or a name, or the id as a whole.
func clean(s string) string {
	if !strings.ContainsAny(s, "\r\n\x00") {
		return s
	}
	return strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(s)
}
