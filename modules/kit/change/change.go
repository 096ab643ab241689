// Package change declares the events of the change feed, which the modules changes and webhooks share.
package change

import (
	"encoding/binary"
	"encoding/hex"
	"errors"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"kontor/store"
)

// Event says that a record has changed. It has no data of the record: receivers read it with their own rights.
type Event struct {
	ID        string     `json:"id" doc:"The same for every delivery of the event. Ids sort in the order of the commits, and are cursors."`
	Type      string     `json:"type" example:"customers.updated"`
	Timestamp store.Time `json:"timestamp" doc:"When the change was made."`
	RecType   string     `json:"rec_type" example:"customers"`
	RecID     string     `json:"rec_id" format:"-" example:"0193a7c4-5e2f-7b1a-9c3d-8f6e2a4b7c10" doc:"Id of the record. For a rate-limit rule this is its endpoint."`
	Version   int64      `json:"version" minimum:"1" example:"42" doc:"Grows with every event of a record: a receiver that keeps the highest can ignore older events."`
	Action    string     `json:"action" example:"customers.kyc_decide" doc:"The code of the change in the audit trail."`
	Actor     string     `json:"actor" format:"uuid" doc:"Id of the user or API key that made the change; the nil id for the service itself."`
	// Record is set where it was requested and the reader may read it.
	Record any `json:"record,omitzero" type:"any" example:"-" doc:"The record as it is now, as its own endpoint answers it, if the request includes records; missing if the caller may not read it or it no longer exists."`
}

// Payload returns the body of a delivery, as Standard Webhooks wants it: type and timestamp outside, the rest as data.
func (e Event) Payload() ([]byte, error) {
	data := struct {
		ID      string `json:"id"`
		RecType string `json:"rec_type"`
		RecID   string `json:"rec_id"`
		Version int64  `json:"version"`
		Action  string `json:"action"`
		Actor   string `json:"actor"`
		Record  any    `json:"record,omitzero"`
	}{e.ID, e.RecType, e.RecID, e.Version, e.Action, e.Actor, e.Record}
	return json.Marshal(struct {
		Type      string     `json:"type"`
		Timestamp store.Time `json:"timestamp"`
		Data      any        `json:"data"`
	}{e.Type, e.Timestamp, data}, json.Deterministic(true))
}

// Position is a place in the order of the commits: the number of an entry of the audit trail and the beginning of its hash. The
// hash distinguishes the entries of a database from those that another copy of it wrote after a restore.
type Position struct {
	Seq  int64
	Hash uint64 // the first 62 bits of the hash
}

const (
	hashBits = 62
	hashMask = 1<<hashBits - 1
)

// PositionOf returns the position of an entry with a hash in hexadecimal.
func PositionOf(seq int64, hash string) (Position, error) {
	first, err := hex.DecodeString(hash[:min(len(hash), 16)])
	if err != nil || len(first) != 8 {
		return Position{}, errors.New("an audit entry has no hash")
	}
	return Position{Seq: seq, Hash: binary.BigEndian.Uint64(first) >> (64 - hashBits)}, nil
}

// ID returns the position as a UUID of version 8 (RFC 9562, section 5.8): 60 bits of the number, 62 bits of the hash. The ids
// of a database sort by number.
func (p Position) ID() string {
	var id uuid.UUID
	seq := uint64(p.Seq) //nolint:gosec // numbers of entries are positive
	binary.BigEndian.PutUint64(id[:8], seq>>12<<16|0x8000|seq&0xfff)
	binary.BigEndian.PutUint64(id[8:], 1<<63|p.Hash&hashMask)
	return id.String()
}

// ParsePosition reads the id of an event.
func ParsePosition(text string) (p Position, ok bool) {
	id, err := uuid.Parse(text)
	if err != nil || len(text) != len(id.String()) || id.Version() != 8 || id.Variant() != uuid.RFC4122 {
		return Position{}, false
	}
	high, low := binary.BigEndian.Uint64(id[:8]), binary.BigEndian.Uint64(id[8:])
	p = Position{Seq: int64(high>>16<<12 | high&0xfff), Hash: low & hashMask} //nolint:gosec // 60 bits
	return p, p.Seq >= 0
}
