package list

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"kontor/server/apierr"
)

// A cursor says after which row a page begins, by the values that the row is sorted by. So it stays right when rows are inserted,
// deleted or moved: no row is repeated or left out that keeps its place. It is encrypted, because the values may be those of a
// person, and bound to list, search and sort. It never widens what a caller may see. A rotation of the master key ends it.

// Keyring derives the keys of cursors, as *store.DB does.
type Keyring interface {
	Keyed(purpose string, data []byte) []byte
}

const (
	cursorKey   = "list cursor key"
	cursorNonce = "list cursor nonce"
	nonceBytes  = 12

	// maxCursor bounds the length of a cursor: a folded name and an id, with room for several sorted fields.
	maxCursor = 8000
	// bindingBytes is the length of the digest that binds a cursor to its list.
	bindingBytes = 8
)

// binding returns the digest of what a cursor belongs to.
func (q *query) binding(v view, p Params) []byte {
	var space [512]byte
	text := append(append(space[:0], q.name...), terms(v.orders)...)
	if v.distinct != nil {
		text = append(append(text, " distinct "...), v.distinct.Name...)
	}
	if p.text != nil {
		text = appendArg(text, fmt.Sprint(p.text.Any))
	}
	for _, s := range p.search {
		text = appendArg(text, s.name)
		for _, value := range s.values {
			text = appendArg(text, value)
		}
		text = appendArg(text, s.null)
	}
	digest := sha256.Sum256(text)
	return digest[:bindingBytes:bindingBytes]
}

// seal returns the cursor after a row with these values. The same row has the same cursor, so that answers keep their ETag.
func seal(keys Keyring, bound []byte, values []any) (string, error) {
	gcm, err := cursorCipher(keys)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(values)
	if err != nil {
		return "", err
	}
	plain := append(bound, text...)
	nonce := keys.Keyed(cursorNonce, plain)[:nonceBytes:nonceBytes]
	return base64.RawURLEncoding.EncodeToString(gcm.Seal(nonce, nonce, plain, nil)), nil
}

// unseal returns the values of a cursor. It returns false for a text that is no cursor of this list, search and sort.
func unseal(keys Keyring, cursor string, bound []byte, n int) ([]any, bool) {
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	if err != nil || len(sealed) < nonceBytes {
		return nil, false
	}
	gcm, err := cursorCipher(keys)
	if err != nil {
		return nil, false
	}
	plain, err := gcm.Open(nil, sealed[:nonceBytes], sealed[nonceBytes:], nil)
	if err != nil || !bytes.HasPrefix(plain, bound) {
		return nil, false
	}
	var encoded []jsontext.Value
	if json.Unmarshal(plain[len(bound):], &encoded) != nil || len(encoded) != n {
		return nil, false
	}
	values := make([]any, n)
	for i, text := range encoded {
		if values[i], err = unsealedValue(text); err != nil {
			return nil, false
		}
	}
	return values, true
}

func unsealedValue(text jsontext.Value) (any, error) {
	switch text.Kind() {
	case 'n':
		return nil, nil
	case '0':
		var n int64
		err := json.Unmarshal(text, &n)
		return n, err
	case 't', 'f':
		return text.Kind() == 't', nil
	}
	var s string
	err := json.Unmarshal(text, &s)
	return s, err
}

func cursorCipher(keys Keyring) (cipher.AEAD, error) {
	block, err := aes.NewCipher(keys.Keyed(cursorKey, nil))
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// parseCursor takes over the parameter. Its content is verified when rows are read.
func parseCursor(s string, problems *apierr.Fields) string {
	if len(s) > maxCursor {
		problems.Add("cursor", "invalid.cursor")
		return ""
	}
	return s
}

func wrongCursor() error {
	var problems apierr.Fields
	problems.Add("cursor", "invalid.cursor")
	return problems.Err()
}

// segments returns conditions of which each row after a row with these values meets exactly one. Together with the order, each can
// be read from an index. Their arguments are added to b.
func segments(b *builder, orders []order, values []any) []string {
	places := make([]string, len(values))
	for i, value := range values {
		if value != nil {
			places[i] = b.part(func(part *builder) { part.arg(value) })
		}
	}
	if uniform(orders) {
		sign := " > "
		if orders[0].descending {
			sign = " < "
		}
		columns := make([]string, len(orders))
		for i, o := range orders {
			columns[i] = o.column
		}
		return []string{"(" + strings.Join(columns, ", ") + ")" + sign + "(" + strings.Join(places, ", ") + ")"}
	}
	var all []string
	equal := ""
	for i, o := range orders {
		for _, beyond := range o.beyond(places[i]) {
			all = append(all, equal+beyond)
		}
		if places[i] == "" {
			equal += o.column + " IS NULL AND "
		} else {
			equal += o.column + " = " + places[i] + " AND "
		}
	}
	return all
}

// uniform reports whether rows can be compared as a whole.
func uniform(orders []order) bool {
	for _, o := range orders {
		if o.null || o.descending != orders[0].descending {
			return false
		}
	}
	return true
}

// beyond returns the conditions that a column comes after a value in the order; an empty place stands for NULL, the smallest value.
func (o order) beyond(place string) []string {
	switch {
	case !o.descending && place == "":
		return []string{o.column + " IS NOT NULL"}
	case !o.descending:
		return []string{o.column + " > " + place}
	case place == "":
		return nil
	case o.null:
		return []string{o.column + " < " + place, o.column + " IS NULL"}
	default:
		return []string{o.column + " < " + place}
	}
}
