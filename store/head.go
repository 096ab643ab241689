package store

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"kontor/store/internal/sqlite"
)

// The check value of the key and the signed head of the audit trail belong together: a database that has the one in its
// present form has the other, from the first start on, even when its trail is empty. So erasing the trail with its head
// leaves something that nobody can make fit without the key.

// keyState is what a database says about its master key.
type keyState int

const (
	keyUnset keyState = iota // no check value: a first start that was cut off, or a value that was erased
	keyOld                   // a check value from before the head was bound to it
	keyBound                 // a check value that promises a signed head
)

// boundPrefix leads the check value of a database that has a signed head.
const boundPrefix = "2."

// boundCheck is stored in the database to recognise the master key, and to promise a signed head.
func (s *secrets) boundCheck() string {
	return fmt.Sprintf("%s%x", boundPrefix, s.keyed("key check", []byte("kontor, with a signed head")))
}

// checkKey compares the master key with the one that the database was made with. It returns ErrWrongKey.
func (s *secrets) checkKey(conn *sqlite.Conn, path string) (keyState, error) {
	var check string
	err := readKept(conn, selectMeta, []any{metaKeyCheck}, &check)
	switch {
	case errors.Is(err, ErrNotFound):
		return keyUnset, nil
	case err != nil:
		return keyUnset, explain(path, err)
	case hmac.Equal([]byte(check), []byte(s.boundCheck())):
		return keyBound, nil
	case hmac.Equal([]byte(check), []byte(s.check())):
		return keyOld, nil
	}
	return keyUnset, fmt.Errorf("%s was made with another secret key than the one given: %w", path, ErrWrongKey)
}

// ErrTampered says that somebody changed the database behind Kontor's back.
var ErrTampered = errors.New("tampered with")

// refuseTampered says in one line why the start is refused, and what to do.
func refuseTampered(path string, err error) error {
	return fmt.Errorf("%s was %w and was left as it is: %w; keep the file as evidence, run \"kontor check\", and restore a backup", path, ErrTampered, err)
}

// settle verifies the head of a database that must have one, and gives one to a database that cannot have one yet: a new
// one, or one of an earlier version whose trail is empty. Everything else without a head is refused: going on would sign
// whatever is left of the trail.
func (db *DB) settle(ctx context.Context, conn *sqlite.Conn, path string, state keyState) error {
	q := &View{reader: &reader{conn: conn}}
	if state == keyUnset {
		blank, err := isBlank(ctx, q)
		if err != nil {
			return explain(path, err)
		}
		if !blank {
			return refuseTampered(path, &AuditBreak{Reason: "the check value of the secret key is missing"})
		}
	} else if err := verifyHead(ctx, q, db.secrets); err != nil {
		if broken := (*AuditBreak)(nil); errors.As(err, &broken) {
			return refuseTampered(path, err)
		}
		return explain(path, err)
	}
	if state == keyBound {
		return nil
	}
	return db.bindHead(ctx, conn, q)
}

// bindHead stores the signed head and the check value that promises it, both or neither.
func (db *DB) bindHead(ctx context.Context, conn *sqlite.Conn, q Querier) error {
	if err := conn.Run(beginWrite); err != nil {
		return translate(err)
	}
	t := trail{}
	err := t.load(ctx, q)
	if err == nil {
		err = putMeta(conn, metaAuditHead, db.secrets.signHead(t.head))
	}
	if err == nil {
		err = putMeta(conn, metaKeyCheck, db.secrets.boundCheck())
	}
	if err == nil {
		err = translate(conn.Run(commit))
	}
	if err != nil && conn.InTransaction() {
		err = errors.Join(err, conn.Run(rollback))
	}
	return err
}

func putMeta(conn *sqlite.Conn, name, value string) error {
	s, err := conn.Prepare(upsertMeta)
	if err != nil {
		return translate(err)
	}
	_, _, err = start(s, []any{name, value})
	s.Reset()
	return err
}

const selectTableNames = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name <> 'goose_db_version'`

// isBlank reports whether a database has a schema and not a single row yet: its first start was cut off.
func isBlank(ctx context.Context, q Querier) (bool, error) {
	rows, err := q.Query(ctx, selectTableNames)
	if err != nil {
		return false, err
	}
	var names []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			rows.Close()
			return false, err
		}
		names = append(names, name)
	}
	if err := rows.Err(); err != nil {
		return false, err
	}
	for _, name := range names {
		var filled bool
		if err := q.QueryRow(ctx, `SELECT EXISTS (SELECT 1 FROM "`+name+`")`).Scan(&filled); err != nil || filled {
			return false, err
		}
	}
	return true, nil
}

const (
	selectFirstSeq = `SELECT COALESCE(MIN(seq), 1) FROM audit_entries`
	selectEntry    = `SELECT hash FROM audit_entries WHERE seq = $1`
)

// verifyHead compares the newest entry with the signed head, in the time that a start has for it. A walk along the whole
// trail is a matter of "kontor check".
func verifyHead(ctx context.Context, q Querier, s *secrets) error {
	var first int64
	if err := q.QueryRow(ctx, selectFirstSeq).Scan(&first); err != nil {
		return err
	}
	if first != 1 {
		return &AuditBreak{Seq: 1, Reason: "it is missing"}
	}
	var t trail
	if err := t.load(ctx, q); err != nil {
		return err
	}
	if t.head.seq > 0 {
		before := head{seq: t.head.seq - 1}
		if before.seq > 0 {
			var hash string
			err := q.QueryRow(ctx, selectEntry, before.seq).Scan(&hash)
			if errors.Is(err, ErrNotFound) {
				return &AuditBreak{Seq: before.seq, Reason: "it is missing"}
			}
			if err == nil {
				before.hash, err = parseHash(hash)
			}
			if err != nil {
				return err
			}
		}
		if _, err := walk(ctx, q, &before, 1); err != nil {
			return err
		}
	}
	return verifyEnd(ctx, q, s, t.head)
}

// verifyEnd compares the end of the chain with the head that was signed last. Without the key only the text of the head is
// compared, not its signature.
func verifyEnd(ctx context.Context, q Querier, s *secrets, last head) error {
	var signed string
	err := q.QueryRow(ctx, selectMeta, metaAuditHead).Scan(&signed)
	if errors.Is(err, ErrNotFound) {
		return missingHead(ctx, q, last)
	}
	if err != nil {
		return err
	}
	if s == nil && strings.HasPrefix(signed, headText(last)+" ") || s != nil && hmac.Equal([]byte(signed), []byte(s.signHead(last))) {
		return nil
	}
	var end head
	var hash, signature string
	if _, err := fmt.Sscanf(signed, "%d %s %s", &end.seq, &hash, &signature); err == nil && len(hash) == 2*sha256.Size && end.seq > last.seq {
		return &AuditBreak{Seq: last.seq + 1, Reason: fmt.Sprintf("it is missing; the trail was signed up to entry %d", end.seq)}
	}
	return &AuditBreak{Seq: last.seq, Reason: "it is not the one that was signed as the newest"}
}

// missingHead returns nil only for a database of an earlier version with an empty trail: those had no head.
func missingHead(ctx context.Context, q Querier, last head) error {
	var check string
	err := q.QueryRow(ctx, selectMeta, metaKeyCheck).Scan(&check)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return err
	}
	if err == nil && last.seq == 0 && !strings.HasPrefix(check, boundPrefix) {
		return nil
	}
	return &AuditBreak{Seq: last.seq, Reason: "its signed head is missing"}
}

// headText is what is signed of the end of the trail.
func headText(h head) string { return fmt.Sprintf("%d %x", h.seq, h.hash) }

// AuditUnguarded returns the triggers on the audit trail that are missing or were replaced: without them a statement can
// change or delete entries.
func (db *DB) AuditUnguarded(ctx context.Context) (missing []string, err error) {
	err = db.View(ctx, func(v *View) error {
		missing, err = unguarded(ctx, v)
		return err
	})
	return missing, err
}

// unguarded compares the triggers of the database with those that it should have.
func unguarded(ctx context.Context, q Querier) (missing []string, err error) {
	for _, want := range appendOnly {
		var text string
		err := q.QueryRow(ctx, selectTrigger, want.name).Scan(&text)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		if !slices.Equal(strings.Fields(text), strings.Fields(want.sql)) {
			missing = append(missing, want.name)
		}
	}
	return missing, nil
}

// guard puts the triggers in place, and reports those that were missing.
func guard(ctx context.Context, conn *sqlite.Conn) (missing []string, err error) {
	if missing, err = unguarded(ctx, &View{reader: &reader{conn: conn}}); err != nil {
		return nil, err
	}
	for _, t := range appendOnly {
		if !slices.Contains(missing, t.name) {
			continue
		}
		for _, sql := range []string{"DROP TRIGGER IF EXISTS " + t.name, t.sql} {
			if err := conn.Run(sql); err != nil {
				return nil, translate(err)
			}
		}
	}
	return missing, nil
}

// reportUnguarded leaves an audit entry about triggers that were missing: whoever dropped them had the means to change
// entries, and the walk along the trail shows whether they did.
func (db *DB) reportUnguarded(ctx context.Context, missing []string) error {
	db.log.Error("triggers that protect the audit trail were missing and are back; run \"kontor check\" to see whether entries were changed",
		"triggers", strings.Join(missing, ", "))
	return db.InTx(ctx, func(tx *Tx) error {
		tx.Audit(AuditEntry{Actor: NilID, Action: "audit.triggers_restored", RecType: "audit", RecID: NilID})
		return nil
	})
}
