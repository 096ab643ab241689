package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/sealing"
)

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
	err := db.replaceMasterKey(ctx, master, compromised)
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
	if !db.keys.IsMaster(previous) {
		return fmt.Errorf("KONTOR_SECRET_KEY_PREVIOUS is not the present secret key of %s: %w", db.path, ErrWrongKey)
	}
	master, err := sealing.ParseMasterKey(r.SecretKey)
	if err != nil {
		return fmt.Errorf("KONTOR_SECRET_KEY: %w", err)
	}
	if db.keys.IsMaster(master) {
		return errors.New("KONTOR_SECRET_KEY is the present secret key; set a new one")
	}
	if err := db.replaceMasterKey(ctx, master, r.Compromised); err != nil {
		return err
	}
	db.givenKey = master
	return nil
}

// replaceMasterKey stores a new master key with a new generation of keys, and begins to use them.
func (db *DB) replaceMasterKey(ctx context.Context, master []byte, compromised bool) error {
	next, err := sealing.New(master)
	if err != nil {
		return err
	}
	if err := next.Use(db.keys.Next(db.clock.Now().UTC(), audittrail.PublicExportKey(db.keys), compromised)); err != nil {
		return err
	}
	detail, err := json.Marshal(audittrail.RotateExportKey(db.keys, next))
	if err != nil {
		return err
	}
	db.guard.Expect(next)
	defer db.guard.Expect(nil)
	return db.InTx(ctx, func(tx *Tx) error {
		if err := audittrail.StoreMasterKey(ctx, tx, db.keys, next); err != nil {
			return err
		}
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
		if err := db.replaceMasterKey(ctx, db.givenKey, false); err != nil {
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
