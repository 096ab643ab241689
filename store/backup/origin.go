package backup

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/inspect"
	"kontor/store/sqlite"
)

// Origin says which state of which database a part of a continuous backup holds, and which place it has among the other parts.
type Origin struct {
	// Database identifies the bank over all copies and restores: the hash of the first entry of its audit trail. It is empty
	// before that entry.
	Database string `json:"database"`
	sqlite.Lineage
	Commits int64  `json:"commits"`
	Seq     int64  `json:"audit_seq"` // the newest entry of the audit trail
	Hash    string `json:"audit_hash"`

	Chain   string        `json:"chain"`
	Number  int64         `json:"number"`
	Elapsed time.Duration `json:"elapsed"` // how long the incarnation was served; no clock that jumps changes it
}

// OriginOf returns the origin of a recording, without its place.
func OriginOf(ctx context.Context, taken *sqlite.Recording) (Origin, error) {
	o := Origin{Lineage: taken.Lineage, Commits: taken.Commits, Seq: taken.Head.Seq, Hash: hex.EncodeToString(taken.Head.Hash[:])}
	var err error
	if o.Database, err = audittrail.HashOf(ctx, taken.Source(), 1); errors.Is(err, engine.ErrNotFound) {
		err = nil
	}
	return o, err
}

// accept returns an error if a restored database is not the state of the origin.
func (o *Origin) accept(r inspect.Report) error {
	if o == nil || o.Commits == r.Commits && o.Seq == r.AuditEntries && (o.Seq == 0 || o.Hash == r.AuditHead) {
		return nil
	}
	return fmt.Errorf("%w: the database is at commit %d with the audit entry %d (%s), the backup says commit %d with the entry %d (%s)", engine.ErrCorrupt,
		r.Commits, r.AuditEntries, r.AuditHead, o.Commits, o.Seq, o.Hash)
}

// Continues reports whether a recording has an entry of the audit trail; entry 0 stands for an empty trail.
func Continues(ctx context.Context, taken *sqlite.Recording, seq int64, hash string) (bool, error) {
	if seq == 0 {
		return true, nil
	}
	found, err := audittrail.HashOf(ctx, taken.Source(), seq)
	if errors.Is(err, engine.ErrNotFound) {
		return false, nil
	}
	return found == hash, err
}

// Header is what a backup says about itself.
type Header struct {
	Origin    *Origin // nil for a backup of an earlier version, and for one that is not continuous
	CreatedAt clock.Time
	Whole     bool // no increment
}

func (m manifest) header() Header { return Header{m.Origin, m.CreatedAt, m.Base == ""} }

// ReadHeader reads only what a backup says about itself.
func ReadHeader(in io.Reader) (h Header, err error) {
	enough := errors.New("enough")
	_, err = read(in, content{manifest: func(m manifest) error {
		h = m.header()
		return enough
	}})
	if errors.Is(err, enough) {
		err = nil
	}
	return h, err
}
