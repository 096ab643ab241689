package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	lib "modernc.org/sqlite/lib"

	"kontor/store/internal/sqlite"
)

// CheckReport tells what a check looked at.
type CheckReport struct {
	Schema       int64
	Bytes        int64
	AuditEntries int64
	// Pages is how many pages were compared with their checksums; 0 for a database from before there were any.
	Pages int64
	// KeyChecked says that the master key was there: without it the signature of the newest audit entry
	// is not looked at.
	KeyChecked bool
	// MarkChecked says that the database was compared with the mark beside it.
	MarkChecked bool
}

// Check looks through the whole database in o.Dir: its pages and indexes, its references, the master
// key and the audit trail. It changes nothing and works beside a process that uses the database. The
// error says what is wrong first; it is ErrCorrupt, ErrWrongKey or an *AuditBreak.
func Check(ctx context.Context, o Options) (CheckReport, error) { return CheckWith(ctx, o, nil) }

// CheckWith is [Check] with a further check of the same state of the database, for what only the modules know. It comes
// last, and only when the key is there.
func CheckWith(ctx context.Context, o Options, further func(context.Context, *Evidence) error) (CheckReport, error) {
	d := &directory{path: o.Dir}
	key, err := d.existingKey(o.SecretKey)
	if err != nil {
		return CheckReport{}, err
	}
	marked, err := d.findMark(key)
	if err != nil {
		return CheckReport{}, err
	}
	report, err := checkFile(ctx, d.file(databaseName), key, further)
	if errors.Is(err, ErrCorrupt) && key != nil {
		err = nameChange(ctx, d.file(databaseName), key, further, err)
	}
	if err == nil && key != nil && report.Schema > 0 {
		report.MarkChecked = marked != nil
		err = d.checkMark(marked, key)
	}
	return report, err
}

// existingKey finds the master key without making one; nil when there is none.
func (d *directory) existingKey(given string) (*secrets, error) {
	key, err := d.masterKey(given, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return newSecrets(key)
}

// nameChange adds to what is wrong with a page what differs from the audit trail, if the database can be read without its
// checksums: a program that writes the file without them leaves such pages.
func nameChange(ctx context.Context, path string, key *secrets, further func(context.Context, *Evidence) error, damage error) error {
	conn, info, err := openExisting(path)
	if err != nil {
		return damage
	}
	defer conn.Close()
	conn.IgnoreChecksums()
	_, err = checkConn(ctx, conn, info, path, key, further)
	if err == nil || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrIO) || ctx.Err() != nil {
		return damage
	}
	return fmt.Errorf("%w; the file differs from the audit trail: %w", damage, err)
}

// checkFile checks one database file, which may be in use.
func checkFile(ctx context.Context, path string, key *secrets, further func(context.Context, *Evidence) error) (report CheckReport, err error) {
	conn, info, err := openExisting(path)
	if err != nil {
		return report, err
	}
	defer conn.Close()
	return checkConn(ctx, conn, info, path, key, further)
}

func checkConn(
	ctx context.Context, conn *sqlite.Conn, info fs.FileInfo, path string, key *secrets, further func(context.Context, *Evidence) error,
) (report CheckReport, err error) {
	report.Bytes = info.Size()
	conn.SetContext(ctx)
	// One state for all that is looked at.
	if err := conn.Run(beginRead); err != nil {
		return report, explain(path, translate(err))
	}
	v := &View{reader: &reader{conn: conn}}
	if report.Schema, err = schemaVersion(conn); err != nil {
		return report, explain(path, err)
	}
	if key != nil {
		if err := checkKeyValue(ctx, v, key, path); err != nil {
			return report, err
		}
		report.KeyChecked = true
	}
	if err := checkPages(ctx, conn, &report); err != nil {
		return report, explain(path, err)
	}
	if err := unlessUnread(conn, checkIntegrity(ctx, v)); err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkReferences(ctx, v); err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	if report.AuditEntries, err = verifyTrail(ctx, v, key); err != nil {
		return report, err
	}
	missing, err := unguarded(ctx, v)
	if err == nil && len(missing) > 0 {
		err = &AuditBreak{Reason: "the triggers that protect it are missing: " + strings.Join(missing, ", ")}
	}
	if err != nil || key == nil || further == nil {
		return report, err
	}
	return report, further(ctx, &Evidence{View: v, secrets: key})
}

// checkKeyValue compares the key with the check value that every database has whose first start came to its end.
func checkKeyValue(ctx context.Context, v *View, key *secrets, path string) error {
	state, err := key.checkKey(v.reader.conn, path)
	if err != nil || state != keyUnset {
		return err
	}
	blank, err := isBlank(ctx, v)
	if err == nil && !blank {
		err = &AuditBreak{Reason: "the check value of the secret key is missing"}
	}
	return err
}

// openExisting opens a database file for reading, without the lock of its directory.
func openExisting(path string) (*sqlite.Conn, fs.FileInfo, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, (&directory{path: filepath.Dir(path)}).missing()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("%s cannot be read: %w", path, cause(err))
	}
	if info.Size() == 0 {
		return nil, nil, emptyDatabase(path)
	}
	conn, err := connect(path, sqlite.ReadOnly, nil)
	if err != nil {
		return nil, nil, explain(path, err)
	}
	if isClosed(path) && cannotOpen(conn.Run("PRAGMA schema_version")) {
		// The engine wants to make a log, and nobody can write here.
		conn.Close()
		if conn, err = connect(path, sqlite.Immutable, nil); err != nil {
			return nil, nil, explain(path, err)
		}
	}
	return conn, info, nil
}

// isClosed reports whether a database has no log, so that all of it is in its file.
func isClosed(path string) bool {
	log, err := os.Stat(path + logSuffix)
	return errors.Is(err, fs.ErrNotExist) || err == nil && log.Size() == 0
}

func cannotOpen(err error) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && (e.Primary() == lib.SQLITE_CANTOPEN || e.Primary() == lib.SQLITE_READONLY)
}

// checkPages compares every page with its checksum, also those that no table uses.
func checkPages(ctx context.Context, conn *sqlite.Conn, report *CheckReport) (err error) {
	report.Pages, err = conn.VerifyPages(ctx)
	if damaged := (*sqlite.PageError)(nil); errors.As(err, &damaged) {
		return fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return translate(err)
}

func checkIntegrity(ctx context.Context, q Querier) error {
	var verdict string
	if err := q.QueryRow(ctx, "PRAGMA integrity_check(1)").Scan(&verdict); err != nil {
		return err
	}
	return judge(verdict)
}

func checkReferences(ctx context.Context, q Querier) error {
	var table, parent string
	var row *int64
	var rule int
	err := q.QueryRow(ctx, "PRAGMA foreign_key_check").Scan(&table, &row, &parent, &rule)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	where := ""
	if row != nil {
		where = fmt.Sprintf(" (row %d)", *row)
	}
	return fmt.Errorf("%w: a row of %s%s points to a row of %s that is missing", ErrCorrupt, table, where, parent)
}
