package inspect

import (
	"context"
	"io"

	"kontor/store/audittrail"
	"kontor/store/datadir"
	"kontor/store/query"
	"kontor/store/sealing"
	"kontor/store/sqlite"
)

// ExportAudit writes the audit trail of a database, from an entry on, with a signed head at the end. It needs the master key
// and returns sealing.ErrNoKey without it.
func ExportAudit(ctx context.Context, from Source, first int64, w io.Writer) (entries int64, err error) {
	keys, err := existingKeys(from)
	if err != nil {
		return 0, err
	}
	f, err := sqlite.OpenFile(datadir.At(from.Dir).File(datadir.Database))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	if err := f.Begin(ctx); err != nil {
		return 0, err
	}
	return audittrail.WriteExport(ctx, query.NewView(f, from.Now()), keys, first, w)
}

// PublicExportKey returns the public key that verifies exports of a database, in base64. It needs the master key.
func PublicExportKey(from Source) (string, error) {
	keys, err := existingKeys(from)
	if err != nil {
		return "", err
	}
	return audittrail.PublicExportKey(keys), nil
}

func existingKeys(from Source) (*sealing.Keys, error) {
	keys, err := datadir.At(from.Dir).ExistingKeys(from.SecretKey)
	if err == nil && keys == nil {
		err = sealing.ErrNoKey
	}
	return keys, err
}
