package store

import (
	"context"
	"fmt"

	"kontor/store/engine"
	"kontor/store/sealing"
)

// Keyed returns the HMAC-SHA-256 of data under a key of its own for the purpose. It recognises a value that must not be
// stored. A rotation of the master key changes it.
func (db *DB) Keyed(purpose string, data []byte) []byte { return db.keys.Keyed(purpose, data) }

// KeyedOlder returns what Keyed returned before rotations, the newest first. The purpose must be in [sealing.Retained].
func (db *DB) KeyedOlder(purpose string, data []byte) [][]byte {
	return db.keys.KeyedOlder(purpose, data)
}

// FirstKey returns n bytes that depend on the first master key and the purpose alone. ok is false once that key was replaced.
func (db *DB) FirstKey(purpose string, n int) (key []byte, ok bool) {
	if db.keys.Keyring() != nil {
		return nil, false
	}
	return db.keys.DeriveMaster("derive/"+purpose, n), true
}

// KeyGeneration returns the number of rotations of the master key.
func (db *DB) KeyGeneration() int { return db.keys.Generation() }

// Seal encrypts a value with AES-256-GCM and binds it to a table, column and row. Unseal rejects it for any other place. The
// column must be registered, see [DB.RegisterSealed].
func (db *DB) Seal(table, column, rowID string, plain []byte) (string, error) {
	if err := db.sealed.check(table, column); err != nil {
		return "", err
	}
	db.Heavy("seal")
	return db.keys.Seal(table, column, rowID, plain), nil
}

// Unseal decrypts a value that Seal made for the same place.
func (db *DB) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	db.Heavy("unseal")
	plain, err := db.keys.Unseal(table, column, rowID, sealed)
	if db.missesKey(context.Background(), err) {
		plain, err = db.keys.Unseal(table, column, rowID, sealed)
	}
	return plain, err
}

// IsNewest reports whether a value is sealed with the newest key.
func (tx *Tx) IsNewest(sealed string) bool { return tx.db.keys.IsNewest(sealed) }

// Reseal returns a value that Seal made before the transaction. It seals the value again when the keys have changed since then.
func (tx *Tx) Reseal(table, column, rowID, sealed string) (string, error) {
	if tx.IsNewest(sealed) {
		return sealed, nil
	}
	plain, err := tx.db.Unseal(table, column, rowID, sealed)
	if err != nil {
		return "", err
	}
	return tx.db.Seal(table, column, rowID, plain)
}

// SealWith is Seal with a key that also depends on a further secret. Destroying the secret destroys the value.
func (db *DB) SealWith(further []byte, table, column, rowID string, plain []byte) (string, error) {
	if err := db.sealed.check(table, column); err != nil {
		return "", err
	}
	db.Heavy("seal")
	return db.keys.SealWith(further, table, column, rowID, plain)
}

// UnsealWith decrypts a value that SealWith made for the same place with the same secret.
func (db *DB) UnsealWith(further []byte, table, column, rowID, sealed string) ([]byte, error) {
	db.Heavy("unseal")
	plain, err := db.keys.UnsealWith(further, table, column, rowID, sealed)
	if db.missesKey(context.Background(), err) {
		plain, err = db.keys.UnsealWith(further, table, column, rowID, sealed)
	}
	return plain, err
}

// metaUnshown is the row of the table meta with sealed secrets of the first start that were not shown yet.
const metaUnshown = "unshown"

// sealedUnshown is the sealed row of the table meta.
var sealedUnshown = SealedColumn{
	Table: "meta", Column: "value",
	Select: `SELECT name, name, value FROM meta WHERE name = 'unshown' AND value NOT LIKE $1 AND name > $2 ORDER BY name LIMIT $3`,
	Update: `UPDATE meta SET value = $3 WHERE name = $1 AND value = $2`,
}

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

// CheckSecretKeys reports whether the master key and the one before it have a valid form. An empty text stands for the key in
// the data directory.
func CheckSecretKeys(key, previous string) error {
	for _, k := range []struct{ name, text string }{{"KONTOR_SECRET_KEY", key}, {"KONTOR_SECRET_KEY_PREVIOUS", previous}} {
		if k.text == "" {
			continue
		}
		if _, err := sealing.ParseMasterKey(k.text); err != nil {
			return fmt.Errorf("%s: %w", k.name, err)
		}
	}
	return nil
}

// BackupKey returns 32 bytes that encrypt continuous backups. They change when the master key is replaced.
func (db *DB) BackupKey() []byte { return db.keys.BackupKey() }
