package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"kontor/store/internal/sqlite"
)

// CheckReport tells what a check looked at.
type CheckReport struct {
	Schema       int64
	Bytes        int64
	AuditEntries int64
	// KeyChecked says that the master key was there: without it the signature of the newest audit entry
	// is not looked at.
	KeyChecked bool
	// MarkChecked says that the database was compared with the mark beside it.
	MarkChecked bool
}

// Check looks through the whole database in o.Dir: its pages and indexes, its references, the master
// key and the audit trail. It changes nothing and works beside a process that uses the database. The
// error says what is wrong first; it is ErrCorrupt, ErrWrongKey or an *AuditBreak.
func Check(ctx context.Context, o Options) (CheckReport, error) {
	d := &directory{path: o.Dir}
	key, err := d.existingKey(o.SecretKey)
	if err != nil {
		return CheckReport{}, err
	}
	marked, err := d.findMark(key)
	if err != nil {
		return CheckReport{}, err
	}
	report, err := checkFile(ctx, d.file(databaseName), key)
	if err == nil && marked != nil {
		report.MarkChecked = true
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

// checkFile checks one database file, which may be in use.
func checkFile(ctx context.Context, path string, key *secrets) (report CheckReport, err error) {
	conn, info, err := openExisting(path)
	if err != nil {
		return report, err
	}
	defer conn.Close()
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
		if report.KeyChecked, err = key.checkKey(conn, path); err != nil {
			return report, err
		}
	}
	if err := unlessUnread(conn, checkIntegrity(ctx, v)); err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	if err := checkReferences(ctx, v); err != nil {
		return report, fmt.Errorf("%s: %w", path, err)
	}
	report.AuditEntries, err = verifyTrail(ctx, v, key)
	return report, err
}

// openExisting opens a database file for reading, without the lock of its directory.
func openExisting(path string) (*sqlite.Conn, fs.FileInfo, error) {
	info, err := os.Stat(path)
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
	return conn, info, nil
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
