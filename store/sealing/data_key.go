package sealing

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"
)

// dataKeyVersion leads every value that was sealed with a data key.
const dataKeyVersion = "d1."

// withDataKey returns a cipher whose key depends on the master key and on a data key.
func (k *Keys) withDataKey(dataKey []byte) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, dataKey, k.Derive("data key", sha256.Size), "kontor/seal with data key", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// SealWith is Seal with a further key. Without it, the value cannot be decrypted.
func (k *Keys) SealWith(dataKey []byte, table, column, rowID string, plain []byte) (string, error) {
	aead, err := k.withDataKey(dataKey)
	if err != nil {
		return "", err
	}
	return dataKeyVersion + base64.RawURLEncoding.EncodeToString(aead.Seal(nil, nil, plain, place(table, column, rowID))), nil
}

// UnsealWith decrypts a value that SealWith made for the same place with the same key. It also decrypts values that Seal made
// for the place, before there were data keys.
func (k *Keys) UnsealWith(dataKey []byte, table, column, rowID, sealed string) ([]byte, error) {
	text, ok := strings.CutPrefix(sealed, dataKeyVersion)
	if !ok {
		return k.Unseal(table, column, rowID, sealed)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	aead, err := k.withDataKey(dataKey)
	if err != nil {
		return nil, err
	}
	plain, err := aead.Open(nil, nil, data, place(table, column, rowID))
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}
