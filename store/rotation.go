package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/sealing"
)

// ErrRotating says that another rotation of the master key is running.
var ErrRotating = errors.New("a rotation of the master key is running already")

// A rotation of the master key has these steps. A kill after any of them leaves a database that opens with the key in the key
// file or with the one beside it, and the next start continues.
//
//  1. The new master key is written to secret.key.next.
//  2. One transaction stores its check value, and the keyring with a new generation, wrapped by the new key. From here on,
//     the former master key does not open the database.
//  3. secret.key.next is renamed to secret.key.
//  4. The head of the audit trail, the number of commits and the mark are signed with the new key. Then signatures of the
//     former one are not accepted any more.
//  5. Every sealed value is sealed with the new generation, in batches.
//  6. The keyring records that the rotation is complete. Some time later it loses the keys of values of former generations.

// Rotation is a request to replace the master key.
type Rotation struct {
	// SecretKey and PreviousKey are the new and the present master key of a database whose key is not in its directory. They
	// must be empty for others.
	SecretKey, PreviousKey string
	// Compromised says that the former key has leaked: access tokens from before are rejected.
	Compromised bool
	// Report receives the progress; nil for none.
	Report func(Resealed)
}

// RotateMasterKey replaces the master key and seals every value again. It works while the database is in use. If an earlier
// rotation is not complete, RotateMasterKey completes that one and returns resumed. It returns ErrRotating when another one
// is running.
func (db *DB) RotateMasterKey(ctx context.Context, r Rotation) (resumed bool, err error) {
	if !db.rotating.TryLock() {
		return false, ErrRotating
	}
	defer db.rotating.Unlock()
	if ring := db.keys.Keyring(); ring != nil && ring.Resealing {
		if r.Compromised && !ring.Compromised {
			distrust := func(ring sealing.Keyring) sealing.Keyring {
				ring.Compromised, ring.Announced = true, false
				return ring
			}
			if err := db.changeKeyring(ctx, "", distrust); err != nil {
				return true, err
			}
		}
		return !db.replacedAtStart, db.completeRotation(ctx, r.Report)
	}
	if db.givenKey != nil || r.SecretKey != "" {
		err = db.replaceGivenKey(ctx, r)
	} else {
		err = db.replaceKeyFile(ctx, r.Compromised)
	}
	if err != nil {
		return false, err
	}
	return false, db.completeRotation(ctx, r.Report)
}

// ResumeRotation completes a rotation that was interrupted, and removes keys that no value needs any more. Call it
// about once an hour.
func (db *DB) ResumeRotation(ctx context.Context) error {
	ring := db.keys.Keyring()
	if ring == nil || !ring.Resealing && !ring.Retirable() || !db.rotating.TryLock() {
		return nil
	}
	defer db.rotating.Unlock()
	if ring.Resealing {
		return db.completeRotation(ctx, nil)
	}
	return db.retireKeys(ctx)
}

// keysType is the record type of audit entries about the keys of the database.
const keysType = "keys"

// changeKeyring changes the keyring, also that of other nodes, and begins to use it. action is that of an audit entry; without one
// there is no entry.
func (db *DB) changeKeyring(ctx context.Context, action string, change func(sealing.Keyring) sealing.Keyring) error {
	var failed error
	err := db.InTx(ctx, func(tx *Tx) error {
		present, err := db.guard.PresentKeyring(ctx, tx)
		if err != nil {
			return err
		}
		ring := change(present)
		if _, err := audittrail.StoreKeyring(ctx, tx, db.keys, ring); err != nil {
			return err
		}
		if action != "" {
			tx.Audit(AuditEntry{Actor: NilID, Action: action, RecType: keysType, RecID: NilID})
		}
		tx.AfterCommit(func() { failed = db.guard.Adopt(func() error { return db.keys.Use(ring) }) })
		tx.announceKeys()
		return nil
	})
	return errors.Join(err, failed)
}

// maxPasses limits how often a rotation reads all sealed values. Values that concurrent requests have sealed with the
// former key after that are sealed again within the hour.
const maxPasses = 5

func (db *DB) completeRotation(ctx context.Context, report func(Resealed)) error {
	if report == nil {
		report = func(Resealed) {}
	}
	if err := db.resealAll(ctx, report); err != nil {
		return fmt.Errorf("the new secret key is in force, and values remain to be sealed with it; repeat the command: %w", err)
	}
	return nil
}

func (db *DB) resealAll(ctx context.Context, report func(Resealed)) error {
	if err := db.endReplacement(ctx); err != nil {
		return err
	}
	if err := db.announceReplacement(ctx); err != nil {
		return err
	}
	for range maxPasses {
		n, err := db.reseal(ctx, report)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
	}
	return db.changeKeyring(ctx, "keys.resealed", sealing.Keyring.Resealed)
}

// KeyReplaced describes a replacement of the master key to the functions of [DB.OnKeyReplaced].
type KeyReplaced struct {
	Compromised bool // nothing that was signed before it may be accepted
}

// OnKeyReplaced registers a function that each rotation of the master key calls before it seals values again. After an
// interruption it may be called twice. Register it before the database is used.
func (db *DB) OnKeyReplaced(f func(ctx context.Context, r KeyReplaced) error) {
	db.onReplaced = append(db.onReplaced, f)
}

func (db *DB) announceReplacement(ctx context.Context) error {
	ring := db.keys.Keyring()
	if ring.Announced {
		return nil
	}
	for _, f := range db.onReplaced {
		if err := f(ctx, KeyReplaced{Compromised: ring.Compromised}); err != nil {
			return err
		}
	}
	return db.changeKeyring(ctx, "", func(ring sealing.Keyring) sealing.Keyring {
		ring.Announced = true
		return ring
	})
}

// retireAfter exceeds the time for which a request can hold a value that was sealed before a rotation, and that for which
// answers to repeated requests are kept.
const retireAfter = 25 * time.Hour

// retireKeys removes the keys of values of former generations, when no value needs them any more.
func (db *DB) retireKeys(ctx context.Context) error {
	ring := db.keys.Keyring()
	newest := ring.Generations[len(ring.Generations)-1]
	if db.clock.Now().Sub(newest.CreatedAt) < retireAfter {
		return nil
	}
	n, err := db.reseal(ctx, func(Resealed) {})
	if err != nil || n > 0 {
		return err // the next run looks again
	}
	return db.changeKeyring(ctx, "keys.retired", sealing.Keyring.Retired)
}

// ForgetKeyed removes the keys of former generations for a keyed hash, so that KeyedOlder returns none. It does nothing while a
// rotation is running.
func (db *DB) ForgetKeyed(ctx context.Context, purpose string) error {
	ring := db.keys.Keyring()
	if ring == nil || !db.rotating.TryLock() {
		return nil
	}
	defer db.rotating.Unlock()
	if ring = db.keys.Keyring(); ring.Resealing {
		return nil
	}
	return db.changeKeyring(ctx, "", func(ring sealing.Keyring) sealing.Keyring { return ring.Without(purpose) })
}

// replaceKeyFile replaces the master key in the data directory.
func (db *DB) replaceKeyFile(ctx context.Context, compromised bool) error {
	if left, err := db.dir.ReadNextKey(); err != nil {
		return err
	} else if left != nil {
		is, err := audittrail.IsMasterKey(ctx, db, left)
		if err == nil && is {
			err = errors.New("an earlier rotation has not ended; restart the server to complete it")
		}
		if err != nil {
			return err
		}
	}
	master := sealing.NewMasterKey()
	if err := db.dir.WriteNextKey(master); err != nil {
		return err
	}
	err := db.replaceMasterKey(ctx, db.keys.Copy(), master, compromised)
	if err != nil && !errors.Is(err, ErrOutcomeUnknown) {
		return errors.Join(err, db.dir.Remove(datadir.NextKey))
	}
	return err
}

// replaceGivenKey replaces a master key that the operator keeps.
func (db *DB) replaceGivenKey(ctx context.Context, r Rotation) error {
	switch {
	case db.givenKey == nil:
		return fmt.Errorf("the secret key is in %s; leave KONTOR_SECRET_KEY out to rotate it", db.dir.File(datadir.Key))
	case r.SecretKey == "" || r.PreviousKey == "":
		return errors.New("the secret key comes from the environment: set the new one in KONTOR_SECRET_KEY and the present one in KONTOR_SECRET_KEY_PREVIOUS")
	}
	previous, err := sealing.ParseMasterKey(r.PreviousKey)
	if err != nil {
		return fmt.Errorf("KONTOR_SECRET_KEY_PREVIOUS: %w", err)
	}
	present := db.keys.Copy()
	if !present.IsMaster(previous) {
		return fmt.Errorf("KONTOR_SECRET_KEY_PREVIOUS is not the present secret key of %s: %w", db.path, ErrWrongKey)
	}
	master, err := sealing.ParseMasterKey(r.SecretKey)
	if err != nil {
		return fmt.Errorf("KONTOR_SECRET_KEY: %w", err)
	}
	if present.IsMaster(master) {
		return errors.New("KONTOR_SECRET_KEY is the present secret key; set a new one")
	}
	if err := db.replaceMasterKey(ctx, present, master, r.Compromised); err != nil {
		return err
	}
	db.givenKey = master
	return nil
}

// replaceMasterKey stores a new master key with a new generation of keys, and begins to use them. present is a copy of the keys that it
// replaces, because db.keys may follow another node at any moment. If that node has replaced them, its keyring must stay: values are
// sealed with it.
func (db *DB) replaceMasterKey(ctx context.Context, present *sealing.Keys, master []byte, compromised bool) error {
	next, err := sealing.New(master)
	if err != nil {
		return err
	}
	defer db.guard.Expect("")
	return db.InTx(ctx, func(tx *Tx) error {
		if err := audittrail.Renew(ctx, tx, present); err != nil {
			return err
		}
		if err := next.Use(present.Next(tx.Now().Std(), audittrail.PublicExportKey(present), compromised)); err != nil {
			return err
		}
		detail, err := json.Marshal(audittrail.RotateExportKey(present, next))
		if err != nil {
			return err
		}
		wrapped, err := audittrail.StoreMasterKey(ctx, tx, present, next)
		if err != nil {
			return err
		}
		db.guard.Expect(wrapped)
		tx.Audit(AuditEntry{Actor: NilID, Action: audittrail.ActionRotated, RecType: keysType, RecID: NilID, Detail: string(detail)})
		tx.AfterCommit(func() {
			_ = db.guard.Adopt(func() error { db.keys.Become(next); return nil })
		})
		tx.announceKeys()
		return nil
	})
}

// settleKey brings the key file and the signatures up to date with the database, after a start.
func (db *DB) settleKey(ctx context.Context) error {
	switch {
	case db.givenKey == nil || db.keys.Chosen() == 0:
	case len(db.Nodes()) > 1:
		db.log.Warn("the database has the secret key in KONTOR_SECRET_KEY_PREVIOUS, and other nodes use it; once every node was started with both keys, run \"kontor key rotate\"")
	default:
		db.log.Info("the secret key is being replaced by that in KONTOR_SECRET_KEY")
		if err := db.replaceMasterKey(ctx, db.keys.Copy(), db.givenKey, false); err != nil {
			return err
		}
		db.replacedAtStart = true
	}
	if db.givenKey == nil && db.keys.Chosen() == 0 && db.dir.Has(datadir.NextKey) {
		return db.dir.Remove(datadir.NextKey) // of a rotation that the database never had
	}
	return db.endReplacement(ctx)
}

// endReplacement puts the new key file into place, signs what the former master key has signed, and stops accepting that key.
func (db *DB) endReplacement(ctx context.Context) error {
	if db.givenKey == nil && db.dir.Has(datadir.NextKey) {
		if err := db.dir.Rename(datadir.NextKey, datadir.Key); err != nil {
			return fmt.Errorf("rename %s: %w", db.dir.File(datadir.NextKey), datadir.Cause(err))
		}
	}
	ring := db.keys.Keyring()
	if ring == nil || ring.Former == nil {
		return nil
	}
	if err := db.InTx(ctx, func(tx *Tx) error { return db.guard.SignAgain(ctx, tx.tx) }); err != nil {
		return err
	}
	return db.changeKeyring(ctx, "", sealing.Keyring.Replaced)
}
