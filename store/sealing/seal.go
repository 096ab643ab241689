package sealing

import (
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"
)

// sealVersion leads every sealed value, so that another cipher can be introduced later.
const sealVersion = "1."

// Seal encrypts a value with AES-256-GCM and binds it to a table, column and row. Unseal rejects it for any other place.
func (k *Keys) Seal(table, column, rowID string, plain []byte) string {
	sealed := k.aead.Seal(nil, nil, plain, place(table, column, rowID))
	return sealVersion + base64.RawURLEncoding.EncodeToString(sealed)
}

// Unseal decrypts a value that Seal made for the same place.
func (k *Keys) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	text, ok := strings.CutPrefix(sealed, sealVersion)
	if !ok {
		return nil, fmt.Errorf("unseal %s.%s: unknown form", table, column)
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	plain, err := k.aead.Open(nil, nil, data, place(table, column, rowID))
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}

// place encodes a place so that no two places have the same bytes: each part is led by its length.
func place(parts ...string) []byte {
	var b []byte
	for _, p := range parts {
		b = binary.BigEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
	}
	return b
}
