package continuous

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"kontor/store/backup"
	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/sealing"
)

// lineStatus is the content of line.age: who writes a line, and how far it has come. The writer stores it with each part, and from time
// to time without one, so that another server recognises that it is alive.
type lineStatus struct {
	backup.Origin            // of the newest part
	At            clock.Time `json:"at"` // of its state

	Writer string `json:"writer"`           // random for each start of a server
	Beat   int64  `json:"beat"`             // grows with each status of the writer
	Holder string `json:"holder,omitempty"` // the data directory, while the machine runs, see datadir.Mounted
	Ended  bool   `json:"ended,omitempty"`  // the writer has stopped in order
	// Displaced says that the incarnation began because another server wrote to the line of its ancestor.
	Displaced bool `json:"displaced,omitempty"`
	// Supersedes says up to which commit the operator has given up other lines, when they let this one continue them.
	Supersedes map[string]int64 `json:"supersedes,omitempty"`
	// ContinuedBy is the incarnation that the operator let continue the line. Its former server must not write to it.
	ContinuedBy string `json:"continued_by,omitempty"`
	// SupersedesSince is the elapsed time of this line at that moment.
	SupersedesSince time.Duration `json:"supersedes_since,omitempty"`
}

func lineName(incarnation string) string { return incarnation + "/" + lineFile }

const maxStatus = 1 << 20 // bytes

// readStatus returns the status of a line as it is stored, or nil without one.
func readStatus(ctx context.Context, t Target, incarnation string) ([]byte, error) {
	in, err := t.Get(ctx, lineName(incarnation))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", t, err)
	}
	defer in.Close()
	data, err := io.ReadAll(io.LimitReader(in, maxStatus))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read from %s: %w", t, err)
	}
	return data, nil
}

// openStatus opens a stored status. It returns nil if it does not open with the key, is damaged, or is of another line.
func (k Key) openStatus(incarnation string, data []byte) *lineStatus {
	if data == nil {
		return nil
	}
	plain, err := k.open(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	text, err := io.ReadAll(plain)
	s := &lineStatus{}
	if err != nil || json.Unmarshal(text, s) != nil || s.Incarnation != incarnation {
		return nil
	}
	return s
}

func (k Key) sealStatus(s lineStatus) ([]byte, error) {
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var sealed bytes.Buffer
	out, err := k.seal(&sealed)
	if err != nil {
		return nil, err
	}
	if _, err := out.Write(text); err != nil {
		return nil, err
	}
	err = out.Close()
	return sealed.Bytes(), err
}

// storeStatus stores the status of a line. It returns the stored form, also after an error: it may be stored all the same.
func storeStatus(ctx context.Context, t Target, key Key, status lineStatus) ([]byte, error) {
	sealed, err := key.sealStatus(status)
	if err != nil {
		return nil, err
	}
	if err := t.Put(ctx, lineName(status.Incarnation), int64(len(sealed)), bytes.NewReader(sealed)); err != nil {
		return sealed, fmt.Errorf("write to %s: %w", t, err)
	}
	return sealed, nil
}

// identify finds out whether the line opens with a key, and of which database it is: by its status, else by its newest whole part
// that opens.
func (l *Line) identify(ctx context.Context, t Target, key Key) error {
	if !l.Old {
		data, err := readStatus(ctx, t, l.ID)
		if err != nil {
			return err
		}
		if l.status = key.openStatus(l.ID, data); l.status != nil {
			l.Ours, l.Database, l.Ancestors = true, l.status.Database, l.status.Ancestors
			return nil
		}
	}
	for i := len(l.parts) - 1; i >= 0 && !l.Ours; i-- {
		if !l.parts[i].whole {
			continue
		}
		header, err := readHeader(ctx, t, key, l.parts[i])
		switch {
		case errors.Is(err, sealing.ErrWrongKey), errors.Is(err, engine.ErrCorrupt), errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		case l.Old:
			l.Ours = true
		case header.Origin != nil && header.Origin.Incarnation == l.ID:
			l.Ours, l.Database, l.Ancestors = true, header.Origin.Database, header.Origin.Ancestors
		}
	}
	return nil
}

func readHeader(ctx context.Context, t Target, key Key, p part) (h backup.Header, err error) {
	ctx, cancel := context.WithCancel(ctx) // the rest of the part is not downloaded
	defer cancel()
	in, err := t.Get(ctx, p.name())
	if err != nil {
		return h, err
	}
	plain, err := opened(key, in)
	if err != nil {
		return h, err
	}
	defer plain.Close()
	return backup.ReadHeader(plain)
}
