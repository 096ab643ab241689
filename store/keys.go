package store

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"kontor/store/engine"
	"kontor/store/idempotency"
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
	return db.UnsealWith(nil, table, column, rowID, sealed)
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

// SealedColumn says where a module stores sealed values, so that a rotation of the master key can seal them again. The module
// registers it when it is built, and gives either Select and Update, or Next.
type SealedColumn struct {
	// Table and Column are those that [DB.Seal] is called with.
	Table, Column string
	// Select reads values that are not sealed with the newest key. Its columns are a text that orders the rows and is unique,
	// the row id that Seal was called with, and the sealed value. Its parameters are the pattern of values that it must not
	// return, the text of the last row that was read, and the largest number of rows.
	Select string
	// Update replaces a value if it has not changed. Its parameters are the text that orders the rows, and the old and the
	// new value.
	Update string
	// Next replaces Select and Update for values that need more. It reads at most limit values after a row.
	Next func(ctx context.Context, newest, after string, limit int) ([]SealedValue, error)
}

// SealedValue is a value that is not sealed with the newest key.
type SealedValue struct {
	// After is the text of the row that orders it.
	After string
	// Reseal prepares the new value outside of a transaction and returns the function that writes it. That function must
	// change nothing when the value has changed in the meantime. A nil function leaves the value as it is.
	Reseal func(ctx context.Context) (write func(ctx context.Context, tx *Tx) error, err error)
}

// sealedColumns are the registered columns.
type sealedColumns struct {
	mu      sync.RWMutex
	columns []SealedColumn
	known   map[[2]string]bool
}

// RegisterSealed registers a column with sealed values. Registering it again replaces the registration.
func (db *DB) RegisterSealed(c SealedColumn) {
	s := &db.sealed
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, other := range s.columns {
		if other.Table == c.Table && other.Column == c.Column {
			s.columns[i] = c
			return
		}
	}
	s.columns = append(s.columns, c)
	if s.known == nil {
		s.known = map[[2]string]bool{}
	}
	s.known[[2]string{c.Table, c.Column}] = true
}

// check returns an error for a column that a rotation would not reach.
func (s *sealedColumns) check(table, column string) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if !s.known[[2]string{table, column}] {
		return fmt.Errorf("%s.%s is sealed but not registered with RegisterSealed", table, column)
	}
	return nil
}

func (s *sealedColumns) all() []SealedColumn {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return append([]SealedColumn(nil), s.columns...)
}

// resealBatch is the number of values that one transaction replaces, so that other writes do not wait long.
const resealBatch = 50

// Resealed is the progress of sealing values again.
type Resealed struct {
	Table, Column string
	Values        int64 // of the column, so far
}

// reseal seals the values of all columns with the newest key, and returns how many there were.
func (db *DB) reseal(ctx context.Context, report func(Resealed)) (total int64, err error) {
	for _, c := range db.sealed.all() {
		progress := Resealed{Table: c.Table, Column: c.Column}
		err := db.eachSealed(ctx, c, func(values []SealedValue) error {
			written, err := db.resealValues(ctx, values)
			if err != nil {
				return fmt.Errorf("seal values of %s.%s: %w", c.Table, c.Column, err)
			}
			if written > 0 {
				progress.Values += written
				total += written
				report(progress)
			}
			return nil
		})
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

// eachSealed calls f with the values of a column that are not sealed with the newest key, a batch each time.
func (db *DB) eachSealed(ctx context.Context, c SealedColumn, f func(values []SealedValue) error) error {
	for after := ""; ; {
		values, err := db.nextSealed(ctx, c, after)
		if err != nil {
			return fmt.Errorf("read values of %s.%s: %w", c.Table, c.Column, err)
		}
		if len(values) == 0 {
			return nil
		}
		if err := f(values); err != nil {
			return err
		}
		after = values[len(values)-1].After
	}
}

// resealValues seals values and writes them in one transaction. It returns how many there were to write.
func (db *DB) resealValues(ctx context.Context, values []SealedValue) (int64, error) {
	writes := make([]func(context.Context, *Tx) error, 0, len(values))
	for _, v := range values {
		write, err := v.Reseal(ctx)
		if errors.Is(err, ErrNotFound) { // the row was deleted in the meantime
			continue
		}
		if err != nil {
			return 0, err
		}
		if write != nil {
			writes = append(writes, write)
		}
	}
	if len(writes) == 0 {
		return 0, nil
	}
	return int64(len(writes)), db.InTx(ctx, func(tx *Tx) error {
		for _, write := range writes {
			if err := write(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
}

// nextSealed reads the next values of a column that are not sealed with the newest key.
func (db *DB) nextSealed(ctx context.Context, c SealedColumn, after string) ([]SealedValue, error) {
	newest := db.keys.SealedPrefix() + "%"
	if c.Next != nil {
		return c.Next(ctx, newest, after, resealBatch)
	}
	return All(ctx, db, func(row Scanner) (SealedValue, error) {
		var order, rowID, sealed string
		err := row.Scan(&order, &rowID, &sealed)
		return SealedValue{After: order, Reseal: func(context.Context) (func(context.Context, *Tx) error, error) {
			plain, err := db.Unseal(c.Table, c.Column, rowID, sealed)
			if err != nil {
				return nil, err
			}
			resealed, err := db.Seal(c.Table, c.Column, rowID, plain)
			return func(ctx context.Context, tx *Tx) error {
				_, err := tx.Exec(ctx, c.Update, order, sealed, resealed)
				return err
			}, err
		}}, err
	}, c.Select, newest, after, resealBatch)
}

// sealedAnswers are the stored answers to repeated requests.
func (db *DB) sealedAnswers() SealedColumn {
	return SealedColumn{Table: "idempotency_keys", Column: "body", Next: func(ctx context.Context, newest, after string, limit int) ([]SealedValue, error) {
		found, err := idempotency.FindOld(ctx, db, newest, after, limit)
		var values []SealedValue
		for _, old := range found {
			values = append(values, SealedValue{After: old.After, Reseal: func(context.Context) (func(context.Context, *Tx) error, error) {
				if err := old.Reseal(db.keys); err != nil {
					return nil, err
				}
				return func(ctx context.Context, tx *Tx) error { return old.Write(ctx, tx) }, nil
			}})
		}
		return values, err
	}}
}

// On a shared database any node may replace the master key. The others are informed before the replacement is acknowledged, and go on
// with the new key if they were started with it. A node that was not must neither write nor answer.

// keysTopic is the topic of changes to the master key and the keyring.
const keysTopic = "store.keys"

// announceKeys makes other nodes follow a change of the keys.
func (tx *Tx) announceKeys() {
	if tx.db.Shared() {
		tx.Announce(tx.db.keysChanged, "")
	}
}

// followTries is how often changed keys are read before requests have to try.
const followTries = 3

// keysHaveChanged follows a change of the keys on any node.
func (db *DB) keysHaveChanged(string) {
	var err error
	for range followTries {
		if err = db.RenewKeys(context.Background()); err == nil || errors.Is(err, ErrWrongKey) || errors.Is(err, ErrClosed) {
			return
		}
	}
	db.log.Error("the keys of the database cannot be read; requests are rejected until the next successful try", "cause", err)
}

// KeysCurrent reports whether this process has the present keys of the database, after all announcements so far. While it
// returns false, requests must call RenewKeys.
func (db *DB) KeysCurrent() bool { return db.keysStale.Load() == nil }

// RenewKeys reads the keys of the database again, for a node that may have missed a change. It returns ErrWrongKey when another node
// has replaced the master key and this process was not started with the new one.
func (db *DB) RenewKeys(ctx context.Context) error {
	err := db.guard.Follow(ctx, db)
	if err == nil {
		db.keysStale.Store(nil)
		return nil
	}
	if before := db.keysStale.Swap(&err); errors.Is(err, ErrWrongKey) && (before == nil || !errors.Is(*before, ErrWrongKey)) {
		db.log.Error("the secret key was replaced by another node; start this node again with the new one in KONTOR_SECRET_KEY. Until then it rejects requests", "cause", err)
	}
	return err
}

// keysLost returns ErrWrongKey once the master key was replaced by one that this process does not have.
func (db *DB) keysLost() error {
	if err := db.keysStale.Load(); err != nil && errors.Is(*err, ErrWrongKey) {
		return *err
	}
	return nil
}

// missesKey reports whether a value could not be opened because another node has sealed it with keys that this one does not have
// yet. Then the keys are read again, and it is worth another try.
func (db *DB) missesKey(ctx context.Context, err error) bool {
	return errors.Is(err, sealing.ErrGeneration) && db.Shared() && !db.engine.InJob() && db.RenewKeys(ctx) == nil
}

// KeyState describes the keys of a database.
type KeyState struct {
	Generations []KeyGeneration // the oldest first
	Resealing   bool            // a rotation is not complete
	InFile      bool            // the master key is in the data directory
	Remaining   []Resealed      // values of former generations, by column
}

// KeyGeneration describes a generation of keys.
type KeyGeneration struct {
	Number    int
	CreatedAt Time // zero for the first one
	Opens     bool // values that were sealed with it can still be opened
}

// KeyState counts the values that are not sealed with the newest key.
func (db *DB) KeyState(ctx context.Context) (KeyState, error) {
	state := KeyState{Generations: []KeyGeneration{{Opens: true}}, InFile: db.givenKey == nil}
	ring := db.keys.Keyring()
	if ring == nil {
		return state, nil
	}
	state.Resealing, state.Generations = ring.Resealing, nil
	for _, g := range ring.Generations {
		one := KeyGeneration{Number: g.Number, Opens: g.Seals()}
		if !g.CreatedAt.IsZero() {
			one.CreatedAt = TimeOf(g.CreatedAt)
		}
		state.Generations = append(state.Generations, one)
	}
	for _, c := range db.sealed.all() {
		found := Resealed{Table: c.Table, Column: c.Column}
		err := db.eachSealed(ctx, c, func(values []SealedValue) error {
			found.Values += int64(len(values))
			return nil
		})
		if err != nil {
			return state, err
		}
		if found.Values > 0 {
			state.Remaining = append(state.Remaining, found)
		}
	}
	return state, nil
}
