package audittrail

import (
	"kontor/store/engine"
	"kontor/store/sealing"
)

// OldKeyCheck returns the check value of the key as databases had it before the head was bound to it.
func OldKeyCheck(master []byte) string { return oldCheck(keysOf(master)) }

// SignedHead returns the signed head of a trail that a test has written itself.
func SignedHead(master []byte, seq int64, hash [32]byte) string {
	return signHead(keysOf(master), engine.Anchor{Seq: seq, Hash: hash})
}

// MetaHead is the row of the table meta with the signed head.
const MetaHead = metaHead

func keysOf(master []byte) *sealing.Keys {
	keys, err := sealing.New(master)
	if err != nil {
		panic(err)
	}
	return keys
}

var _ engine.Guard = (*Guard)(nil)
