package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"sync"

	"kontor/store/engine"
	"kontor/store/erasures"
	"kontor/store/fulltext"
)

// The types of the full-text search.
type (
	// TextDocument is what a search finds of a record, or of a part of one.
	TextDocument = fulltext.Document
	// TextSearch selects documents by their words.
	TextSearch = fulltext.Search
	// TextWords are words that must occur in one document.
	TextWords = fulltext.Words
	// TextMatch is a matching document.
	TextMatch = fulltext.Match
	// TextCondition is a part of a statement with its arguments.
	TextCondition = fulltext.Condition
	// TextProgress is how far the documents have come.
	TextProgress = fulltext.Progress
	// TextChange is a difference between stored documents and those that they should be.
	TextChange = fulltext.Change
	// Texts is how statements of the engine search the documents.
	Texts = engine.TextSearch
)

// TextTables are the tables of conditions.
var TextTables = fulltext.Tables

// TextRows are these tables with the column of the records that their rows decide about. They are those of a condition that is checked
// row by row.
var TextRows = fulltext.Rows

// TextFollower keeps the documents current.
type TextFollower struct {
	// Current returns when the documents contain everything that was committed before the call, or the reason why they do not.
	Current func(ctx context.Context) error
	// Erases reports whether an action removes personal data: the documents of the record are removed in the same transaction.
	Erases func(action string) bool
}

// SetTextFollower registers what keeps the documents current. Call it before the first write. Without it they stay as they are.
func (db *DB) SetTextFollower(f TextFollower) { db.texts = f }

// CurrentTexts waits until searches see everything that was committed before the call, and returns how statements search.
func (db *DB) CurrentTexts(ctx context.Context) (Texts, error) {
	if db.texts.Current != nil {
		if err := db.texts.Current(ctx); err != nil {
			return Texts{}, err
		}
	}
	return db.engine.Texts(), nil
}

// noteRemoval notes that the documents of a record are removed with the transaction: the record was deleted or erased. The
// follower writes what a later entry adds.
func (tx *Tx) noteRemoval(e AuditEntry, deleted bool) {
	if !fulltext.Known(e.RecType) || !deleted && (tx.db.texts.Erases == nil || !tx.db.texts.Erases(e.Action)) {
		return
	}
	tx.removals = append(tx.removals, [2]string{e.RecType, e.RecID})
}

// removeTexts removes the documents of deleted and erased records.
func (tx *Tx) removeTexts(ctx context.Context) error {
	for _, one := range tx.removals {
		if err := fulltext.Remove(ctx, tx.tx, one[0], one[1]); err != nil {
			return err
		}
	}
	return nil
}

// ReadTextProgress returns how far the documents have come; see [fulltext.ReadProgress].
func ReadTextProgress(ctx context.Context, q Querier) (alongTrail TextProgress, sources map[string]TextProgress, known bool, err error) {
	return fulltext.ReadProgress(ctx, q)
}

// CompareTexts returns what must be written so that the documents of a source with the ids are those given.
func CompareTexts(ctx context.Context, q Querier, source string, ids []string, documents []TextDocument) (TextChange, error) {
	return fulltext.Compare(ctx, q, source, ids, documents)
}

// BeginTexts records that the documents follow the trail after an entry.
func (tx *Tx) BeginTexts(ctx context.Context, seq int64) error {
	return fulltext.Begin(ctx, tx.tx, seq)
}

// AdvanceTexts writes changes with the progress after them; see [fulltext.Advance].
func (tx *Tx) AdvanceTexts(ctx context.Context, alongTrail, before, after TextProgress, changes []TextChange) (moved bool, err error) {
	return fulltext.Advance(ctx, tx.tx, alongTrail, before, after, changes)
}

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
