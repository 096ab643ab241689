// Package inspect reads a database without opening it: it checks a database, and exports its audit trail.
//
// It changes nothing and works beside a process that uses the database.
package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"kontor/store/audittrail"
	"kontor/store/clock"
	"kontor/store/datadir"
	"kontor/store/engine"
	"kontor/store/postgres"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// Source says where a database is.
type Source struct {
	// Dir is the data directory.
	Dir string
	// URL is the address of a PostgreSQL database, which is used instead of the directory.
	URL string
	// SecretKey is the master key in hexadecimal or base64. If it is empty, the key is read from the data directory.
	SecretKey string
	// PreviousKey is the master key before SecretKey, which the database may still have.
	PreviousKey string
}

// GivenKeys returns the keys that the source names, or nil without one.
func (s Source) GivenKeys() (*sealing.Keys, error) {
	if s.SecretKey == "" {
		return nil, nil
	}
	var masters [][]byte
	for _, given := range []struct{ name, text string }{{"KONTOR_SECRET_KEY", s.SecretKey}, {"KONTOR_SECRET_KEY_PREVIOUS", s.PreviousKey}} {
		if given.text == "" {
			continue
		}
		key, err := sealing.ParseMasterKey(given.text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", given.name, err)
		}
		masters = append(masters, key)
	}
	return sealing.New(masters[0], masters[1:]...)
}

// keys returns the keys of the database, or nil without one.
func (s Source) keys() (*sealing.Keys, error) {
	if s.URL != "" {
		return s.GivenKeys()
	}
	return datadir.At(s.Dir).ExistingKeys(s.SecretKey, s.PreviousKey)
}

// open opens the database.
func (s Source) open(ctx context.Context) (engine.Inspection, error) {
	if s.URL != "" {
		return openInspection(postgres.Inspect(ctx, s.URL))
	}
	return openInspection(sqlite.OpenFile(datadir.At(s.Dir).File(datadir.Database)))
}

// openInspection keeps an engine's nil out of the interface.
func openInspection[T engine.Inspection](f T, err error) (engine.Inspection, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// Report says what a check has covered.
type Report struct {
	Schema       int64
	Bytes        int64
	AuditEntries int64
	// AuditHead is the hash of the newest audit entry, in hexadecimal; empty without one.
	AuditHead string
	// Commits is the number of the newest commit; 0 for a PostgreSQL database, and for one from before commits were counted.
	Commits int64
	// ChangedFields is how many entries have changed fields, which were compared with their digests.
	ChangedFields int64
	// Pages is how many pages were compared with their checksums; 0 for a database from before there were any.
	Pages int64
	// KeyChecked says that the master key was present: without it the signature of the newest audit entry is not verified.
	KeyChecked bool
	// MarkChecked says that the database was compared with the mark beside it.
	MarkChecked bool
}

// Further is a check of the same state of the database that only the modules can do. It runs last, and only with the key.
type Further func(context.Context, *audittrail.Evidence) error

// Check verifies a whole database: its pages and indexes, its references, the master key, the audit trail, and whether
// acknowledged writes are missing. further may be nil. The error is about the first fault that was found: ErrCorrupt,
// ErrWrongKey, ErrLoss, or an *audittrail.Break. If the master key is replaced meanwhile, the check begins again, and calls further
// again.
func Check(ctx context.Context, from Source, further Further) (report Report, err error) {
	err = besideRotations(ctx, from, func() error {
		report, err = checkOnce(ctx, from, further)
		return err
	})
	return report, err
}

func checkOnce(ctx context.Context, from Source, further Further) (Report, error) {
	if from.URL != "" {
		return checkDatabase(ctx, from, further)
	}
	d := datadir.At(from.Dir)
	keys, err := d.ExistingKeys(from.SecretKey, from.PreviousKey)
	if err != nil {
		return Report{}, err
	}
	path := d.File(datadir.Database)
	var guard *audittrail.Guard
	var mark sqlite.Mark
	if keys != nil {
		guard = audittrail.NewGuard(keys, path)
		if mark, err = sqlite.ReadMark(d); err != nil {
			return Report{}, err
		}
	}
	report, err := CheckFile(ctx, path, keys, further)
	if errors.Is(err, engine.ErrCorrupt) && keys != nil {
		err = nameChange(ctx, path, keys, further, err)
	}
	if err == nil && keys != nil && report.Schema > 0 {
		report.MarkChecked, err = sqlite.CompareMark(ctx, d, mark, guard)
	}
	return report, err
}

// checkDatabase verifies a PostgreSQL database. There is no mark beside it: the server keeps what it has acknowledged.
func checkDatabase(ctx context.Context, from Source, further Further) (report Report, err error) {
	keys, err := from.GivenKeys()
	if err != nil {
		return report, err
	}
	f, err := postgres.Inspect(ctx, from.URL)
	if err != nil {
		return report, err
	}
	defer f.Close()
	return check(ctx, f, keys, further)
}

// CheckFile verifies one database file, which may be in use, without the mark beside it. keys and further may be nil.
func CheckFile(ctx context.Context, path string, keys *sealing.Keys, further Further) (Report, error) {
	f, err := sqlite.OpenFile(path)
	if err != nil {
		return Report{}, err
	}
	defer f.Close()
	return check(ctx, f, keys, further)
}

// nameChange adds to the error of a damaged page what differs from the audit trail, if the database can be read without its
// checksums. A program that writes the file without updating the checksums leaves such pages.
func nameChange(ctx context.Context, path string, keys *sealing.Keys, further Further, damage error) error {
	f, err := sqlite.OpenFile(path)
	if err != nil {
		return damage
	}
	defer f.Close()
	f.IgnoreChecksums()
	_, err = check(ctx, f, keys, further)
	if err == nil || errors.Is(err, engine.ErrCorrupt) || errors.Is(err, engine.ErrIO) || ctx.Err() != nil {
		return damage
	}
	return fmt.Errorf("%w; the file differs from the audit trail: %w", damage, err)
}

// check verifies one state of a database.
func check(ctx context.Context, f engine.Inspection, keys *sealing.Keys, further Further) (report Report, err error) {
	report.Bytes = f.Bytes()
	if err := f.Begin(ctx); err != nil {
		return report, err
	}
	if report.Schema, err = f.Schema(); err != nil {
		return report, err
	}
	if keys != nil {
		if err := audittrail.CheckKey(ctx, f, keys, f.Path()); err != nil {
			return report, err
		}
		report.KeyChecked = true
	}
	if report.Pages, err = f.Verify(ctx); err != nil {
		return report, err
	}
	v := query.NewView(f, 0)
	if report.AuditEntries, err = audittrail.Verify(ctx, v, keys); err != nil {
		return report, err
	}
	if report.AuditHead, err = audittrail.HashOf(ctx, f, report.AuditEntries); err != nil && !errors.Is(err, engine.ErrNotFound) {
		return report, err
	}
	if report.Commits, err = commitsOf(ctx, f); err != nil {
		return report, err
	}
	if keys != nil && report.Schema >= audittrail.ValuesSchema {
		if report.ChangedFields, err = audittrail.VerifyValues(ctx, v, keys); err != nil {
			return report, err
		}
	}
	missing, err := f.Unprotected(ctx, audittrail.AppendOnlyTables())
	if err == nil && len(missing) > 0 {
		err = &audittrail.Break{Reason: "the triggers that protect it are missing: " + strings.Join(missing, ", ")}
	}
	if err != nil || keys == nil || further == nil {
		return report, err
	}
	return report, further(ctx, audittrail.NewEvidence(v, report.Schema, keys))
}

// commitsOf returns the number of the newest commit that a data directory holds.
func commitsOf(ctx context.Context, f engine.Inspection) (int64, error) {
	if file, ok := f.(*sqlite.File); ok {
		return file.Commits(ctx)
	}
	return 0, nil
}

// ExportAudit writes the audit trail of a database, from an entry on, with a signed head at the end. It needs the master key
// and returns sealing.ErrNoKey without it.
func ExportAudit(ctx context.Context, from Source, first int64, w io.Writer) (entries int64, err error) {
	err = withKeys(ctx, from, func(f engine.Inspection, keys *sealing.Keys) error {
		entries, err = audittrail.WriteExport(ctx, query.NewView(f, clock.Of(clock.System{}.Now())), keys, first, w)
		return err
	})
	return entries, err
}

// PublicExportKeys returns the public keys that verify exports of a database, in base64: the present one first, then those from
// before a rotation, the newest first. It needs the master key.
func PublicExportKeys(ctx context.Context, from Source) (public []string, err error) {
	err = withKeys(ctx, from, func(_ engine.Inspection, keys *sealing.Keys) error {
		public = audittrail.PublicExportKeys(keys)
		return nil
	})
	return public, err
}

// withKeys calls fn with one state of a database and its keys.
func withKeys(ctx context.Context, from Source, fn func(engine.Inspection, *sealing.Keys) error) error {
	var f engine.Inspection
	var keys *sealing.Keys
	if err := besideRotations(ctx, from, func() (err error) {
		f, keys, err = openWithKeys(ctx, from)
		return err
	}); err != nil {
		return err
	}
	defer f.Close()
	return fn(f, keys)
}

// openWithKeys returns one state of a database, which the caller closes, and its keys.
func openWithKeys(ctx context.Context, from Source) (engine.Inspection, *sealing.Keys, error) {
	keys, err := from.keys()
	if err == nil && keys == nil {
		err = sealing.ErrNoKey
	}
	if err != nil {
		return nil, nil, err
	}
	f, err := from.open(ctx)
	if err != nil {
		return nil, nil, err
	}
	if err = f.Begin(ctx); err == nil {
		err = audittrail.CheckKey(ctx, f, keys, f.Path())
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, keys, nil
}

// besideRotations calls look, and again while the master key is replaced in the meantime: look has then compared a later state
// of the files with an earlier key. The key that a process reads and the state of the database that it sees are not of one moment.
func besideRotations(ctx context.Context, from Source, look func() error) error {
	const most = 5
	for n := 1; ; n++ {
		before := keyCheck(ctx, from)
		err := look()
		if err == nil || n == most || ctx.Err() != nil || keyCheck(ctx, from) == before {
			return err
		}
	}
}

// keyCheck returns the check value of the master key, or "" if it cannot be read.
func keyCheck(ctx context.Context, from Source) (value string) {
	f, err := from.open(ctx)
	if err != nil {
		return ""
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return ""
	}
	return audittrail.KeyCheckValue(ctx, query.NewView(f, 0))
}
