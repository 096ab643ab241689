package sealing

import (
	"crypto/cipher"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A sealed value begins with its form: 1 for generation 0, and 2 with the number of the generation for later ones.
const (
	firstForm = "1."
	laterForm = "2."
)

// SealedPrefix leads every value that is sealed with the newest generation, and no other one.
func (k *Keys) SealedPrefix() string { return prefix(k.Generation()) }

// IsNewest reports whether a value is sealed with the newest generation.
func (k *Keys) IsNewest(sealed string) bool { return strings.HasPrefix(sealed, k.SealedPrefix()) }

func prefix(generation int) string {
	if generation == 0 {
		return firstForm
	}
	return laterForm + strconv.Itoa(generation) + "."
}

// Seal encrypts a value with AES-256-GCM and binds it to a table, column and row. Unseal rejects it for any other place.
func (k *Keys) Seal(table, column, rowID string, plain []byte) string {
	g := k.current.Load().newest()
	return g.seal(g.aead, table, column, rowID, plain)
}

func (g *generation) seal(aead cipher.AEAD, table, column, rowID string, plain []byte) string {
	sealed := aead.Seal(nil, nil, plain, place(table, column, rowID))
	return prefix(g.number) + base64.RawURLEncoding.EncodeToString(sealed)
}

// Unseal decrypts a value that Seal made for the same place.
func (k *Keys) Unseal(table, column, rowID, sealed string) ([]byte, error) {
	plain, err := k.open(nil, place(table, column, rowID), sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}

// SealWith is Seal with a key that depends on a further secret. The value cannot be opened without that secret.
func (k *Keys) SealWith(further []byte, table, column, rowID string, plain []byte) (string, error) {
	g := k.current.Load().newest()
	aead, err := g.with(further)
	if err != nil {
		return "", err
	}
	return g.seal(aead, table, column, rowID, plain), nil
}

// UnsealWith decrypts a value that SealWith made for the same place with the same secret.
func (k *Keys) UnsealWith(further []byte, table, column, rowID, sealed string) ([]byte, error) {
	plain, err := k.open(further, place(table, column, rowID), sealed)
	if err != nil {
		return nil, fmt.Errorf("unseal %s.%s: %w", table, column, err)
	}
	return plain, nil
}

// with returns a cipher whose key depends on the generation and a further secret.
func (g *generation) with(further []byte) (cipher.AEAD, error) {
	return newAEAD(mac(g.sealing, append([]byte("kontor/further\x00"), further...)))
}

var (
	errForm = errors.New("unknown form")
	// ErrGeneration says that the keyring has no key for the generation of a value.
	ErrGeneration = errors.New("the key of its generation does not exist any more")
)

func (k *Keys) open(further, bound []byte, sealed string) ([]byte, error) {
	g, text, err := k.generationOf(sealed)
	if err != nil {
		return nil, err
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return nil, err
	}
	aead := g.aead
	if further != nil {
		if aead, err = g.with(further); err != nil {
			return nil, err
		}
	}
	return aead.Open(nil, nil, data, bound)
}

// generationOf returns the generation of a sealed value, and the rest of the text.
func (k *Keys) generationOf(sealed string) (*generation, string, error) {
	number := 0
	text, first := strings.CutPrefix(sealed, firstForm)
	if !first {
		rest, later := strings.CutPrefix(sealed, laterForm)
		digits, value, found := strings.Cut(rest, ".")
		var err error
		if number, err = strconv.Atoi(digits); !later || !found || err != nil || number <= 0 {
			return nil, "", errForm
		}
		text = value
	}
	for _, g := range k.current.Load().generations {
		if g.number == number && g.aead != nil {
			return g, text, nil
		}
	}
	return nil, "", ErrGeneration
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
