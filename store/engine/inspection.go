package engine

import "context"

// An Inspection reads a database without its Engine: beside the process that uses it, or without one. It must not change
// the database. Its methods belong to one goroutine at a time.
type Inspection interface {
	Source
	// Tables returns the names of the tables, as in Maintenance.
	Tables(ctx context.Context) ([]string, error)

	// Path names the database in messages, and Bytes is its size.
	Path() string
	Bytes() int64

	// Begin makes everything that follows see one state of the database, and end with the context.
	Begin(ctx context.Context) error
	// Schema returns the number of the newest migration that was applied, 0 for an empty database.
	Schema() (int64, error)
	// Verify verifies all of the storage: pages, indexes, and references between rows. The error is ErrCorrupt for damage,
	// and ErrIO for a read that failed. It returns how many pages were compared with a checksum.
	Verify(ctx context.Context) (pages int64, err error)
	// IgnoreChecksums makes reads accept damaged pages, to find out what differs. Call it before Begin.
	IgnoreChecksums()
	// Unprotected returns what is missing of the protection of append-only tables.
	Unprotected(ctx context.Context, tables []string) ([]string, error)

	// CopyTo writes one state of the database to an empty file.
	CopyTo(ctx context.Context, path string) error
	// Close ends the inspection.
	Close() error
}
