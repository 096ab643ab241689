package audittrail

import (
	"context"
	"crypto/hmac"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/store/clock"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// The check value of the key and the signed head of the trail belong together: a database that has the present form of the
// one has the other, from its first start on, even when its trail is empty. So erasing the trail together with its head
// leaves a trace that cannot be removed without the key. In the same way, a check value with ringPrefix promises a keyring.

// keyState is what a database says about its master key.
type keyState int

const (
	keyUnset keyState = iota // no check value: an interrupted first start, or a value that was erased
	keyOld                   // a check value from before the head was bound to it
	keyBound                 // a check value that promises a signed head
	keyRing                  // a check value that promises a signed head and a keyring
)

// The rows of the table meta about the master key.
const (
	metaKeyCheck   = "key_check"
	metaKeyring    = "keyring"
	metaFormerKeys = "former_keys" // check values of replaced master keys, for the message to users of one
)

const (
	boundPrefix = "2." // leads the check value of a database that has a signed head
	ringPrefix  = "3." // and of one that also has a keyring
)

const checkPurpose = "key check"

// boundCheck returns the check value that recognises the master key and promises a signed head.
func boundCheck(keys *sealing.Keys) string {
	return fmt.Sprintf("%s%x", boundPrefix, keys.Sign(checkPurpose, []byte("kontor, with a signed head")))
}

// ringCheck returns the check value that also promises a keyring.
func ringCheck(keys *sealing.Keys) string {
	return fmt.Sprintf("%s%x", ringPrefix, keys.Sign(checkPurpose, []byte("kontor, with a keyring")))
}

// oldCheck returns the check value of databases from before boundCheck.
func oldCheck(keys *sealing.Keys) string {
	return hex.EncodeToString(keys.Sign(checkPurpose, []byte("kontor")))
}

// KeyCheckValue returns the check value of the master key of a database, or "" without one. It differs after a rotation.
func KeyCheckValue(ctx context.Context, q query.Querier) (value string) {
	if err := q.QueryRow(ctx, engine.SelectMeta, metaKeyCheck).Scan(&value); err != nil {
		return ""
	}
	return value
}

// recognise makes that candidate the master key which the database was made with, and opens its keyring.
func recognise(ctx context.Context, q query.Querier, keys *sealing.Keys, path string) (keyState, error) {
	var check string
	err := q.QueryRow(ctx, engine.SelectMeta, metaKeyCheck).Scan(&check)
	if errors.Is(err, engine.ErrNotFound) {
		return keyUnset, nil
	}
	if err != nil {
		return keyUnset, err
	}
	for candidate := range keys.Candidates() {
		if err := keys.Choose(candidate); err != nil {
			return keyUnset, err
		}
		switch {
		case hmac.Equal([]byte(check), []byte(ringCheck(keys))):
			return keyRing, loadKeyring(ctx, q, keys)
		case hmac.Equal([]byte(check), []byte(boundCheck(keys))):
			return keyBound, nil
		case hmac.Equal([]byte(check), []byte(oldCheck(keys))):
			return keyOld, nil
		}
	}
	if err := keys.Choose(0); err != nil {
		return keyUnset, err
	}
	return keyUnset, explainWrongKey(ctx, q, keys, path)
}

func loadKeyring(ctx context.Context, q query.Querier, keys *sealing.Keys) error {
	var wrapped string
	err := q.QueryRow(ctx, engine.SelectMeta, metaKeyring).Scan(&wrapped)
	if err == nil {
		err = keys.Load(wrapped)
	} else if errors.Is(err, engine.ErrNotFound) {
		err = errors.New("its keyring is missing")
	}
	if err != nil {
		return fmt.Errorf("%w: %w", engine.ErrCorrupt, err)
	}
	return nil
}

// formerKey is a master key that was replaced.
type formerKey struct {
	Checks []string   `json:"checks"` // what the check value of the database may have been
	At     clock.Time `json:"at"`
}

// explainWrongKey says whether the key was the right one before.
func explainWrongKey(ctx context.Context, q query.Querier, keys *sealing.Keys, path string) error {
	former, err := readFormerKeys(ctx, q)
	if err != nil {
		return err
	}
	for _, f := range former {
		for _, check := range f.Checks {
			if check == boundCheck(keys) || check == ringCheck(keys) {
				return fmt.Errorf("the secret key of %s was replaced at %s (kontor key rotate); use the new key: %w", path, f.At, sealing.ErrWrongKey)
			}
		}
	}
	return fmt.Errorf("%s was made with another secret key: %w", path, sealing.ErrWrongKey)
}

func readFormerKeys(ctx context.Context, q query.Querier) (former []formerKey, err error) {
	var text string
	err = q.QueryRow(ctx, engine.SelectMeta, metaFormerKeys).Scan(&text)
	if errors.Is(err, engine.ErrNotFound) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(text), &former)
	}
	return former, err
}

// StoreMasterKey writes the check value of a new master key and the keyring that it wraps. It fails if another process has
// replaced the present one.
func StoreMasterKey(ctx context.Context, tx Writer, present, next *sealing.Keys) error {
	check, _, err := readKeys(ctx, tx)
	if err != nil {
		return err
	}
	if !isCheckOf(present, check) {
		return errReplaced
	}
	former, err := readFormerKeys(ctx, tx)
	if err != nil {
		return err
	}
	former = append(former, formerKey{Checks: []string{boundCheck(present), ringCheck(present)}, At: tx.Now()})
	text, err := json.Marshal(former)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, engine.UpsertMeta, metaFormerKeys, string(text)); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, engine.UpsertMeta, metaKeyCheck, ringCheck(next)); err != nil {
		return err
	}
	return StoreKeyring(ctx, tx, next, *next.Keyring())
}

// StoreKeyring writes a keyring, wrapped by the master key.
func StoreKeyring(ctx context.Context, tx Writer, keys *sealing.Keys, keyring sealing.Keyring) error {
	wrapped, err := keys.Wrap(keyring)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, engine.UpsertMeta, metaKeyring, wrapped)
	return err
}

// IsMasterKey reports whether a database says that a key is its master key.
func IsMasterKey(ctx context.Context, q query.Querier, key []byte) (bool, error) {
	var check string
	if err := q.QueryRow(ctx, engine.SelectMeta, metaKeyCheck).Scan(&check); err != nil {
		return false, err
	}
	keys, err := sealing.New(key)
	return err == nil && (check == ringCheck(keys) || check == boundCheck(keys)), err
}

// Writer reads and writes, at one moment.
type Writer interface {
	query.Querier
	Exec(ctx context.Context, sql string, args ...any) (changed int64, err error)
}
