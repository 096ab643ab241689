package store

import (
	"crypto/hmac"
	"crypto/sha256"
	"sync"

	"kontor/store/erasures"
)

// Erasure is an entry of the ledger of erasures.
type Erasure = erasures.Entry

// ErrLedger says that the ledger of erasures is not authentic.
var ErrLedger = erasures.ErrLedger

// ledgerMu serialises the appends of a process. One process uses a data directory.
var ledgerMu sync.Mutex

// ledgerMAC is the keyed hash of the ledger of erasures.
func (db *DB) ledgerMAC(data []byte) []byte {
	mac := hmac.New(sha256.New, db.keys.DeriveFirst(erasures.Purpose, sha256.Size)) // it does not change with the master key
	mac.Write(data)
	return mac.Sum(nil)
}

// RecordErasures adds entries to the ledger of erasures and returns when they are durable. It skips entries that are recorded. A
// database that several nodes share has no ledger beside it: RecordErasures does nothing, and Erasures returns none.
func (db *DB) RecordErasures(added ...Erasure) error {
	if db.Shared() {
		return nil
	}
	ledgerMu.Lock()
	defer ledgerMu.Unlock()
	return erasures.Append(db.dir.File(erasures.Name), db.ledgerMAC, added...)
}

// Erasures returns the ledger of erasures. It returns ErrLedger for one that is not authentic.
func (db *DB) Erasures() ([]Erasure, error) {
	if db.Shared() {
		return nil, nil
	}
	ledgerMu.Lock()
	defer ledgerMu.Unlock()
	return erasures.Read(db.dir.File(erasures.Name), db.ledgerMAC)
}

// EncodeErasures returns a ledger of erasures to keep elsewhere.
func (db *DB) EncodeErasures(entries []Erasure) []byte { return erasures.Encode(db.ledgerMAC, entries) }

// ParseErasures returns the entries of a ledger. It returns ErrLedger for one that is not authentic: that was changed, or belongs
// to a database with another master key.
func (db *DB) ParseErasures(ledger []byte) ([]Erasure, error) {
	entries, _, err := erasures.Parse(ledger, db.ledgerMAC)
	return entries, err
}
