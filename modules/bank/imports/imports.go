// Package imports turns the rows of a file into records, one by one and in the name of the caller who has sent the file.
//
// A file is checked while it arrives: a file that is no table is refused as a whole. It is stored encrypted, and a job on one node reads
// it row by row. A row becomes a record by the function that also creates it for a request, with the same rules, rights, quota and audit
// entry. Rows are written in small transactions, together with how far the job has come, so that a killed process continues where it
// stopped and no row is imported twice. A row that the same caller has imported before, from a file with the same content, is a duplicate. So
// is a row with an external id that staff gave to a record: one that its owner only claims is not found.
//
// The rights of the caller are those of the moment: an import ends when they do. The file cannot be read any more once the import has
// ended. The reasons of rejected rows have no values of the file, and are deleted after imports.keep_days.
//
// The module owns the tables imports, import_chunks, import_rejections and import_rows.
package imports

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"kontor/modules/kit/upload"
	"kontor/server/access"
	"kontor/server/endpoint"
	"kontor/server/shares"
	"kontor/store"
)

// Row is a checked row of a file. The module of the records implements it.
type Row interface {
	// ExternalID returns what identifies the record in the system that the file is from; empty: nothing does.
	ExternalID() string
	// Same returns the ids of the records with the external id that the caller of the context may list, at most two.
	Same(ctx context.Context, q store.Querier) ([]string, error)
	// Create creates the record in the name of the caller. It writes nothing when it returns apierr.QuotaExceeded.
	Create(ctx context.Context, tx *store.Tx) (id string, err error)
	// Update replaces the members of a record that the file has columns for, with a further write in its transaction.
	Update(ctx context.Context, id string, and func(tx *store.Tx) error) error
	// CheckUpdate returns the error that Update would return.
	CheckUpdate(ctx context.Context, q store.Querier, id string) error
	// Fits returns apierr.QuotaExceeded if Create would return it after a number of other records with a weight.
	Fits(ctx context.Context, q store.Querier, others, weight int64) error
	Weight() int64
}

// Records is the module of the records that files contain.
type Records interface {
	// Columns returns the columns that a file may have, and whether it must have them.
	Columns() map[string]bool
	// Begin prepares the stored records for an import.
	Begin(ctx context.Context) error
	// Prepare checks a row by its columns. It returns apierr.InvalidInput with the columns that are wrong.
	Prepare(ctx context.Context, cells map[string]string) (Row, error)
	// Readable returns which of the records the caller of the context may read.
	Readable(ctx context.Context, ids []string) (map[string]bool, error)
	// MayImport reports whether the caller may create records, and change them if updates is true.
	MayImport(caller *access.Caller, updates bool) bool
}

// Accounts is what the module needs to know about callers.
type Accounts interface {
	// CallerOf returns an active user with their roles; ok is false for a user who is not active.
	CallerOf(ctx context.Context, q store.Querier, id string) (caller *access.Caller, ok bool, err error)
}

// Options are the settings of the module. A zero value stands for the default of the setting.
type Options struct {
	MaxBytes int64 // of a file
	KeepDays int

	Policy   *access.Current
	TermsDue func() bool // reports whether a right has begun or ended that the tables do not show yet: nothing is imported meanwhile
	Texts    endpoint.Texts
	Log      *slog.Logger
}

// Service is the module.
type Service struct {
	Options
	db       *store.DB
	records  Records
	accounts Accounts
	uploads  *shares.Pool
	chunks   *upload.Chunks
}

// New returns the module on a database. Nothing is imported before [Service.Run].
func New(db *store.DB, records Records, accounts Accounts, o Options) *Service {
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.KeepDays = cmp.Or(o.KeepDays, 30)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Service{Options: o, db: db, records: records, accounts: accounts, uploads: shares.New(maxUploads, maxUploads/4), chunks: upload.NewChunks(db, upload.Table{From: importsTable, Label: label})}
}

const day = 24 * time.Hour
