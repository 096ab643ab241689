package sandbox

import (
	"encoding/binary"
	"fmt"
	"io"
)

// Parent and worker exchange frames: one byte for the type, four big-endian bytes for the length, and the payload.
const (
	frameRequest = 'q' // to the worker: the request about the file that follows
	frameFile    = 'f' // to the worker: the file
	frameReady   = 'r' // from the worker: it is confined and waits for a file
	framePart    = 'p' // from the worker: a part of the answer
	frameAnswer  = 'a' // from the worker: the last part

	frameHeader = 5

	maxRequest = 1 << 20
	maxFile    = 1 << 30 // far above every limit on uploads
)

func writeFrame(w io.Writer, kind byte, payload []byte) error {
	header := binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(payload)))
	if _, err := w.Write(header); err != nil {
		return err
	}
	_, err := w.Write(payload)
	return err
}

// readFrame reads a frame of at most limit bytes.
func readFrame(r io.Reader, limit int) (kind byte, payload []byte, err error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, nil, err
	}
	length := binary.BigEndian.Uint32(header[1:])
	if int64(length) > int64(limit) {
		return 0, nil, fmt.Errorf("frame of %d bytes exceeds the limit of %d", length, limit)
	}
	payload = make([]byte, length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return 0, nil, err
	}
	return header[0], payload, nil
}

// expectFrame reads a frame of one kind.
func expectFrame(r io.Reader, want byte, limit int) ([]byte, error) {
	kind, payload, err := readFrame(r, limit)
	if err == nil && kind != want {
		err = fmt.Errorf("frame of type %q, want %q", kind, want)
	}
	return payload, err
}
