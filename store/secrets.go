package store

import (
	"context"

	"kontor/store/engine"

	"kontor/store/sealing"
)

// DeriveKey returns n bytes that depend on this database's master key and the purpose alone.
func (db *DB) DeriveKey(purpose string, n int) []byte { return db.keys.Derive("derive/"+purpose, n) }

// Keyed returns the HMAC-SHA-256 of data under a key of its own for the purpose. It recognises a value that must not be
// stored.
func (db *DB) Keyed(purpose string, data []byte) []byte { return db.keys.Keyed(purpose, data) }

// Seal encrypts a value with AES-256-GCM and binds it to a table, column and row. Unseal rejects it for any other place.
func (db *DB) Seal(table, column, rowID string, plain []byte) (string, error) {
	db.Heavy("seal")
	return db.keys.Seal(table, column, rowID, plain), nil
}

// Unseal decrypts a value that Seal made for the same place.
func (db *DB) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	db.Heavy("unseal")
	return db.keys.Unseal(table, column, rowID, sealed)
}

// metaUnshown is the row of the table meta with sealed secrets of the first start that were not shown yet.
const metaUnshown = "unshown"

// KeepUnshown stores, sealed, what a first start has created and not shown yet, with the transaction that creates it.
func (tx *Tx) KeepUnshown(ctx context.Context, plain []byte) error {
	sealed, err := tx.db.Seal("meta", "value", metaUnshown, plain)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, engine.UpsertMeta, metaUnshown, sealed)
	return err
}

// Unshown returns what KeepUnshown stored, or ErrNotFound when it was shown or never created.
func (db *DB) Unshown(ctx context.Context) ([]byte, error) {
	var sealed string
	if err := db.QueryRow(ctx, engine.SelectMeta, metaUnshown).Scan(&sealed); err != nil {
		return nil, err
	}
	return db.Unseal("meta", "value", metaUnshown, sealed)
}

// Shown deletes what KeepUnshown stored.
func (db *DB) Shown(ctx context.Context) error {
	return db.InTx(ctx, func(tx *Tx) error {
		_, err := tx.Exec(ctx, engine.DeleteMeta, metaUnshown)
		return err
	})
}

// CheckSecretKey reports whether a master key has a valid form. An empty text stands for the key in the data directory.
func CheckSecretKey(text string) error {
	if text == "" {
		return nil
	}
	_, err := sealing.ParseMasterKey(text)
	return err
}
