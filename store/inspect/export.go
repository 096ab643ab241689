package inspect

import (
	"context"
	"io"

	"kontor/store/audittrail"
	"kontor/store/engine"
	"kontor/store/query"
	"kontor/store/sealing"
)

// ExportAudit writes the audit trail of a database, from an entry on, with a signed head at the end. It needs the master key
// and returns sealing.ErrNoKey without it.
func ExportAudit(ctx context.Context, from Source, first int64, w io.Writer) (entries int64, err error) {
	err = withKeys(ctx, from, func(f engine.Inspection, keys *sealing.Keys) error {
		entries, err = audittrail.WriteExport(ctx, query.NewView(f, from.Now()), keys, first, w)
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
