package store

import (
	"crypto/rand"
)

// DataKeyBytes is the length of the key of [DB.SealWith].
const DataKeyBytes = 32

// NewDataKey returns a random key for [DB.SealWith]. Store it sealed by [DB.Seal].
func NewDataKey() []byte {
	key := make([]byte, DataKeyBytes)
	rand.Read(key) // never fails: it ends the program instead
	return key
}

// SealWith is Seal with a further key: without it, UnsealWith cannot decrypt the value. Deleting the key makes all values that
// were sealed with it unreadable.
func (db *DB) SealWith(key []byte, table, column, rowID string, plain []byte) (string, error) {
	db.Heavy("seal")
	return db.keys.SealWith(key, table, column, rowID, plain)
}

// UnsealWith decrypts a value that SealWith made for the same place with the same key.
func (db *DB) UnsealWith(key []byte, table, column, rowID, sealed string) ([]byte, error) {
	db.Heavy("unseal")
	return db.keys.UnsealWith(key, table, column, rowID, sealed)
}
